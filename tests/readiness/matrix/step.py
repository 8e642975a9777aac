"""One training step of a model of the catalogue: captured on the CPU, or made on a device that counts."""

from __future__ import annotations

import time
from collections import Counter

import torch
from torch import nn

from tests.sim.models.entry import Batch, ModelEntry
from tests.sim.models.training import update
from torchferry.readiness.capture.choices import as_on_device
from torchferry.readiness.capture.mode import CapturingMode
from torchferry.readiness.model import Capture
from torchferry.sim import native

_BUILD_SEED = 20210
_TRAIN_SEED = 7


class Step:
    """A model that is ready to take its first step."""

    def __init__(self, entry: ModelEntry, device: str) -> None:
        torch.manual_seed(_BUILD_SEED)
        self._entry = entry
        self._model: nn.Module = entry.build().to(device).train()
        self._batch: Batch = {name: value.to(device) for name, value in entry.batch().items()}
        self._optimizers = [
            entry.optimizer(
                [value for part in turn.parts for value in self._model.get_submodule(part).parameters()]
            )
            for turn in entry.turns
        ]

    def take(self) -> None:
        """All turns of it."""
        torch.manual_seed(_TRAIN_SEED)
        for turn, optimizer in zip(self._entry.turns, self._optimizers, strict=True):
            update(self._model, self._batch, turn, optimizer)


def capture_step(entry: ModelEntry) -> Capture:
    """The operators of one step, on the CPU."""
    begin = time.monotonic()
    with as_on_device():
        step = Step(entry, "cpu")
        mode = CapturingMode()
        mode.where.has_begun = True  # a loss may compute something before it calls the model
        with mode.switched_on():
            step.take()
    return Capture(
        program=entry.name,
        origin="model",
        device="cpu",
        torch=torch.__version__,
        steps=1,
        seconds=time.monotonic() - begin,
        uses=mode.uses(),
        modules=mode.modules(),
        notes=tuple(sorted(mode.notes)),
    )


def missing_in_step(entry: ModelEntry, device: str) -> dict[str, int]:
    """How often the simulated device met each operator that its vendor lacks, in one step."""
    step = Step(entry, device)
    before = _missing()
    step.take()
    return dict(_missing() - before)


def _missing() -> Counter[str]:
    calls: Counter[str] = Counter()
    for use in native.operator_uses():
        if use.verdict in (native.OperatorVerdict.FALLS_BACK, native.OperatorVerdict.RAISES):
            calls[use.name] += use.calls
    return calls
