"""Compares two runs: the same program on two devices, before and after a change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from torchferry.errors import InputError
from torchferry.perf.analysis import facts_of_tables
from torchferry.perf.compare.entries import MOST_KERNELS, CallKey, CallTimes, RunWork, has_shapes, work_of
from torchferry.perf.compare.matching import Matched, match_entries
from torchferry.perf.compare.model import Cost, MatchKind, OperatorPair, RunComparison, Side
from torchferry.perf.model import TimePart
from torchferry.perf.run import Run
from torchferry.text import Text

_NO_SHAPES = Text(
    "{side} has no shapes (record_shapes=True): operators are compared by name alone.",
    "{side}没有形状（record_shapes=True）：仅按算子名比较。",
)
_BASELINE, _COMPARED = Text("The baseline", "基准"), Text("The run that is compared", "被比较的运行")
_MEASURES = Text(
    "One run tells the time of the device, the other that of the host alone: their sums are not of the same kind.",
    "一个运行有设备时间，另一个只有主机时间：两者的总和不是同一种量。",
)
_NO_STEPS = Text(
    "{side} tells no steps apart: its figures are of all that was recorded.",
    "{side}未区分步：其数值为全部记录之和。",
)
_LEFT_OVER = Text(
    "{side}: {time:.1f} ms of the device's work had been queued before the steps began; they are not counted.",
    "{side}：有 {time:.1f} ms 的设备任务在这些步开始之前已下发，未计入。",
)
_MOST_NAMES = 3  # that are joined into one


def compare(compared: Run, baseline: Run) -> RunComparison:
    """Each by its own measure; figures are per step."""
    for run in (baseline, compared):
        if run.trace is None and run.kernels is None and run.operators is None:
            raise InputError(
                f"{run.sources[0]!r} can't be compared: give a trace, a table of kernels or one of operators"
            )
    with_shapes = has_shapes(baseline) and has_shapes(compared)
    works = work_of(baseline, with_shapes), work_of(compared, with_shapes)
    sides = _side(baseline, works[0]), _side(compared, works[1])
    matched = match_entries(works[0].entries, works[1].entries)
    pairs = [_pair(each, sides[0].steps, sides[1].steps) for each in matched if _is_worth_telling(each)]
    return RunComparison(
        *sides,
        tuple(sorted((pair for pair in pairs if pair.match is not MatchKind.NONE), key=_most_more)),
        tuple(sorted((pair for pair in pairs if pair.compared is None), key=lambda pair: pair.more)),
        tuple(sorted((pair for pair in pairs if pair.baseline is None), key=_most_more)),
        tuple(_notes((baseline, compared), works, sides, with_shapes)),
        _shares(matched, works),
    )


def _is_worth_telling(matched: Matched) -> bool:
    """What is in one run only and does no work there is plumbing: views, wrappers."""
    return matched.match is not MatchKind.NONE or any(
        entry.time for entry in (*matched.baseline, *matched.compared)
    )


def _side(run: Run, work: RunWork) -> Side:
    trace = run.trace
    steps = (
        len(trace.steps) if trace is not None else len(run.kernels.steps if run.kernels is not None else ())
    )
    count = max(steps, 1)
    seconds, parts = _times(run)
    rank = run.rank_facts.get("rank", trace.rank if trace is not None else None)
    return Side(
        run.sources,
        run.device,
        str(run.profile.get("device_name") or (trace.device_name if trace is not None else "")),
        str(run.profile.get("torch") or (trace.torch if trace is not None else "")),
        rank if isinstance(rank, int) else None,
        work.measure,
        count,
        steps > 0,
        seconds / count,
        work.time / 1e9 / count,
        {part: time / count for part, time in parts.items()},
        tuple(run.notes),
    )


def _times(run: Run) -> tuple[float, dict[TimePart, float]]:
    if run.trace is not None:
        return run.trace.seconds, {part: moments.total / 1e9 for part, moments in run.parts.items()}
    facts = facts_of_tables(run)
    return facts["seconds"], facts["parts"]


def _pair(matched: Matched, baseline_steps: int, compared_steps: int) -> OperatorPair:
    mine, theirs = matched.baseline, matched.compared
    shown = matched.caller or _common_key(theirs or mine)
    other = matched.caller or _common_key(mine or theirs)
    places = [entry.place for entry in (*theirs, *mine) if entry.place]
    return OperatorPair(
        shown.operator,
        shown.shapes,
        shown.dtypes,
        matched.match,
        _cost(mine, baseline_steps) if mine else None,
        _cost(theirs, compared_steps) if theirs else None,
        other.operator if other.operator != shown.operator else "",
        other.shapes if other.shapes != shown.shapes else "",
        other.dtypes if other.dtypes != shown.dtypes else "",
        places[0] if places else "",
    )


def _common_key(entries: list[CallTimes]) -> CallKey:
    if len(entries) == 1:
        return entries[0].key
    return CallKey(
        *(_joined(dict.fromkeys(texts)) for texts in zip(*(entry.key for entry in entries), strict=True))
    )


def _joined(texts: Iterable[str]) -> str:
    known = [text for text in texts if text]
    return " + ".join(known[:_MOST_NAMES]) + (f" + … ({len(known)})" if len(known) > _MOST_NAMES else "")


def _cost(entries: list[CallTimes], steps: int) -> Cost:
    greatest = sorted(entries, key=lambda entry: -entry.time)
    kernels = dict.fromkeys(name for entry in greatest for name in entry.kernels)
    return Cost(
        sum(entry.calls for entry in entries) / steps,
        sum(entry.time for entry in entries) / 1e9 / steps,
        sum(entry.host_time for entry in entries) / 1e9 / steps,
        tuple(kernels)[:MOST_KERNELS],
    )


def _most_more(pair: OperatorPair) -> tuple[float, str, str]:
    return -pair.more, pair.operator, pair.shapes


def _shares(matched: list[Matched], works: tuple[RunWork, RunWork]) -> dict[MatchKind, tuple[float, float]]:
    sums: dict[MatchKind, list[int]] = defaultdict(lambda: [0, 0])
    for each in matched:
        sums[each.match][0] += sum(entry.time for entry in each.baseline)
        sums[each.match][1] += sum(entry.time for entry in each.compared)
    totals = [work.time or 1 for work in works]
    return {
        match: (sums[match][0] / totals[0], sums[match][1] / totals[1])
        for match in MatchKind
        if match in sums
    }


def _notes(
    runs: tuple[Run, Run], works: tuple[RunWork, RunWork], sides: tuple[Side, Side], with_shapes: bool
) -> list[Text]:
    found: list[Text] = []
    for run, work, side, name in zip(runs, works, sides, (_BASELINE, _COMPARED), strict=True):
        if not with_shapes and not has_shapes(run):
            found.append(_NO_SHAPES.format(side=name))
        if not side.has_steps:
            found.append(_NO_STEPS.format(side=name))
        if work.left_over:
            found.append(_LEFT_OVER.format(side=name, time=work.left_over / 1e6))
    if works[0].measure is not works[1].measure:
        found.append(_MEASURES)
    return found
