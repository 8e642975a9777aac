"""The reference: a process in which CUDA means the CPU, so that the original of a proof runs unchanged."""
