"""Compares two runs, operator by operator: the same program on two devices, before and after a change."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from functools import cache
from typing import NamedTuple

from torchferry.errors import InputError
from torchferry.operators.names import CALLED_ELSEWHERE, EQUIVALENTS
from torchferry.perf.analysis import facts_of_tables
from torchferry.perf.compare.entries import MOST_KERNELS, CallKey, CallTimes, RunWork, has_shapes, work_of
from torchferry.perf.compare.model import Cost, MatchKind, OperatorPair, RunComparison, Side
from torchferry.perf.run import Run
from torchferry.text import Text
from torchferry.vendors.registry import get_vendor, vendor_names

# One name for operators that do the same on different devices.

# Names with a library or a way of computing in them; the first that fits.
_PATTERNS = (
    (re.compile(r".*convolution.*_backward.*|.*conv\dd\w*_backward.*"), "convolution_backward"),
    (re.compile(r"_?scaled_dot_product_\w*attention\w*_backward"), "attention_backward"),
    (re.compile(r"_?(?:flash|efficient|cudnn|fused)?_?attention_backward|.*fusion_attention_grad\w*"), "attention_backward"),
    (re.compile(r"_?scaled_dot_product_\w*attention\w*"), "attention"),
    (re.compile(r"_?(?:flash|efficient|cudnn|fused)_attention_forward|.*fusion_attention\w*"), "attention"),
    (re.compile(r".*batch_norm.*backward.*"), "batch_norm_backward"),
    (re.compile(r".*batch_norm.*"), "batch_norm"),
    (re.compile(r".*log_softmax_backward.*"), "log_softmax_backward"),
    (re.compile(r".*softmax_backward.*"), "softmax_backward"),
)  # fmt: skip


@cache
def canonical(operator: str) -> str:
    """convolution of aten::cudnn_convolution, of aten::miopen_convolution and of aten::convolution_overrideable."""
    base = operator.rpartition("::")[2].partition(".")[0]
    for prefix in _prefixes():
        base = base.removeprefix(prefix)
    for pattern, name in _PATTERNS:
        if pattern.fullmatch(base):
            return name
    base = CALLED_ELSEWHERE.get(base, base).partition(".")[0]
    base = EQUIVALENTS.get(base, (base,))[0].partition(".")[0]
    # in place or not, and whether a kernel's own name begins with an underscore, makes no other operator of it
    return base.strip("_") or base


@cache
def _prefixes() -> tuple[str, ...]:
    """What adapters put before the names of their operators: npu_ of npu_add."""
    return tuple(sorted({f"{get_vendor(name).device_type}_" for name in vendor_names()} | {"cuda_"}))


MOST_ALIGNED = (
    64  # shapes of one operator in one run that are paired one by one; of more only the sum is compared
)
_NUMBERS = re.compile(r"\d+")

Sorter = Callable[
    [CallTimes], Hashable | None
]  # what entries must have in common; None: this entry is not asked


class Matched(NamedTuple):
    """Entries that stand for each other; one side may be empty."""

    match: MatchKind
    baseline: list[CallTimes]
    compared: list[CallTimes]
    caller: CallKey | None = None  # for Match.CALLER: what calls both


class _Matcher:
    """Matches the entries of two runs: takes them away as they find their counterparts, by the surest sign first."""

    def __init__(self, baseline: Iterable[CallTimes], compared: Iterable[CallTimes]) -> None:
        self._baseline = {id(entry): entry for entry in baseline}
        self._compared = {id(entry): entry for entry in compared}
        self._found: list[Matched] = []

    def matched(self) -> list[Matched]:
        self._equal(MatchKind.EXACT, lambda entry: None if entry.is_kernel else entry.key)
        self._in_order(MatchKind.NAME, lambda entry: None if entry.is_kernel else entry.key.operator)
        self._equal(
            MatchKind.EQUIVALENT,
            lambda entry: (name := _canonical_name(entry)) and (name, entry.key.shapes, entry.key.dtypes),
        )
        self._in_order(MatchKind.EQUIVALENT, _canonical_name)
        # What is left under the same caller, the nearest first: devices split operators in different ways.
        entries = (*self._baseline.values(), *self._compared.values())
        for depth in range(max((len(each.callers) for each in entries), default=0)):
            for key, mine, theirs in self._under_callers(depth):
                self._take(MatchKind.CALLER, mine, theirs, key)
        self._equal(MatchKind.KERNEL, lambda entry: entry.key if entry.is_kernel else None)
        self._in_order(MatchKind.KERNEL, lambda entry: entry.key.operator if entry.is_kernel else None)
        self._found.extend(Matched(MatchKind.NONE, [entry], []) for entry in self._baseline.values())
        self._found.extend(Matched(MatchKind.NONE, [], [entry]) for entry in self._compared.values())
        return self._found

    def _equal(self, match: MatchKind, sorter: Sorter) -> None:
        """All that have the same in common, on both sides."""
        for mine, theirs in self._groups(sorter):
            self._take(match, mine, theirs)

    def _in_order(self, match: MatchKind, sorter: Sorter) -> None:
        """Those that have the same in common, one by one in the order in which the programs came to them."""
        for mine, theirs in self._groups(sorter):
            if max(len(mine), len(theirs)) > MOST_ALIGNED:
                self._take(match, mine, theirs)
                continue
            for one, other in _aligned(mine, theirs):
                self._take(match, [one], [other])

    def _under_callers(self, depth: int) -> list[tuple[CallKey, list[CallTimes], list[CallTimes]]]:
        """By the callers so many levels up in the baseline, at whatever level they are in the other run."""
        theirs: dict[Hashable, list[tuple[CallKey, CallTimes]]] = defaultdict(list)
        for entry in filter(_took_time, self._compared.values()):
            for key in entry.callers:
                theirs[canonical(key.operator), key.shapes].append((key, entry))
        mine: dict[Hashable, list[CallTimes]] = defaultdict(list)
        for entry in filter(_took_time, self._baseline.values()):
            if depth < len(entry.callers):
                mine[canonical(entry.callers[depth].operator), entry.callers[depth].shapes].append(entry)
        found = []
        taken: set[int] = set()
        for common, own in mine.items():
            others = {id(entry): (key, entry) for key, entry in theirs[common] if id(entry) not in taken}
            if others:
                taken |= others.keys()
                key = next(key for key, _ in others.values())
                found.append((key, own, [entry for _, entry in others.values()]))
        return found

    def _groups(self, sorter: Sorter) -> list[tuple[list[CallTimes], list[CallTimes]]]:
        mine: dict[Hashable, list[CallTimes]] = defaultdict(list)
        theirs: dict[Hashable, list[CallTimes]] = defaultdict(list)
        for groups, entries in ((mine, self._baseline), (theirs, self._compared)):
            for entry in entries.values():
                common = sorter(entry)
                if common is not None:
                    groups[common].append(entry)
        return [
            (group, theirs[common])
            for common, group in mine.items()
            if common in theirs and _does_work(group) == _does_work(theirs[common])
        ]

    def _take(
        self, match: MatchKind, mine: list[CallTimes], theirs: list[CallTimes], caller: CallKey | None = None
    ) -> None:
        for entry in mine:
            del self._baseline[id(entry)]
        for entry in theirs:
            del self._compared[id(entry)]
        self._found.append(Matched(match, mine, theirs, caller))


def _does_work(entries: list[CallTimes]) -> bool:
    """On one device an operator computes, on another it only calls the one that does: these two are no pair."""
    return any(entry.time > 0 for entry in entries)


def _took_time(entry: CallTimes) -> bool:
    """Views and wrappers have no counterpart of another name."""
    return entry.time > 0 and not entry.is_kernel


def _canonical_name(entry: CallTimes) -> str | None:
    return canonical(entry.key.operator) if _took_time(entry) else None


def _aligned(mine: list[CallTimes], theirs: list[CallTimes]) -> list[tuple[CallTimes, CallTimes]]:
    """Pairs in the order of both, so that the pairs are as alike as can be."""
    mine, theirs = (sorted(entries, key=lambda entry: entry.order) for entries in (mine, theirs))
    width = len(theirs) + 1
    best = [[0.0] * width for _ in range(len(mine) + 1)]
    for row in range(len(mine) - 1, -1, -1):
        for column in range(len(theirs) - 1, -1, -1):
            best[row][column] = max(
                best[row + 1][column],
                best[row][column + 1],
                best[row + 1][column + 1] + _likeness(mine[row], theirs[column]),
            )
    pairs = []
    row = column = 0
    while row < len(mine) and column < len(theirs):
        if best[row][column] == best[row + 1][column]:
            row += 1
        elif best[row][column] == best[row][column + 1]:
            column += 1
        else:
            pairs.append((mine[row], theirs[column]))
            row, column = row + 1, column + 1
    return pairs


def _likeness(mine: CallTimes, theirs: CallTimes) -> float:
    """From 1 to 4: the same calls, the same types, shapes that agree in most of their numbers."""
    own, other = _NUMBERS.findall(mine.key.shapes), _NUMBERS.findall(theirs.key.shapes)
    longest = max(len(own), len(other))
    agreeing = sum(one == two for one, two in zip(own, other, strict=False)) / longest if longest else 1.0
    most = max(mine.calls, theirs.calls)
    return (
        1.0
        + agreeing
        + (mine.key.dtypes == theirs.key.dtypes)
        + (min(mine.calls, theirs.calls) / most if most else 1.0)
    )


_NO_SHAPES = Text(
    "{side} has no shapes (record_shapes=True), so operators are compared only by name.",
    "{side}没有形状（record_shapes=True）：仅按算子名比较。",
)
_BASELINE, _COMPARED = Text("The baseline", "基线"), Text("The compared run", "被比较的运行")
_MEASURES = Text(
    "One run has device times, the other only host times: their totals are not comparable.",
    "一个运行有设备时间，另一个只有主机时间：两者的总和不可比。",
)
_NO_STEPS = Text(
    "{side} has no separate steps: its figures cover the whole recording.",
    "{side}未区分步：其数值为全部记录之和。",
)
_LEFT_OVER = Text(
    "{side}: {time:.1f} ms of device work was queued before the steps began and is not counted.",
    "{side}：有 {time:.1f} ms 的设备任务在这些步开始之前已下发，未计入。",
)
_MOST_NAMES = 3  # that are joined into one


def compare(compared: Run, baseline: Run) -> RunComparison:
    """Compare two runs, each by its own measure; figures are per step."""
    for run in (baseline, compared):
        if run.trace is None and run.kernels is None and run.operators is None:
            raise InputError(
                Text(
                    f"{run.sources[0]!r} can't be compared; give a trace, a table of kernels or a table of operators",
                    f"{run.sources[0]!r} 无法比较；请给出 trace、kernel 表或算子表",
                )
            )
    with_shapes = has_shapes(baseline) and has_shapes(compared)
    works = work_of(baseline, with_shapes), work_of(compared, with_shapes)
    sides = _side(baseline, works[0]), _side(compared, works[1])
    matched = _Matcher(works[0].entries, works[1].entries).matched()
    # What is in one run only and does no work there is plumbing: views, wrappers.
    pairs = [
        _pair(each, sides[0].steps, sides[1].steps)
        for each in matched
        if each.match is not MatchKind.NONE or any(entry.time for entry in (*each.baseline, *each.compared))
    ]
    return RunComparison(
        *sides,
        tuple(sorted((pair for pair in pairs if pair.match is not MatchKind.NONE), key=_most_more)),
        tuple(sorted((pair for pair in pairs if pair.compared is None), key=lambda pair: pair.more)),
        tuple(sorted((pair for pair in pairs if pair.baseline is None), key=_most_more)),
        tuple(_notes((baseline, compared), works, sides, with_shapes)),
        _shares(matched, works),
    )


def _side(run: Run, work: RunWork) -> Side:
    steps = len(
        run.trace.steps if run.trace is not None else run.kernels.steps if run.kernels is not None else ()
    )
    count = max(steps, 1)
    if run.trace is not None:
        seconds, parts = run.trace.seconds, {part: each.total / 1e9 for part, each in run.parts.items()}
    else:
        facts = facts_of_tables(run)
        seconds, parts = facts["seconds"], facts["parts"]
    return Side(
        run.sources,
        run.device,
        run.device_name,
        run.torch,
        run.rank,
        work.measure,
        count,
        steps > 0,
        seconds / count,
        work.time / 1e9 / count,
        {part: time / count for part, time in parts.items()},
        tuple(run.notes),
    )


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
