"""The comparison itself: it sees a difference of one bit, parameters that don't train, and wrong devices."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from .entry import Batch, ModelEntry, Origin, Turn, trained_with
from .training import STEPS, compare


def _entry(
    loss: Callable[[nn.Module, Batch], Tensor], *turns: Turn, model: type[nn.Module] = nn.Bilinear
) -> ModelEntry:
    return ModelEntry(
        "toy",
        Origin.OWN,
        "here",
        build=lambda: model(3, 3, 2),
        batch=lambda: {"left": torch.randn(4, 3), "right": torch.randn(4, 3)},
        turns=turns or trained_with(loss),
    )


def _loss(model: nn.Module, batch: Batch) -> Tensor:
    output: Tensor = model(batch["left"], batch["right"])
    return output.square().mean()


def test_equal_runs_are_equal() -> None:
    comparison = compare(_entry(_loss), "cpu")
    assert comparison.equal
    assert comparison.losses == comparison.device_losses
    assert len(comparison.losses) == STEPS
    assert comparison.devices == ["cpu"]
    assert not comparison.unchanged
    assert comparison.without_gradient == []
    assert comparison.parameters == 3 * 3 * 2 + 2


def test_one_bit_is_seen() -> None:
    calls = []

    def disturbed(model: nn.Module, batch: Batch) -> Tensor:
        calls.append(model)
        loss = _loss(model, batch)
        last = len(calls) == 2 * STEPS
        return torch.nextafter(loss, loss + 1) if last else loss

    comparison = compare(_entry(disturbed), "cpu")
    assert not comparison.equal
    assert comparison.different_losses == [STEPS - 1]


def test_a_different_parameter_is_named() -> None:
    calls = []

    def disturbed(model: nn.Module, batch: Batch) -> Tensor:
        calls.append(model)
        if len(calls) == 2 * STEPS:
            with torch.no_grad():
                model.get_parameter("bias").add_(1)
        return _loss(model, batch)

    assert "bias" in compare(_entry(disturbed), "cpu").different_state


def test_a_parameter_without_gradient_is_named() -> None:
    def weight_only(model: nn.Module, batch: Batch) -> Tensor:
        return model.get_parameter("weight").sum()

    assert compare(_entry(weight_only), "cpu").without_gradient == ["bias"]


def test_training_without_effect_is_seen() -> None:
    def flat(model: nn.Module, batch: Batch) -> Tensor:
        return 0 * _loss(model, batch)

    entry = _entry(flat)
    still = ModelEntry(**{**vars(entry), "optimizer": lambda parameters: torch.optim.SGD(parameters, lr=0.1)})
    assert compare(still, "cpu").unchanged


def test_each_turn_updates_its_part_only() -> None:
    class Pair(nn.Module):
        def __init__(self, *sizes: int):
            super().__init__()
            self.first, self.second = nn.Bilinear(*sizes), nn.Bilinear(*sizes)

    seen = []

    def watching(model: nn.Module, batch: Batch) -> Tensor:
        seen.append({name: value.detach().clone() for name, value in model.named_parameters()})
        both = (_loss(model.get_submodule(part), batch) for part in ("first", "second"))
        return sum(both, torch.zeros(()))

    compare(_entry(watching, Turn(watching, ("first",)), Turn(watching, ("second",)), model=Pair), "cpu")
    before, between = seen[:2]
    changed = {name for name, value in before.items() if not torch.equal(value, between[name])}
    assert changed == {"first.weight", "first.bias"}
