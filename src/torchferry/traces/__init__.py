"""Traces of profilers, read for captures, records and analyses. Imports no torch."""
