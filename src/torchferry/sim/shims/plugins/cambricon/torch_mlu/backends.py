"""torch.backends.mlu, .cnnl and .mlufusion: the adapter's switches; attention has PyTorch's own ones."""

from __future__ import annotations

from types import SimpleNamespace

import torch

from torchferry.sim.device_module.runtime import PlanCache
from torchferry.sim.shims.modules import add_backend

# The choice of an attention kernel is PyTorch's own; the adapter has it under its name.
_ATTENTION = (
    "SDPAParams",
    "can_use_efficient_attention",
    "can_use_flash_attention",
    "enable_flash_sdp",
    "enable_math_sdp",
    "enable_mem_efficient_sdp",
    "flash_sdp_enabled",
    "math_sdp_enabled",
    "mem_efficient_sdp_enabled",
    "sdp_kernel",
)

mlu = add_backend(
    "mlu",
    matmul=SimpleNamespace(allow_tf32=False),
    cnfft_plan_cache=PlanCache(),
    **{name: getattr(torch.backends.cuda, name) for name in _ATTENTION if hasattr(torch.backends.cuda, name)},
)
cnnl = add_backend("cnnl", allow_tf32=True)
mlufusion = add_backend("mlufusion", enabled=True)
