"""Captures the operators that a process calls: a dispatch mode, folded into a small table."""
