"""Writes down the operators of a running program."""
