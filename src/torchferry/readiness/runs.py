"""Runs a user's program as a process of its own and gathers the operators that it calls. Imports no torch."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from torchferry.errors import RunError
from torchferry.files.aside import temporary_folder
from torchferry.launch.environment import environment_at
from torchferry.launch.place import DeviceKind, Place
from torchferry.launch.program import Program
from torchferry.launch.supervise import own_stderr, run_supervised, stop_if_told
from torchferry.readiness import capture_json
from torchferry.readiness.capture.settings import SUFFIX, CaptureSettings
from torchferry.readiness.model import Capture, OperatorSite, Signature, Use

# One capture from those of several processes.


def merged(captures: Sequence[Capture]) -> Capture:
    """The processes that trained, added up; helpers that called an operator or two only where nobody trained."""
    trained = [capture for capture in captures if capture.steps] or list(captures)
    first = trained[0]
    return replace(
        first,
        steps=max(capture.steps for capture in trained),
        seconds=max(capture.seconds for capture in trained),
        processes=len(trained),
        uses=_added(trained),
        modules=tuple(dict.fromkeys(module for capture in trained for module in capture.modules)),
        notes=tuple(dict.fromkeys(note for capture in trained for note in capture.notes)),
    )


def _added(captures: Sequence[Capture]) -> tuple[Use, ...]:
    if len(captures) == 1:
        return captures[0].uses
    found: dict[tuple[Signature, OperatorSite], Use] = {}
    for use in (use for capture in captures for use in capture.uses):
        key = (use.signature, use.site)
        before = found.get(key)
        found[key] = use if before is None else _sum(before, use)
    return tuple(found.values())


def _sum(one: Use, other: Use) -> Use:
    return replace(
        one,
        calls=one.calls + other.calls,
        seconds=one.seconds + other.seconds,
        varied=one.varied or other.varied,
    )


ENDED_ILL = "ended_ill"
NO_STEP = "no_step"


def capture_program(
    program: Program,
    place: Place,
    steps: int | None = 1,
    timeout: float | None = None,
    quiet: bool = False,
) -> Capture:
    """Run it for so many steps; what it prints goes to stderr, or nowhere if that is to be quiet."""
    # a capture chooses by itself as a device would where the CPU stands for one
    device = "" if place.kind is DeviceKind.REFERENCE else place.device_type
    with temporary_folder() as folder:
        settings = CaptureSettings(folder, program.shown(), steps, device)
        environment = environment_at(place, settings)
        stdout = subprocess.DEVNULL if quiet else own_stderr()
        ending = run_supervised(program.command(), environment, stdout=stdout, seconds=timeout)
        stop_if_told(ending)
        captures = _read(Path(folder))
    if not captures:
        raise RunError(_nothing_called(program, ending.exit_code, ending.out_of_time))
    capture = merged(captures)
    notes = [*capture.notes]
    if not capture.steps:
        notes.append(NO_STEP)
    # what the early end of a process does to the program is not its fault
    if ending.exit_code and (steps is None or capture.steps < steps):
        notes.append(ENDED_ILL)
    return replace(capture, notes=tuple(notes))


def _nothing_called(program: Program, exit_code: int, out_of_time: bool) -> str:
    if out_of_time:
        return f"{program.target}: took longer than --timeout allows, and no operator was seen"
    if exit_code:
        return f"{program.target}: ended with exit code {exit_code} before it called an operator; its output is above"
    return f"{program.target}: ended without calling an operator of PyTorch; is it the program that trains?"


def _read(folder: Path) -> Sequence[Capture]:
    files = sorted(folder.glob(f"*{SUFFIX}"))
    return [capture_json.load(file.read_text("utf-8"), file.name) for file in files]
