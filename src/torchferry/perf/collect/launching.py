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
from torchferry.errors import OutputError, RunError, no_place
from torchferry.files import written
from torchferry.files.aside import PREFIX, folder_aside, remove_leftovers
from torchferry.launch.environment import environment_at
from torchferry.launch.place import Place
from torchferry.launch.program import Program
from torchferry.launch.supervise import Ending, run_supervised
from torchferry.perf.collect.settings import CollectOutcome, ProfileSettings, read_outcomes
from torchferry.perf.model import PROFILE_FILE, PROFILE_FORMAT, PROFILE_VERSION
from torchferry.text import Text

TRACE_LOST = Text(
    "the profiler ended, but its trace is missing or empty; check the free disk space and the profiler's output above",
    "profiler 已结束，但没有 trace 或 trace 为空；请检查磁盘剩余空间和上文中 profiler 的输出",
)
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
        raise no_place(output, Text("name a folder inside one that exists", "请给出已有文件夹下的文件夹名"))
    remove_leftovers(parent)
    if output.is_symlink() or (output.exists() and not output.is_dir()):
        raise OutputError(
            Text(
                f"{output}: already exists and is not a folder; choose another name",
                f"{output}：已存在且不是文件夹；请另选名称",
            )
        )
    if output.is_dir() and any(output.iterdir()) and not _is_profile(output):
        raise OutputError(
            Text(
                f"{output}: not empty, and not a profile of TorchFerry that could be replaced; choose another name",
                f"{output}：文件夹非空，且不是可以替换的 TorchFerry profile；请另选名称",
            )
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


_TOO_SLOW = Text(
    "{program}: exceeded --timeout after {made} steps; nothing was written",
    "{program}：在 {made} 步之后超过了 --timeout；未写入任何内容",
)
_KILLED = Text(
    "{program}: ended with exit code {code} before its first step; its output is above",
    "{program}：在第一步之前就以退出码 {code} 结束；其输出见上文",
)
_FAILED = Text(
    "{program}: ended with exit code {code} after {made} steps, before step {first} was complete; its output is above",
    "{program}：在 {made} 步之后、第 {first} 步完成之前以退出码 {code} 结束；其输出见上文",
)
_TOO_SHORT = Text(
    "{program}: ended after {made} steps, before step {first} was complete; profile earlier steps: --steps {steps}",
    "{program}：共 {made} 步，在第 {first} 步完成之前就已结束；请采集更早的步：--steps {steps}",
)
_NO_STEP = Text(
    "{program}: no optimizer made a step, so there is nothing to profile",
    "{program}：没有优化器执行过 step，没有可采集的内容",
)


def nothing_profiled(program: Program, settings: ProfileSettings, profiled: Profiled) -> Text:
    """Why a run has left no profile."""
    problem = next((each.problem for each in profiled.outcomes if each.problem), "")
    if problem:
        why = RunError.from_json(problem).text
        return Text("{program}: {why}", "{program}：{why}").format(program=program.target, why=why)
    code, made = profiled.ending.exit_code, max((each.made for each in profiled.outcomes), default=0)
    why = _TOO_SHORT if made else _NO_STEP
    if profiled.ending.out_of_time:
        why = _TOO_SLOW
    elif code:  # without an outcome it was killed, or never imported torch
        why = _FAILED if profiled.outcomes else _KILLED
    steps = f"{max(1, made - 2)}:{made}"
    return why.format(program=program.target, code=code, made=made, first=settings.first_step, steps=steps)


def _as_found(staged: Path, outcome: CollectOutcome) -> CollectOutcome:
    """What a process says it has written counts only if something is there: a full disk leaves an empty file."""
    path = staged / outcome.trace
    is_there = _holds_trace(path) if path.is_dir() else path.is_file() and path.stat().st_size
    return (
        outcome
        if is_there or not outcome.trace
        else replace(outcome, trace="", problem=RunError(TRACE_LOST).to_json())
    )


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
