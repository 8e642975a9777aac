"""Detectors of bottlenecks, one file each."""
