"""Profiler traces, read as captures. Imports no torch."""

from torchferry.ops.trace.reader import read_trace

__all__ = ["read_trace"]
