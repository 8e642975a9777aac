"""Runs a user's program as a process of its own, and puts together what its processes have profiled. Imports no torch."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torchferry import variables
from torchferry.errors import OutputError
from torchferry.files import written
from torchferry.files.aside import PREFIX, folder_aside, remove_leftovers
from torchferry.launch.environment import environment_at
from torchferry.launch.place import Place
from torchferry.launch.program import Program
from torchferry.launch.supervise import Ending, run_supervised
from torchferry.perf.collect.settings import CollectOutcome, ProfileSettings, read_outcomes
from torchferry.perf.model import PROFILE_FILE, PROFILE_FORMAT, PROFILE_VERSION

TRACE_LOST = "the profiler ended, but its trace is not there or empty; look at the disk's free space and at its output above"
_MOST_READ = 1 << 20
_RANK_FACTS = (
    "rank", "world", "trace", "first_mark", "seconds", "unprofiled_step", "memory_limit", "memory_peak",
    "memory_reserved", "autocast", "batch", "fallbacks",
)  # fmt: skip
# Variables that change how fast a program is, besides those of the vendor.
_PREFIXES = (
    "CUDA_", "CUDNN_", "GLOO_", "GOMP_", "KMP_", "MKL_", "NCCL_", "OMP_", "OPENBLAS_", "PYTORCH_", "TORCH_",
    "TORCHDYNAMO_", "TORCHINDUCTOR_",
)  # fmt: skip


@dataclass(frozen=True)
class Profiled:
    """How a run ended, and what it left."""

    ending: Ending
    outcomes: tuple[CollectOutcome, ...]  # of each process that made steps
    is_written: bool
    kept: Path | None = None  # where an earlier profile is to which something was added

    @property
    def traces(self) -> tuple[CollectOutcome, ...]:
        """Those of processes that left a trace."""
        return tuple(each for each in self.outcomes if each.trace)


def check_output(output: Path) -> None:
    """Complains of a folder that can't or must not be replaced."""
    parent = output.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise OutputError(f"{output}: can't be written there; name a folder below one that exists")
    remove_leftovers(parent)
    if output.is_symlink() or (output.exists() and not output.is_dir()):
        raise OutputError(f"{output}: is there already, and no folder; choose another name")
    if output.is_dir() and any(output.iterdir()) and not _is_profile(output):
        raise OutputError(
            f"{output}: is not empty, and no profile of ferry's that could be replaced; choose another name"
        )


def _is_profile(folder: Path) -> bool:
    try:
        with (folder / PROFILE_FILE).open("rb") as file:
            run = json.loads(file.read(_MOST_READ))
    except (OSError, ValueError):
        return False
    return isinstance(run, dict) and run.get("format") == PROFILE_FORMAT


def run_profiled(
    program: Program, settings: ProfileSettings, place: Place, output: Path, timeout: float | None = None
) -> Profiled:
    """Run it to its end; the output is there afterwards if all processes have left what was wanted of them."""
    with folder_aside(output.parent) as aside:
        staged = aside.path / "profile"
        staged.mkdir()
        settings = replace(
            settings,
            folder=str(staged),
            device=place.device_type,
            vendor=place.vendor_name,
            vendor_paths=place.vendor_paths,
            simulated=place.is_simulated,
        )
        environment = environment_at(place, settings)
        is_training = settings.keep_running  # for its own sake, not for the profile's
        ending = run_supervised(program.command(), environment, seconds=timeout, patient=is_training)
        outcomes, kept = tuple(_as_found(staged, each) for each in read_outcomes(staged)), None
        steps = [each.steps for each in outcomes if each.trace]
        # who breaks a run off gets what was asked for, or nothing
        is_written = bool(steps) and (not ending.signal or min(steps) >= settings.steps)
        if is_written:
            outcomes = _named_by_rank(staged, outcomes)
            of_vendor = frozenset(() if place.vendor is None else place.vendor.env)
            variables_that_matter = {
                name: value
                for name, value in sorted(environment.items())
                if name not in variables.ALL and (name in of_vendor or name.startswith(_PREFIXES))
            }
            run = _run_facts(program, settings, outcomes, variables_that_matter)
            for leftover in (*staged.glob("*.told"), *staged.glob(f"{PREFIX}*")):
                leftover.unlink()
            facts = json.dumps(run, indent=2, ensure_ascii=False).encode()
            (staged / PROFILE_FILE).write_bytes(
                written.with_list(facts, PROFILE_FILE, written.digests(staged))
            )
            kept = aside.replace(staged, output, lambda old: not written.foreign(old, PROFILE_FILE))
        return Profiled(ending, outcomes, is_written, kept)


