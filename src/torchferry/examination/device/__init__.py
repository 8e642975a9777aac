"""`ferry doctor`: whether a vendor's device can be used on this machine, and what is in the way."""
