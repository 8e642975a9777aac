"""Takes calls out of a record, as a record of their own: each content once, everything that is known of them. No torch."""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path

from torchferry.accuracy.file.chunks import check_replaceable
from torchferry.accuracy.file.reader import MappedRecord, Record, open_record
from torchferry.accuracy.file.writer import RecordWriter
from torchferry.accuracy.model import Call, RandomState, RecordHeader, TensorRecord, Value
from torchferry.accuracy.record.settings import Selection
from torchferry.errors import InputError, OutputError, no_place, not_writable
from torchferry.files.aside import folder_aside, remove_leftovers
from torchferry.readiness.model import Special
from torchferry.text import Text

_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_RELEASED = 64  # calls after which memory is given back


@dataclass(frozen=True)
class NumberRange:
    """Numbers of calls or of steps, both ends included."""

    first: int
    last: int

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


def number_ranges(text: str) -> tuple[NumberRange, ...]:
    """What `12`, `12-20` or `3,12-20` means. Raises ValueError."""
    found = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            raise ValueError(text)
        first = int(match[1])
        one = NumberRange(first, int(match[2] or first))
        if not 1 <= one.first <= one.last:
            raise ValueError(text)
        found.append(one)
    return tuple(found)


@dataclass(frozen=True)
class CutRequest:
    """Which calls: what is empty leaves nothing out."""

    numbers: tuple[NumberRange, ...] = ()
    steps: tuple[NumberRange, ...] = ()
    selection: Selection = Selection()

    def fits(self, call: Call) -> bool:
        """Whether a call, whose number is wanted, is wanted in all else."""
        is_of_step = not self.steps or any(each.first <= call.step <= each.last for each in self.steps)
        chosen = self.selection
        has_site = chosen.has_site(call.phase, call.model, call.module)
        return is_of_step and has_site and chosen.has_operator(call.operator)

    def describe(self) -> str:
        """In words, for the record's head."""
        named = {"calls": self.numbers, "steps": self.steps}
        parts = [f"{name} {', '.join(map(str, each))}" for name, each in named.items() if each]
        return "; ".join(filter(None, [*parts, self.selection.describe()]))


@dataclass(frozen=True)
class CutRecord:
    """What a cut has left."""

    calls: int
    of: int
    nbytes: int


Change = Callable[[str], str]  # of texts that say where something was: paths, names of machines


def chosen_calls(record: Record, request: CutRequest) -> list[int]:
    """The places of the wanted calls among those of a record; an error says which there are."""
    calls = record.calls
    if not calls:
        raise InputError(
            Text(
                f"{record.path}: an empty recording, without a single call; record again",
                f"{record.path}：记录为空，没有任何调用；请重新记录",
            )
        )
    first, last = calls[0].number, calls[-1].number
    wanted: Iterable[int] = range(len(calls))
    if request.numbers:
        wanted = sorted({at for each in request.numbers for at in _numbered(record, each, first, last)})
    found = [at for at in wanted if request.fits(calls[at])]
    if not found:
        steps = sorted({call.step for call in calls})
        raise InputError(
            Text(
                f"{record.path}: no call matches {request.describe()}; it holds calls {first} to {last} of "
                f"{_ranges_of(steps)}; `ferry record info {record.path}` lists its operators",
                f"{record.path}：没有符合 {request.describe()} 的调用；其中有 {_ranges_of(steps)} 的第 {first} "
                f"到第 {last} 次调用；`ferry record info {record.path}` 可列出其算子",
            )
        )
    return found


def _numbered(record: Record, wanted: NumberRange, first: int, last: int) -> range:
    start = bisect_left(record.calls, wanted.first, key=attrgetter("number"))
    end = bisect_left(record.calls, wanted.last + 1, lo=start, key=attrgetter("number"))
    if wanted.first < first or wanted.last > last:
        raise InputError(
            Text(
                f"{record.path}: no call {wanted}; choose one of {first} to {last}",
                f"{record.path}：没有第 {wanted} 次调用；请在 {first} 到 {last} 之间选择",
            )
        )
    if start == end:
        raise InputError(
            Text(
                f"{record.path}: no call {wanted}; only some of {first} to {last} were kept, the next one is "
                f"{record.calls[start].number}",
                f"{record.path}：没有第 {wanted} 次调用；{first} 到 {last} 中只保留了一部分，下一个是 "
                f"{record.calls[start].number}",
            )
        )
    return range(start, end)


def _ranges_of(steps: Sequence[int]) -> str:
    return f"step {steps[0]}" if len(steps) == 1 else f"steps {steps[0]} to {steps[-1]}"


