"""Dumps of msprobe's PrecisionDebugger as records: a call for each API and each module, forward and backward. No torch."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import mmap
import os
import re
import sys
import zlib
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from torchferry.accuracy.file.api_folders import DUMP, MODULES, STACKS, TENSORS, StepFolder, api_dumps
from torchferry.accuracy.file.api_names import BACKWARD, FORWARD, ApiName, forward_name, parsed_name
from torchferry.accuracy.file.json_members import CutOffError, as_utf8, members
from torchferry.accuracy.file.reader import LazyCalls, Record
from torchferry.accuracy.file.saved_tensors import UnreadableTensorError, saved_elements
from torchferry.accuracy.model import (
    INPUT,
    OUTPUT,
    SIZES,
    Call,
    Kept,
    RandomState,
    RecordHeader,
    Statistics,
    TensorRecord,
    TensorRef,
    Value,
)
from torchferry.errors import InputError, not_readable
from torchferry.readiness.cases.model import contiguous
from torchferry.readiness.model import Special
from torchferry.text import Text

_DATA = "data"  # the member of dump.json that has the calls
_OF_TENSORS = "tensor"  # the task that keeps elements
_LONGEST_VALUE = 200  # letters
# Members of a call, in msprobe's versions from 1.0 to 26; what an input of a module is beside: its parameters.
INPUTS = ("input_args", "input_kwargs", "input", "parameters", "grad_input")
OUTPUTS = ("output", "grad_output")
_FRAME = re.compile(
    r"File (?P<file>.+?), line (?P<line>\d+), in (?P<function>.+?), ?\n?\s*(?P<code>.*)", re.DOTALL
)
_SLASHES = re.compile(r"[/\\]")
_OF_LIBRARIES = re.compile(
    r"[/\\](?:site|dist)-packages[/\\]|[/\\]msprobe[/\\](?:core|pytorch|mindspore)[/\\]|[/\\]torch[/\\]nn[/\\]|<frozen "
)


def open_api_dumps(path: Path) -> list[Record]:
    """The records of all ranks of a dump; none where there is no dump of msprobe."""
    found = sorted(api_dumps(path).items())
    return [ApiDumpRecord(place, steps, rank, len(found)) for rank, (place, steps) in found]


@dataclass
class _Step:
    """One dump.json: where each call stands in it, and what its neighbours say."""

    folder: Path
    number: int
    data: mmap.mmap
    head: dict[str, Any]
    names: list[str]
    starts: array[int]
    lengths: array[int]
    is_whole: bool
    parents: dict[str, str] = field(default_factory=dict)
    stacks: _Stacks | None = None
    files: frozenset[str] = frozenset()


class ApiDumpRecord(Record):
    """What one rank has dumped. A tensor's `offset` counts the files of tensors that calls have named so far."""

    def __init__(self, path: Path, folders: Sequence[StepFolder], rank: int, world: int) -> None:
        self._steps = [_read_step(each) for each in folders]
        self._ends = list(itertools.accumulate(len(step.names) for step in self._steps))
        self._files: list[Path] = []
        self._numbers: dict[Path, int] = {}
        self._contents: dict[tuple[Any, ...], int] = {}
        self._seed = zlib.crc32(str(folders[0].folder.absolute()).encode("utf-8", "surrogatepass")) << 31
        count = self._ends[-1] if self._ends else 0
        super().__init__(path, self._header(rank, world), LazyCalls(count, self._call))

    def _header(self, rank: int, world: int) -> RecordHeader:
        first = self._steps[0]
        level = first.head.get("level")
        notes = [f"a dump of msprobe{f', level {level}' if isinstance(level, str) else ''}"]
        wants_tensors = any(step.head.get("task") == _OF_TENSORS for step in self._steps)
        has_tensors = wants_tensors and any(step.files for step in self._steps)
        if wants_tensors and not has_tensors:
            notes.append(f"its tensors are not there ({first.folder / TENSORS}): only statistics are known")
        cut_off = [step.folder / DUMP for step in self._steps if not step.is_whole]
        if cut_off:
            notes.append(f"{cut_off[0]} is cut off: what follows is missing")
        kept = Kept.TENSORS if has_tensors else Kept.STATISTICS
        return RecordHeader(
            kept, "", "", "", rank, world, notes=tuple(notes), complete=not cut_off, apis=True
        )

    def _call(self, index: int) -> Call:
        at = bisect_right(self._ends, index)
        step = self._steps[at]
        place = index - (self._ends[at - 1] if at else 0)
        try:
            return self._made(index, step, place)
        except (ValueError, TypeError, AttributeError, LookupError, OverflowError) as error:
            reason = (str(error).splitlines() or [""])[0]
            raise InputError(
                Text(
                    f"{step.folder / DUMP}: damaged at {step.names[place]} ({reason}); dump it again",
                    f"{step.folder / DUMP}：{step.names[place]} 处已损坏（{reason}）；请重新 dump",
                )
            ) from None

    def _made(self, index: int, step: _Step, place: int) -> Call:
        name, parsed = step.names[place], parsed_name(step.names[place])
        entry = _entry(step, place)
        inputs, outputs = _Tensors(self, step, INPUT), _Tensors(self, step, OUTPUT)
        arguments: list[tuple[str, Value]] = []
        for key in INPUTS:
            prefix = "parameters." if key == "parameters" else ""
            arguments += [(prefix + each, value) for each, value in inputs.taken(entry.get(key), prefix)]
        if parsed.is_gradients:
            results = outputs.taken(entry, "")
        else:
            results = [each for key in OUTPUTS for each in outputs.taken(entry.get(key), "")]
        return Call(
            index + 1, parsed.operator, step.number, parsed.phase, module=_module_of(step, name, parsed),
            place=step.stacks.place(forward_name(name)) if step.stacks else "", node=name, arguments=tuple(arguments),
            inputs=tuple(inputs.found), outputs=tuple(outputs.found), results=tuple(value for _, value in results),
        )  # fmt: skip

    @property
    def has_gaps(self) -> bool:
        return any(_has_gaps(step.names) for step in self._steps)

    def described(self, call: Call) -> dict[str, Any]:
        """What dump.json says of a call."""
        at = bisect_right(self._ends, call.number - 1)
        return _entry(self._steps[at], call.number - 1 - (self._ends[at - 1] if at else 0))

    def stack(self, call: Call) -> list[str]:
        """The lines that have led to a call, the innermost first: file:line function."""
        step = next((each for each in self._steps if each.number == call.step), None)
        return step.stacks.frames(forward_name(call.node)) if step is not None and step.stacks else []

    def kept_in(self, step: _Step, described: dict[str, Any], name: str) -> TensorRecord:
        """A tensor as a call names it."""
        shape = tuple(size for size in described.get("shape") or () if isinstance(size, int) and size >= 0)
        dtype = _dtype(described.get("dtype"))
        tensor = TensorRecord(name, dtype or "uint8", shape, contiguous(shape), "")
        file = described.get("data_name")
        statistics = _statistics(described, math.prod(shape))
        known = (
            (file, step.number) if statistics is None or not _tells(statistics) else _key(tensor, statistics)
        )
        content = self._contents.setdefault(known, len(self._contents) + 1)
        if statistics is not None and not statistics.checksum:
            statistics = replace(statistics, checksum=self._seed + content)
        tensor = replace(tensor, content=content, statistics=statistics)
        if not dtype:
            return replace(
                tensor, unread=f"dtype {described.get('dtype')!r} is not known here", statistics=None
            )
        if not isinstance(file, str) or step.head.get("task") != _OF_TENSORS or not math.prod(shape):
            return tensor
        if file not in step.files:
            return replace(tensor, unread=f"its file is missing: {file}")
        return replace(tensor, offset=self._number_of(step.folder / TENSORS / file))

    def _number_of(self, file: Path) -> int:
        number = self._numbers.setdefault(file, len(self._files))
        if number == len(self._files):
            self._files.append(file)
        return number

    def file_of(self, tensor: TensorRecord) -> Path | None:
        """Where its elements are."""
        return None if tensor.offset is None else self._files[tensor.offset]

    def array(self, tensor: TensorRecord) -> np.ndarray[Any, Any]:
        file = self.file_of(tensor)
        if file is None:
            raise UnreadableTensorError(
                Text(
                    f"{self.path}: no contents of {tensor.name} ({tensor.unread or 'not kept'})",
                    f"{self.path}：没有 {tensor.name} 的内容（{tensor.unread or '未保存'}）",
                )
            )
        return saved_elements(file, tensor)

    def raw(self, tensor: TensorRecord) -> memoryview:
        return memoryview(self.array(tensor).tobytes())

    def state(self, random: RandomState) -> bytes:
        raise InputError(
            Text(
                f"{self.path}: an msprobe dump, which holds no generator states; record with ferry record to have "
                "them",
                f"{self.path}：这是 msprobe 的 dump，不含随机数生成器的状态；如需要请用 ferry record 记录",
            )
        )

    def size(self) -> int:
        folders = [place for step in self._steps for place in (step.folder, step.folder / TENSORS)]
        found = 0
        for folder in filter(Path.is_dir, folders):
            with os.scandir(folder) as entries:
                found += sum(each.stat().st_size for each in entries if each.is_file())
        return found

    def close(self) -> None:
        self.calls = ()
        for step in self._steps:
            step.data.close()


