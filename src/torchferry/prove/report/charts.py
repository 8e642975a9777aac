"""The numbers of the plots: losses and gradient norms of all runs over the steps, thinned where there are many."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from torchferry.prove.model import REFERENCE, ProcessSummary, Proof, Run, StepSummary
from torchferry.prove.report import words
from torchferry.prove.report.comparison import all_runs, process_title, several_processes
from torchferry.prove.report.sentences import shown
from torchferry.text import Text

MAX_GROUPS = 300
Points = dict[float, float]  # step -> value; of several losses in a step, the earlier ones lie before it


@dataclass(frozen=True)
class Chart:
    """Curves over common steps."""

    title: Text
    names: tuple[Text, ...]
    steps: tuple[float, ...]
    values: tuple[tuple[float | None, ...], ...]  # for each name, for each step
    total: int  # values of the longest curve before thinning
    group: int  # of so many values, the smallest and the largest are here; 1: all are


def charts(proof: Proof) -> list[Chart]:
    """Losses and gradient norms, for each process and each optimizer that a process has."""
    runs = all_runs(proof)
    found = []
    for number in range(max((len(run.processes) for run in runs), default=0)):
        processes = [run.processes[number] if number < len(run.processes) else None for run in runs]
        some = next(process for process in processes if process)
        where = process_title(some, number) if several_processes(runs) else Text("", "")
        for optimizer in range(max(1, len(some.optimizers))):
            name = some.optimizers[optimizer] if len(some.optimizers) > 1 else ""
            which = _title(where, f"{optimizer} {shown(name)}" if name else "")
            for what, read in ((words.LOSSES, _losses), (words.NORMS, _norms)):
                curves = [_points(process, optimizer, read) for process in processes]
                found.append(_chart(_title(what, which), runs, curves))
    return [chart for chart in found if chart.steps]


def run_name(run: Run) -> Text:
    """A vendor's name, or what the reference is."""
    return words.REFERENCE if run.name == REFERENCE else Text(shown(run.name), shown(run.name))


def _title(one: Text, other: Text | str) -> Text:
    other = Text(other, other) if isinstance(other, str) else other
    return Text(*(" · ".join(filter(None, pair)) for pair in zip(one, other, strict=True)))


def _points(process: ProcessSummary | None, optimizer: int, read: Callable[[StepSummary], Points]) -> Points:
    points: Points = {}
    for step in process.steps if process else ():
        if step.optimizer == optimizer:
            points.update(read(step))
    return points


def _losses(step: StepSummary) -> Points:
    count = len(step.losses)
    return {step.ordinal - 1 + (place + 1) / count: loss for place, loss in enumerate(step.losses)}


def _norms(step: StepSummary) -> Points:
    return {float(step.ordinal): step.gradient_norm}


def _chart(title: Text, runs: Sequence[Run], curves: Sequence[Points]) -> Chart:
    steps = sorted({step for points in curves for step in points})
    group = math.ceil(len(steps) / MAX_GROUPS) if len(steps) > 2 * MAX_GROUPS else 1
    kept = steps if group == 1 else sorted(_kept(steps, curves, group))
    return Chart(
        title=title,
        names=tuple(map(run_name, runs)),
        steps=tuple(kept),
        values=tuple(tuple(points.get(step) for step in kept) for points in curves),
        total=len(steps),
        group=group,
    )


def _kept(steps: Sequence[float], curves: Iterable[Points], group: int) -> set[float]:
    """Of each group and each curve the smallest and the largest value, the first that is not finite; both ends."""
    kept = {steps[0], steps[-1]}
    for points in curves:
        for start in range(0, len(steps), group):
            here = [step for step in steps[start : start + group] if step in points]
            finite = [step for step in here if math.isfinite(points[step])]
            if finite:
                kept |= {min(finite, key=points.__getitem__), max(finite, key=points.__getitem__)}
            kept |= set([step for step in here if not math.isfinite(points[step])][:1])
    return kept
