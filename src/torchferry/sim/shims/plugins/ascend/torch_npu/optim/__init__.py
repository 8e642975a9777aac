"""torch_npu.optim: the fused optimizers of the adapter."""

from torchferry.sim.shims.optim import npu
from torchferry.sim.shims.optim.npu import *  # noqa: F403

__all__ = npu.__all__
