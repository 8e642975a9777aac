"""Runs a user's program as a process of its own, and finds what its processes have recorded. Imports no torch."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.accuracy.model import Kept, kept_nbytes
from torchferry.accuracy.record import quick_observer
from torchferry.accuracy.record.outputs import WrittenRecord, files_of, outcomes
from torchferry.accuracy.record.settings import RecordSettings, WatchSettings
from torchferry.errors import BuildError, OutputError, RunError
from torchferry.files.aside import temporary_folder
from torchferry.launch.environment import environment_at
from torchferry.launch.place import DeviceKind, Place
from torchferry.launch.place import build_for as build_device
from torchferry.launch.program import Program
from torchferry.launch.supervise import Ending, run_supervised

if TYPE_CHECKING:
    from torchferry.accuracy.file.reader import Record

_MOST_COUNTED = 20_000  # calls
_LOOKED_AT = 128  # bytes: HDF5's and ours


@dataclass(frozen=True)
class Recorded:
    """How a run ended, and what it left."""

    ending: Ending
    # each, and whether it had to be completed after the end of its process
    files: tuple[tuple[WrittenRecord, bool], ...]


def build_for(place: Place, quiet: bool, kept: Kept | None = None) -> str:
    """What has to be compiled first; answers the note for what is missing without it, "" for nothing. `kept`: what is
    recorded of tensors, if there is a record.

    Without PyTorch nothing can be watched: that is said at once, not by the program that fails.
    """
    if find_spec("torch") is None:
        raise RunError(
            f"PyTorch is not installed for {sys.executable}, with which the program runs; pip install torch, or call ferry "
            "from the program's own environment"
        )
    from torchferry.building.build import silent

    progress = silent if quiet else None
    if kept is Kept.STATISTICS:
        quick_observer.build(progress)
    try:
        build_device(place, progress)
    except BuildError:
        if place.kind is not DeviceKind.REFERENCE:
            raise
        return "cpu_autocast"
    return ""


def check_output(output: Path) -> tuple[str, ...]:
    """The files of an earlier run, which the new one replaces; complains of what it can't or must not replace."""
    from torchferry.accuracy.file.reader import starts_like_ours

    folder = output.parent
    if output.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise OutputError(f"{output}: can't be written there; name a file in a folder that exists")
    earlier = files_of(output)
    for path in earlier:
        start = None
        if path.is_file():
            with path.open("rb") as file:
                start = file.read(_LOOKED_AT)
        if start is None or (start and not starts_like_ours(start)):
            raise OutputError(f"{path}: is there already, and no record of ferry's; choose another name")
    return tuple(map(str, earlier))


def run_recorded(
    program: Program, settings: RecordSettings, place: Place, timeout: float | None = None
) -> Recorded:
    """Run it to its end; what its processes could not end themselves is completed."""
    with temporary_folder() as folder:
        settings = replace(
            settings,
            folder=folder,
            program=program.shown(),
            again=options_again(program, settings, place),
            device=place.device_type,
            vendor=place.vendor_name,
            simulated=place.is_simulated,
        )
        # for its own sake, not for the record's
        is_training = settings.keep_going or isinstance(settings, WatchSettings)
        environment = environment_at(place, settings)
        ending = run_supervised(program.command(), environment, seconds=timeout, patient=is_training)
        return Recorded(ending, tuple(map(completed, outcomes(Path(folder)))))


def nothing_recorded(program: Program, settings: RecordSettings, recorded: Recorded) -> str:
    """What to say of a run that left no record."""
    if recorded.ending.out_of_time:
        return f"{program.target}: took longer than --timeout allows, and nothing was recorded"
    if recorded.ending.exit_code:
        code = recorded.ending.exit_code
        return (
            f"{program.target}: ended with exit code {code} before anything was recorded; its output is above"
        )
    if settings.rank:
        return (
            f"{program.target}: no process had the rank {settings.rank}; leave --rank out, or say another one"
        )
    if settings.first_step > 1:
        return f"{program.target}: ended before step {settings.first_step}; record an earlier one with --first-step"
    return (
        f"{program.target}: called no module that has parameters, so nothing was recorded; --whole records all that "
        "a program calls"
    )


def options_again(program: Program, settings: RecordSettings, place: Place) -> str:
    """The options of a run like this one, besides its vendor, whether that is simulated, and what is recorded of it."""
    is_alone = program.torchrun is None
    words = [
        *(["--seed", str(settings.seed)] if settings.seed is not None else []),
        *([f"--device={place.as_is}"] if place.as_is else []),
        *(["--emulate"] if place.kind is DeviceKind.EMULATED else []),
        *(["--converted"] if place.converted else []),
        *(word for path in place.vendor_paths for word in ("--vendor-path", path)),
        *(["--devices", str(place.devices)] if is_alone and (place.devices or 1) > 1 else []),
        *(word for word in program.torchrun or () if word != "--standalone"),
    ]
    return shlex.join(words)


def completed(outcome: WrittenRecord) -> tuple[WrittenRecord, bool]:
    """What a process has left, and whether it was killed before it could end its file."""
    from torchferry.accuracy.file.reader import open_record, repair

    path = Path(outcome.path)
    if not path.is_file():
        return outcome, False
    if outcome.is_over:
        with open_record(path) as record:
            calls = len(record.calls) if outcome.problem else outcome.calls  # not all of them are in the file
            return replace(outcome, calls=calls, raw_nbytes=_raw_nbytes(record)), False
    repair(path)
    with open_record(path) as record:
        found = replace(
            outcome,
            calls=len(record.calls),
            steps=len({call.step for call in record.calls}),
            nbytes=path.stat().st_size,
            raw_nbytes=_raw_nbytes(record),
        )
    return found, True


def _raw_nbytes(record: Record) -> int:
    """What all tensors would take if equal ones were not written once; 0 where to count them would take long."""
    if len(record.calls) > _MOST_COUNTED:
        return 0
    return sum(kept_nbytes(tensor) for call in record.calls for tensor in (*call.inputs, *call.outputs))
