"""Checks of a delivery: each module has `check(delivery)`, and is found by itself."""
