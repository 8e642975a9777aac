"""torch_mlu.optimizers: apex's fused optimizers as the adapter ships them."""

from torchferry.sim.shims.optim.apex_style import *  # noqa: F403
