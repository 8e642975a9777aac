"""From operators to the kernels that they launched, and from recorded calls to those of a trace. Imports no torch."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.accuracy.model import Call
from torchferry.report.csv import Cell, csv_lines, flat
from torchferry.report.safe import one_line
from torchferry.text import Language, Text

if TYPE_CHECKING:
    from torchferry.readiness.trace.reader import Launch, Launches

Shapes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class KernelUse:
    """Calls of one operator, on tensors of one sort, that launched the same kernels."""

    operator: str
    shapes: Shapes  # of its tensors; () where the trace has none
    dtypes: tuple[str, ...]
    kernels: tuple[str, ...]  # in the order of their start
    calls: int
    nanoseconds: int  # of the device, in all
    module: str  # of the first call
    place: str


@dataclass(frozen=True)
class LaunchedKernels:
    """What a trace says of a recorded call."""

    kernels: tuple[str, ...]
    is_same_call: bool  # the trace has as many such calls in a step as the record; else one of the same sort


def kernel_uses(launches: Iterable[Launch]) -> list[KernelUse]:
    """Each operator with its kernels, those that took longest first; operators without kernels are left out."""
    folded: dict[tuple[str, Shapes, tuple[str, ...], tuple[str, ...]], list[Launch]] = defaultdict(list)
    for launch in launches:
        if launch.kernels:
            dtypes = tuple(dict.fromkeys(spec.dtype for spec in launch.signature.inputs))
            folded[launch.signature.operator, _shapes(launch), dtypes, _names(launch)].append(launch)
    uses = []
    for (operator, shapes, dtypes, kernels), calls in folded.items():
        nanoseconds = sum(nanoseconds for call in calls for _, nanoseconds in call.kernels)
        site = calls[0].site
        uses.append(
            KernelUse(operator, shapes, dtypes, kernels, len(calls), nanoseconds, site.module, site.place)
        )
    return sorted(uses, key=lambda use: (-use.nanoseconds, use.operator, use.shapes))


def kernels_of_calls(calls: Iterable[Call], launches: Iterable[Launch]) -> Mapping[int, LaunchedKernels]:
    """The kernels of recorded calls, by their numbers: the n-th call of an operator on tensors of some shapes in a
    step is the n-th of the trace. A trace of several steps repeats itself: its first round counts."""
    known: dict[tuple[str, Shapes], list[Launch]] = defaultdict(list)
    for launch in launches:
        for shapes in dict.fromkeys((_shapes(launch), ())):
            known[_plain(launch.signature.operator), shapes].append(launch)
    recorded: dict[tuple[str, Shapes, int], list[Call]] = defaultdict(list)
    for call in calls:
        shapes = tuple(tensor.shape for tensor in call.inputs)
        recorded[_plain(call.operator), shapes, call.step].append(call)
    found: dict[int, LaunchedKernels] = {}
    for (operator, shapes, _), same in recorded.items():
        candidates = known.get((operator, shapes)) or [
            launch for launch in known.get((operator, ()), ()) if not _shapes(launch)
        ]
        for position, call in enumerate(same):
            if candidates:
                is_same = len(candidates) % len(same) == 0
                found[call.number] = LaunchedKernels(_names(candidates[position % len(candidates)]), is_same)
    return found


def _plain(operator: str) -> str:
    """Older traces do not tell overloads: aten::add for aten::add.Tensor."""
    return operator.partition(".")[0]


def _names(launch: Launch) -> tuple[str, ...]:
    return tuple(name for name, _ in launch.kernels)


def _shapes(launch: Launch) -> Shapes:
    return tuple(spec.shape for spec in launch.signature.inputs)


# Operators and their kernels as text, CSV or JSON.

FORMATS = ("text", "csv", "json")
_TITLE = Text(
    "{operators} operators launched {kernels} kernels on {device}; {without} launched none",
    "{operators} 次算子调用在 {device} 上下发了 {kernels} 个 kernel；{without} 次未下发",
)
_CALL_FIELDS = ("number", "operator", "module", "place")
_USE_FIELDS = ("operator", "shapes", "dtypes", "calls", "microseconds", "module", "place", "kernels")
_NOTHING = Text("no operator launched a kernel", "没有算子下发 kernel")


def kernel_report(trace: Path, operator: str, format_: str, language: Language) -> str:
    """Which kernels the operators of a trace launched; only those whose names contain `operator`."""
    from torchferry.readiness.trace.reader import read_launches

    launches = read_launches(trace)
    uses = [use for use in kernel_uses(launches.calls) if operator in use.operator]
    if format_ == "json":
        return json.dumps([_fields(use) for use in uses], indent=1, ensure_ascii=False) + "\n"
    if format_ == "csv":
        rows: list[list[Cell]] = [
            [
                *(use.operator, _shapes_text(use), " ".join(use.dtypes), use.calls, use.nanoseconds / 1000),
                *(use.module, use.place, " | ".join(use.kernels)),
            ]
            for use in uses
        ]
        return _sheet([_USE_FIELDS, *rows])
    return _text(uses, launches, language)


def recorded_report(record: Path, trace: Path, operator: str, format_: str) -> str:
    """The calls of a record, each with the kernels that the same call of the trace launched."""
    from torchferry.accuracy.file.reader import open_record
    from torchferry.readiness.trace.reader import read_launches

    launches = read_launches(trace).calls
    with open_record(record) as opened:
        found = kernels_of_calls(opened.calls, launches)
        rows = [
            (call, found[call.number])
            for call in opened.calls
            if operator in call.operator and call.number in found and found[call.number].kernels
        ]
    if format_ == "json":
        facts = [
            {**_call_fields(call), "same_call": launched.is_same_call, "kernels": launched.kernels}
            for call, launched in rows
        ]
        return json.dumps(facts, indent=1, ensure_ascii=False) + "\n"
    if format_ == "csv":
        cells = [
            [*_call_fields(call).values(), launched.is_same_call, " | ".join(launched.kernels)]
            for call, launched in rows
        ]
        return _sheet([[*_CALL_FIELDS, "same_call", "kernels"], *cells])
    lines = []
    for call, launched in rows:
        lines.append(one_line("  ".join(map(str, _call_fields(call).values())).rstrip()))
        lines += [one_line(f"    {name}") for name in launched.kernels]
    return "".join(f"{line}\n" for line in lines)


def _sheet(rows: Sequence[Sequence[Cell]]) -> str:
    return "".join(csv_lines(map(flat, rows), mark=False))


def _call_fields(call: Call) -> dict[str, Cell]:
    return {name: getattr(call, name) for name in _CALL_FIELDS}


def _fields(use: KernelUse) -> dict[str, object]:
    return {
        "operator": use.operator,
        "shapes": use.shapes,
        "dtypes": use.dtypes,
        "kernels": use.kernels,
        "calls": use.calls,
        "microseconds": use.nanoseconds / 1000,
        "module": use.module,
        "place": use.place,
    }


def _text(uses: Sequence[KernelUse], launches: Launches, language: Language) -> str:
    if not uses:
        return f"{_NOTHING.in_language(language)}\n"
    title = _TITLE.in_language(language).format(
        operators=sum(use.calls for use in uses),
        kernels=sum(len(use.kernels) * use.calls for use in uses),
        device=launches.device,
        without=sum(not call.kernels for call in launches.calls),
    )
    lines = [title]
    for use in uses:
        lines += ["", one_line(f"{use.operator}  {_shapes_text(use)}  {' '.join(use.dtypes)}".rstrip())]
        where = "  ".join(filter(None, (use.module, use.place)))
        lines += [one_line(f"  {use.calls}x  {use.nanoseconds / 1e6:.3f} ms  {where}".rstrip())]
        lines += [
            one_line(f"    {name}{f'  {count}x' if count > 1 else ''}")
            for name, count in Counter(use.kernels).items()
        ]
    return "\n".join(lines) + "\n"


def _shapes_text(use: KernelUse) -> str:
    return " ".join("x".join(map(str, shape)) or "()" for shape in use.shapes)
