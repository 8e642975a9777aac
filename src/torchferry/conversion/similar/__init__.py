"""Calls that have an equivalent: their arguments bound to a signature, and written into another expression."""
