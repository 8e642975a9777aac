"""From paths to the analysis of all ranks and the comparison with a baseline: `ferry analyze` as one function."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from torchferry.errors import InputError
from torchferry.perf import ranks
from torchferry.perf.analysis import analyze, order
from torchferry.perf.compare.model import RunComparison
from torchferry.perf.detect.registry import DETECTORS
from torchferry.perf.model import Analysis
from torchferry.perf.opening import open_runs
from torchferry.perf.report.sentences import TOP, RunsReport, slowest
from torchferry.perf.run import Run
from torchferry.report.progress import Show


def analyze_paths(
    paths: Sequence[Path],
    baseline: Path | None = None,
    rank: int | None = None,
    only: Sequence[str] = (),
    ignore: Sequence[str] = (),
    top: int = TOP,
    on_progress: Show | None = None,
) -> RunsReport:
    """Analyze the run that these files and folders are of, by these detectors, and compare it with the baseline."""
    wanted = _wanted_detectors(only, ignore)
    runs = _of_rank(open_runs(paths, on_progress), rank)
    others = open_runs([baseline], on_progress) if baseline else []
    analyses = [analyze(run, wanted) for run in runs]
    return RunsReport(_with_ranks(analyses, runs, wanted), tuple(_compared(runs, others)), top)


def _wanted_detectors(only: Sequence[str], ignore: Sequence[str]) -> Callable[[str], bool]:
    known = [*(detector.id for detector in DETECTORS), ranks.ID]
    chosen, left_out = _detector_ids(only, known), _detector_ids(ignore, known)
    return lambda name: (not chosen or name in chosen) and name not in left_out


def _detector_ids(given: Sequence[str], known: Sequence[str]) -> set[str]:
    found = {part.strip() for text in given for part in text.split(",") if part.strip()}
    for name in sorted(found.difference(known)):
        near = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]!r}?" if near else "`ferry analyze --list-detectors` names them"
        raise InputError(f"no detector {name!r}; {hint}")
    return found


def _of_rank(runs: Sequence[Run], rank: int | None) -> Sequence[Run]:
    if rank is None:
        return runs
    numbers = {at: _number(run, at) for at, run in enumerate(runs)}
    found = [runs[at] for at, number in numbers.items() if number == rank]
    if not found:
        known = ", ".join(map(str, sorted(numbers.values())))
        raise InputError(f"there is no rank {rank} in what was given; there are {known}")
    return found


def _number(run: Run, position: int) -> int:
    return position if run.rank is None else run.rank


def _with_ranks(
    analyses: list[Analysis], runs: Sequence[Run], wanted: Callable[[str], bool]
) -> tuple[Analysis, ...]:
    """What comparing the ranks finds belongs to the one that holds up the others."""
    if len(analyses) > 1 and wanted(ranks.ID):
        at = slowest(analyses)
        found = sorted([*ranks.compare_ranks(runs), *analyses[at].diagnoses], key=order)
        analyses[at] = replace(analyses[at], diagnoses=tuple(found))
    return tuple(analyses)


def _compared(runs: Sequence[Run], baseline: Sequence[Run]) -> Iterator[RunComparison]:
    """Each rank with its like; one of the baseline with all, if it has but one."""
    if not baseline:
        return
    from torchferry.perf.compare.comparing import compare

    others = {_number(run, at): run for at, run in enumerate(baseline)}
    for at, run in enumerate(runs):
        other = baseline[0] if len(baseline) == 1 else others.get(_number(run, at))
        if other is not None:
            yield compare(run, other)
