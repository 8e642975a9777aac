"""The process in which calls are made again: python -m torchferry.accuracy.replay.worker REQUEST ANSWER"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import warnings
from dataclasses import asdict
from pathlib import Path

import torch

from torchferry.accuracy.file.reader import open_record
from torchferry.accuracy.model import Call, Header, Kept
from torchferry.accuracy.record.selection import Selection
from torchferry.accuracy.replay.alone import Progress, replay
from torchferry.accuracy.replay.request import LAST_LENGTH, Outcome, Request
from torchferry.errors import FerryError, RunError
from torchferry.sim.here import fallback_calls

_TICK = 0.1  # seconds between two looks of the progress
_WIDTH = 30


def main() -> None:
    """Replay one record, and leave an answer."""
    request = Request.decode(Path(sys.argv[1]).read_text("utf-8"))
    warnings.simplefilter("ignore")  # what falls back to the CPU is told at the end
    if request.plugin:
        importlib.import_module(request.plugin)
    try:
        outcome = _replayed(request)
    except FerryError as error:
        outcome = Outcome(problem=str(error))
    Path(sys.argv[2]).write_text(json.dumps(asdict(outcome)), "utf-8")


def _replayed(request: Request) -> Outcome:
    _check_device(request.device)
    selection = Selection(request.modules, request.operators, request.phases)

    def is_wanted(call: Call) -> bool:
        return selection.has_operator(call.operator) and selection.has_site(
            call.phase, call.model, call.module
        )

    with open_record(Path(request.record)) as record, open(request.last, "wb", buffering=0) as last:
        header = Header(
            Kept.TENSORS, record.header.program, torch.device(request.device).type, torch.__version__,
            record.header.rank, record.header.world, request.vendor, request.simulated, request.record,
            selection.describe(),
        )  # fmt: skip
        show = _progress(request.shows_progress)

        def progress(done: int, count: int, operator: str) -> None:
            os.pwrite(last.fileno(), operator.encode()[:LAST_LENGTH].ljust(LAST_LENGTH), 0)
            show(done, count, operator)

        found = replay(record, Path(request.output), request.device, header, is_wanted, progress)
    return Outcome(found.calls, found.nbytes, found.left, tuple(sorted(fallback_calls())))


def _check_device(name: str) -> None:
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        said = str(error).strip().splitlines()
        raise RunError(f"{name}: no device that can be used here ({said[0] if said else error!r})") from None


def _progress(is_shown: bool) -> Progress:
    if not is_shown:
        return lambda _done, _count, _operator: None
    due = [0.0]

    def show(done: int, count: int, operator: str) -> None:
        now = time.monotonic()
        if now < due[0]:
            return
        due[0] = now + _TICK
        bar = "#" * (_WIDTH * done // max(1, count))
        print(
            f"\r\x1b[K[{bar:<{_WIDTH}}] {done}/{count}  {operator[:40]}", end="", file=sys.stderr, flush=True
        )

    return show


if __name__ == "__main__":
    main()
