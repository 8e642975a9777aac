"""Runs the ranks of a test at once, and leaves none of them behind."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.sim.distributed.group import environment

PACKAGE = "tests.emulate.collectives"
_SECONDS = 600  # far more than any takes on a busy machine


@dataclass(frozen=True)
class Ended:
    """A process that is over."""

    code: int
    printed: str


def run(commands: Sequence[Sequence[str]], variables: Mapping[str, str] | None = None) -> list[Ended]:
    """Modules of this package with their arguments, one for each rank."""
    running = [
        subprocess.Popen(
            [sys.executable, "-m", f"{PACKAGE}.{module}", *arguments],
            env=environment(**variables or {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for module, *arguments in commands
    ]
    try:
        printed = [process.communicate(timeout=_SECONDS)[0] for process in running]
    finally:
        for process in running:
            process.kill()
            process.wait()
    return [Ended(process.returncode, text) for process, text in zip(running, printed, strict=True)]


def expect(ended: Sequence[Ended], codes: Sequence[int]) -> None:
    """Each has ended with its code."""
    assert [one.code for one in ended] == list(codes), "\n".join(one.printed[-4000:] for one in ended)
