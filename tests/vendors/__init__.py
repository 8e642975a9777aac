"""Tests of the vendor data."""
