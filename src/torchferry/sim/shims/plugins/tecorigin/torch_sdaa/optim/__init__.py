"""torch_sdaa.optim: published ports put these where torch.optim's Adam, SGD and a LARS of their own were."""

from torchferry.sim.shims.optim.torch_style import FusedAdam, FusedIntelLARS, FusedSGD

__all__ = ["FusedAdam", "FusedIntelLARS", "FusedSGD"]
