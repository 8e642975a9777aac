"""What a process is to profile, what comes of it, and what a user is told of that. Imports no torch."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import ClassVar

from torchferry import variables
from torchferry.files.aside import write_whole
from torchferry.launch.parts import PartSettings, hash_seed
from torchferry.report.commands import next_step
from torchferry.report.safe import one_line
from torchferry.text import Text
from torchferry.units import size

# Kineto says at each start and stop of the profiler that it does so.
_QUIET = {"KINETO_LOG_LEVEL": "6"}


@dataclass(frozen=True)
class ProfileSettings(PartSettings):
    """Which steps are profiled, what of them, and where to put it."""

    variable: ClassVar[str] = variables.PROFILE
    starts: ClassVar[str] = "torchferry.perf.collect.program:start"

    folder: str  # where processes leave their traces, and tell the launcher of them; an absolute path
    first_step: int
    last_step: int
    warmup: int = 1  # steps before the first one in which the profiler is on, and keeps nothing
    stacks: bool = True
    shapes: bool = True
    memory: bool = True
    keep_running: bool = False  # the program goes on after the last step
    seed: int | None = None
    device: str = ""  # the type of the device that computes; "": the program chooses
    vendor: str = ""
    vendor_paths: tuple[str, ...] = ()
    simulated: bool = False

    def environment(self) -> dict[str, str]:
        """The variables that make a process play the part."""
        quiet = {name: value for name, value in _QUIET.items() if name not in os.environ}
        return {**super().environment(), **quiet, **hash_seed(self.seed)}

    @property
    def steps(self) -> int:
        """The number of steps that are profiled."""
        return self.last_step - self.first_step + 1

    @property
    def first_warm(self) -> int:
        """The step in which the profiler warms up, if there are so many before the first one."""
        return max(1, self.first_step - self.warmup)


_SUFFIX = ".told"


@dataclass(frozen=True)
class CollectOutcome:
    """What one process has done."""

    rank: int = 0
    world: int = 1
    made: int = 0  # steps of its optimizers, up to the end of the process, or of what is profiled
    first_step: int = 0  # those that are in the trace; 0: none is
    last_step: int = 0
    trace: str = ""  # a file or a folder, in the folder where this lies too
    first_mark: int = 0  # the number of the first step's mark in the trace
    seconds: float = 0.0  # of the steps in the trace
    unprofiled_step: float = (
        0.0  # seconds of a step before the profiler was on, the median; 0: too few were made
    )
    problem: str = ""  # why there is no trace, as an error's JSON
    device: str = ""
    device_name: str = ""
    torch: str = ""
    python: str = ""
    memory_limit: int = 0  # bytes; 0: not known
    memory_peak: int = 0
    memory_reserved: int = 0
    autocast: bool | None = None  # None: can't be seen
    batch: int | None = None
    fallbacks: dict[str, int] = field(default_factory=dict)  # operators that ran on the CPU instead -> calls

    @property
    def steps(self) -> int:
        """How many steps are in the trace."""
        return self.last_step - self.first_step + 1 if self.trace else 0


def write_outcome(folder: Path, outcome: CollectOutcome) -> None:
    """Leave this process's outcome for whoever reads the folder."""
    write_whole(folder / f"{os.getpid()}{_SUFFIX}", json.dumps(asdict(outcome)).encode())


def read_outcomes(folder: Path) -> list[CollectOutcome]:
    """What all processes have left, in the order of ranks."""
    files = sorted(folder.glob(f"*{_SUFFIX}"))
    found = [CollectOutcome(**json.loads(file.read_text("utf-8"))) for file in files]
    return sorted(found, key=lambda outcome: (outcome.rank, outcome.trace))


_WRITTEN = Text(
    "{file}: {steps}, {each} ms each, {nbytes}",
    "{file}：{steps}，每步 {each} ms，{nbytes}",
)
_ONE_STEP = Text("step {first}", "第 {first} 步")
_STEPS = Text("steps {first} to {last}", "第 {first} 至 {last} 步")
_FEWER = Text(
    "the program ended after {made} of {wanted} steps; the profile holds the complete ones",
    "程序在 {wanted} 步中的 {made} 步之后结束；profile 仅包含完整的步",
)
_FAILED = Text(
    "the program ended with exit code {code} before it completed the requested steps; its output is above",
    "程序在完成所需步数之前以退出码 {code} 结束；其输出见上文",
)


def sentences(
    output: Path, settings: ProfileSettings, traces: tuple[CollectOutcome, ...], exit_code: int
) -> Iterator[Text]:
    """What is said of a profile that was written."""
    shown = one_line(os.path.relpath(output))
    for each in traces:
        steps = _ONE_STEP if each.steps == 1 else _STEPS
        path = output / each.trace
        files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
        yield _WRITTEN.format(
            file=one_line(os.path.join(shown, each.trace)),
            steps=steps.format(first=each.first_step, last=each.last_step),
            each=f"{each.seconds / each.steps * 1000:,.1f}",
            nbytes=size(sum(file.stat().st_size for file in files)),
        )
    made = min(each.last_step for each in traces)
    if made < settings.last_step:
        yield _FEWER.format(made=made, wanted=settings.last_step)
        if exit_code:
            yield _FAILED.format(code=exit_code)
    yield next_step("analyze", os.path.relpath(output))