def _read_step(place: StepFolder) -> _Step:
    file = place.folder / DUMP
    data = _mapped(file)
    head: dict[str, Any] = {}
    names: list[str] = []
    places: list[tuple[int, int]] = []
    is_whole = True
    try:
        for member in members(data, _DATA):
            if member.section:
                names.append(sys.intern(member.name))
                places.append((member.start, member.length))
            else:
                head[member.name] = member.value
    except CutOffError as error:
        if not names:
            raise InputError(
                Text(
                    f"{file}: cut off before its first call ({error}); dump it again",
                    f"{file}：在第一次调用之前就被截断（{error}）；请重新 dump",
                )
            ) from None
        is_whole = False
    except ValueError as error:
        raise InputError(
            Text(
                f"{file}: not valid JSON ({error}); dump it again",
                f"{file}：不是合法的 JSON（{error}）；请重新 dump",
            )
        ) from None
    order = _in_order(names)
    step = _Step(
        place.folder, place.step, data, head, [names[at] for at in order],
        array("Q", (places[at][0] for at in order)), array("Q", (places[at][1] for at in order)), is_whole,
    )  # fmt: skip
    step.parents = _parents(place.folder / MODULES)
    step.stacks = _Stacks.of(place.folder / STACKS)
    step.files = _names_in(place.folder / TENSORS)
    return step


