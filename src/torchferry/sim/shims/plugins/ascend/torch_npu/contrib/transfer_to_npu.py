"""Importing this makes torch.cuda, `.cuda()`, "cuda" and "nccl" mean the simulated NPU."""

from typing import Any

import torch.profiler

from torchferry.sim.shims import require_simulator
from torchferry.sim.shims.migration import migrate

from .. import profiler


def _replace_profiler() -> None:
    """torch.profiler's names become those of the adapter's profiler, which knows what CUDA's activity means."""
    for name in ("profile", "schedule", "tensorboard_trace_handler"):
        setattr(torch.profiler, name, getattr(profiler, name))


def _replace_double_tensor() -> None:
    """The card has no float64 worth the name: the migration hands out float32."""
    cuda: Any = torch.cuda
    cuda.DoubleTensor = cuda.FloatTensor


migrate(require_simulator("torch_npu"))
_replace_profiler()
_replace_double_tensor()
