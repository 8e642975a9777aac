"""Which file each process of a run writes, and what it tells the launcher of it. Imports no torch."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from torchferry.accuracy.file.room import FULL, LIMITED
from torchferry.accuracy.record.settings import RecordSettings
from torchferry.files.aside import write_whole
from torchferry.readiness.model import NOTES
from torchferry.report.safe import one_line
from torchferry.settings import decode, encode
from torchferry.text import Text
from torchferry.units import size

_SUFFIX = ".outcome.json"
_LOCK = "lock"
_CLEARED = "cleared"
_OF_ONE_PROCESS = r"\.(rank|process)\d+"


@dataclass(frozen=True)
class WrittenRecord:
    """What one process has written."""

    path: str
    process: int
    rank: int = 0
    world: int = 1
    is_over: bool = False  # the process has ended the file itself
    first_step: int = 1
    steps: int = 0  # that were made, the first wanted one included
    calls: int = 0
    nbytes: int = 0  # of tensors, each content once
    raw_nbytes: int = 0  # as if every tensor of every call were written
    seconds: float = 0.0
    problem: str = ""  # what ended the recording early: the disk is full, ...
    notes: tuple[str, ...] = ()
    paired: int = 0  # calls that had recorded inputs
    recorded: int = 0  # calls of the record that was replayed
    unpaired: int = 0  # calls that had none
    examples: tuple[str, ...] = ()  # their operators


def file_of(output: Path, rank: int, world: int) -> Path:
    """gpu.h5 where there is one process, gpu.rank0.h5, gpu.rank1.h5 ... where there are several."""
    return output if world <= 1 else output.with_name(f"{output.stem}.rank{rank}{output.suffix}")


def files_of(output: Path) -> list[Path]:
    """The files of all processes that are there now."""
    pattern = re.compile(f"{re.escape(output.stem)}(?:{_OF_ONE_PROCESS})?{re.escape(output.suffix)}")
    folder = output.parent
    names = os.listdir(folder) if folder.is_dir() else []
    return [folder / name for name in sorted(names) if pattern.fullmatch(name)]


class RecordOutput:
    """The file of this process."""

    def __init__(self, settings: RecordSettings, rank: int, world: int) -> None:
        self._folder = Path(settings.folder) if settings.folder else None
        self.path = file_of(Path(settings.output), rank, world)
        self._outcome = WrittenRecord(
            str(self.path), os.getpid(), rank, world, first_step=settings.first_step
        )
        if self._folder is not None:
            self._claim(self._folder, settings.replaced)

    def tell(self, **known: object) -> None:
        """Tell the launcher what is known now; whole or not at all."""
        self._outcome = replace(self._outcome, **known)  # type: ignore[arg-type]  # names of its fields
        if self._folder is not None:
            path = self._folder / f"{os.getpid()}{_SUFFIX}"
            write_whole(path, encode(self._outcome).encode())

    def _claim(self, folder: Path, replaced: Iterable[str]) -> None:
        """A name that no other process of this run has. The first one removes what an earlier run has left."""
        with (folder / _LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            cleared = folder / _CLEARED
            if not cleared.exists():
                for name in replaced:
                    with suppress(FileNotFoundError):
                        os.unlink(name)
                cleared.touch()
            taken = {Path(outcome.path) for outcome in outcomes(folder)}
            wanted, number = self.path, 1
            while self.path in taken:  # a process that torch.distributed does not know of
                number += 1
                self.path = wanted.with_name(f"{wanted.stem}.process{number}{wanted.suffix}")
            self.tell(path=str(self.path))


def outcomes(folder: Path) -> list[WrittenRecord]:
    """What all processes have left, in the order of ranks."""
    found = [decode(WrittenRecord, file.read_text("utf-8")) for file in folder.glob(f"*{_SUFFIX}")]
    return sorted(found, key=lambda outcome: (outcome.rank, outcome.path))


# What a user is told of a recording: in sentences.

_WRITTEN = Text(
    "{file}: {steps}, {calls} calls, {nbytes}{saved}, {seconds} s",
    "{file}：{steps}，{calls} 次调用，{nbytes}{saved}，{seconds} 秒",
)
_ONE_STEP = Text("step {first}", "第 {first} 步")
_STEPS = Text("steps {first} to {last}", "第 {first} 至 {last} 步")
_NO_STEP = Text("no optimizer made a step, so everything up to the end", "没有优化器执行更新，记录至程序结束")
_SAVED = Text("({raw} if equal tensors were stored repeatedly)", "（若重复存储相同张量则为 {raw}）")
_REPAIRED = Text(
    "{file}: its process was killed before it could close the file; the file was completed and holds "
    "all calls up to that point",
    "{file}：其进程在关闭文件之前被终止；文件已补全，包含此前的全部调用",
)
_PROBLEM = Text(
    "{file}: recording ended early: {problem}; everything recorded before is kept",
    "{file}：记录提前结束：{problem}；此前已记录的内容已保留",
)
# What ends a recording before its program does; the disk's own words are as they are.
_PROBLEMS = {
    LIMITED: Text("--limit was reached ({what} for this file)", "已达到 --limit（此文件为 {what}）"),
    FULL: Text("less than {what} of disk space would remain", "磁盘剩余空间将少于 {what}"),
}
_REPLAYED = Text(
    "{file}: {paired} of {recorded} recorded calls supplied inputs to operators here{unpaired}",
    "{file}：记录中的 {recorded} 次调用有 {paired} 次将其输入用于此处的算子{unpaired}",
)
_UNPAIRED = Text(
    "; {count} calls here have no counterpart in the recording and used their own inputs: {examples}",
    "；此处有 {count} 次调用在记录中没有对应项，使用其自身输入：{examples}",
)
_NOTES = {
    "graphs": Text(
        "captured device graphs were run; their operators are not in the recording",
        "运行了设备的捕获图；其内部的算子不在记录中",
    ),
    "not looked into": Text(
        "the operators inside {what} are not in the recording",
        "{what} 内部的算子不在记录中",
    ),
    "ended early": Text(
        "the recorder failed and stopped, the program continued: {what}",
        "记录器出错并已停止，程序继续运行：{what}",
    ),
}
_FEWER = Text(
    "{file}: the program ended after {steps} of {wanted} steps",
    "{file}：程序在 {wanted} 步中的 {steps} 步之后结束",
)


def sentences(outcome: WrittenRecord, was_repaired: bool, wanted: int | None = None) -> Iterator[Text]:
    """Of the file of one process, of which so many steps were wanted (None: all)."""
    file = one_line(os.path.relpath(outcome.path))
    steps = _NO_STEP if outcome.steps < 1 else _ONE_STEP if outcome.steps == 1 else _STEPS
    yield _WRITTEN.format(
        file=file,
        steps=steps.format(first=outcome.first_step, last=outcome.first_step + outcome.steps - 1),
        calls=f"{outcome.calls:,}",
        nbytes=size(outcome.nbytes),
        saved=_SAVED.format(raw=size(outcome.raw_nbytes)) if outcome.raw_nbytes > outcome.nbytes else "",
        seconds=f"{outcome.seconds:.1f}",
    )
    if wanted is not None and 0 < outcome.steps < wanted:
        yield _FEWER.format(file=file, steps=outcome.steps, wanted=wanted)
    if was_repaired:
        yield _REPAIRED.format(file=file)
    if outcome.problem:
        yield _PROBLEM.format(file=file, problem=_problem(outcome.problem))
    if outcome.recorded:
        examples = ", ".join(map(one_line, outcome.examples))
        unpaired = (
            _UNPAIRED.format(count=f"{outcome.unpaired:,}", examples=examples) if outcome.unpaired else ""
        )
        paired, recorded = f"{outcome.paired:,}", f"{outcome.recorded:,}"
        yield _REPLAYED.format(file=file, paired=paired, recorded=recorded, unpaired=unpaired)
    yield from noted(outcome.notes)


def _problem(problem: str) -> Text:
    key, _, what = problem.partition(": ")
    known = _PROBLEMS.get(key)
    return Text(one_line(problem), one_line(problem)) if known is None else known.format(what=one_line(what))


def noted(notes: Iterable[str]) -> Iterator[Text]:
    """Sentences on what could not be seen."""
    for note in notes:
        key, between, what = note.partition(": ")
        known = _NOTES.get(key) or NOTES.get(note)
        yield (
            Text(one_line(note), one_line(note))
            if known is None
            else known.format(what=one_line(what))
            if between
            else known
        )
