"""Importing this makes torch.cuda, `.cuda()`, "cuda" and "nccl" mean the simulated NPU."""

from typing import Any

import torch

from torchferry.sim.shims import require_simulator
from torchferry.sim.shims.modules import migrate

migrate(require_simulator("torch_npu"))
# The card has no float64 worth the name: the migration hands out float32.
_cuda: Any = torch.cuda
_cuda.DoubleTensor = _cuda.FloatTensor
