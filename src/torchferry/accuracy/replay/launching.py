"""Replays records in a process of its own, on a vendor's device, a simulated one, or one that PyTorch has. Imports no
torch.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.accuracy.model import Kept
from torchferry.accuracy.record.settings import Selection
from torchferry.errors import InputError, RunError
from torchferry.files.aside import remove_leftovers, temporary_folder
from torchferry.launch.environment import environment_at
from torchferry.launch.place import Place
from torchferry.launch.supervise import run_supervised, stop_if_told
from torchferry.report.progress import clear_line
from torchferry.settings import decode, encode
from torchferry.text import Text

if TYPE_CHECKING:
    from torchferry.accuracy.file.reader import Record

# What the process that replays is asked for, and what it answers.

LAST_LENGTH = 200  # bytes: the name of the operator that is being called


@dataclass(frozen=True)
class Left:
    """A call that is not in the new record."""

    number: int
    operator: str
    module: str
    reason: str
    is_failure: bool  # the device did not do it; otherwise it can't be done alone


@dataclass(frozen=True)
class ReplayRequest:
    """One record, on one device."""

    record: str
    output: str
    device: str
    vendor: str
    simulated: bool
    last: str  # the file that says which operator is being called
    plugin: str = ""  # the vendor's real one
    modules: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()
    shows_progress: bool = False


@dataclass(frozen=True)
class ReplayOutcome:
    """What became of the calls of one record."""

    calls: int = 0
    nbytes: int = 0
    left: tuple[Left, ...] = ()
    fallen_back: tuple[str, ...] = ()  # operators that the simulated device has left to the CPU
    problem: str = ""  # why there is no new record, as an error's JSON


_WORKER = "torchferry.accuracy.replay.worker"


def records_to_replay(record: Path, output: Path) -> list[tuple[Path, int, int]]:
    """The files of all ranks, looked at before the work; rank and world."""
    from torchferry.accuracy.file.reader import open_records
    from torchferry.accuracy.record.launching import check_output
    from torchferry.accuracy.record.outputs import files_of

    output = output.absolute()
    if {path.resolve() for path in files_of(output)} & {
        path.resolve() for path in files_of(record.absolute())
    }:
        raise RunError(
            Text(
                f"{record}: can't be replayed and overwritten at once; name another file with -o",
                f"{record}：不能在重放的同时被覆盖；请用 -o 指定其他文件",
            )
        )
    check_output(output)
    found = []
    for each in open_records(record):
        with each:
            check_replayable(each)
            if not each.calls:
                raise InputError(
                    Text(
                        f"{each.path}: an empty recording, nothing to replay; record again",
                        f"{each.path}：记录为空，没有可重放的内容；请重新记录",
                    )
                )
            found.append((Path(each.path).absolute(), each.header.rank, each.header.world))
    return found


def check_replayable(record: Record) -> None:
    """Refuse a record without operators or without their inputs."""
    if record.header.kept is Kept.STATISTICS:
        raise InputError(
            Text(
                f"{record.path}: holds only statistics, no inputs to replay; record it without --stats",
                f"{record.path}：只有统计值，没有可重放的输入；请去掉 --stats 重新记录",
            )
        )
    if record.header.modules_only:
        raise InputError(
            Text(
                f"{record.path}: holds only modules, no operators to replay; record it without --modules-only",
                f"{record.path}：只有模块，没有可重放的算子；请去掉 --modules-only 重新记录",
            )
        )
    if record.of_apis:
        raise InputError(
            Text(
                f"{record.path}: holds msprobe's calls of functions and modules, but a replay needs operators; "
                "record with ferry record",
                f"{record.path}：内容是 msprobe dump 的函数和模块调用，而重放需要算子；请用 ferry record 记录",
            )
        )


def replay_record(
    record: Path, output: Path, place: Place, selection: Selection, shows_progress: bool = False
) -> ReplayOutcome:
    """Write a record with the results of a device; the file appears when it is complete."""
    with temporary_folder() as folder:
        asked, answer, last = (Path(folder) / name for name in ("request.json", "answer.json", "last"))
        vendor = place.vendor
        place = replace(place, shared_randomness=False)  # each call draws what its record says
        request = ReplayRequest(
            str(record), str(output), place.device_type, place.vendor_name, place.is_simulated, str(last),
            vendor.plugin if vendor is not None and not place.is_simulated else "",
            selection.modules, selection.operators, selection.phases, shows_progress,
        )  # fmt: skip
        asked.write_text(encode(request), "utf-8")
        try:
            ending = run_supervised(
                [sys.executable, "-m", _WORKER, str(asked), str(answer)], environment_at(place), is_ours=True
            )
        finally:
            remove_leftovers(output.parent)  # of a process that crashed or was ended
            if shows_progress:
                clear_line(sys.stderr)  # of one that could not do so itself
        stop_if_told(ending)
        if not answer.exists():
            at = last.read_text("utf-8", "replace").strip() if last.exists() else ""
            where = f" ({at})" if at else ""
            raise RunError(
                Text(
                    f"{record}: the replay process ended with exit code {ending.exit_code}{where}; its output is above; "
                    "--op selects other operators",
                    f"{record}：重放进程以退出码 {ending.exit_code} 结束{where}；其输出见上文；可用 --op 选择其他算子",
                )
            )
        outcome = decode(ReplayOutcome, answer.read_text("utf-8"))
        if outcome.problem:
            raise InputError.from_json(outcome.problem)
        return outcome
