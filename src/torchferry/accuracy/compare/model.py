"""What a comparison of two records finds: judged pairs of calls, curves, the differences of a whole network; and
how they are kept small. No torch."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, NamedTuple

from torchferry.accuracy.judge.model import CallPair, Judgement, PairDifference, Verdict
from torchferry.accuracy.model import (
    ROW,
    Call,
    LazySequence,
    Metrics,
    RecordHeader,
    Statistics,
    TensorRecord,
    figures_in,
)
from torchferry.text import Text


@dataclass(frozen=True)
class NetworkCurve:
    """A figure of the whole network over the steps; None where a side has none."""

    name: str  # loss, gradient norm
    steps: tuple[int, ...]
    mine: tuple[float | None, ...]
    golden: tuple[float | None, ...]


@dataclass(frozen=True)
class NetworkDifference:
    """The mean absolute difference of what a whole network answers, which the vendors' guide wants to be <= 1e-4."""

    what: str  # output, loss
    step: int
    mean_abs: float


@dataclass(frozen=True)
class RankComparison:
    """Two records of one rank, held against each other."""

    mine: RecordHeader
    golden: RecordHeader | None
    mine_path: str
    golden_path: str
    pairs: PairRows
    culprit: int | None  # the pair to look at first; None: nothing is wrong
    seconds: float = 0.0
    nbytes: int = 0  # that were compared, of both
    notes: tuple[Text, ...] = field(default=())
    curves: tuple[NetworkCurve, ...] = field(default=())
    network: tuple[NetworkDifference, ...] = field(default=())
    stack: tuple[str, ...] = field(default=())  # the lines that have led to the culprit, the innermost first


# Pairs as rows of numbers, a few bytes each: those of a long run would fill the memory as objects. No torch.

_NONE = -1
_PAIR = struct.Struct("<4iB3dq2I")  # calls, how, what is said, which errors are known, errors, differences
_CALL = struct.Struct("<2qi")  # number, step, what else
_DIFFERENCE = struct.Struct("<7i")
_METRICS = struct.Struct("<2q13d7q")
_FIGURES = attrgetter(*Metrics.__dataclass_fields__)  # in the order of _METRICS


