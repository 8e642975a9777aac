"""What the emulated CANN's profiler has recorded: tasks of streams, calls on the host, memory in use."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any
from zlib import crc32

from torchferry.emulate.cann.entries import INTERFACES, Interface, read_interfaces

_TYPES = Path(__file__).parent / "kernel_types.tsv"

CUBE, MIXED, VECTOR = "AI_CORE", "MIX_AIC", "AI_VECTOR_CORE"
_CUBE = re.compile(r"mat_?mul|(?:add|baddb|addb|b|^)mm$|(?:add|^)mv$|conv|linear|lstm|gru", re.IGNORECASE)
_MIXED = re.compile(r"attention|grouped_?matmul|ffn|moe|mla", re.IGNORECASE)
# Functions differ by what their last argument is, operators don't: Adds, EqTensor, GeluV2.
_INPLACE, _VERSION, _FORM = re.compile(r"^Inplace"), re.compile(r"V\d$"), re.compile(r"(?:Tensor|Scalar)+$")
_OUTPUT = re.compile(
    r"(?:Out|Ref)$|^out|^output|^result|^y\d?$|^save|^grad(?!Out|Y)|^d[qkvx]$", re.IGNORECASE
)
_NO_OUTPUT = re.compile(r"^grad_?(?:Out(?:put)?|Y)$", re.IGNORECASE)
_DTYPES = {
    "Float": "FLOAT", "Half": "FLOAT16", "BFloat16": "DT_BF16", "Double": "DOUBLE", "Long": "INT64", "Int": "INT32",
    "Short": "INT16", "Char": "INT8", "Byte": "UINT8", "Bool": "BOOL", "ComplexFloat": "COMPLEX64",
    "ComplexDouble": "COMPLEX128",
}  # fmt: skip
_ADDS_FIRST = re.compile(
    r"^aclnn(?:Inplace)?(?:add|badd)b?m[mv]", re.IGNORECASE
)  # what the product is added to
_FORMATS = {3: "NCL", 4: "NCHW", 5: "NCDHW"}  # the plugin's, by the number of dimensions; else ND


@dataclass(frozen=True)
class Kernel:
    """What the profiler's tables show of a kernel."""

    name: str
    type: str
    core: str


@dataclass(frozen=True)
class KernelTensor:
    """A tensor that a kernel was called with."""

    shape: str  # "2,3"
    dtype: str
    format: str


@cache
def kernel_of(function: str) -> Kernel:
    """One kernel stands for the function: on hardware it may be several."""
    plain = _INPLACE.sub("", function.removeprefix("aclnn"))
    type_ = _types().get(plain)
    if not type_:  # Add for Adds and AddV3; Gelu for GeluV2
        type_ = _FORM.sub("", _VERSION.sub("", plain)) or plain
        singular = type_.removesuffix("s")
        type_ = singular if f"aclnn{singular}" in _interfaces() else type_
    core = MIXED if _MIXED.search(plain) else CUBE if _CUBE.search(plain) else VECTOR
    return Kernel(f"{function}_{type_}AiCore_{type_}", type_, core)


def tensors_in(function: str, text: str) -> tuple[list[KernelTensor], list[KernelTensor]]:
    """Inputs and outputs, of what was recorded: "0:Float:2,3;1:Float:2,3"."""
    ins, outs = _sides(function)
    found = [field.split(":") for field in text.split(";") if field]
    inputs = [
        _tensor(dtype, shape)
        for number, dtype, shape in found
        if int(number) in ins or int(number) not in outs
    ]
    if _ADDS_FIRST.match(function) and len(inputs) == 3:
        inputs = [*inputs[1:], inputs[0]]
    return inputs, [_tensor(dtype, shape) for number, dtype, shape in found if int(number) in outs]


def _tensor(dtype: str, shape: str) -> KernelTensor:
    dimensions = shape.count(",") + 1 if shape else 0
    return KernelTensor(shape, _DTYPES.get(dtype, dtype.upper()), _FORMATS.get(dimensions, "ND"))


@cache
def _sides(function: str) -> tuple[frozenset[int], frozenset[int]]:
    """Which arguments go in, which come out. By convention those that come out are the last tensors; the interface
    does not say where they begin, their names do."""
    names = [
        (number, argument.name)
        for number, argument in enumerate(_interfaces().get(function, ()))
        if argument.kind in ("tensor", "tensors")
    ]
    outs: set[int] = {number for number, name in names if name.endswith("Ref")}
    ins = set(outs)
    if not outs:
        for number, name in reversed(names):
            if outs and (_NO_OUTPUT.match(name) or not _OUTPUT.search(name)):
                break
            outs.add(number)
    return frozenset(ins | {number for number, _ in names if number not in outs}), frozenset(outs)


@cache
def _interfaces() -> dict[str, Interface]:
    return read_interfaces(INTERFACES.read_text("utf-8"))


@cache
def _types() -> dict[str, str]:
    lines = _TYPES.read_text("utf-8").splitlines()
    rows = (line.split("\t") for line in lines if not line.startswith("#"))
    return {row[0]: row[1] for row in rows if len(row) > 1}


KERNEL, COMMUNICATION, COPY = "KERNEL", "COMMUNICATION", "MEMCPY"
MARKER, RANGE, HOST_RANGE = "MARKER", "RANGE", "HOST_RANGE"  # set by the program: in a stream, the last not
MARKS = (MARKER, RANGE, HOST_RANGE)


class NoProfileError(Exception):
    """A folder that the emulated CANN has not written."""


