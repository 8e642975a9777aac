"""A process's own part of the summary, written when it ends."""

from __future__ import annotations

import atexit
import os
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import torch

from torchferry.observe.patching import Patches
from torchferry.observe.program import before_hard_exit
from torchferry.sim import native
from torchferry.sim.summary import BEGAN, REPORTED, DeviceUse, OperatorCount, SimulatedProcess, write_part


def report_at_exit(folder: Path, counters: Callable[[], SimulatedProcess | None] | None = None) -> None:
    """Note that this process began; when it ends by itself, leave what it used, or nothing if it used nothing.

    A fork of it leaves a part of its own, with what it has used since the fork. `counters` tell what was used of a
    device that is not the simulated one.
    """
    with suppress(OSError):  # the launcher was killed, nobody will read it
        report = _PartReport(folder, counters or collect)
        atexit.register(report.write)
        before_hard_exit(Patches(), report.write)
        os.register_at_fork(before=report.before_fork, after_in_child=report.after_fork)


class _PartReport:
    """This process's part, written once."""

    def __init__(self, folder: Path, counters: Callable[[], SimulatedProcess | None]) -> None:
        self._folder = folder
        self._counters = counters
        self._inherited: SimulatedProcess | None = None
        self._began: Path | None = self._file(BEGAN)
        self._began.touch()
        self._written = False

    def before_fork(self) -> None:
        """What the parent has used is not the child's; the compiled half goes on counting from there."""
        self._at_fork = self._counters()

    def after_fork(self) -> None:
        """In the child."""
        self._inherited, self._began, self._written = self._at_fork, None, False

    def write(self) -> None:
        """Leave the part, and take the note back."""
        if self._written:
            return
        self._written = True
        part = since(self._inherited, self._counters())
        with suppress(OSError):
            if part is not None:
                write_part(part, self._file(REPORTED))
            if self._began is not None:
                self._began.unlink()

    def _file(self, suffix: str) -> Path:
        return self._folder / f"{os.getpid()}-{time.time_ns()}{suffix}"


def since(before: SimulatedProcess | None, now: SimulatedProcess | None) -> SimulatedProcess | None:
    """What was used between two looks at the same counters; None for nothing."""
    if before is None or now is None:
        return now
    known = {use.index: use for use in before.devices}
    devices = tuple(use for use in now.devices if use != known.get(use.index))
    calls = {operator.name: operator.calls for operator in before.operators}
    operators = tuple(
        replace(operator, calls=operator.calls - calls.get(operator.name, 0))
        for operator in now.operators
        if operator.calls > calls.get(operator.name, 0)
    )
    dtypes = tuple((Counter(dict(now.dtypes)) - Counter(dict(before.dtypes))).items())
    if not devices and not operators:
        return None
    return replace(now, devices=devices, operators=operators, dtypes=dtypes)


def collect() -> SimulatedProcess | None:
    """What this process has used so far; None if it never touched the device."""
    uses = [(index, native.memory_use(index)) for index in range(native.device_count())]
    devices = tuple(
        DeviceUse(
            index=index,
            peak_allocated=use.peak_allocated,
            peak_reserved=use.peak_reserved,
            limit=use.limit,
            allocations=use.allocations,
            out_of_memory=use.out_of_memory,
        )
        for index, use in uses
        if use.allocations or use.out_of_memory
    )
    operators = tuple(
        OperatorCount(use.name, use.calls, use.verdict.name.lower()) for use in native.operator_uses()
    )
    if not devices and not operators:
        return None
    return SimulatedProcess(
        pid=os.getpid(),
        rank=number_in("RANK"),
        restart=number_in("TORCHELASTIC_RESTART_COUNT") or 0,
        torch=str(torch.__version__),
        devices=devices,
        operators=operators,
        dtypes=tuple(native.narrowed_dtypes().items()),
    )


def number_in(variable: str) -> int | None:
    """A variable that launchers set; None where there is none."""
    value = os.environ.get(variable, "")
    return int(value) if value.isdigit() else None
