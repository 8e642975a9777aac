"""Wrong kernels in the simulated device: cases fail, and shrink to the smallest that fail alike."""