def _mapped(file: Path) -> mmap.mmap:
    try:
        with file.open("rb") as opened:
            return mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError:
        raise InputError(
            Text(
                f"{file}: empty, nothing was dumped; dump it again",
                f"{file}：文件为空，没有 dump 任何内容；请重新 dump",
            )
        ) from None
    except OSError as error:
        raise not_readable(file, error) from None


def _in_order(names: Sequence[str]) -> list[int]:
    """Positions in the order of execution: some versions note a module's gradients down before there are any."""
    first_backward = next(
        (
            at
            for at, name in enumerate(names)
            if not _is_gradients(name) and parsed_name(name).phase == BACKWARD
        ),
        len(names),
    )
    early = {at for at in range(first_backward) if _is_gradients(names[at])}
    if not early:
        return list(range(len(names)))
    waiting = {parsed_name(names[at]).module: at for at in sorted(early)}
    last = {parsed_name(name).module: at for at, name in enumerate(names) if _is_backward_of_module(name)}
    order: list[int] = []
    for at, name in enumerate(names):
        if at in early:
            continue
        order.append(at)
        module = parsed_name(name).module
        if module in waiting and last.get(module) == at:
            order.append(waiting.pop(module))
    return [*order, *waiting.values()]


def _is_gradients(name: str) -> bool:
    return parsed_name(name).is_gradients


def _is_backward_of_module(name: str) -> bool:
    parsed = parsed_name(name)
    return parsed.is_module and not parsed.is_gradients and parsed.phase == BACKWARD


