"""The vendors' fused optimizers, computed one operator after the other: the same results as on the card."""

from __future__ import annotations

from torch.optim import Optimizer

from torchferry.sim.shims.optim import apex_style, npu, torch_style


def by_name(name: str) -> type[Optimizer] | None:
    """The optimizer that vendors mean by a name; None for a name that nothing public defines."""
    known = {**torch_style.OPTIMIZERS, **apex_style.OPTIMIZERS, **npu.OPTIMIZERS}
    return known.get(name)
