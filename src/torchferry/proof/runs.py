"""Runs the original on the CPU and the migrated program on its devices, as processes of their own. No torch."""

from __future__ import annotations

import os
import stat
import subprocess
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from torchferry.accuracy.record.settings import RecordSettings
from torchferry.launch.environment import environment_at
from torchferry.launch.parts import PartSettings
from torchferry.launch.place import DeviceKind, Place
from torchferry.launch.program import Program
from torchferry.launch.supervise import run_supervised, stop_if_told
from torchferry.proof.model import REFERENCE, ProcessSummary, ProgramRun, ProofRequest
from torchferry.proof.recordings import SUFFIX, Recording, find_recordings, summary
from torchferry.proof.settings import (
    IMPORTS_SUFFIX,
    Projects,
    ProofSettings,
    Weights,
    moved_arguments,
    moved_search_path,
    projects,
)
from torchferry.report.progress import Counted, LongTask
from torchferry.text import Language, Text
from torchferry.vendors.model import Vendor

# name of the run, its records, steps
Watch = Callable[[str, Path, "int | None"], AbstractContextManager[object]]
LOGS = "logs"
_AGAIN = "-again"
_RECORDED = "-recorded"


@dataclass(frozen=True)
class ProofPlan:
    """What runs, and where: the original on the CPU, the migrated program at each place."""

    original: Program
    converted: Program | None  # {vendor} in its target is replaced; None: the original, through the layer
    places: tuple[Place, ...]  # one for each vendor
    devices: int = 1  # that the CPU stands for
    steps: int | None = 20
    seed: int = 0
    same_weights: bool = False
    timeout: float | None = None  # seconds that a run may take; None: as long as it takes
    cwd: Path | None = None  # where both sides run; None: each in its own project
    exact: bool = False  # nothing but equal bit for bit is enough
    rtol: float | None = None  # None: by dtype
    atol: float | None = None

    @property
    def vendors(self) -> tuple[Vendor, ...]:
        """Whose devices the migrated program runs on."""
        return tuple(place.vendor for place in self.places if place.vendor is not None)

    @property
    def request(self) -> ProofRequest:
        """What is asked, for the reports."""
        module = ("-m",) if self.original.is_module else ()
        return ProofRequest(
            original=(*module, self.original.target, *self.original.arguments),
            converted=self.converted.target if self.converted else "",
            vendors=tuple(vendor.name for vendor in self.vendors),
            steps=self.steps,
            seed=self.seed,
            processes=self.original.processes,
            same_weights=self.same_weights,
            exact=self.exact,
            rtol=self.rtol,
            atol=self.atol,
            emulated=any(place.kind is DeviceKind.EMULATED for place in self.places),
        )

    def place_of(self, vendor: Vendor | None) -> Place:
        """Of a vendor's run; the CPU for the original's."""
        if vendor is None:
            return Place(DeviceKind.REFERENCE, devices=self.devices)
        return next(place for place in self.places if place.vendor_name == vendor.name)


@dataclass(frozen=True)
class Execution:
    """A run that has ended, and where its recordings are."""

    run: ProgramRun
    folder: Path = field(repr=False)
    settings: ProofSettings = field(repr=False)

    def wrong_imports(self) -> list[str]:
        """Files of the other side's project that its processes have imported."""
        files = self.folder.glob(f"*{IMPORTS_SUFFIX}")
        return sorted({line for file in files for line in file.read_text("utf-8").splitlines()})

    def recordings(self) -> list[Recording]:
        """Of the processes that took a step."""
        return find_recordings(self.folder)

    @property
    def crashed(self) -> bool:
        """Whether it ended ill before it had done what it was to do; what the recorder's own end of a process does
        to the program is not its fault."""
        processes = self.run.processes
        return self.run.exit_code != 0 and not (processes and all(map(self._has_all_steps, processes)))

    def _has_all_steps(self, process: ProcessSummary) -> bool:
        if self.settings.operators_step:
            return len(process.steps) >= self.settings.operators_step
        made = {step.step for step in process.steps}
        return self.settings.steps is not None and len(made) >= self.settings.steps