def _has_gaps(names: Sequence[str]) -> bool:
    """Whether some forward calls of an API are missing before others: only chosen ones were dumped."""
    counts: Counter[tuple[str, str]] = Counter()
    last: dict[tuple[str, str], int] = {}
    for name in names:
        parsed = parsed_name(name)
        if parsed.phase == FORWARD:
            key = parsed.operator, parsed.module
            counts[key] += 1
            last[key] = max(last.get(key, 0), parsed.number)
    return any(number >= counts[key] for key, number in last.items())


def _names_in(folder: Path) -> frozenset[str]:
    try:
        return frozenset(os.listdir(folder))
    except OSError:
        return frozenset()


def _entry(step: _Step, place: int) -> dict[str, Any]:
    start = step.starts[place]
    found = json.loads(step.data[start : start + step.lengths[place]].decode("utf-8", "replace"))
    return found if isinstance(found, dict) else {}


def _parents(file: Path) -> dict[str, str]:
    """The module in which each call was made; what is not there, or damaged, is not known."""
    found: dict[str, str] = {}
    with contextlib.suppress(InputError, ValueError), contextlib.closing(_mapped(file)) as data:
        for member in members(data):
            parent = member.value[0] if isinstance(member.value, list) and member.value else member.value
            if isinstance(parent, str):
                found[sys.intern(member.name)] = sys.intern(as_utf8(parent))
    return found


def _module_of(step: _Step, name: str, parsed: ApiName) -> str:
    """The path of the innermost module around a call."""
    if parsed.is_module:
        return parsed.module
    seen: set[str] = set()
    while name not in seen:
        seen.add(name)
        name = step.parents.get(name, "")
        around = parsed_name(name)
        if not name or around.is_module:
            return around.module
    return ""


class _Stacks:
    """stack.json, in either form: lines by the name of a call, or names and lines by a number."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._entries: list[tuple[int, int, str]] = []  # where it stands, and the first line of the user's
        self._of_calls: dict[str, int] = {}
        with contextlib.suppress(ValueError):
            for member in members(data):
                self._add(member.name, member.value, member.start, member.length)

    @classmethod
    def of(cls, file: Path) -> _Stacks | None:
        """Those of a file; None where there is none."""
        try:
            return cls(_mapped(file))
        except InputError:
            return None

    def _add(self, name: str, value: Any, start: int, length: int) -> None:
        names, lines = _names_and_lines(name, value)
        self._entries.append((start, length, _first_place(lines)))
        self._of_calls.update((sys.intern(as_utf8(each)), len(self._entries) - 1) for each in names)

    def place(self, name: str) -> str:
        """train.py:31, the innermost line that is no library's."""
        at = self._of_calls.get(name)
        return "" if at is None else self._entries[at][2]

    def frames(self, name: str) -> list[str]:
        """The lines that are no library's, the innermost first."""
        at = self._of_calls.get(name)
        if at is None:
            return []
        start, length, _ = self._entries[at]
        text = self._data[start : start + length].decode("utf-8", "replace")
        _, lines = _names_and_lines("", json.loads(text))
        return [f"{_short(match)} {match['function']}: {match['code'].strip()}" for match in _of_user(lines)]


def _names_and_lines(name: str, value: Any) -> tuple[list[str], list[str]]:
    if not isinstance(value, list):
        return [name], []
    if len(value) == 2 and all(isinstance(each, list) for each in value):
        return [str(each) for each in value[0]], [str(each) for each in value[1]]
    return [name], [each for each in value if isinstance(each, str)]


def _of_user(lines: Sequence[str]) -> Iterator[re.Match[str]]:
    matches = (_FRAME.fullmatch(line.strip()) for line in lines)
    return (match for match in matches if match is not None and not _OF_LIBRARIES.search(match["file"]))


def _short(match: re.Match[str]) -> str:
    return f"{_SLASHES.split(match['file'])[-1]}:{match['line']}"


def _first_place(lines: Sequence[str]) -> str:
    match = next(_of_user(lines), None)
    return "" if match is None else sys.intern(as_utf8(_short(match)))


