"""Which compiles came after the warm-up, and how that is known."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass

from torchferry.errors import InputError
from torchferry.perf.oplog.model import Basis, Compile, Process
from torchferry.perf.oplog.parsing import seconds_of
from torchferry.text import Text

_CLOCK = re.compile(r"\d\d?:\d\d(?::\d\d(?:[.]\d+)?)?")

_TEXTS = {
    Basis.TIME: Text("compiles after {value}", "{value} 之后的编译"),
    Basis.WARM_UP: Text(
        "compiles more than {value} s after a process's first operator", "进程第一个算子 {value} 秒之后的编译"
    ),
    Basis.SHAPES: Text(
        "compiles of an operator from shape number {value} on (types, formats and attributes being equal)",
        "算子从第 {value} 种形状起的编译（类型、格式与属性相同）",
    ),
    Basis.HALF: Text(
        "compiles in the second half of the operators that a process called: an estimate, --after or --warmup is exact",
        "进程所调用算子后一半中的编译：仅为估计，--after 或 --warmup 更准确",
    ),
    Basis.UNKNOWN: Text(
        "the log has no calls of operators, so nothing tells the first step from the others: give --after or --warmup",
        "日志中没有算子调用，无法区分第一个 step 与其余 step：请给出 --after 或 --warmup",
    ),
}


@dataclass(frozen=True)
class WarmUp:
    """What the user says about the warm-up; at most one of them."""

    after: str = ""
    seconds: float | None = None
    shapes: int = 0


def recompiles(
    compiles: tuple[Compile, ...], processes: tuple[Process, ...], warm_up: WarmUp
) -> tuple[tuple[Compile, ...], Basis, Text]:
    """Those after the warm-up, and on what basis."""
    if warm_up.after:
        moment = _moment(warm_up.after, processes)
        chosen = [entry for entry in compiles if entry.time is not None and entry.time > moment]
        return tuple(chosen), Basis.TIME, _TEXTS[Basis.TIME].format(value=warm_up.after)
    if warm_up.seconds is not None:
        _check_times(processes)
        return (
            _after_seconds(compiles, processes, warm_up.seconds),
            Basis.WARM_UP,
            _TEXTS[Basis.WARM_UP].format(value=f"{warm_up.seconds:g}"),
        )
    if warm_up.shapes:
        found = _by_shapes(compiles, warm_up.shapes)
        return found, Basis.SHAPES, _TEXTS[Basis.SHAPES].format(value=warm_up.shapes)
    half = {process.number: process.calls / 2 for process in processes}
    if not any(half.values()):
        return (), Basis.UNKNOWN, _TEXTS[Basis.UNKNOWN]
    late = tuple(entry for entry in compiles if half[entry.process] and entry.call > half[entry.process])
    return late, Basis.HALF, _TEXTS[Basis.HALF]


def _moment(text: str, processes: tuple[Process, ...]) -> float:
    """A time of the log; one without a day is of the day on which the log begins."""
    firsts = _check_times(processes)
    given = text
    if _CLOCK.fullmatch(text):
        day = datetime.datetime.fromtimestamp(min(firsts), datetime.timezone.utc)
        given = f"{day:%Y-%m-%d}-{text}"
    moment = seconds_of(given.encode())
    if moment is None:
        raise InputError(f"--after {text}: no time; write it as 10:11:12 or as 2024-05-06-10:11:12")
    return moment


def _check_times(processes: tuple[Process, ...]) -> list[float]:
    firsts = [process.first for process in processes if process.first is not None]
    if not firsts:
        raise InputError(
            "the lines of this log have no times, so --after and --warmup can't be used; try --shapes 2"
        )
    return firsts


def _after_seconds(
    compiles: tuple[Compile, ...], processes: tuple[Process, ...], seconds: float
) -> tuple[Compile, ...]:
    ends = {process.number: process.first + seconds for process in processes if process.first is not None}
    return tuple(
        entry
        for entry in compiles
        if entry.time is not None and entry.process in ends and entry.time > ends[entry.process]
    )


def _by_shapes(compiles: tuple[Compile, ...], count: int) -> tuple[Compile, ...]:
    """Compiles for the n-th shape and later ones of an operator that is the same in all else."""
    known: dict[tuple[object, ...], set[object]] = {}
    found = []
    for entry in compiles:
        signature = entry.signature
        if signature is None:
            continue
        kinds = tuple((tensor.dtype, tensor.storage, len(tensor.shape)) for tensor in signature.inputs)
        shapes = known.setdefault((entry.process, entry.operator, kinds, signature.attributes), set())
        shapes.add(signature.shapes)
        if len(shapes) >= count:
            found.append(entry)
    return tuple(found)
