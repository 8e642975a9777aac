"""Traces of profilers as columns: a hundred thousand events are a few arrays. Imports no torch."""
