"""Profiler traces, read as captures. Imports no torch."""

from torchferry.readiness.trace.reader import read_trace

__all__ = ["read_trace"]
