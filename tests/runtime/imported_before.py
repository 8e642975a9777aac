"""A library that took names from torch before the layer was active, as `from torch.cuda import ...` does."""

from __future__ import annotations

from torch import load, tensor, zeros
from torch.amp import autocast
from torch.cuda import current_device, is_available
from torch.cuda.amp import GradScaler
from torch.cuda.amp import autocast as cuda_autocast
from torch.distributed import init_process_group
from torch.profiler import profile

__all__ = [
    "GradScaler",
    "autocast",
    "cuda_autocast",
    "current_device",
    "init_process_group",
    "is_available",
    "load",
    "profile",
    "tensor",
    "zeros",
]
