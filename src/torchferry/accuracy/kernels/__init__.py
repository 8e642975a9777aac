"""Which kernels of a device an operator launched, from a profiler's trace."""