@dataclass(frozen=True)
class StreamTask:
    """Something that a stream has done. Times are nanoseconds since 1970."""

    connection: int
    kind: str
    function: str
    device: int
    stream: int
    thread: int  # that put it on the stream
    called: int
    call_ended: int
    start: int
    end: int
    waited: int  # of that time, for other devices
    details: str
    number: int  # among the tasks of its stream; of a collective, among those of its group

    @property
    def duration(self) -> int:
        return self.end - self.start

    @cached_property
    def kernel(self) -> Kernel:
        """The kernel that the toolkit shows for this task, if it is one."""
        return kernel_of(self.function)

    @cached_property
    def tensors(self) -> tuple[list[KernelTensor], list[KernelTensor]]:
        """A kernel's inputs and outputs."""
        return tensors_in(self.function, self.details)


@dataclass(frozen=True)
class HostCall:
    """A call of the toolkit on the host."""

    name: str
    thread: int
    start: int
    end: int


@dataclass(frozen=True)
class MemoryInUse:
    """So many bytes of a device were in use from this time on."""

    device: int
    time: int
    bytes: int


@dataclass(frozen=True)
class Profile:
    """What was recorded of one process."""

    process: int
    with_shapes: bool
    devices: list[int]
    tasks: list[StreamTask]  # in the order in which they began
    calls: list[HostCall]
    memory: list[MemoryInUse]


# Bits of the configuration: the times of tasks with what they are called with; that for the lowest level, too.
_TASK_TIME, _SHAPES = 0x2, 0x800000000


def read_profile(folder: Path) -> Profile:
    """Read the profile in a folder. Throws NoProfileError."""
    try:
        information = json.loads((folder / "host/info.json").read_text("utf-8"))
        start: dict[str, Any] = ast.literal_eval((folder / "host/start_info").read_text("utf-8"))
        # The recorder's clock is moved as the plugin does it: it reads the same file.
        whole, _, part = str(start["collectionTimeBegin"]).partition(".")
        offset = int(whole + part.ljust(3, "0")[:3]) - int(start["clockMonotonicRaw"])
    except (OSError, ValueError, SyntaxError, KeyError, ArithmeticError) as error:
        raise NoProfileError(f"{folder}: is no profile of the emulated CANN ({error})") from None
    devices = [int(name) for name in str(information["devices"]).split(",") if name]
    tasks = [
        task
        for device in devices
        for task in _tasks(folder / f"device_{device}/data/tasks.tsv", device, offset)
    ]
    return Profile(
        int(information["pid"]),
        bool(information["dataTypeConfig"] & (_TASK_TIME | _SHAPES)),
        devices,
        sorted(tasks, key=lambda task: task.start),
        [
            HostCall(name, int(thread), int(start) + offset, int(end) + offset)
            for name, thread, start, end in _rows(folder / "host/data/calls.tsv")
        ],
        [
            MemoryInUse(device, int(moment) + offset, int(used))
            for device in devices
            for moment, used in _rows(folder / f"device_{device}/data/memory.tsv")
        ],
    )


def _rows(path: Path) -> Iterator[list[str]]:
    if path.is_file():
        with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
            for line in file:
                yield line.rstrip("\n").split("\t")


def _tasks(path: Path, device: int, offset: int) -> Iterator[StreamTask]:
    numbers: dict[str, int] = {}
    for row in sorted(_rows(path), key=lambda row: int(row[7])):
        counted = row[10].rsplit("|", 6)[0] if row[1] == COMMUNICATION else row[3]
        numbers[counted] = number = numbers.get(counted, 0) + 1
        called, call_ended, start, end = (int(field) + offset for field in row[5:9])
        yield StreamTask(
            int(row[0]), row[1], row[2], device, int(row[3]), int(row[4]), called, call_ended, start, end, int(row[9]), row[10], number
        )  # fmt: skip


@dataclass(frozen=True)
class Collective:
    """A collective that was done."""

    name: str  # hcom_allReduce__944_0_1
    type: str  # hcom_allReduce_
    group: str
    rank: int
    ranks: int
    count: int  # of elements
    dtype: str
    bytes: int
    peers: tuple[int, ...]  # of messages to single ranks; empty: all

    @property
    def links(self) -> list[tuple[int, int]]:
        """From which rank to which, as far as this one takes part."""
        others = self.peers or tuple(rank for rank in range(self.ranks) if rank != self.rank)
        return [(self.rank, other) for other in others]


def collective_of(task: StreamTask) -> Collective:
    """What was recorded: name of the group, rank, ranks, elements, type, bytes, peers."""
    group, rank, ranks, count, dtype, size, peers = task.details.rsplit("|", 6)
    type_ = type_of(task.function)
    return Collective(
        f"{type_}_{crc32(group.encode()) % 1000:03d}_{task.number}_1",
        type_,
        group,
        int(rank),
        int(ranks),
        int(count),
        dtype,
        int(size),
        tuple(int(peer) for peer in peers.split(",") if peer),
    )


@cache
def type_of(function: str) -> str:
    """The type of a collective: hcom_allReduce_ for HcclAllReduce."""
    plain = function.removeprefix("Hccl")
    plain = {
        "Recv": "Receive",
        "AlltoAll": "Alltoall",
        "AlltoAllV": "Alltoallv",
        "AlltoAllVC": "Alltoallvc",
    }.get(plain, plain)
    return f"hcom_{plain[:1].lower()}{plain[1:]}_"
