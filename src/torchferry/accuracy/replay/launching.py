"""Replays records in a process of its own, on a vendor's device, a simulated one, or one that PyTorch has. Imports no
torch."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from torchferry.accuracy.record.selection import Selection
from torchferry.accuracy.replay.request import Outcome, Request
from torchferry.errors import InputError, RunError
from torchferry.files.aside import remove_leftovers, temporary_folder
from torchferry.launch.devices import settings_of
from torchferry.launch.environment import child_environment
from torchferry.launch.plugin import Means
from torchferry.launch.supervise import run_supervised, stop_if_told
from torchferry.vendors.model import Vendor

_WORKER = "torchferry.accuracy.replay.worker"


@dataclass(frozen=True)
class Target:
    """Where the calls are made."""

    device: str
    vendor: Vendor | None = None
    simulated: bool = False
    vendor_paths: tuple[str, ...] = ()
    emulated: bool = False


def replay_record(
    record: Path, output: Path, target: Target, selection: Selection, shows_progress: bool = False
) -> Outcome:
    """Write a record with the results of a device; the file appears when it is complete."""
    with temporary_folder() as folder:
        asked, answer, last = (Path(folder) / name for name in ("request.json", "answer.json", "last"))
        vendor = target.vendor
        request = Request(
            str(record), str(output), target.device, vendor.name if vendor else "", target.simulated, str(last),
            vendor.plugin if vendor is not None and not target.simulated else "",
            selection.modules, selection.operators, selection.phases, shows_progress,
        )  # fmt: skip
        asked.write_text(request.encode(), "utf-8")
        try:
            ending = run_supervised(
                [sys.executable, "-m", _WORKER, str(asked), str(answer)], _environment(target), is_ours=True
            )
        finally:
            remove_leftovers(output.parent)  # of a process that crashed or was ended
            if shows_progress:
                print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        stop_if_told(ending)
        if not answer.exists():
            at = last.read_text("utf-8", "replace").strip() if last.exists() else ""
            where = f" in {at}" if at else ""
            raise RunError(
                f"{record}: the process that replays it ended with exit code {ending.exit_code}{where}; what it said "
                "is above; --op leaves operators out"
            )
        outcome = Outcome.decode(answer.read_text("utf-8"))
        if outcome.problem:
            raise InputError(outcome.problem)
        return outcome


def _environment(target: Target) -> dict[str, str]:
    vendor = target.vendor
    if vendor is None:
        return child_environment(os.environ, None, None, None)
    means = Means.EMULATED if target.emulated else Means.SIMULATED if target.simulated else Means.REAL
    device = settings_of(means, vendor, 1, vendor_paths=target.vendor_paths)
    return child_environment(os.environ, vendor, device, None)
