"""Reads what a release of a vendor's plugin has: operators and names, of the running plugin or of its wheel."""
