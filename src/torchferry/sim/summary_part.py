"""A process's own part of the summary, written when it ends."""

from __future__ import annotations

import atexit
import os
import time
from contextlib import suppress
from pathlib import Path

import torch

from torchferry.sim import native
from torchferry.sim.summary import BEGAN, REPORTED, DeviceUse, OperatorCount, Part, write_part


def report_at_exit(folder: Path) -> None:
    """Note that this process began; when it ends by itself, leave what it used, or nothing if it used nothing."""
    name = f"{os.getpid()}-{time.time_ns()}"
    began = folder / f"{name}{BEGAN}"
    with suppress(OSError):  # the launcher was killed, nobody will read it
        began.touch()
        atexit.register(_report, began, os.getpid())


def _report(began: Path, process: int) -> None:
    if os.getpid() != process:  # forked later: the counts are those of its parent
        return
    part = collect()
    with suppress(OSError):
        if part is not None:
            write_part(part, began.with_suffix(REPORTED))
        began.unlink()


def collect() -> Part | None:
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
    return Part(
        pid=os.getpid(),
        rank=_number("RANK"),
        restart=_number("TORCHELASTIC_RESTART_COUNT") or 0,
        torch=str(torch.__version__),
        devices=devices,
        operators=operators,
        dtypes=tuple(native.narrowed_dtypes().items()),
    )


def _number(variable: str) -> int | None:
    value = os.environ.get(variable, "")
    return int(value) if value.isdigit() else None
