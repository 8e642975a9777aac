"""One random program, run step by step on both sides."""

from __future__ import annotations

import random
from collections.abc import Callable

from .state import Outcome, Raised, Side, difference, observations, run
from .steps import random_step


def first_difference(
    choose: random.Random, device: str, steps: int, tell: Callable[[str], None] | None = None
) -> str:
    """What the device does otherwise than the CPU in a program, and after which steps; "" if nothing."""
    cpu, there = Side("cpu"), Side(device)
    done: list[str] = []
    for _ in range(steps):
        step = random_step(choose, cpu.tensors)
        done.append(step.words)
        sizes = [tensor.numel() for tensor in cpu.tensors]
        expected, found = run(step.do, cpu), run(step.do, there)
        if isinstance(expected, Raised) and "not implemented for '" in expected.message:
            return ""  # a half precision that the CPU lacks: the device goes on, the CPU can't
        if tell:
            tell(f"{step.words}: {expected if isinstance(expected, Raised) else len(expected)}")
        words = _compared(expected, found, cpu, there)
        resized = isinstance(expected, Raised) and sizes != [tensor.numel() for tensor in cpu.tensors]
        if resized and (not words or ": values: " in words):
            return ""  # out= was resized before the error: its values are undefined
        if words:
            return f"step {len(done)} ({step.words}): {words}; before it: {'; '.join(done[:-1])}"
    return ""


def _compared(expected: Outcome, found: Outcome, cpu: Side, there: Side) -> str:
    if isinstance(expected, Raised) or isinstance(found, Raised):
        if not (isinstance(expected, Raised) and isinstance(found, Raised)):
            return f"{_words(expected)} on the CPU, {_words(found)} on the device"
        if expected.kind != found.kind:
            return f"{expected} on the CPU, {found} on the device"
    elif len(expected) != len(found):
        return f"{len(expected)} tensors on the CPU, {len(found)} on the device"
    else:
        cpu.keep(expected)
        there.keep(found)
    return difference(observations(cpu), observations(there))


def _words(outcome: Outcome) -> str:
    return str(outcome) if isinstance(outcome, Raised) else "no error"
