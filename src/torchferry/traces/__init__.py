"""Traces of profilers, read for captures, records and analyses. Imports no torch."""

LIBRARIES = ("numpy", "msgspec")  # that its readers import
EXTRA = "'torchferry[perf]'"  # what brings them, as a shell takes it