def check_cut_output(target: Path, sources: Iterable[Path]) -> None:
    """Complain of a place that can't or must not be written to."""
    if not target.parent.is_dir() or not os.access(target.parent, os.W_OK):
        raise no_place(target)
    if any(target.exists() and target.samefile(source) for source in sources):
        raise OutputError(
            Text(
                f"{target}: this is the recording to cut from; choose another file with -o",
                f"{target}：这正是要截取的记录；请用 -o 指定其他文件",
            )
        )
    check_replaceable(target)


def cut(source: Path, target: Path, request: CutRequest, change: Change = str) -> CutRecord:
    """Write the wanted calls, with their numbers, as a record that appears whole or not at all."""
    check_cut_output(target, [source])
    with open_record(source) as record:
        places = chosen_calls(record, request)
        header = _changed_header(record.header, request, change)
        try:
            remove_leftovers(target.parent)
            with folder_aside(target.parent) as aside:
                made = aside.path / "record.h5"
                _write(record, places, RecordWriter(made, header, is_read_meanwhile=False), change)
                os.replace(made, target)
        except OSError as error:
            raise not_writable(target, error) from None
        return CutRecord(len(places), len(record.calls), target.stat().st_size)


def _changed_header(header: RecordHeader, request: CutRequest, change: Change) -> RecordHeader:
    selected = "; ".join(filter(None, [header.selected, request.describe()]))
    return replace(
        header,
        program=change(header.program),
        options=change(header.options),
        replayed=change(header.replayed),
        notes=tuple(map(change, header.notes)),
        selected=selected,
    )


def _write(record: Record, places: Sequence[int], writer: RecordWriter, change: Change) -> None:
    contents = _Contents(record, writer, (record.calls[at] for at in places))
    try:
        for done, at in enumerate(places, 1):
            writer.write(_changed_call(contents.moved(record.calls[at]), change))
            if done % _RELEASED == 0:
                record.release()
    finally:
        writer.close()
    if writer.failed:
        raise OSError(None, writer.failed)


def _changed_call(call: Call, change: Change) -> Call:
    arguments = tuple((name, _changed_value(value, change)) for name, value in call.arguments)
    return replace(call, place=change(call.place), arguments=arguments)


def _changed_value(value: Value, change: Change) -> Value:
    if isinstance(value, tuple):
        return tuple(_changed_value(each, change) for each in value)
    if isinstance(value, Special):
        return Special(value.kind, change(value.text))
    return change(value) if isinstance(value, str) else value


class _Contents:
    """Moves bytes from one record to the other, once where several tensors share them."""

    def __init__(self, record: Record, writer: RecordWriter, calls: Iterable[Call]) -> None:
        self._record, self._writer = record, writer
        self._moved: dict[object, int] = {}
        # views of one memory overlap in the file; other readers know no more than which contents are the same
        self._blocks = list(_merged(_extents(calls))) if isinstance(record, MappedRecord) else None

    def moved(self, call: Call) -> Call:
        """The call with its contents in the other record."""
        random = call.random and self._state(call.random)
        return replace(
            call,
            inputs=tuple(map(self._tensor, call.inputs)),
            outputs=tuple(map(self._tensor, call.outputs)),
            random=random,
        )

    def _tensor(self, tensor: TensorRecord) -> TensorRecord:
        if tensor.offset is None:
            return tensor
        if not tensor.nbytes or (self._blocks is None and not tensor.content):
            return replace(tensor, offset=self._writer.append(self._record.raw(tensor)))
        if self._blocks is None:
            return replace(tensor, offset=self._once((tensor.content, tensor.nbytes), tensor))
        start, end = self._blocks[bisect_left(self._blocks, tensor.offset + 1, key=lambda each: each[0]) - 1]
        whole = TensorRecord(tensor.name, "uint8", (end - start,), (1,), "", offset=start)
        return replace(tensor, offset=self._once(start, whole) + tensor.offset - start)

    def _once(self, key: object, tensor: TensorRecord) -> int:
        if key not in self._moved:
            self._moved[key] = self._writer.append(self._record.raw(tensor))
        return self._moved[key]

    def _state(self, random: RandomState) -> RandomState:
        key = ("state", random.offset)
        if key not in self._moved:
            self._moved[key] = self._writer.append(self._record.state(random))
        return replace(random, offset=self._moved[key])


def _extents(calls: Iterable[Call]) -> Iterator[tuple[int, int]]:
    for call in calls:
        for tensor in (*call.inputs, *call.outputs):
            if tensor.offset is not None and tensor.nbytes:
                yield tensor.offset, tensor.offset + tensor.nbytes


def _merged(extents: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Without overlaps, in order."""
    start = end = -1
    for first, last in sorted(set(extents)):
        if first < end:
            end = max(end, last)
            continue
        if end > start:
            yield start, end
        start, end = first, last
    if end > start:
        yield start, end
