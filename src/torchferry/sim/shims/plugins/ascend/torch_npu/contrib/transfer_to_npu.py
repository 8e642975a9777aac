"""Importing this makes torch.cuda, `.cuda()`, "cuda" and "nccl" mean the simulated NPU."""

from typing import Any

import torch

from torchferry.sim.shims import require_simulator
from torchferry.sim.shims.modules import migrate


def _replace_double_tensor() -> None:
    """The card has no float64 worth the name: the migration hands out float32."""
    cuda: Any = torch.cuda
    cuda.DoubleTensor = cuda.FloatTensor


migrate(require_simulator("torch_npu"))
_replace_double_tensor()