class Runner:
    """Executes runs one after the other; their records and logs go into two folders."""

    def __init__(self, plan: ProofPlan, records: Path, kept: Path, watch: Watch) -> None:
        self._plan = plan
        self._records = records
        self.kept = kept
        self._watch = watch
        (kept / LOGS).mkdir(parents=True, exist_ok=True)

    def reference(self) -> Execution:
        """The original on the CPU."""
        return self._execute(REFERENCE, None, self._settings(Weights.SAVE))

    def reference_again(self, step: int, rank: int | None, number: int) -> Execution:
        """The same once more, up to a step whose operators are recorded."""
        settings = replace(self._settings(Weights.OWN), operators_step=step, operators_rank=rank)
        return self._execute(f"{REFERENCE}{_AGAIN}{number}", None, settings)

    def migrated(self, vendor: Vendor) -> Execution:
        """The migrated program on the device."""
        return self._execute(vendor.name, vendor, self._settings(Weights.LOAD))

    def migrated_again(self, vendor: Vendor, step: int, rank: int | None) -> Execution:
        """The same once more, up to a step whose operators are recorded."""
        settings = replace(self._settings(Weights.LOAD), operators_step=step, operators_rank=rank)
        return self._execute(vendor.name + _AGAIN, vendor, settings)

    def migrated_recorded(self, vendor: Vendor, recorded: RecordSettings) -> None:
        """The same once more, up to a step of which some operators' tensors are recorded."""
        settings = self._settings(Weights.LOAD)
        recorded = replace(recorded, simulated=self._plan.place_of(vendor).is_simulated)
        self._execute(f"{vendor.name}{_RECORDED}", vendor, settings, recorded)

    def program_of(self, vendor: Vendor | None) -> Program:
        """The converted program where there is one for this vendor, else the original."""
        converted = self._plan.converted
        if vendor is None or converted is None:
            return self._plan.original
        return replace(converted, target=converted.target.replace("{vendor}", vendor.name))

    def _projects(self, vendor: Vendor | None) -> Projects | None:
        """Where the original ends and the converted program begins; None where there is one project, or modules."""
        plan = self._plan
        if plan.converted is None or plan.original.is_module:
            return None
        vendor = vendor or plan.places[0].vendor
        assert vendor is not None
        return projects(plan.original.target, self.program_of(vendor).target, Path.cwd())

    def _moved(self, vendor: Vendor | None) -> tuple[Program, Path]:
        """A side's program as it is called in the folder where it runs."""
        program, here = self.program_of(vendor), Path.cwd()
        found = self._projects(vendor)
        folder = self._plan.cwd or (found.folder(here, vendor is not None) if found else here)
        if folder == here or program.is_module:
            return program, folder
        target = os.path.relpath(here / program.target, folder)
        return replace(
            program, target=target, arguments=moved_arguments(program.arguments, here, folder)
        ), folder

    def _settings(self, weights: Weights) -> ProofSettings:
        plan = self._plan
        folder = self._records / "weights"
        folder.mkdir(parents=True, exist_ok=True)
        shared = weights if plan.same_weights else Weights.OWN
        return ProofSettings("", plan.steps, plan.seed, shared, str(folder))

    def _execute(
        self,
        name: str,
        vendor: Vendor | None,
        settings: ProofSettings,
        *further: RecordSettings,
    ) -> Execution:
        folder = self._records / name
        folder.mkdir()
        found = self._projects(vendor)
        settings = replace(settings, folder=str(folder))
        if found:
            own, other = found.own(vendor is not None), found.own(vendor is None)
            settings = replace(settings, own_project=str(own), other_project=str(other))
        environment = self._environment(vendor, settings, *further)
        program, cwd = self._moved(vendor)
        logs = f"{LOGS}/{name}.stdout.txt", f"{LOGS}/{name}.stderr.txt"
        started = time.monotonic()
        with (
            (self.kept / logs[0]).open("wb") as stdout,
            (self.kept / logs[1]).open("wb") as stderr,
            self._watch(name, folder, settings.steps),
        ):
            streams = stdout, stderr, _same_input()
            ending = run_supervised(program.command(), environment, *streams, self._plan.timeout, cwd=cwd)
            if ending.out_of_time:
                stderr.write(
                    f"ferry prove: stopped after {self._plan.timeout:g} seconds (--timeout)\n".encode()
                )
        seconds = round(time.monotonic() - started, 3)
        stop_if_told(ending)
        processes = tuple(summary(recording) for recording in find_recordings(folder))
        return Execution(ProgramRun(name, ending.exit_code, seconds, *logs, processes), folder, settings)

    def _environment(self, vendor: Vendor | None, *parts: PartSettings) -> dict[str, str]:
        """The user's own, with one seed for the order of sets; threads and all else are the same in every run. Which
        devices of this machine a user has chosen does not count: those of a run are as many as it is to see."""
        hiding = {"CUDA_VISIBLE_DEVICES", vendor.visible_devices_env if vendor else ""}
        ours = {name: value for name, value in os.environ.items() if name not in hiding}
        found = self._projects(vendor)
        if found:
            ours |= moved_search_path(ours, found, Path.cwd(), vendor is not None)
        return environment_at(self._plan.place_of(vendor), *parts, ours=ours)


def _same_input() -> int:
    """What every run reads from its standard input: a file from its beginning. The words of a pipe or a terminal are
    gone when the first run has read them, so nobody gets any."""
    with suppress(OSError):
        if stat.S_ISREG(os.fstat(0).st_mode):
            os.lseek(0, 0, os.SEEK_SET)
            return 0
    return subprocess.DEVNULL


# How far a run is, read from the records as they grow.

_CHUNK = 1 << 20


class RecordedSteps:
    """Counts the steps of the process that has taken most, reading each byte once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}
        self._lines: dict[Path, int] = {}

    def count(self) -> int:
        """How many steps there are by now; the first line of a file is no step."""
        for path in self._folder.glob(f"*{SUFFIX}"):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                while chunk := file.read(_CHUNK):
                    self._lines[path] = self._lines.get(path, 0) + chunk.count(b"\n")
                self._read[path] = file.tell()
        return max((lines - 1 for lines in self._lines.values()), default=0)


_RUNNING = Text("running {name}", "正在运行 {name}")
_ORIGINAL = Text("the original on the CPU", "CPU 上的原程序")
_AGAIN_NAME = Text("{name}, once more with its operators", "{name}（再次运行并记录算子）")
_ON_DEVICE = Text("the migrated program on {name}", "{name} 上的迁移后程序")


def shown(name: str, folder: Path, steps: int | None, language: Language) -> LongTask:
    """Tells how far a run is while the block goes on."""
    counter = RecordedSteps(folder)
    task = _RUNNING.format(name=_described(name))
    return LongTask(task, Counted.STEPS, language=language, look=lambda: (counter.count(), steps or 0))


def _described(name: str) -> Text:
    first, again, _ = name.partition(_AGAIN)
    first, recorded, _ = first.partition(_RECORDED)
    what = _ORIGINAL if first == REFERENCE else _ON_DEVICE.format(name=first)
    return _AGAIN_NAME.format(name=what) if again or recorded else what
