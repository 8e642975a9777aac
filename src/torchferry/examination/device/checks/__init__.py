"""Checks of a machine with a vendor's device: each module has `check(station)`, and is found by itself."""
