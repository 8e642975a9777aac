"""Measures how long one call of a case takes on each device, in turns, so that what slows the machine down slows all."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

_ROUNDS = 15  # a call of each device after the other, so often
_FEWEST = 5  # rounds of calls that take long
_SAMPLE = 2e-3  # seconds that are measured at once: many short calls
_SECONDS = 3.0  # for all rounds of one device
_MOST_CALLS = 10_000
_CPU = torch.device("cpu")


def measured(module: Any) -> dict[str, list[float]]:
    """Seconds that one call takes, in each round, by the device's type: the CPU's, the case's, and a GPU's."""
    device = module.place()
    devices = [_CPU, device]
    if device.type != "cuda" and torch.cuda.is_available():
        devices.append(torch.device("cuda", 0))
    calls = {each.type: _call(module, each) for each in devices}
    with torch.no_grad():
        counts = {kind: _calls_at_once(call) for kind, call in calls.items()}
        found: dict[str, list[float]] = {kind: [] for kind in calls}
        longest = max(_time(call, 1) for call in calls.values())
        rounds = max(_FEWEST, min(_ROUNDS, int(_SECONDS / max(longest, _SAMPLE))))
        for _ in range(rounds):
            for kind, call in calls.items():
                found[kind].append(_time(call, counts[kind]))
    return found


def _call(module: Any, device: torch.device) -> Callable[[int], None]:
    """What makes the call so many times, and waits for the device."""
    operator = module.placed(module.operator(), device)
    args, kwargs = module.moved(module.inputs(), device)
    waits = getattr(getattr(torch, device.type, None), "synchronize", None)

    def call(count: int) -> None:
        for _ in range(count):
            operator(*args, **kwargs)
        if waits is not None and device.type != "cpu":
            waits()

    return call


def _calls_at_once(call: Callable[[int], None]) -> int:
    """So many that a clock can measure them; the first ones, in which kernels are chosen, do not count."""
    call(3)
    return max(1, min(_MOST_CALLS, int(_SAMPLE / max(_time(call, 1), 1e-7))))


def _time(call: Callable[[int], None], count: int) -> float:
    start = time.perf_counter()
    call(count)
    return (time.perf_counter() - start) / count