def nothing_profiled(program: Program, settings: ProfileSettings, profiled: Profiled) -> str:
    """Why a run has left no profile."""
    made = max((each.made for each in profiled.outcomes), default=0)
    problem = next((each.problem for each in profiled.outcomes if each.problem), "")
    if problem == TRACE_LOST:
        return f"{program.target}: {problem}"
    if problem:
        return f"{program.target}: {problem}; switch its own off, or let `ferry analyze` read the trace that it writes"
    if profiled.ending.out_of_time:
        return f"{program.target}: took longer than --timeout allows, after {made} steps; nothing was written"
    if profiled.ending.exit_code and not profiled.outcomes:  # it was killed, or never came to import torch
        return (
            f"{program.target}: ended with exit code {profiled.ending.exit_code} before its steps were made, and "
            "could not tell how many there were; its output is above"
        )
    if profiled.ending.exit_code:
        return (
            f"{program.target}: ended with exit code {profiled.ending.exit_code} after {made} steps, before step "
            f"{settings.first_step} was over; its output is above"
        )
    if made:
        return (
            f"{program.target}: made {made} steps and ended before step {settings.first_step} was over; profile "
            f"earlier ones, as --window {max(1, made - 2)}:{made}"
        )
    return f"{program.target}: no optimizer stepped, so there is no step to profile"


def _as_found(staged: Path, outcome: CollectOutcome) -> CollectOutcome:
    """What a process says it has written counts only if something is there: a full disk leaves an empty file."""
    path = staged / outcome.trace
    is_there = _holds_trace(path) if path.is_dir() else path.is_file() and path.stat().st_size
    return outcome if is_there or not outcome.trace else replace(outcome, trace="", problem=TRACE_LOST)


def _holds_trace(folder: Path) -> bool:
    """A vendor's profiler makes its folder first, and its trace last: where its analysis failed there is none."""
    from torchferry.perf.opening import InputKind, sets_below

    return any(files.of(InputKind.TRACE) for files in sets_below(folder))


def _named_by_rank(staged: Path, outcomes: tuple[CollectOutcome, ...]) -> tuple[CollectOutcome, ...]:
    """trace.rank0.json.gz; a second process that takes itself for the same rank gets .2 after it."""
    seen: Counter[int] = Counter()
    renamed = []
    for each in outcomes:
        if each.trace:
            seen[each.rank] += 1
            number = f".{seen[each.rank]}" if seen[each.rank] > 1 else ""
            path = staged / each.trace
            end = path.name.partition(".json")[1:] if path.is_file() else ("_", path.name.partition("_")[2])
            name = f"trace.rank{each.rank}{number}{''.join(end)}"
            path.rename(staged / name)
            each = replace(each, trace=name)
        renamed.append(each)
    return tuple(renamed)


def _run_facts(
    program: Program,
    settings: ProfileSettings,
    outcomes: tuple[CollectOutcome, ...],
    environment: Mapping[str, str],
) -> dict[str, Any]:
    traces = [each for each in outcomes if each.trace]
    first = traces[0]
    return {
        "format": PROFILE_FORMAT,
        "version": PROFILE_VERSION,
        "command": [*(["-m"] if program.is_module else []), program.target, *program.arguments],
        "vendor": settings.vendor or None,
        "simulated": settings.simulated,
        "device": first.device,
        "device_name": first.device_name,
        "torch": first.torch,
        "python": first.python,
        "steps": [first.first_step, min(each.last_step for each in traces)],
        "warmup": settings.first_step - settings.first_warm,
        "with": {"stacks": settings.stacks, "shapes": settings.shapes, "memory": settings.memory},
        "ranks": [{name: getattr(each, name) for name in _RANK_FACTS} for each in traces],
        "environment": dict(environment),
    }
