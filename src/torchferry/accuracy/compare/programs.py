"""Where it is not an operator that differs but the program: other arguments, calls that one side makes alone; and what
of a difference stays unexplained. No torch.

Numbers that a program reads from tensors (`x.item()`) differ where the tensors do, and so may arguments that are
computed from them. So other arguments are the program's own only if nothing explains them that was read before.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec

from torchferry.accuracy.compare.matching import EXTRA, GROUP, NOTHING, Place, is_scratch
from torchferry.accuracy.compare.statistics import (
    AMPLIFICATION,
    GOLDEN_BASIS,
    distance_of,
    distance_of_figures,
    is_watched,
    rounding,
)
from torchferry.accuracy.compare.statistics import BASIS as STATISTICS_BASIS
from torchferry.accuracy.judge.model import CallPair, ErrorKind, Judgement, PairDifference, Verdict
from torchferry.accuracy.model import Call, RecordHeader, TensorRef, Value
from torchferry.operators.names import base_name, is_plumbing, is_random
from torchferry.readiness.model import Special
from torchferry.text import Text

# Arguments that say where and how a kernel works, not what it computes.
_OF_THE_DEVICE = frozenset(
    {
        "device", "layout", "pin_memory", "non_blocking", "memory_format", "generator", "half_to_float", "benchmark",
        "deterministic", "allow_tf32", "cudnn_enabled", "stride_order", "implicit", "copy",
    }
)  # fmt: skip
_OF_THE_LAYOUT = frozenset({"stride", "storage_offset"})  # of calls that only make room or look at data
_KINDS_OF_THE_DEVICE = frozenset({"device", "layout", "memory_format", "generator", "stream"})
_DTYPE = "dtype"
_LONGEST = 60  # letters of a value
_MISSING = Special("missing", "")


@dataclass(frozen=True, slots=True)
class ArgumentDifference:
    """One argument, with the value on each side."""

    name: str  # eps, scalars[2]
    mine: str
    golden: str
    share: float  # of the value, by which fractions differ; inf: they are no fractions
    is_whole: bool = False  # whole numbers, which shapes and positions are

    def __str__(self) -> str:
        return f"{self.name}={self.mine} here, {self.golden} in golden"


def different_arguments(mine: Call, golden: Call, *, is_complete: bool) -> list[ArgumentDifference]:
    """Without what says only how a kernel works. `is_complete`: what a call does not have is its default."""
    ours, theirs = dict(mine.arguments), dict(golden.arguments)
    has_other_shapes = [each.shape for each in mine.inputs] != [each.shape for each in golden.inputs]
    has_other_dtypes = [each.dtype for each in mine.inputs] != [each.dtype for each in golden.inputs]
    plumbing = is_plumbing(mine.operator)
    found = []
    for name in dict.fromkeys((*ours, *theirs)):
        if name in _OF_THE_DEVICE or (plumbing and name in _OF_THE_LAYOUT):
            continue
        if not is_complete and (name not in ours or name not in theirs):
            continue
        # numbers follow from shapes, and dtypes from those of the inputs
        is_consequence = name.endswith(_DTYPE) and (plumbing or has_other_dtypes)
        for each in _differences(mine.operator, name, ours.get(name, _MISSING), theirs.get(name, _MISSING)):
            if not is_consequence and not (each.is_whole and has_other_shapes):
                found.append(each)
    return found


def _differences(operator: str, name: str, mine: Value, golden: Value) -> Iterator[ArgumentDifference]:
    if mine is _MISSING or golden is _MISSING:
        known, default = _default(operator, name)
        if known and default == (golden if mine is _MISSING else mine):
            return
    if isinstance(mine, tuple) and isinstance(golden, tuple) and len(mine) == len(golden):
        for at, (one, other) in enumerate(zip(mine, golden, strict=True)):
            yield from _differences(operator, f"{name}[{at}]", one, other)
        return
    if _are_equal(mine, golden):
        return
    both = (mine, golden)
    shown = [_shown(operator, name, value) for value in both]
    if isinstance(mine, float) and isinstance(golden, float) and f"{mine:.6g}" != f"{golden:.6g}":
        shown = [f"{mine:.6g}", f"{golden:.6g}"]
    yield ArgumentDifference(name, shown[0], shown[1], _share(*both), all(map(_is_whole, both)))


def _are_equal(mine: Value, golden: Value) -> bool:
    if isinstance(mine, Special) and isinstance(golden, Special):
        return mine == golden or mine.kind.lower() in _KINDS_OF_THE_DEVICE
    if isinstance(mine, TensorRef) and isinstance(golden, TensorRef):
        return True
    both_nan = isinstance(mine, float) and isinstance(golden, float) and mine != mine and golden != golden
    return both_nan or mine == golden


def _share(mine: Value, golden: Value) -> float:
    if not isinstance(mine, (int, float)) or not isinstance(golden, (int, float)):
        return math.inf
    is_fraction = isinstance(mine, float) or isinstance(golden, float)
    if not is_fraction or not math.isfinite(mine) or not math.isfinite(golden):
        return math.inf
    return abs(mine - golden) / max(abs(mine), abs(golden))


def _is_whole(value: Value) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_whole, value))
    return isinstance(value, int) and not isinstance(value, bool)


def _shown(operator: str, name: str, value: Value) -> str:
    if value is _MISSING:
        known, default = _default(operator, name)
        return f"{_text(default)} (its default)" if known else "not given"
    text = _text(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _text(value: Value) -> str:
    if isinstance(value, TensorRef):
        return "a tensor"
    if isinstance(value, Special):
        return value.text
    if isinstance(value, tuple):
        return f"[{', '.join(map(_text, value))}]"
    return value if isinstance(value, str) else repr(value)


@cache
def _default(operator: str, name: str) -> tuple[bool, Value]:
    """Whether PyTorch is here and knows a default, and the default."""
    if find_spec("torch") is None:
        return False, None
    from torchferry.observe.operators import find_overload

    overload = find_overload(operator)
    for argument in overload._schema.arguments if overload is not None else ():
        if argument.name == name and argument.has_default_value():
            default = argument.default_value
            return True, tuple(default) if isinstance(default, list) else default
    return False, None


BAD = (Verdict.FAULT, Verdict.SUSPICIOUS)
_MOST_ARGUMENTS = 3  # that are told of one call
_SMALL = 1e-3  # the largest distance of what was read that makes other arguments no news
_OWN = 1.5  # times as far apart as what went in: by more than a call that changes nothing makes it
_UNKNOWN = -1.0  # in the place of a distance
_MINE, _GOLDEN = "mine", "golden"
_LISTED = Text("{arguments}", "{arguments}")
_MAYBE = Text(
    "{arguments}; earlier, the programs read values that differ, from which these may have been computed",
    "{arguments}；程序此前读取过不同的数值，这些参数可能由其算出",
)
_ONLY = Text(
    "only {side} calls it; its result is an input of {operator}, call {number}, where the other side "
    "has a different input",
    "只有{side}调用了它；其结果输入到第 {number} 个调用 {operator}，而另一方的输入不同",
)
_ONLY_MAYBE = Text(
    "only {side} calls it, where the other side makes other calls; its result differs from the other side's",
    "只有{side}调用了它，另一方在此处有别的调用；其结果与另一方的不同",
)
# By these, and by copies to the host, which they follow, programs come to know what is in a tensor.
_READING = ("_local_scalar_dense", "item", "is_nonzero", "equal", "nonzero", "_to_copy", "copy_")
_COPIES = ("_to_copy", "copy_", "_copy_from")
# What results look like where inputs were not there yet.
_OF_LATE_COPIES = (ErrorKind.LATE, ErrorKind.TAIL, ErrorKind.TILE, ErrorKind.ZERO, ErrorKind.STALE)
_COPIED = Text(
    "{name} was copied from the host earlier (call {number}, {place}): if `ferry case` finds this "
    "call correct, the kernel ran before the copy was complete, or the source was overwritten",
    "{name} 此前从主机复制而来（第 {number} 个调用，{place}）：如果 `ferry case` 认为此调用正确，"
    "则说明 kernel 运行时复制尚未完成，或源数据已被改写",
)
_LATE = Text(
    "{operator} (call {number}) read {name} as if its end were 0: the kernel ran before the copy was "
    "complete, or the source was overwritten",
    "{operator}（第 {number} 个调用）读取 {name} 时其末尾如同为 0：kernel 运行时复制尚未完成，或源数据已被改写",
)
_EXPLAINED = Text(
    "its input was not ready: call {number}, {place}", "其输入未及时就绪：第 {number} 个调用，{place}"
)
_SIDES = {_MINE: Text("mine", "待测一方"), _GOLDEN: Text("golden", "标杆一方")}
_NOT_JUDGED = Text(
    "its inputs are equal, its results differ, and which result is correct could not be judged{reason}",
    "其输入相同而结果不同，且无法判断哪一方正确{reason}",
)
_SHAPE = Text(
    "{output}: the shape is {mine}, golden's is {golden}, although inputs and arguments are equal",
    "{output}：形状为 {mine}，标杆为 {golden}，而输入和参数相同",
)


@dataclass(frozen=True)
class _Lonely:
    """A call that has no counterpart, and may change what follows."""

    at: int  # its position among the pairs
    side: str
    place: Place
    given: float  # how far its own inputs are from the other side's
    is_alone: bool  # the other side does nothing of the kind there
    is_sure: bool  # and nothing was wrong before


class Programs:
    """Looks at pairs in their order; what only later ones tell of earlier ones is in `later`."""

    def __init__(self, mine: RecordHeader, golden: RecordHeader | None) -> None:
        # other tools' files do not say which arguments were left out
        self._is_complete = golden is not None and bool(mine.torch and golden.torch)
        self._apart = {_MINE: _Distances(), _GOLDEN: _Distances()}
        self._lonely: dict[tuple[str, int], _Lonely] = {}  # by the contents that they made
        self._largest = 0.0  # distance so far
        self._read = 0.0  # the largest distance of what the programs have read from tensors
        self._has_fault = False
        self._copied: dict[int, tuple[int, Call]] = {}  # contents of mine from the host, where and how
        self._pieces: set[Place] = set()  # where the sides do the same by different operators
        self.later: dict[int, Judgement] = {}

    def look(self, pairs: Iterable[CallPair]) -> Iterator[CallPair]:
        """The same pairs; some with another judgement."""
        for at, pair in enumerate(pairs):
            if any(call is not None and is_watched(call) for call in (pair.mine, pair.golden)):
                yield pair  # a row of statistics: nothing was called there
                continue
            pair = self._with_copies(at, pair)
            if pair.mine is None or pair.golden is None:
                self._keep_lonely(at, pair)
            else:
                self._blame_lonely(pair, pair.mine, pair.golden)
                judgement = self._judgement(pair, pair.mine, pair.golden)
                self._keep_distances(pair, pair.mine)
                self._has_fault = self._has_fault or judgement.verdict is Verdict.FAULT
                if judgement is not pair.judgement:
                    pair = replace(pair, judgement=judgement)
            yield pair

    def _with_copies(self, at: int, pair: CallPair) -> CallPair:
        """With the hint that an input may not have been there yet, where a copy from the host went before.

        Where the result is that of an input whose end was not there, the copy is to blame, and nothing else.
        """
        call = pair.mine
        if call is None:
            return pair
        devices = [each.device.partition(":")[0] for each in (*call.inputs[-1:], *call.outputs[:1])]
        comes_from_host = len(devices) == 2 and devices[0] == "cpu" != devices[1]
        if base_name(call.operator) in _COPIES and comes_from_host:
            self._copied.update((each.content, (at, call)) for each in call.outputs if each.content)
        copies = [(each, self._copied[each.content]) for each in call.inputs if each.content in self._copied]
        judgement = pair.judgement
        if judgement.verdict not in BAD or judgement.sort not in _OF_LATE_COPIES:
            return pair
        if judgement.sort is ErrorKind.LATE:
            copies = [each for each in copies if judgement.why and f"{each[0].name} " in judgement.why.en]
        if not copies:
            return pair
        tensor, (position, copy) = copies[0]
        where = {"number": copy.number, "place": copy.place or "?"}
        if judgement.sort is not ErrorKind.LATE:
            hint = _joined(judgement.why, _COPIED.format(name=tensor.name, **where))
            return replace(pair, judgement=replace(judgement, why=hint))
        why = _LATE.format(operator=call.operator, number=call.number, name=tensor.name)
        self.later[position] = Judgement(Verdict.FAULT, ErrorKind.LATE, why=why)
        self._has_fault = True
        why = _joined(judgement.why, _EXPLAINED.format(**where))
        return replace(pair, judgement=replace(judgement, verdict=Verdict.INHERITED, why=why))

    def _judgement(self, pair: CallPair, mine: Call, golden: Call) -> Judgement:
        known = [each for each in map(_distance, pair.inputs) if each is not None]
        # how far the inputs are apart; None: there are none, or nothing is known of some of them
        is_known = known and len(known) >= sum(not is_scratch(each.mine) for each in pair.inputs)
        judgement, given = pair.judgement, max(known) if is_known else None
        if mine.operator == golden.operator and not _have_equal_results(pair):
            found = different_arguments(mine, golden, is_complete=self._is_complete)
            if found:
                return _with_arguments(judgement, found, 0.0 if given == 0.0 else self._read)
        if given == 0.0 and len(pair.inputs) == len(mine.inputs) == len(golden.inputs):
            return _of_equal_inputs(judgement, pair, mine)
        return judgement

    def _keep_distances(self, pair: CallPair, mine: Call) -> None:
        reads = base_name(mine.operator) in _READING
        for each in (*pair.inputs, *pair.outputs):
            apart = _distance(each)
            if apart is not None:
                self._read = max(self._read, apart if reads else 0.0)
                self._apart[_MINE].keep(each.mine.content, apart)
                self._apart[_GOLDEN].keep(each.golden.content, apart)
        found = [each for each in map(_distance, pair.outputs) if each is not None]
        self._largest = max([self._largest, *([1.0] if is_random(mine.operator) and any(found) else found)])

    def _keep_lonely(self, at: int, pair: CallPair) -> None:
        """What a copy or a view makes of something is that thing still."""
        call, side = (pair.mine, _MINE) if pair.mine is not None else (pair.golden, _GOLDEN)
        assert call is not None
        sources = [self._lonely.get((side, each.content)) for each in call.inputs if each.content]
        known = [each for each in sources if each is not None]
        kept = None
        if pair.how == EXTRA:
            kept = known[0] if known else None
        elif pair.how in (NOTHING, GROUP) and pair.judgement.verdict not in BAD:
            distances = [self._apart[side].of(each.content) for each in call.inputs]
            apart = [*(each.given for each in known), *(each for each in distances if each is not None)]
            given = max(apart, default=self._largest)
            is_alone = pair.how == NOTHING
            is_sure = is_alone and not (self._has_fault and given > _SMALL)
            kept = _Lonely(at, side, _place(call), given, is_alone, is_sure)
        for each in call.outputs:
            if kept is not None and each.content:
                self._lonely[side, each.content] = kept

    def _blame_lonely(self, pair: CallPair, mine: Call, golden: Call) -> None:
        """Where an input differs that only one side has computed so, and what that was computed from does not."""
        if mine.operator != golden.operator:  # which tensors belong together is a guess
            self._pieces.add(_place(mine))
            return
        for each in pair.inputs if self._lonely else ():
            source = self._lonely.get((_MINE, each.mine.content)) or self._lonely.get(
                (_GOLDEN, each.golden.content)
            )
            apart = _distance(each)
            if source is None or source.at in self.later or apart is None:
                continue
            if apart > rounding([each.mine, each.golden]):
                # from what differs much already, numbers tell no more than that it differs still
                is_alone = source.is_alone and source.place not in self._pieces
                own = apart > (_OWN if is_alone else AMPLIFICATION) * min(source.given, _SMALL)
                if own or is_alone:
                    source = replace(source, is_alone=is_alone)
                    self.later[source.at] = _of_lonely(source, mine, is_sure=own and source.is_sure)


class _Distances:
    """How far each content of one side is from the other side's, four bytes each."""

    def __init__(self) -> None:
        self._known = array("f")

    def keep(self, content: int, apart: float) -> None:
        if content <= 0 or content > 1 << 28:  # a place in a file of another tool
            return
        if content >= len(self._known):
            self._known.extend([_UNKNOWN] * (content + 1 - len(self._known)))
        self._known[content] = min(apart, 3e38)

    def of(self, content: int) -> float | None:
        if not 0 < content < len(self._known) or self._known[content] == _UNKNOWN:
            return None
        return self._known[content]


