"""Watches a block of code, for programs that ask for it themselves."""

from __future__ import annotations

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
from torchferry.observe.patching import Patches

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
    patches = Patches()
    try:
        StepCounter(lambda step: watcher.next_step(step + 1)).watch(patches)
        watcher.begin(1)
        yield watcher
    finally:
        patches.take_back()
        watcher.stop()
