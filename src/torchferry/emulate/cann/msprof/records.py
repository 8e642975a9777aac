"""What the emulated CANN's profiler has recorded: tasks of streams, calls on the host, memory in use."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from torchferry.emulate.cann.msprof.kernels import Kernel, KernelTensor, kernel_of, tensors_in

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
        """Nanoseconds."""
        return self.end - self.start

    @cached_property
    def kernel(self) -> Kernel:
        """How the toolkit calls it; of a kernel."""
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
    """One of them."""

    process: int
    with_shapes: bool
    devices: list[int]
    tasks: list[StreamTask]  # in the order in which they began
    calls: list[HostCall]
    memory: list[MemoryInUse]


# Bits of the configuration: the times of tasks with what they are called with; that for the lowest level, too.
_TASK_TIME, _SHAPES = 0x2, 0x800000000


def read_profile(folder: Path) -> Profile:
    """Read it. Throws NoProfileError."""
    try:
        information = json.loads((folder / "host/info.json").read_text("utf-8"))
        offset = _offset(folder / "host/start_info")
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
        [_call(row, offset) for row in _rows(folder / "host/data/calls.tsv")],
        [
            MemoryInUse(device, int(moment) + offset, int(used))
            for device in devices
            for moment, used in _rows(folder / f"device_{device}/data/memory.tsv")
        ],
    )


def _offset(path: Path) -> int:
    """What is added to the recorder's clock. The plugin reads the same file, and adds the same to its own times."""
    start: dict[str, Any] = ast.literal_eval(path.read_text("utf-8"))
    whole, _, part = str(start["collectionTimeBegin"]).partition(".")
    return int(whole + part.ljust(3, "0")[:3]) - int(start["clockMonotonicRaw"])


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


def _call(row: list[str], offset: int) -> HostCall:
    name, thread, start, end = row
    return HostCall(name, int(thread), int(start) + offset, int(end) + offset)
