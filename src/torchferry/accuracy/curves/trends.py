"""One run, or two held against each other, thinned for a picture: extremes of groups of steps, differences, spikes, NaN."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from torchferry.accuracy.compare.statistics import watched_limit
from torchferry.accuracy.curves.runs import Array, Series, StepFigures, WatchedRun, run_files
from torchferry.accuracy.model import RecordHeader, TensorRecord
from torchferry.accuracy.watch import rows
from torchferry.errors import InputError
from torchferry.text import Text

FINE = 800  # groups of steps that the curves of the whole training have: about the pixels of a picture
_COARSE_MOST, _COARSE_LEAST = 400, 24  # those of modules
_NUMBERS = 3_000_000  # of all modules' curves together: some ten megabytes of a page
_CURVES = 6  # a series has about so many that are not constant
_AT_ONCE = 400_000  # figures of one kind in memory
_MOST_SPIKES = 40
_OF_GRADIENTS = (rows.OUTPUT_GRADIENT, rows.GRADIENT, rows.GRADIENT_NORM, rows.GROUP_NORM, rows.UPDATE)


@dataclass(frozen=True)
class CurveChoice:
    """What of the files is wanted."""

    modules: tuple[str, ...] = ()  # patterns of paths; none: all
    first_step: int = 1
    steps: int | None = None  # of the program, from there on; None: all
    rank: int | None = None  # whose modules are shown; None: the first

    def of(self, steps: Array) -> Array:
        """Those of these steps that are wanted."""
        end = math.inf if self.steps is None else self.first_step + self.steps
        chosen: Array = steps[(steps >= self.first_step) & (steps < end)]
        return chosen


# Thinning: of each group of steps the extremes, so that no spike is lost.


@dataclass(frozen=True)
class StepAxis:
    """Groups of the steps that any run has."""

    first: Array  # the first step of each group
    last: Array
    numbers: Array  # of each step: which group it is in
    size: int  # steps in a group; 1: every step is shown

    def group_of(self, steps: Array, all_steps: Array) -> Array:
        """The group that each of these steps is in."""
        found: Array = self.numbers[np.searchsorted(all_steps, steps)]
        return found


def axis_of(steps: Array, most: int) -> StepAxis:
    """At most so many groups of equal size."""
    size = max(1, math.ceil(len(steps) / most))
    numbers = np.arange(len(steps)) // size
    last = np.minimum(np.arange(size - 1, len(steps) + size - 1, size), len(steps) - 1)
    return StepAxis(steps[::size], steps[last], numbers, size)


@dataclass(frozen=True)
class Thinned:
    """StepFigures of some series: a row a group of steps, a column a series; nan where there is none."""

    columns: Array  # numbers of the series
    low: Array  # of the size
    high: Array
    total: Array  # of the sizes, and how many these are
    count: Array
    mean: Array  # of the means
    minimum: Array
    maximum: Array
    zeros: Array  # the largest share
    nans: Array  # the largest number
    infinities: Array

    @staticmethod
    def of(columns: Sequence[int], groups: int) -> Thinned:
        """An empty one."""
        made = {name: np.full((groups, len(columns)), np.nan, np.float32) for name in _FIGURES}
        return Thinned(np.array(columns, np.int64), **made)

    @property
    def middle(self) -> Array:
        """The mean of the sizes."""
        with np.errstate(invalid="ignore", divide="ignore"):
            middle: Array = self.total / self.count
        return middle

    def add(self, figures: StepFigures, groups: Array) -> None:
        """Take figures in, of steps that are in these groups; the groups ascend."""
        begins = np.flatnonzero(np.diff(groups, prepend=-1))
        here = groups[begins]
        for name, (values, ufunc) in _FIGURES.items():
            target = getattr(self, name)
            with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
                found = ufunc.reduceat(values(figures)[:, self.columns], begins, axis=0)
                target[here] = np.where(np.isnan(target[here]), found, ufunc(target[here], found))


def _shares(figures: StepFigures) -> Array:
    shares: Array = figures.zeros / np.where(figures.count > 0, figures.count, np.nan)
    return shares


# Of each field of Thinned: what it is made of, and how that of several steps becomes one
_FIGURES: dict[str, tuple[Callable[[StepFigures], Array], Any]] = {
    "low": (lambda figures: figures.size, np.fmin),
    "high": (lambda figures: figures.size, np.fmax),
    "total": (lambda figures: np.nan_to_num(figures.size), np.add),
    "count": (lambda figures: (~np.isnan(figures.size)).astype(float), np.add),
    "mean": (lambda figures: figures.mean, np.fmax),
    "minimum": (lambda figures: figures.minimum, np.fmin),
    "maximum": (lambda figures: figures.maximum, np.fmax),
    "zeros": (_shares, np.fmax),
    "nans": (lambda figures: np.where(figures.count > 0, figures.nans, np.nan), np.fmax),
    "infinities": (lambda figures: np.where(figures.count > 0, figures.infinities, np.nan), np.fmax),
}


# What is known of one run, and of two.


@dataclass(frozen=True)
class RunTrend:
    """One file: its curves, and what stands out in them."""

    path: Path
    header: RecordHeader
    series: Sequence[Series]
    steps: Array
    sizes: Array  # of the curves of the whole training, at each step
    seconds: float  # from the first step that was watched to the last
    whole: Thinned  # of the whole training
    modules: Thinned
    last: Array  # of each series, the last size that there is
    first_bad: Array  # of each series, the step where NaN or Inf comes first; 0: never
    first_kind: Array  # of each series, whether these were NaN
    skipped: int  # steps that a GradScaler has skipped

    def column(self, row: str) -> int | None:
        """The first series of this kind."""
        return next((number for number, each in enumerate(self.series) if each.row == row), None)

    def values(self, row: str) -> Array:
        """At each step; of a row that there is once."""
        number = self.column(row)
        if number is None:
            return np.full(len(self.steps), np.nan)
        found: Array = self.sizes[:, int(np.flatnonzero(self.whole.columns == number)[0])]
        return found

    def spikes(self, row: str) -> list[int]:
        """Steps at which the loss, or the norm of the gradients, jumps."""
        found = spikes(self.values(row))
        return [int(step) for step in self.steps[found]]

    @property
    def bad(self) -> list[int]:
        """The series that have NaN or Inf, in the order in which these appeared: earlier steps and calls first."""
        found = np.flatnonzero(self.first_bad)
        order = sorted(found.tolist(), key=lambda number: (self.first_bad[number], number))
        return [
            number for number in order if self.series[number].name or not self.series[number].is_of_module
        ]


@dataclass(frozen=True)
class Differences:
    """How far two runs are apart, by the measure of `ferry compare`; a column a series that both have."""

    steps: int  # that both have
    mine: Array  # numbers of the series of either side
    golden: Array
    whole: Array  # the largest difference of each group of steps
    modules: Array
    farthest: Array  # of each series
    first: Array  # of each series, the first step at which rounding does not explain it; 0: none
    alone: tuple[tuple[Series, ...], tuple[Series, ...]] = ((), ())  # what only one side has


@dataclass(frozen=True)
class Trends:
    """What is drawn and said."""

    runs: tuple[RunTrend, ...]  # mine, golden
    ranks: tuple[tuple[RunTrend, ...], ...]  # of either: those of all ranks, where there are several
    steps: Array
    whole_axis: StepAxis
    module_axis: StepAxis
    differences: Differences | None
    choice: CurveChoice = field(default_factory=CurveChoice)


def spikes(values: Array) -> Array:
    """Where a value stands far out of the 32 before it: by half of their median, by 8 robust deviations, and by a quarter
    above all of them, which a curve that rises is not.
    """
    before = 32
    finite = np.isfinite(values)
    places = np.flatnonzero(finite)
    known = values[finite]
    if len(known) <= before // 4:
        return np.empty(0, np.int64)
    padded = np.concatenate([np.full(before, np.nan), known[:-1]])
    windows = np.lib.stride_tricks.sliding_window_view(padded, before)[before // 4 :]
    usual = np.nanmedian(windows, axis=1)
    spread = 1.4826 * np.nanmedian(np.abs(windows - usual[:, None]), axis=1)
    above = known[before // 4 :] - usual
    highest = np.nanmax(windows, axis=1)
    is_out = known[before // 4 :] > highest + 0.25 * np.abs(highest)
    found = np.flatnonzero(is_out & (above > np.maximum(8 * spread, 0.5 * np.abs(usual))))
    found = found[np.argsort(-above[found], kind="stable")[:_MOST_SPIKES]]
    chosen: Array = places[before // 4 :][np.sort(found)]
    return chosen


def distances(mine: StepFigures, golden: StepFigures) -> Array:
    """What `compare.statistics.distance` says of each pair; nan where one side has nothing."""

    def relative(name: str, size: Array) -> Array:
        one, other = getattr(mine, name), getattr(golden, name)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            apart = np.where(size > 0, np.abs(one - other) / size, np.inf)
        found: Array = np.where((one == other) | np.isnan(one), 0.0, apart)
        return found

    largest = np.fmax(np.abs(golden.minimum), np.abs(golden.maximum))
    sizes = {"mean": golden.rms, "rms": golden.rms, "minimum": largest, "maximum": largest}
    found = np.max([relative(name, size) for name, size in sizes.items()], axis=0)
    counts = ("count", "nans", "infinities")
    is_other = np.any([getattr(mine, name) != getattr(golden, name) for name in counts], axis=0)
    found = np.where(is_other, np.inf, found)
    found = np.where((mine.checksum == golden.checksum) & (mine.count == golden.count), 0.0, found)
    apart: Array = np.where((mine.count > 0) & (golden.count > 0), found, np.nan)
    return apart


# The way there: all files are read once, some steps at a time.


class _RunReading:
    """What has been gathered of one file."""

    def __init__(self, run: WatchedRun, whole: StepAxis, modules: StepAxis) -> None:
        self.run = run
        of_modules = [each.is_of_module for each in run.series]
        numbers = range(len(run.series))
        self.whole = Thinned.of([at for at in numbers if not of_modules[at]], len(whole.first))
        self.modules = Thinned.of([at for at in numbers if of_modules[at]], len(modules.first))
        self.steps: list[Array] = []
        self.sizes: list[Array] = []
        self.last = np.full(len(run.series), np.nan)
        self.first_bad = np.zeros(len(run.series), np.int64)
        self.first_kind = np.zeros(len(run.series), bool)
        self.of_gradients = np.array([each.row in _OF_GRADIENTS for each in run.series])
        self.skipped = 0

    def take(self, first: int, last: int, whole: Array, modules: Array) -> StepFigures:
        """Read the steps with the indices from `first` up to before `last`, which are in these groups."""
        figures, steps = self.run.figures(first, last), self.run.steps[first:last]
        skipped = self.run.skipped[first:last]
        self.whole.add(figures, whole)
        self.modules.add(figures, modules)
        self.steps.append(steps)
        self.sizes.append(figures.size[:, self.whole.columns])
        bad = figures.not_finite > 0
        # what a GradScaler has found, and skipped the step for, is how it works
        bad[np.ix_(skipped, self.of_gradients)] = False
        self.skipped += int(skipped.sum())
        row = bad.argmax(axis=0)
        is_new = bad.any(axis=0) & (self.first_bad == 0)
        self.first_bad[is_new] = steps[row[is_new]]
        self.first_kind[is_new] = figures.nans[row, np.arange(len(row))][is_new] > 0
        known = ~np.isnan(figures.size)
        at = len(known) - 1 - known[::-1].argmax(axis=0)
        is_there = known.any(axis=0)
        self.last[is_there] = figures.size[at, np.arange(len(at))][is_there]
        return figures

    def trend(self) -> RunTrend:
        """All of it."""
        run = self.run
        return RunTrend(
            path=run.path,
            header=run.header,
            series=run.series,
            steps=np.concatenate(self.steps) if self.steps else np.empty(0, np.int64),
            sizes=np.concatenate(self.sizes) if self.sizes else np.empty((0, len(self.whole.columns))),
            seconds=float(run.times[-1] - run.times[0]),
            whole=self.whole,
            modules=self.modules,
            last=self.last,
            first_bad=self.first_bad,
            first_kind=self.first_kind,
            skipped=self.skipped,
        )


class _Comparing:
    """The differences of two files, as they are read."""

    def __init__(self, mine: _RunReading, golden: _RunReading) -> None:
        theirs = {each.key: number for number, each in enumerate(golden.run.series)}
        found = [
            (number, theirs[each.key])
            for number, each in enumerate(mine.run.series)
            if each.key in theirs and each.row != rows.SECONDS
        ]
        self.mine, self.golden = (np.array(side, np.int64) for side in zip(*found, strict=True))
        ours = {each.key for each in mine.run.series}
        self.alone = (
            tuple(each for each in mine.run.series if each.key not in theirs),
            tuple(each for each in golden.run.series if each.key not in ours),
        )
        self.is_whole = np.isin(self.mine, mine.whole.columns)
        tensors = [mine.run.series[number].tensor for number in self.mine]
        plain = TensorRecord("", "float32", (), (), "")
        self.limits = np.array([watched_limit(each or plain) for each in tensors])
        shapes = [(len(side.low), int(mask.sum())) for side, mask in
                  ((mine.whole, self.is_whole), (mine.modules, ~self.is_whole))]  # fmt: skip
        self.whole, self.modules = (np.full(shape, np.nan, np.float32) for shape in shapes)
        self.farthest = np.full(len(self.mine), np.nan)
        self.first = np.zeros(len(self.mine), np.int64)
        self.steps = 0

    def take(
        self, mine: StepFigures, golden: StepFigures, steps: Array, whole: Array, modules: Array
    ) -> None:
        """Both sides at the same steps, which are in these groups."""
        apart = distances(_columns(mine, self.mine), _columns(golden, self.golden))
        for target, groups, mask in (
            (self.whole, whole, self.is_whole),
            (self.modules, modules, ~self.is_whole),
        ):
            begins = np.flatnonzero(np.diff(groups, prepend=-1))
            here = groups[begins]
            with np.errstate(over="ignore"):
                target[here] = np.fmax(target[here], np.fmax.reduceat(apart[:, mask], begins, axis=0))
        self.farthest = np.fmax(self.farthest, np.fmax.reduce(apart, axis=0))
        with np.errstate(invalid="ignore"):
            beyond = apart > self.limits
        is_new = beyond.any(axis=0) & (self.first == 0)
        self.first[is_new] = steps[beyond.argmax(axis=0)[is_new]]
        self.steps += len(steps)

    def differences(self) -> Differences:
        """All of them."""
        names = ("steps", "mine", "golden", "whole", "modules", "farthest", "first", "alone")
        return Differences(**{name: getattr(self, name) for name in names})


def _columns(figures: StepFigures, columns: Array) -> StepFigures:
    return StepFigures(
        **{name: getattr(figures, name)[:, columns] for name in StepFigures.__dataclass_fields__}
    )


Progress = Callable[[int, int], None]


def trends_of(
    paths: Sequence[Path], choice: CurveChoice | None = None, progress: Progress = lambda done, count: None
) -> Trends:
    """Of one run, or of mine and golden; a run may have a file for each rank."""
    choice = choice or CurveChoice()
    with ExitStack() as open_files:
        runs: list[list[WatchedRun]] = []
        for path in paths:
            runs.append([])
            for file in run_files(path):
                runs[-1].append(WatchedRun(file, choice.modules))
                open_files.callback(runs[-1][-1].close)
        shown = [_shown(some, choice.rank) for some in runs]
        every = [run for some in runs for run in some]
        steps = choice.of(np.unique(np.concatenate([run.steps for run in every])))
        if not len(steps):
            raise InputError(
                Text(
                    f"{paths[0]}: no step from {choice.first_step} on was watched; choose other steps",
                    f"{paths[0]}：从第 {choice.first_step} 步起没有监视数据；请选择其他步",
                )
            )
        modules = sum(each.is_of_module for run in shown for each in run.series)
        most = min(_COARSE_MOST, max(_COARSE_LEAST, _NUMBERS // max(1, modules * _CURVES)))
        axes = axis_of(steps, FINE), axis_of(steps, most)
        readings = {id(run): _RunReading(run, *axes) for run in every}
        comparing = _Comparing(*(readings[id(run)] for run in shown)) if len(shown) == 2 else None
        _read(readings, [id(run) for run in shown], comparing, steps, axes, progress)
        trends = {key: reading.trend() for key, reading in readings.items()}
    return Trends(
        runs=tuple(trends[id(run)] for run in shown),
        ranks=tuple(tuple(trends[id(run)] for run in some) if len(some) > 1 else () for some in runs),
        steps=steps,
        whole_axis=axes[0],
        module_axis=axes[1],
        differences=comparing.differences() if comparing else None,
        choice=replace(choice, rank=shown[0].header.rank),
    )


def _shown(runs: Sequence[WatchedRun], rank: int | None) -> WatchedRun:
    """The file of this rank."""
    for run in runs:
        if rank is None or run.header.rank == rank or (len(runs) == 1 and run.header.world == 1):
            return run
    known = ", ".join(str(run.header.rank) for run in runs)
    raise InputError(
        Text(
            f"{runs[0].path}: no rank {rank}; choose one of {known}",
            f"{runs[0].path}：没有 rank {rank}；请从 {known} 中选择",
        )
    )


def _read(
    readings: dict[int, _RunReading],
    shown: Sequence[int],
    comparing: _Comparing | None,
    steps: Array,
    axes: tuple[StepAxis, StepAxis],
    progress: Progress,
) -> None:
    widest = max(len(reading.run.series) for reading in readings.values())
    for start, end in _pieces(len(steps), max(1, _AT_ONCE // widest)):
        progress(start, len(steps))
        found: dict[int, tuple[StepFigures, Array]] = {}
        for key, reading in readings.items():
            run = reading.run
            first = int(np.searchsorted(run.steps, steps[start]))
            last = int(np.searchsorted(run.steps, steps[end - 1], side="right"))
            if first == last:
                continue
            here = run.steps[first:last]
            figures = reading.take(first, last, *(axis.group_of(here, steps) for axis in axes))
            if key in shown:
                found[key] = figures, here
        if comparing is not None and len(found) == 2:
            (mine, ours), (golden, theirs) = (found[key] for key in shown)
            common, at, other = np.intersect1d(ours, theirs, return_indices=True)
            if len(common):
                groups = (axis.group_of(common, steps) for axis in axes)
                comparing.take(_of_rows(mine, at), _of_rows(golden, other), common, *groups)


def _of_rows(figures: StepFigures, chosen: Array) -> StepFigures:
    return StepFigures(**{name: getattr(figures, name)[chosen] for name in StepFigures.__dataclass_fields__})


def _pieces(count: int, size: int) -> Iterator[tuple[int, int]]:
    for start in range(0, count, size):
        yield start, min(start + size, count)
