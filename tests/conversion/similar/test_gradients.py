"""Optimizers that join all gradients: only for programs that never set one to None."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import findings, rewritten

_MADE = "import torch\nmodel.to(device)\noptimizer = torch.optim.AdamW(model.parameters(), lr=0.1)\n"


@pytest.mark.parametrize(
    "use",
    [
        "optimizer.zero_grad()",
        "self.opt.zero_grad()",
        "optimizer_G.zero_grad()",
        "optimizer.zero_grad(set_to_none=False)",
    ],
)
def test_gradients_that_stay(use: str) -> None:
    assert "torch_npu.optim.NpuFusedAdamW(" in rewritten(f"{_MADE}{use}\n", "ascend", "similar")


@pytest.mark.parametrize(
    "use",
    ["optimizer.zero_grad(set_to_none=True)", "model.zero_grad()", "self.net.zero_grad()", "p.grad = None"],
)
def test_gradients_that_are_dropped(use: str) -> None:
    source = f"{_MADE}{use}\n"
    assert "torch.optim.AdamW(" in rewritten(source, "ascend", "similar")
    (item,) = findings(source, "ascend", "similar", rule="TF730")
    assert item.kind.value == "info"
    assert "sets gradients to None" in item.message.en


def test_other_optimizers_don_t_mind() -> None:
    source = f"{_MADE}optimizer.zero_grad(set_to_none=True)\n"
    assert "torch_mlu.optimizers.FusedAdam(" in rewritten(source, "cambricon", "similar")
