"""Compares the simulated device with the CPU, operator by operator, on the samples that PyTorch itself tests with."""
