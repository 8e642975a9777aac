"""apex.optimizers: apex's own, and those that the vendor's build adds to them."""

from torchferry.sim.shims import require_simulator
from torchferry.sim.shims.optim import by_name
from torchferry.sim.shims.optim.apex_style import FusedAdam, FusedLAMB, FusedSGD

__all__ = ["FusedAdam", "FusedLAMB", "FusedSGD"]

for _name in require_simulator("apex").fused_optimizers:
    if _name not in globals():
        globals()[_name] = by_name(_name)
