"""Forked processes: a vendor's device can't be used in a fork of a process that has used it already."""

from __future__ import annotations

import os

import torch

from torchferry.sim import native


class _Fork:
    """Whether this process was forked from one that had used the device."""

    def __init__(self) -> None:
        self.used_before = False
        self.bad = False

    def before(self) -> None:
        """Ask while no other thread can hold the allocator's lock for ever."""
        self.used_before = any(_used(device) for device in range(native.device_count()))

    def after_in_child(self) -> None:
        """A fork of a fork stays bad. Every operator needs memory for its result: without it none runs."""
        if self.used_before and not self.bad:
            self.bad = True
            native.forbid_memory(refusal())


def _used(device: int) -> bool:
    use = native.memory_use(device)
    return use.allocated > 0 or use.allocations > 0


def refusal() -> str:
    """What to say to a forked process that uses the device."""
    name = torch._C._get_privateuse1_backend_name().upper()
    return (
        f"Cannot re-initialize {name} in forked subprocess. To use {name} with multiprocessing, "
        "you must use the 'spawn' start method"
    )


_fork = _Fork()


def watch() -> None:
    """Begin to notice forks of this process."""
    os.register_at_fork(before=_fork.before, after_in_child=_fork.after_in_child)


def in_bad_fork() -> bool:
    """Whether this is a fork of a process that had used the device."""
    return _fork.bad