def _distance(difference: PairDifference) -> float | None:
    if is_scratch(difference.mine):
        return None
    if difference.metrics is not None:
        return distance_of_figures(difference)
    mine, golden = difference.mine, difference.golden
    if mine.shape != golden.shape:
        return math.inf
    if not mine.elements:
        return 0.0
    if mine.unread and golden.unread and mine.offset is None:
        return 0.0 if mine.unread in ("uninitialised", "overwritten", "empty") else None
    return distance_of(difference)


def _place(call: Call) -> Place:
    return call.step, call.phase, call.module


def _have_equal_results(pair: CallPair) -> bool:
    assert pair.mine is not None and pair.golden is not None
    if not len(pair.outputs) == len(pair.mine.outputs) == len(pair.golden.outputs):
        return False
    return bool(pair.outputs) and all(_distance(each) == 0.0 for each in pair.outputs)


def _with_arguments(judgement: Judgement, found: Sequence[ArgumentDifference], read: float) -> Judgement:
    """`read`: by how much values differ, at most, from which the arguments may have been computed."""
    alike = {(each.mine, each.golden): each for each in reversed(found)}  # the first of each
    several = list(alike.values())[::-1]
    told = "; ".join(map(str, several[:_MOST_ARGUMENTS]))
    told += f" (+ {len(found) - _MOST_ARGUMENTS})" if len(several) > _MOST_ARGUMENTS else ""
    # against double precision, the result is wrong from mine's own arguments
    if judgement.verdict is Verdict.FAULT and judgement.basis not in (GOLDEN_BASIS, STATISTICS_BASIS):
        return replace(judgement, why=_joined(judgement.why, _LISTED.format(arguments=told)))
    # whole numbers may be positions of what was read, and words decisions: no distance is too small for those
    is_certain = any(
        each.share > AMPLIFICATION * read if read and each.share < math.inf else not read for each in found
    )
    if not is_certain and all(each.share <= AMPLIFICATION * min(read, _SMALL) for each in found):
        return judgement  # computed from what differs, and by as little
    verdict, said = (Verdict.PROGRAM, _LISTED) if is_certain else (Verdict.UNEXPLAINED, _MAYBE)
    why = said.format(arguments=told)
    return replace(judgement, verdict=verdict, sort=ErrorKind.ARGUMENTS, limit=None, why=why)


