"""Reads logs of any size, plain or packed: which files are logs, and their bytes in blocks. Imports no torch."""
