"""torch_musa.optim: torch's Adam and AdamW, and apex's LAMB."""

from torchferry.sim.shims.optim.apex_style import FusedLAMB
from torchferry.sim.shims.optim.torch_style import FusedAdam, FusedAdamW

__all__ = ["FusedAdam", "FusedAdamW", "FusedLAMB"]
