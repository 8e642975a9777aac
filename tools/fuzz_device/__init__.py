"""Random programs, run step by step on the CPU and on the simulated device: values, strides, shared memory, versions,
gradients and errors must be the same."""
