"""A file of `ferry watch` as columns: its series, its steps, and the figures of any of its steps as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from torchferry.accuracy.file.reader import MappedRecord, Record, open_record, rank_files
from torchferry.accuracy.file.tables import CALLS_A_BLOCK, Tables
from torchferry.accuracy.model import RecordHeader, TensorRecord
from torchferry.accuracy.watch import rows
from torchferry.errors import InputError
from torchferry.text import Text

Array = np.ndarray[Any, np.dtype[Any]]
_OF_TREE = (rows.GRADIENT, rows.PARAMETERS)  # whose modules have a size of all that is below them
_AS_NORM = (*_OF_TREE, rows.GRADIENT_NORM, rows.GROUP_NORM)
_AS_NUMBER = (rows.LOSS, rows.LEARNING_RATE, rows.SCALE, rows.SECONDS)
_CALLS_AT_ONCE = 1 << 18


@dataclass(frozen=True)
class Series:
    """What a curve is of: a row of the watcher, of one tensor."""

    row: str
    model: str = ""
    module: str = ""
    name: str = ""  # weight, output_0; "": all tensors of the module and those below it
    node: str = ""  # the module's type
    tensor: TensorRecord | None = None

    @property
    def key(self) -> tuple[str, str, str, str]:
        """The same in every run of a program."""
        return self.row, self.model, self.module, self.name

    @property
    def is_of_module(self) -> bool:
        """Whether it belongs to a module, and not to the training as a whole."""
        return self.row not in (rows.GRADIENT_NORM, rows.GROUP_NORM, *_AS_NUMBER)


@dataclass(frozen=True)
class StepFigures:
    """Statistics of some steps: each field has a row a step and a column a series; nan and 0 where there are none."""

    count: Array
    nans: Array
    infinities: Array
    zeros: Array
    minimum: Array
    maximum: Array
    mean: Array
    rms: Array
    checksum: Array
    size: Array  # what a curve is drawn of: a norm, a number, a ratio or the root mean square, by the row

    @property
    def not_finite(self) -> Array:
        """How many elements are NaN or Inf."""
        total: Array = self.nans + self.infinities
        return total


class WatchedRun:
    """A file that is open; of a program that still runs, up to the last whole step when it was opened."""

    def __init__(self, path: Path, only: Sequence[str] = ()) -> None:
        """`only` are patterns of modules whose series count; empty: all."""
        self.path = path
        self._record = _opened(path)
        assert self._record.tables is not None
        self._tables: Tables = self._record.tables
        self.header: RecordHeader = self._record.header
        self.series: list[Series] = [Series(rows.SECONDS)]
        self._numbers: dict[tuple[str, str, str, str], int] = {self.series[0].key: 0}
        self._only = only
        with self._record.undamaged(Text("its rows", "数据行")):
            self._survey()
            self._add_trees()

    def close(self) -> None:
        """Let go of the file."""
        self._record.close()

    @property
    def is_over(self) -> bool:
        """Whether its writer has ended the file."""
        return self.header.complete

    # What there is.

    def _survey(self) -> None:
        """Read the calls without their figures: the series, and where each step is."""
        sites = self._tables.sites
        ending = [number for number, site in enumerate(sites, 1) if site[0] == rows.STEP]
        places, steps, signatures, pairs = [], [], [], set()
        for start in range(0, self._tables.count, CALLS_A_BLOCK):
            calls = self._tables.call_columns(start, min(start + CALLS_A_BLOCK, self._tables.count))
            is_end = np.isin(calls["site"], ending)
            places.append(np.flatnonzero(is_end) + start)
            steps.append(calls["step"][is_end])
            signatures.append(calls["signature"][is_end])
            pairs.update(np.unique(_pairs(calls[~is_end])).tolist())
        if not any(map(len, steps)):
            raise InputError(_nothing_watched(self._tables).format(path=self.path))
        self._ends = np.concatenate(places)
        self._starts = np.concatenate([[0], self._ends[:-1] + 1])
        self.steps: Array = np.concatenate(steps).astype(np.int64)
        if (np.diff(self.steps) <= 0).any():
            raise ValueError("its steps do not ascend")
        self._pairs = np.array(sorted(pairs), np.uint64)
        self._learn_steps(np.concatenate(signatures).tolist())
        found = [self._series_of(pair) for pair in self._pairs.tolist()]
        self._series_at = np.full((len(found) + 1, max(map(len, found), default=0) + 1), -1)
        for at, numbers in enumerate(found):
            self._series_at[at, : len(numbers)] = numbers

    def _learn_steps(self, signatures: Sequence[int]) -> None:
        known = [dict(self._tables.signatures[number - 1].arguments) for number in signatures]
        self.seconds = np.array([_number(each.get(rows.SECONDS)) for each in known])
        times = np.array([_number(each.get(rows.TIME)) for each in known])
        self.has_times = bool(np.isfinite(times).all())
        self.skipped = np.array([each.get(rows.SKIPPED) is True for each in known])
        self.times: Array = times if self.has_times else self._guessed_times()

    def _guessed_times(self) -> Array:
        """Of files that do not say when: the last step at the file's own time, and those before at the usual speed."""
        usual = float(np.nanmedian(self.seconds)) if np.isfinite(self.seconds).any() else 0.0
        ended: Array = self.path.stat().st_mtime - (self.steps[-1] - self.steps) * usual
        return ended

    def _series_of(self, pair: int) -> list[int]:
        site, signature = pair >> 32, pair & 0xFFFFFFFF
        operator, _, model, module, _, node = self._tables.sites[site - 1]
        outputs = self._tables.signatures[signature - 1].outputs
        return [
            self._number_of(Series(operator, model, module, tensor.name.partition("/")[2], node, tensor))
            for tensor in outputs
        ]

    def _number_of(self, series: Series) -> int:
        """-1 of what is not wanted."""
        number = self._numbers.get(series.key)
        if number is None:
            number = -1
            if not series.is_of_module or _fits(series, self._only):
                number = len(self.series)
                self.series.append(series)
            self._numbers[series.key] = number
        return number

    def _add_trees(self) -> None:
        """A series for all gradients, and all parameters, of each module that has several of them below it."""
        members: dict[tuple[str, str, str], list[int]] = {}
        for number, series in enumerate(self.series):
            if series.row in _OF_TREE and series.model:
                for path in _paths(series.module):
                    members.setdefault((series.row, series.model, path), []).append(number)
        nodes = {(each.model, each.module): each.node for each in self.series if each.row == rows.MODULE}
        targets = [[number] for number in range(len(self.series))]
        for (row, model, path), numbers in members.items():
            if len(numbers) < 2:
                continue
            tree = self._number_of(Series(row, model, path, "", nodes.get((model, path), "")))
            for number in numbers if tree >= 0 else ():
                targets[number].append(tree)
        self._target_starts = np.cumsum([0, *map(len, targets)])
        self._targets = np.array([each for some in targets for each in some], np.int64)

    @cached_property
    def _ratios(self) -> list[tuple[int, int]]:
        """Columns of updates, and of the parameters that they are of."""
        known = {each.key: number for number, each in enumerate(self.series)}
        pairs = (
            (number, known.get((rows.PARAMETERS, *each.key[1:])))
            for number, each in enumerate(self.series)
            if each.row == rows.UPDATE
        )
        return [(number, parameter) for number, parameter in pairs if parameter is not None]

    # The figures.

    def figures(self, first: int, last: int) -> StepFigures:
        """Of the steps from the one with the index `first` up to the one before `last`."""
        with self._record.undamaged(Text("its figures", "数值")):
            parts = [self._figures(*some) for some in self._parts(first, last)]
        if len(parts) == 1:
            return parts[0]
        names = StepFigures.__dataclass_fields__
        return StepFigures(
            **{name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        )

    def _parts(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Whole steps, of so many calls that memory stays small."""
        while first < last:
            end = int(np.searchsorted(self._ends, self._starts[first] + _CALLS_AT_ONCE))
            end = min(max(end, first + 1), last)
            yield first, end
            first = end

    def _figures(self, first: int, last: int) -> StepFigures:
        calls = self._tables.call_columns(int(self._starts[first]), int(self._ends[last - 1]) + 1)
        step = np.searchsorted(self._ends[first:last], np.arange(len(calls)) + self._starts[first])
        pair = np.searchsorted(self._pairs, _pairs(calls))
        lengths = calls["contents"].astype(np.int64)
        start = int(calls["first"][0])
        contents = self._tables.content_columns(start, start + int(lengths.sum()))
        call = np.repeat(np.arange(len(calls)), lengths)
        place = np.arange(len(contents)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        series = self._series_at[pair[call], np.minimum(place, self._series_at.shape[1] - 1)]
        is_known = (contents > 0) & (series >= 0)
        found = self._tables.figures_of(contents[is_known])
        shape = last - first, len(self.series)
        return self._filled(found, step[call[is_known]], series[is_known], shape, first)

    def _filled(
        self, found: Array, step: Array, series: Array, shape: tuple[int, int], first: int
    ) -> StepFigures:
        """Rows of figures, spread over steps and series."""
        many = self._target_starts[series + 1] - self._target_starts[series]
        source = np.repeat(np.arange(len(found)), many)
        shift = np.arange(len(source)) - np.repeat(np.cumsum(many) - many, many)
        target = self._targets[self._target_starts[series][source] + shift]
        key = step[source] * shape[1] + target
        order = np.argsort(key, kind="stable")
        key, found = key[order], found[source[order]]
        begins = np.flatnonzero(np.diff(key, prepend=-1))
        together = _together(found, begins) if len(found) else {}
        made = {name: np.full(shape, np.nan) for name in ("minimum", "maximum", "mean", "rms")}
        made |= {name: np.zeros(shape) for name in ("count", "nans", "infinities", "zeros")}
        made["checksum"] = np.zeros(shape, np.uint64)
        for name, values in together.items():
            made[name].reshape(-1)[key[begins]] = values
        made["count"][:, 0] = 1.0
        made["mean"][:, 0] = made["rms"][:, 0] = self.seconds[first : first + shape[0]]
        return StepFigures(size=self._sizes(made), **made)

    def _sizes(self, made: dict[str, Array]) -> Array:
        sizes: Array = made["rms"].copy()
        as_norm = [number for number, each in enumerate(self.series) if each.row in _AS_NORM]
        as_number = [number for number, each in enumerate(self.series) if each.row in _AS_NUMBER]
        finite = np.maximum(
            made["count"] - made["nans"] - made["infinities"], 0
        )  # damaged files say anything
        sizes[:, as_norm] *= np.sqrt(finite[:, as_norm])
        sizes[:, as_number] = made["mean"][:, as_number]
        if self._ratios:
            updates, parameters = map(list, zip(*self._ratios, strict=True))
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = made["rms"][:, updates] / made["rms"][:, parameters]
            sizes[:, updates] = np.where(np.isfinite(ratio), ratio, np.nan)
        return sizes


def _together(found: Array, begins: Array) -> dict[str, Array]:
    """Rows that begin at these places, each as if its tensors were one."""
    made: dict[str, Array] = {
        name: np.add.reduceat(found[name], begins).astype(float)
        for name in ("count", "nans", "infinities", "zeros")
    }
    finite = (found["count"] - found["nans"] - found["infinities"]).astype(float)
    is_there = finite > 0
    made["minimum"] = np.fmin.reduceat(np.where(is_there, found["minimum"], np.nan), begins)
    made["maximum"] = np.fmax.reduceat(np.where(is_there, found["maximum"], np.nan), begins)
    made["checksum"] = np.add.reduceat(found["checksum"], begins)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        total = np.add.reduceat(finite, begins)
        is_alone = np.diff(begins, append=len(found)) == 1  # nothing is rounded then
        mean = np.add.reduceat(found["mean"] * finite, begins) / total
        rms = np.sqrt(np.add.reduceat(found["rms"] ** 2 * finite, begins) / total)
        made["mean"] = np.where(total > 0, np.where(is_alone, found["mean"][begins], mean), np.nan)
        made["rms"] = np.where(total > 0, np.where(is_alone, found["rms"][begins], rms), np.nan)
    return made


def _pairs(calls: Array) -> Array:
    """Site and signature of each call as one number."""
    numbers: Array = (calls["site"].astype(np.uint64) << np.uint64(32)) | calls["signature"]
    return numbers


def _paths(module: str) -> Iterator[str]:
    """The module and all that it lies in: a.b.c, a.b, a, and the model itself."""
    yield module
    while module:
        module = module.rpartition(".")[0]
        yield module


def _fits(series: Series, patterns: Sequence[str]) -> bool:
    from fnmatch import fnmatchcase

    return not patterns or any(fnmatchcase(series.module, pattern) for pattern in patterns)


def _number(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) else float("nan")


# Opening: one file, or those of all ranks.


def _opened(path: Path) -> MappedRecord:
    record: Record = open_record(path)
    if isinstance(record, MappedRecord) and record.tables is not None:
        return record
    record.close()
    raise InputError(
        Text(
            f"{path}: not a file of `ferry watch`; only these have curves",
            f"{path}：不是 `ferry watch` 的文件；只有这类文件才有曲线",
        )
    )


_NO_CURVES = Text(
    "{path}: holds statistics of operators, no curves; `ferry watch` writes files with curves",
    "{path}：内容是算子统计值，没有曲线；`ferry watch` 会写入带曲线的文件",
)
_NO_STEP = Text(
    "{path}: holds no complete step yet; wait until the program has finished one",
    "{path}：还没有完整的步；请等待程序完成一步",
)


def _nothing_watched(tables: Tables) -> Text:
    return _NO_CURVES if any("::" in site[0] for site in tables.sites) else _NO_STEP


def run_files(path: Path) -> list[Path]:
    """The files of all ranks of a run: this one, or run.rank0.h5, run.rank1.h5 ... where there is no run.h5."""
    found = [path] if path.exists() else rank_files(path)
    if not found:
        raise InputError(
            Text(
                f"no such file: {path}; give a file of `ferry watch`",
                f"没有该文件：{path}；请给出 `ferry watch` 生成的文件",
            )
        )
    return found