def _of_equal_inputs(judgement: Judgement, pair: CallPair, mine: Call) -> Judgement:
    first = next((each for each in pair.outputs if each.mine.name == "output/output_0"), None)
    if first is not None and first.mine.shape != first.golden.shape and judgement.verdict not in BAD:
        shapes = {"mine": list(first.mine.shape), "golden": list(first.golden.shape)}
        why = _SHAPE.format(output=first.mine.name, **shapes)
        return Judgement(Verdict.SUSPICIOUS, ErrorKind.SHAPE, first.mine.name, basis="golden", why=why)
    if judgement.verdict is not Verdict.UNKNOWN or mine.random is not None or is_random(mine.operator):
        return judgement
    known = [(apart, each) for each in pair.outputs if (apart := _distance(each)) is not None]
    if not known:
        return judgement
    apart, worst = max(known, key=lambda each: each[0])
    limit = rounding([worst.mine, *(each.mine for each in pair.inputs)])
    if len(known) == len(mine.outputs) and apart <= limit:
        return replace(judgement, verdict=Verdict.EQUAL if apart == 0.0 else Verdict.NORMAL, basis="golden")
    if apart == 0.0:
        return judgement
    reason = Text(f": {judgement.why.en}", f"：{judgement.why.zh}") if judgement.why else Text("", "")
    why = _NOT_JUDGED.format(reason=reason)
    return replace(judgement, verdict=Verdict.UNEXPLAINED, output=worst.mine.name, why=why)


def _of_lonely(source: _Lonely, consumer: Call, *, is_sure: bool) -> Judgement:
    side = _SIDES[source.side]
    if not source.is_alone:
        return Judgement(Verdict.UNEXPLAINED, ErrorKind.ONE_SIDED, why=_ONLY_MAYBE.format(side=side))
    why = _ONLY.format(side=side, operator=consumer.operator, number=consumer.number)
    return Judgement(Verdict.PROGRAM if is_sure else Verdict.UNEXPLAINED, ErrorKind.ONE_SIDED, why=why)


def _joined(one: Text | None, other: Text) -> Text:
    return other if one is None else Text(f"{one.en}; {other.en}", f"{one.zh}；{other.zh}")
