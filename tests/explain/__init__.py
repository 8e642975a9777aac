"""Tests of `ferry explain`."""