class _Tensors:
    """The tensors of one side of a call, picked out of its description."""

    def __init__(self, record: ApiDumpRecord, step: _Step, side: str) -> None:
        self._record, self._step, self._side = record, step, side
        self.found: list[TensorRecord] = []

    def taken(self, described: Any, prefix: str) -> list[tuple[str, Value]]:
        """Names and values of arguments, or of results."""
        if isinstance(described, dict) and not _is_value(described):
            named = described.items()
        else:
            listed = described if isinstance(described, list) else [] if described is None else [described]
            named = {f"{self._side}_{at}": each for at, each in enumerate(listed)}.items()
        return [(name, self._value(each, f"{self._side}/{prefix}{name}")) for name, each in named]

    def _value(self, described: Any, name: str) -> Value:
        if isinstance(described, list):
            short = name.rpartition("/")[2]
            if len(described) == 1 and self._is_alone(described[0]):
                return self._value(described[0], name)
            return tuple(self._value(each, f"{name}/{short}_{at}") for at, each in enumerate(described))
        if not isinstance(described, dict):
            return described if isinstance(described, (bool, int, float, str)) else None
        if "dtype" in described and "shape" in described:
            self.found.append(self._record.kept_in(self._step, described, name))
            return TensorRef(len(self.found) - 1)
        if _is_value(described):
            return _plain(described)
        return tuple(self._value(each, f"{name}/{key}") for key, each in described.items())

    def _is_alone(self, described: Any) -> bool:
        """Gradients of parameters are lists of one."""
        return self._side == OUTPUT and isinstance(described, dict) and "dtype" in described


def _is_value(described: dict[str, Any]) -> bool:
    return isinstance(described.get("type"), str)


def _plain(described: dict[str, Any]) -> Value:
    kind = str(described["type"]).rpartition(".")[2]
    value = described.get("value", described.get("format"))
    if kind in ("int", "float", "bool", "str"):
        return _number(value) if kind == "float" else value
    if isinstance(value, str) and kind in ("dtype", "device", "memory_format", "layout"):
        return Special(kind, value.removeprefix("torch."))
    return Special(kind, json.dumps(value)[:_LONGEST_VALUE])


def _number(value: Any) -> Any:
    """A float; some versions write nan and inf as texts."""
    with contextlib.suppress(ValueError):
        return float(value) if isinstance(value, str) else value
    return value


_DTYPES = {name.casefold(): name for name in SIZES}


def _dtype(described: Any) -> str:
    """float32 for torch.float32, and for MindSpore's Float32; "": it is not known here."""
    return _DTYPES.get(str(described).removeprefix("torch.").casefold(), "")


# Statistics. A figure that the dump does not have is nan, which no difference is made of.


def _statistics(described: dict[str, Any], count: int) -> Statistics | None:
    """What a dump tells: the largest and smallest element, mean and norm, or a checksum; None if nothing."""
    largest, smallest, mean, norm = (_figure(described.get(name)) for name in ("Max", "Min", "Mean", "Norm"))
    checksum = _checksum(described.get("md5"))
    if largest is None and smallest is None and not checksum and count:
        return None
    ends = [each for each in (largest, smallest) if each is not None]
    nans = any(map(math.isnan, ends))
    infinities = not nans and any(map(math.isinf, ends))
    zeros = count if largest == 0 == smallest else 0
    rms = None if norm is None or not count else norm / math.sqrt(count)
    if nans or infinities:
        mean = rms = None
    low, high, mean, rms = (_finite(each) for each in (smallest, largest, mean, rms))
    return Statistics(count, int(nans), int(infinities), zeros, low, high, mean, rms, checksum)


def _figure(value: Any) -> float | None:
    number = _number(value)
    return float(number) if isinstance(number, (bool, int, float)) else None


def _finite(value: float | None) -> float:
    return value if value is not None and math.isfinite(value) else math.nan


def _checksum(value: Any) -> int:
    try:
        return int(value, 16) % (1 << 63) if isinstance(value, str) else 0
    except ValueError:
        return 0


def _tells(statistics: Statistics) -> bool:
    """Whether equal figures are hardly a coincidence."""
    return statistics.count > 1 and math.isfinite(statistics.rms) and statistics.minimum != statistics.maximum


def _key(tensor: TensorRecord, statistics: Statistics) -> tuple[Any, ...]:
    return tensor.dtype, tensor.shape, statistics.minimum, statistics.maximum, statistics.mean, statistics.rms
