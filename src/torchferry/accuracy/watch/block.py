"""Watches a block of code, for programs that ask for it themselves."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from torchferry.accuracy.model import Header, Kept
from torchferry.accuracy.record.outputs import file_of
from torchferry.accuracy.record.part import device_in_use, simulated_vendor
from torchferry.accuracy.record.program import rank_and_world
from torchferry.accuracy.record.steps import StepCounter
from torchferry.accuracy.watch.watcher import Watcher
from torchferry.errors import RunError

_CPU = "cpu"


@contextmanager
def watched_block(path: Path, every: int) -> Iterator[Watcher]:
    """The steps of optimizers inside of it are counted from 1."""
    if every < 1:
        raise RunError(f"watching: every={every}; it is a number of steps, from 1")
    rank, world = rank_and_world()
    device, vendor = device_in_use(), simulated_vendor()
    header = Header(
        Kept.STATISTICS, " ".join(sys.argv), device, torch.__version__, rank, world, vendor, bool(vendor)
    )
    on_host = frozenset({_CPU, device} if vendor else {_CPU})
    watcher = Watcher(file_of(path, rank, world), header, every, on_host)
    _counter().begin_anew()
    _at_work.append(watcher)
    watcher.begin(1)
    try:
        yield watcher
    finally:
        _at_work.remove(watcher)
        watcher.stop()


_at_work: list[Watcher] = []


@functools.cache
def _counter() -> StepCounter:
    """One for all: it stays in the process."""

    def ended(step: int) -> None:
        for watcher in list(_at_work):
            watcher.next_step(step + 1)

    counter = StepCounter(ended)
    counter.watch()
    return counter
