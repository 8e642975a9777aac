"""Holds the simulated device against the vendor's own plugin on its emulated toolkit: the same programs on both."""
