"""Holds two records against each other."""
