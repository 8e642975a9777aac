"""The check of a block of code, for programs that ask for it themselves."""

from __future__ import annotations

import sys
from pathlib import Path
from types import TracebackType

import torch

from torchferry.accuracy.model import Header, Kept
from torchferry.accuracy.overflow import words
from torchferry.accuracy.overflow.calls import CheckedCall
from torchferry.accuracy.overflow.check import CheckOptions, OverflowCheck
from torchferry.accuracy.overflow.mode import CheckingMode
from torchferry.accuracy.overflow.model import Event, Standing
from torchferry.accuracy.overflow.report import where
from torchferry.accuracy.overflow.saving import save_call
from torchferry.accuracy.record.part import device_in_use, simulated_vendor
from torchferry.accuracy.record.program import rank_and_world
from torchferry.observe.scalers import unwatch_scalers, watch_scalers
from torchferry.text import user_language

_CPU = "cpu"


class CheckedBlock:
    """Prints the first operator that overflows, and saves its inputs; the program goes on."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._device, self._vendor = device_in_use(), simulated_vendor()
        self._on_host = frozenset({_CPU, self._device} if self._vendor else {_CPU})
        self._check = OverflowCheck(CheckOptions(host_devices=self._on_host), self._save, self._tell)
        self._mode = CheckingMode(self._check)

    @property
    def events(self) -> tuple[Event, ...]:
        """All overflows so far."""
        return tuple(event for event in self._check.events if event.standing is Standing.FOUND)

    def __enter__(self) -> CheckedBlock:
        watch_scalers(self._check.scaled)
        self._mode.switch_on()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._mode.switch_off()
        unwatch_scalers(self._check.scaled)
        self._check.leave()
        if self._path is not None and not self.events:
            self._path.unlink(missing_ok=True)  # a scaler has handled it

    def _tell(self, event: Event) -> None:
        if len(self.events) == 1:
            said = words.FOUND[event.kind] if not event.why else words.GIVEN
            language = user_language()
            line = said.format(operator=event.call.operator).in_language(language)
            print(
                f"torchferry: {line} ({where(event.call).in_language(language)})", file=sys.stderr, flush=True
            )

    def _save(self, call: CheckedCall) -> str:
        if self._path is None:
            return ""
        program, (rank, world) = " ".join(sys.argv), rank_and_world()
        header = Header(
            Kept.TENSORS,
            program,
            self._device,
            torch.__version__,
            rank,
            world,
            self._vendor,
            bool(self._vendor),
        )
        save_call(self._path, header, call, self._mode.where.role_of, self._on_host)
        return str(self._path)
