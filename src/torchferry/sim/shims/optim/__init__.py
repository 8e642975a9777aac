"""The vendors' fused optimizers, computed one operator after the other: the same results as on the card."""

from __future__ import annotations

from torch.optim import Optimizer

from torchferry.sim.shims.optim import apex_style, npu, torch_style


def by_name(name: str) -> type[Optimizer] | None:
    """The optimizer that vendors mean by a name, apex's before torch's; None for a name that nothing public defines."""
    known = (module for module in (npu, apex_style, torch_style) if name in module.__all__)
    return next((getattr(module, name) for module in known), None)