class Numbered:
    """Values that repeat, each kept once and named by its number."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self.values: list[Any] = []

    def __call__(self, value: Any) -> int:
        number = self._numbers.setdefault(value, len(self.values))
        if number == len(self.values):
            self.values.append(value)
        return number

    def __getitem__(self, number: int) -> Any:
        return self.values[number]


class Rows:
    """Rows of one layout, one after the other."""

    def __init__(self, layout: struct.Struct) -> None:
        self._layout, self._bytes, self._count = layout, bytearray(), 0

    def __len__(self) -> int:
        return self._count

    def append(self, *fields: Any) -> int:
        """Add a row; its number is the answer."""
        self._bytes += self._layout.pack(*fields)
        self._count += 1
        return self._count - 1

    def replace(self, number: int, *fields: Any) -> None:
        """Put other fields in the place of a row."""
        self._layout.pack_into(self._bytes, number * self._layout.size, *fields)

    def __getitem__(self, number: int) -> tuple[Any, ...]:
        return self._layout.unpack_from(self._bytes, number * self._layout.size)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self._layout.iter_unpack(self._bytes)


class Outline(NamedTuple):
    """The little of a pair that is asked of all of them: to make each one whole takes long."""

    has_mine: bool
    has_golden: bool
    how: str
    verdict: Verdict
    own_error: float | None
    number: int  # this and the rest: of mine, or of golden where mine is missing
    step: int
    operator: str
    place: str


class PairRows(LazySequence[CallPair]):
    """Pairs as rows of numbers; where the bytes of their tensors lie in a file is not kept."""

    def __init__(self) -> None:
        self._pairs, self._calls, self._differences = Rows(_PAIR), Rows(_CALL), Rows(_DIFFERENCE)
        self._metrics, self._statistics = Rows(_METRICS), Rows(ROW)
        self._texts, self._sites, self._tensors, self._judgements = (Numbered() for _ in range(4))
        self._results: dict[int, tuple[TensorRecord, ...]] = {}  # of calls; few have any
        self._equal: dict[Metrics, int] = {}  # most figures are those of equal tensors

    def append(self, pair: CallPair) -> None:
        """Add a pair."""
        first = len(self._differences)
        for each in (*pair.inputs, *pair.outputs):
            tensors = (*self._tensor(each.mine), *self._tensor(each.golden))
            texts = self._texts(each.picture), self._texts(each.reason)
            self._differences.append(*tensors, self._figures(each.metrics), *texts)
        mine = self._call(pair.mine)  # as a rule, golden's has the same number
        golden = mine if pair.golden == pair.mine else self._call(pair.golden)
        said = self._said(pair.judgement)
        self._pairs.append(
            mine, golden, self._texts(pair.how), *said, first, len(pair.inputs), len(pair.outputs)
        )

    def rejudge(self, at: int, judgement: Judgement) -> None:
        """Say something else of a pair that is there already."""
        row = self._pairs[at]
        said = self._said(judgement)
        self._pairs.replace(at, *row[:3], *said, *row[3 + len(said) :])

    def _said(self, judgement: Judgement) -> tuple[Any, ...]:
        given = sum(1 << at for at, error in enumerate(judgement.errors) if error is not None)
        said = self._judgements(replace(judgement, own_error=None, golden_error=None, limit=None))
        return said, given, *(error or 0.0 for error in judgement.errors)

    def __len__(self) -> int:
        return len(self._pairs)

    def _make(self, at: int) -> CallPair:
        mine, golden, how, said, given, own, other, limit, first, inputs, outputs = self._pairs[at]
        errors = [error if given & 1 << bit else None for bit, error in enumerate((own, other, limit))]
        judgement = self._judgements[said]
        if given:
            judgement = replace(judgement, own_error=errors[0], golden_error=errors[1], limit=errors[2])
        middle = first + inputs
        call = self._made_call(mine)
        return CallPair(
            call,
            call if golden == mine else self._made_call(golden),
            self._texts[how],
            tuple([self._made_difference(each) for each in range(first, middle)]),
            tuple([self._made_difference(each) for each in range(middle, middle + outputs)]),
            judgement,
        )

    def outlines(self) -> Iterator[Outline]:
        """All pairs, in their order."""
        for mine, golden, how, said, given, own_error, *_ in self._pairs:
            number, step, site = self._calls[golden if mine == _NONE else mine]
            operator, _, _, _, place, _ = self._sites[site]
            yield Outline(
                mine != _NONE,
                golden != _NONE,
                self._texts[how],
                self._judgements[said].verdict,
                own_error if given & 1 else None,
                number,
                step,
                operator,
                place,
            )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Sequence)
            and len(self) == len(other)
            and all(one == another for one, another in zip(self, other, strict=True))
        )

    __hash__ = None  # type: ignore[assignment]

    def _call(self, call: Call | None) -> int:
        if call is None:
            return _NONE
        site = (call.operator, call.phase, call.model, call.module, call.place, call.node)
        number = self._calls.append(call.number, call.step, self._sites(site))
        if call.outputs:
            self._results[number] = tuple(map(_without_place, call.outputs))
        return number

    def _made_call(self, row: int) -> Call | None:
        if row == _NONE:
            return None
        number, step, site = self._calls[row]
        operator, phase, model, module, line, node = self._sites[site]
        outputs = self._results.get(row, ())
        return Call(number, operator, step, phase, model, module, line, node, outputs=outputs)

    def _made_difference(self, row: int) -> PairDifference:
        mine, of_mine, golden, of_golden, metrics, picture, reason = self._differences[row]
        return PairDifference(
            self._made_tensor(mine, of_mine),
            self._made_tensor(golden, of_golden),
            Metrics(*self._metrics[metrics]) if metrics != _NONE else None,
            self._texts[picture],
            self._texts[reason],
        )

    def _figures(self, metrics: Metrics | None) -> int:
        if metrics is None:
            return _NONE
        if not metrics.is_equal:
            return self._metrics.append(*_FIGURES(metrics))
        if metrics not in self._equal:
            self._equal[metrics] = self._metrics.append(*_FIGURES(metrics))
        return self._equal[metrics]

    def _tensor(self, tensor: TensorRecord) -> tuple[int, int]:
        """Without its place in the file and its figures, most tensors are equal to one that is there already."""
        number = self._statistics.append(*figures_in(tensor.statistics)) if tensor.statistics else _NONE
        return self._tensors(replace(_without_place(tensor), statistics=None)), number

    def _made_tensor(self, tensor: int, statistics: int) -> TensorRecord:
        found: TensorRecord = self._tensors[tensor]
        if statistics == _NONE:
            return found
        return replace(found, statistics=Statistics(*self._statistics[statistics]))


def _without_place(tensor: TensorRecord) -> TensorRecord:
    part = None if tensor.part is None else tensor.part._replace(offset=0)
    return replace(tensor, content=0, offset=None, part=part)


def packed(pairs: Iterable[CallPair]) -> PairRows:
    """The pairs, packed into rows."""
    rows = PairRows()
    for pair in pairs:
        rows.append(pair)
    return rows


# What is kept of pairs once they are judged: so little that memory does not depend on the size of the
# records.

DIFFERENCES = 100_000  # beyond so many, figures are kept only of calls that are not as they should be
_UNREMARKABLE = (Verdict.EQUAL, Verdict.NORMAL, Verdict.INHERITED)


class Keeper:
    """Makes pairs small, and counts."""

    def __init__(self) -> None:
        self.nbytes = 0  # that were measured, of both sides
        self.left_out = 0  # calls whose figures were not kept
        self._kept = 0

    def keep(self, pairs: Iterable[CallPair]) -> PairRows:
        """All pairs, each without what its calls were made with; results are kept if no difference tells of them."""
        return packed(map(self._small, pairs))

    def _small(self, pair: CallPair) -> CallPair:
        self.nbytes += sum(
            (each.mine.kept_part or each.mine).nbytes + (each.golden.kept_part or each.golden).nbytes
            for each in (*pair.inputs, *pair.outputs)
            if each.metrics is not None
        )
        is_fine = pair.judgement.verdict in _UNREMARKABLE
        mine, golden = (
            replace(
                call,
                arguments=(),
                inputs=(),
                outputs=() if pair.outputs or is_fine else call.outputs,
                results=None,
                random=None,
            )
            if call
            else None
            for call in (pair.mine, pair.golden)
        )
        if self._kept > DIFFERENCES and is_fine:
            self.left_out += bool(pair.outputs)
            return CallPair(mine, golden, pair.how, judgement=pair.judgement)
        self._kept += len(pair.inputs) + len(pair.outputs)
        return replace(pair, mine=mine, golden=golden)
