"""Starts programs on a vendor's device, real or simulated, and makes every Python process below take part."""
