"""TorchFerry carries PyTorch training code written for NVIDIA GPUs to other accelerators."""

__version__ = "0.1.0"
