"""The numbers of the plots: losses and gradient norms of all runs over the steps."""

from __future__ import annotations

from collections.abc import Callable

from torchferry.proof.model import REFERENCE, ProcessSummary, ProgramRun, Proof, StepSummary
from torchferry.proof.report import words
from torchferry.proof.report.comparison import all_runs, process_title, several_processes
from torchferry.proof.report.sentences import shown
from torchferry.report.svg import Chart, Points, chart_of
from torchferry.text import Text


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
                found.append(chart_of(_title(what, which), tuple(map(run_name, runs)), curves))
    return [chart for chart in found if chart.steps]


def run_name(run: ProgramRun) -> Text:
    """A vendor's name, or what the reference is."""
    return words.REFERENCE if run.name == REFERENCE else Text(shown(run.name), shown(run.name))


def _title(one: Text, other: Text | str) -> Text:
    other = Text(other, other) if isinstance(other, str) else other
    return Text(*(" · ".join(filter(None, pair)) for pair in zip(one, other, strict=True)))


def _points(process: ProcessSummary | None, optimizer: int, read: Callable[[StepSummary], Points]) -> Points:
    points: dict[float, float] = {}
    for step in process.steps if process else ():
        if step.optimizer == optimizer:
            points.update(read(step))
    return points


def _losses(step: StepSummary) -> Points:
    count = len(step.losses)
    return {step.ordinal - 1 + (place + 1) / count: loss for place, loss in enumerate(step.losses)}


def _norms(step: StepSummary) -> Points:
    return {float(step.ordinal): step.gradient_norm}
