"""Tests of vendors' own plugins on emulated toolkits."""
