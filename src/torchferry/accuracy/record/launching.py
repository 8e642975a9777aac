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
from torchferry.errors import BuildError, OutputError, RunError, no_place
from torchferry.files.aside import temporary_folder
from torchferry.launch.environment import environment_at
from torchferry.launch.place import DeviceKind, Place
from torchferry.launch.place import build_for as build_device
from torchferry.launch.program import Program
from torchferry.launch.supervise import Ending, run_supervised
from torchferry.text import Text

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
            Text(
                f"PyTorch is not installed for {sys.executable}, which runs the program; pip install torch, or "
                "call ferry from the program's own environment",
                f"运行程序的 {sys.executable} 没有安装 PyTorch；请执行 pip install torch，"
                "或在程序自己的环境中调用 ferry",
            )
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
        raise no_place(output)
    earlier = files_of(output)
    for path in earlier:
        start = None
        if path.is_file():
            with path.open("rb") as file:
                start = file.read(_LOOKED_AT)
        if start is None or (start and not starts_like_ours(start)):
            raise OutputError(
                Text(
                    f"{path}: already exists and is not a recording of TorchFerry; choose another name",
                    f"{path}：已存在，且不是 TorchFerry 的记录；请另选文件名",
                )
            )
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


_TOO_SLOW = Text(
    "{program}: exceeded --timeout before anything was recorded; allow more time",
    "{program}：在记录任何内容之前就超过了 --timeout；请延长时限",
)
_ENDED = Text(
    "{program}: ended with exit code {code} before anything was recorded; its output is above",
    "{program}：在记录任何内容之前就以退出码 {code} 结束；其输出见上文",
)
_NO_RANK = Text(
    "{program}: no process had rank {rank}; leave --rank out, or give another one",
    "{program}：没有 rank 为 {rank} 的进程；请去掉 --rank，或换一个",
)
_TOO_SHORT = Text(
    "{program}: ended before step {step}; record an earlier step with --first-step",
    "{program}：在第 {step} 步之前就已结束；请用 --first-step 记录更早的步",
)
_NO_MODULE = Text(
    "{program}: called no module with parameters, so nothing was recorded; --whole records everything a program calls",
    "{program}：没有调用带参数的模块，因此没有记录；--whole 会记录程序调用的全部算子",
)


def nothing_recorded(program: Program, settings: RecordSettings, recorded: Recorded) -> Text:
    """Why a run left no recording."""
    code = recorded.ending.exit_code
    why = _NO_MODULE
    if recorded.ending.out_of_time:
        why = _TOO_SLOW
    elif code:
        why = _ENDED
    elif settings.rank:
        why = _NO_RANK
    elif settings.first_step > 1:
        why = _TOO_SHORT
    return why.format(program=program.target, code=code, rank=settings.rank, step=settings.first_step)


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
