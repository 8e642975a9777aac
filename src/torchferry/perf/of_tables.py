"""What an analysis can tell from tables alone, without a trace."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from torchferry.perf.model import KernelRow, OperatorRow, Part, StepTime
from torchferry.perf.rows import MOST_ROWS
from torchferry.perf.trace.columns import Kind
from torchferry.perf.trace.intervals import Intervals

if TYPE_CHECKING:
    from torchferry.perf.run import Run
    from torchferry.perf.tables.kernels import KernelGroup, KernelTable
    from torchferry.perf.tables.operators import OperatorTable
    from torchferry.perf.tables.steps import StepTable


def facts_of_tables(run: Run) -> dict[str, Any]:
    """Fields of an Analysis; what several tables tell is taken from the one that tells it best."""
    facts: dict[str, Any] = {}
    if run.kernels is not None:
        facts.update(_of_kernels(run.kernels))
    if run.operators is not None:
        facts.update(_of_operators(run.operators, facts))
    if run.step_table is not None:
        facts.update(_of_steps(run.step_table))
    return facts


def _of_operators(table: OperatorTable, known: dict[str, Any]) -> dict[str, Any]:
    """Without steps and times, shares are of the operators' own time."""
    on_device = sum(row.device_seconds for row in table.rows)
    seconds = on_device or sum(row.host_seconds for row in table.rows)
    facts: dict[str, Any] = {"operators": tuple(table.rows[:MOST_ROWS]), "is_host_only": not on_device}
    return facts if "seconds" in known else {**facts, "seconds": seconds, "parts": {Part.COMPUTE: seconds}}


def _of_steps(table: StepTable) -> dict[str, Any]:
    columns = (table.computing, table.communication, table.free)
    named = (Part.COMPUTE, Part.COMMUNICATION, Part.OTHER)
    steps: list[StepTime] = []
    start = 0.0
    for number, *times in zip(table.number.tolist(), *(column.tolist() for column in columns), strict=True):
        parts = {part: time / 1e9 for part, time in zip(named, times, strict=True)}
        seconds = sum(parts.values())
        steps.append(StepTime(max(number, 0), start, seconds, parts))
        start += seconds
    sums = {part: int(column.sum()) / 1e9 for part, column in zip(named, columns, strict=True)}
    return {"steps": tuple(steps), "seconds": table.seconds, "parts": sums}


def _of_kernels(table: KernelTable) -> dict[str, Any]:
    """Operators are the table's types: MatMulV2, TransData."""
    parts = _parts(table)
    groups = table.groups
    return {
        "seconds": sum(parts.values()),
        "parts": parts,
        "operators": tuple(_operators(groups))[:MOST_ROWS],
        "kernels": tuple(_kernels(table))[:MOST_ROWS],
    }


def _parts(table: KernelTable) -> dict[Part, float]:
    """Of the time from the first kernel to the last; where the table has no times, of the kernels' own."""
    first, last = table.span
    if last <= first:
        sums = np.bincount(table.kind, weights=table.duration, minlength=len(Kind)) / 1e9
        return {
            Part.COMPUTE: float(sums[Kind.COMPUTE]),
            Part.COMMUNICATION: float(sums[Kind.COMMUNICATION]),
            Part.COPY: float(sums[Kind.COPY]),
            Part.MOVE: float(sums[Kind.MOVE] + sums[Kind.FILL]),
        }
    left = Intervals(np.array([first]), np.array([last]))
    found: dict[Part, float] = {}
    for part, kinds in (
        (Part.COMPUTE, (Kind.COMPUTE,)),
        (Part.COMMUNICATION, (Kind.COMMUNICATION,)),
        (Part.COPY, (Kind.COPY,)),
        (Part.MOVE, (Kind.MOVE, Kind.FILL)),
    ):
        moments = table.busy(*kinds)
        found[part] = (moments & left).total / 1e9
        left = left - moments
    return {**found, Part.OTHER: left.total / 1e9}


def _operators(groups: Iterable[KernelGroup]) -> list[OperatorRow]:
    """Kernels of one type with the same tensors, whatever their names."""
    sums: dict[tuple[str, str, str], tuple[int, float]] = {}
    for group in groups:
        key = (group.type or group.name, group.signature.input_shapes, group.signature.input_dtypes)
        calls, seconds = sums.get(key, (0, 0.0))
        sums[key] = (calls + group.calls, seconds + group.seconds)
    rows = [OperatorRow(*key, calls, 0.0, seconds) for key, (calls, seconds) in sums.items()]
    return sorted(rows, key=lambda row: -row.device_seconds)


def _kernels(table: KernelTable) -> list[KernelRow]:
    keys, first, group = np.unique(table.name, return_index=True, return_inverse=True)
    calls = np.bincount(group, weights=table.calls, minlength=len(keys)).astype(np.int64).tolist()
    seconds = np.bincount(group, weights=table.duration, minlength=len(keys)) / 1e9
    return [
        KernelRow(
            table.texts[int(keys[at])],
            Kind(int(table.kind[first[at]])).name.lower(),
            calls[at],
            float(seconds[at]),
            table.texts[int(table.type[first[at]])],
        )
        for at in np.argsort(-seconds, kind="stable").tolist()
    ]
