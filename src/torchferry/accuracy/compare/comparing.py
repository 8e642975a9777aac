"""Compares records: matches their calls, measures every tensor of every pair, judges each call, names the culprit."""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from torchferry.accuracy.compare.api_matching import match_apis
from torchferry.accuracy.compare.apis import ApiJudge
from torchferry.accuracy.compare.matching import (
    CallMatch,
    CallSequence,
    Matches,
    TensorPair,
    match_sites,
    match_tensors,
)
from torchferry.accuracy.compare.model import Keeper, PairRows, RankComparison
from torchferry.accuracy.compare.network import (
    LONELY_RANKS,
    Gathering,
    curves,
    network_differences,
    notes_of_comparison,
    with_statistics,
)
from torchferry.accuracy.compare.programs import Programs
from torchferry.accuracy.compare.statistics import (
    comparable,
    distance_of,
    is_watched,
    judge_by_figures,
    judge_modules,
    judge_statistics,
    with_other_slices,
)
from torchferry.accuracy.file.contents import shaped
from torchferry.accuracy.file.saved_tensors import UnreadableTensorError
from torchferry.accuracy.judge.model import CallPair, Judgement, PairDifference, Verdict
from torchferry.accuracy.model import Call, Kept, Metrics, TensorRecord, has_parts
from torchferry.accuracy.native.differences import NONE_WRONG, Measuring, metrics_of, pieces
from torchferry.errors import InputError
from torchferry.text import Text

if TYPE_CHECKING:
    from torchferry.accuracy.file.reader import Record

Progress = Callable[[int, int], None]  # bytes done, bytes in all
_LARGE = 1 << 14  # elements of a call that are worth a thread
_RELEASE = 4096  # calls after which what was read of the files is given back
_READ = 1 << 26  # bytes, or these
_STATISTICS = Kept.STATISTICS.value  # why there are no figures
# Whom to name first. Where programs differ, no operator need be wrong. Behind the place where statistics part, they tell
# no more: there the first counts, and not the worst.
IN_TURN = ((Verdict.PROGRAM,), (Verdict.FAULT,), (Verdict.SUSPICIOUS,), (Verdict.UNEXPLAINED,))
AS_THEY_COME = ((Verdict.PROGRAM,), (Verdict.FAULT, Verdict.SUSPICIOUS), (Verdict.UNEXPLAINED,))
_AHEAD = 32  # pairs that may wait for their turn, for each thread


@dataclass(frozen=True)
class ComparingPlan:
    """How a comparison is made."""

    jobs: int = 0  # threads; 0: as many as there are processors
    progress: Progress | None = None
    first: Callable[[CallPair], None] | None = (
        None  # is told the first call that is wrong, as soon as that is certain
    )
    is_thorough: bool = False  # everything in double precision


def compare_files(mine: Path, golden: Path | None, work: ComparingPlan | None = None) -> list[RankComparison]:
    """All ranks of two records, each with its counterpart; without golden, each by itself."""
    from torchferry.accuracy.file.reader import open_records

    with ExitStack() as stack:
        ours, theirs = (
            [stack.enter_context(each) for each in open_records(path)] if path else []
            for path in (mine, golden)
        )
        return compare_ranks_alike(ours, theirs if golden else None, (mine, golden), work)


def compare_ranks_alike(
    mine: Sequence[Record],
    golden: Sequence[Record] | None,
    names: tuple[Path, Path | None],
    work: ComparingPlan | None = None,
) -> list[RankComparison]:
    """The records of all ranks of two runs, each with its counterpart; without golden, each by itself."""
    ours = {each.header.rank: each for each in mine}
    theirs = {each.header.rank: each for each in golden or ()}
    common = sorted(ours if golden is None else set(ours) & set(theirs))
    if not common and len(ours) == len(theirs) == 1:  # each rank's file may be named by itself
        return [compare_records(next(iter(ours.values())), next(iter(theirs.values())), work)]
    if not common:
        raise InputError(
            Text(
                f"{names[0]} and {names[1]} have no rank in common (ranks {_listed(ours)} and ranks "
                f"{_listed(theirs)}); give two recordings of the same ranks",
                f"{names[0]} 与 {names[1]} 没有共同的 rank（分别为 rank {_listed(ours)} 和 rank {_listed(theirs)}"
                "）；请给出相同 rank 的两份记录",
            )
        )
    comparisons = [compare_records(ours[rank], theirs.get(rank), work) for rank in common]
    lonely = sorted(set(ours) ^ set(theirs)) if golden is not None else []
    if lonely:
        first = comparisons[0]
        comparisons[0] = replace(first, notes=(*first.notes, LONELY_RANKS.format(ranks=_listed(lonely))))
    return comparisons


_ONLY_INPUTS = Text(
    "{path}: holds no elements of results; give a second recording to compare with",
    "{path}：没有记录结果的元素；请给出第二份记录用于比较",
)
_ONLY_STATISTICS = Text(
    "{path}: holds only statistics; give a second recording to compare with",
    "{path}：只有统计值；请给出第二份记录用于比较",
)


def compare_records(mine: Record, golden: Record | None, work: ComparingPlan | None = None) -> RankComparison:
    """Two records of one rank; golden may be missing, then mine is held against double precision alone."""
    start = time.perf_counter()
    work = work or ComparingPlan()
    if mine.header.kept is not Kept.TENSORS and golden is None:
        held = _ONLY_INPUTS if mine.header.kept is Kept.INPUTS else _ONLY_STATISTICS
        raise InputError(held.format(path=mine.path))
    if golden is None and mine.of_apis:
        raise InputError(
            Text(
                f"{mine.path}: an msprobe dump, whose calls can't be recomputed; give a second dump to compare "
                "with",
                f"{mine.path}：这是 msprobe 的 dump，其中的调用无法重新计算；请给出第二份 dump 用于比较",
            )
        )
    seen = [(Gathering(), record) for record in (mine, golden) if record is not None]
    total = _Total()
    matches = _matches(seen, total)
    keeper, header, golden_header = Keeper(), mine.header, golden.header if golden else None
    if golden is not None and _are_only_statistics_common(mine, golden):
        header = replace(header, kept=Kept.STATISTICS)
    bases: Counter[str] = Counter()
    if header.kept is Kept.TENSORS:
        judged = _reported(_judged(mine, golden, matches, work), total, work)
    else:
        assert golden is not None
        judged = judge_statistics(_unmeasured(mine, golden, matches))
    if header.modules_only:
        judged = judge_modules(judged)
    if golden is None or mine.of_apis == golden.of_apis:
        programs = Programs(header, golden_header)
        pairs = keeper.keep(_told(_counted(programs.look(judged), bases), work))
        for at, judgement in programs.later.items():
            pairs.rejudge(at, judgement)
    else:  # what is one call here is several there
        pairs = keeper.keep(_told(_counted(judged, bases), work))
    culprit = find_culprit(pairs, AS_THEY_COME if header.is_overview else IN_TURN)
    return RankComparison(
        header,
        golden_header,
        str(mine.path),
        str(golden.path) if golden else "",
        pairs,
        culprit,
        time.perf_counter() - start,
        keeper.nbytes,
        notes_of_comparison(header, golden_header, pairs, keeper.left_out, bases),
        curves(seen),
        network_differences(pairs, seen[0][0].scaling),
        _stack(pairs, culprit, mine, golden),
    )


def _stack(pairs: PairRows, culprit: int | None, mine: Record, golden: Record | None) -> tuple[str, ...]:
    """The lines that have led to the culprit, on the side that knows them."""
    if culprit is None:
        return ()
    pair = pairs[culprit]
    found = [
        record.stack(call) for record, call in ((mine, pair.mine), (golden, pair.golden)) if record and call
    ]
    return tuple(next(filter(None, found), []))


def _are_only_statistics_common(mine: Record, golden: Record) -> bool:
    """Whether a dump of APIs takes part, and one side has no elements."""
    has_statistics = Kept.STATISTICS in (mine.header.kept, golden.header.kept)
    return has_statistics and (mine.of_apis or golden.of_apis)


def find_culprit(pairs: PairRows, groups: Sequence[Sequence[Verdict]]) -> int | None:
    """The pair to look at first: the first of the first group of verdicts that there is. What is inherited is nobody's
    fault."""
    first: dict[Verdict, int] = {}
    for at, pair in enumerate(pairs.outlines()):
        first.setdefault(pair.verdict, at)
    found = ([first[verdict] for verdict in group if verdict in first] for group in groups)
    return next((min(each) for each in found if each), None)


class _Total:
    """Bytes of the tensors of all calls of mine."""

    def __init__(self) -> None:
        self.nbytes = 0

    def passing(self, calls: Iterable[Call]) -> Iterator[Call]:
        """The calls, counted on their way."""
        for call in calls:
            self.nbytes += _nbytes(call)
            yield call


def _nbytes(call: Call) -> int:
    return sum(each.nbytes for each in _tensors_of(call))


def _matches(seen: Sequence[tuple[Gathering, Record]], total: _Total) -> Sequence[CallMatch]:
    """The calls that belong together. This is the one look at all calls before the work begins."""
    walked = [_walked(record) for _, record in seen]
    walked[0] = total.passing(walked[0])
    passing = [gathering.passing(calls) for (gathering, _), calls in zip(seen, walked, strict=True)]
    are_names_kept = False
    if any(record.of_apis for _, record in seen):
        are_names_kept = any(record.has_gaps for _, record in seen)
        passing = [_as_apis(calls, are_names_kept) for calls in passing]
    sites = [CallSequence(calls) for calls in passing]
    if len(sites) == 1:
        return Matches(CallMatch(at, None) for at in range(len(sites[0])))
    (_, mine), (_, golden) = seen
    if mine.of_apis != golden.of_apis:
        apis, operators = sites if mine.of_apis else sites[::-1]
        matches = match_apis(apis, operators, apis_are_mine=mine.of_apis)
    else:
        is_replay = bool(mine.header.replayed or golden.header.replayed)
        matches = match_sites(sites[0], sites[1], is_replay=is_replay, by_name=are_names_kept)
    if not any(match.mine is not None and match.golden is not None for match in matches):
        raise InputError(
            Text(
                f"{mine.path} and {golden.path} have no operator in common ({len(sites[0])} and {len(sites[1])} "
                "calls); are they recordings of the same program?",
                f"{mine.path} 与 {golden.path} 没有共同的算子（分别有 {len(sites[0])} 和 {len(sites[1])} 次调用）"
                "；请确认是同一程序的记录",
            )
        )
    return matches


def _as_apis(calls: Iterable[Call], are_names_kept: bool) -> Iterator[Call]:
    """As calls of dumps are matched, which do not tell what a model itself calls from what is called outside of it. With
    the numbers in their names, one call more on one side would shift the others."""
    for call in calls:
        module = "" if call.module == call.model else call.module
        yield replace(call, module=module, node=call.node if are_names_kept else "")


def _walked(record: Record) -> Iterator[Call]:
    """All calls; the system counts what was read of the file as memory of this process until it is given back."""
    for at in range(len(record.calls)):
        if at % _RELEASE == 0:
            record.release()
        yield record.calls[at]


def _called(
    mine: Record, golden: Record | None, matches: Iterable[CallMatch]
) -> Iterator[tuple[Call | None, Call | None, str]]:
    """The calls themselves, one pair after the other; what was read of the files for them is given back on the way."""
    read = 0
    for at, match in enumerate(matches):
        one = mine.calls[match.mine] if match.mine is not None else None
        other = golden.calls[match.golden] if golden is not None and match.golden is not None else None
        if at % _RELEASE == 0 or read > _READ:
            mine.release()
            if golden is not None:
                golden.release()
            read = 0
        read += sum(tensor.nbytes for call in (one, other) for tensor in _tensors_of(call))
        yield one, other, match.how


def _tensors_of(call: Call | None) -> tuple[TensorRecord, ...]:
    return () if call is None else (*call.inputs, *call.outputs)


def _tensors(mine: Call | None, golden: Call | None) -> tuple[list[TensorPair], list[TensorPair]]:
    if mine is None or golden is None:
        return [], []
    same = mine.operator == golden.operator
    return (
        match_tensors(mine.inputs, golden.inputs, same_operator=same),
        match_tensors(mine.outputs, golden.outputs, same_operator=same),
    )


def _unmeasured(mine: Record, golden: Record, matches: Iterable[CallMatch]) -> Iterator[CallPair]:
    has_apis = mine.of_apis or golden.of_apis

    def difference(ours: TensorRecord, theirs: TensorRecord) -> PairDifference:
        both = with_statistics(mine, ours), with_statistics(golden, theirs)
        if has_apis:
            both = comparable(*both)
        return PairDifference(*both, None, reason=_STATISTICS)

    for one, other, how in _called(mine, golden, matches):
        inputs, outputs = (tuple(starmap(difference, tensors)) for tensors in _tensors(one, other))
        yield CallPair(one, other, how, inputs, outputs)


class _Working:
    """Measures a pair of calls, and judges it; any number of threads may ask. To be closed afterwards."""

    def __init__(self, mine: Record, golden: Record | None, work: ComparingPlan, threads: int) -> None:
        self._open = ExitStack()
        self._figures = Figures(mine, golden) if golden is not None else None
        self._has_apis = mine.of_apis or (golden is not None and golden.of_apis)
        judge: Callable[[CallPair], Judgement] = judge_by_figures  # against golden
        self.expect: Callable[[CallPair], None] = lambda _pair: None
        if self._has_apis:
            judge = ApiJudge().judge
        elif importlib.util.find_spec("torch") is not None:
            from torchferry.accuracy.judge.judging import Judge
            from torchferry.accuracy.judge.sharing import PartSharing

            sharing = self._open.enter_context(PartSharing(threads))
            by_reference = Judge(mine, golden, is_thorough=work.is_thorough, sharing=sharing)
            judge, self.expect = by_reference.judge, by_reference.expect  # against what is right
        self._judge = _by_what_is_kept(judge, mine, golden)

    def close(self) -> None:
        """End the threads that work on parts."""
        self._open.close()

    def work_on(self, pair: CallPair) -> CallPair:
        """The same pair with the differences of its tensors, and what is said of it."""
        measured = self._measured(pair)
        return measured if self._has_apis else self._judged(measured)

    def finish(self, pair: CallPair) -> CallPair:
        """What is done with one pair after the other: an API inherits what came before."""
        return self._judged(pair) if self._has_apis else pair

    def _measured(self, pair: CallPair) -> CallPair:
        figures = self._figures
        if figures is None:
            return pair
        inputs, outputs = (
            tuple(starmap(figures.difference, tensors)) for tensors in _tensors(pair.mine, pair.golden)
        )
        return replace(pair, inputs=inputs, outputs=outputs)

    def _judged(self, pair: CallPair) -> CallPair:
        if pair.mine is None:
            return pair
        judgement = self._judge(pair)
        differing = any(map(_differs, pair.inputs))
        # nothing is inherited from inputs of which no difference is known, as those of views, which nobody reads; but
        # APIs without inputs, as gradients, inherit what came before
        if judgement.verdict is Verdict.INHERITED and not differing and not self._has_apis:
            judgement = replace(judgement, verdict=Verdict.NORMAL)
        return replace(pair, judgement=judgement)


def _judged(
    mine: Record, golden: Record | None, matches: Iterable[CallMatch], work: ComparingPlan
) -> Iterator[CallPair]:
    """The pairs in order; no more wait than a few for each thread, so that memory does not depend on the length.

    Small ones are looked at when their turn comes: to hand them to another thread takes longer than the work.
    """
    threads = work.jobs or available_cores()
    waiting: deque[Callable[[], CallPair]] = deque()
    with (
        closing(_Working(mine, golden, work, threads)) as working,
        ThreadPoolExecutor(threads, initializer=_keep_to_one_core) as executor,
        _on_one_core(),
    ):
        try:
            for pair in starmap(CallPair, _called(mine, golden, matches)):
                working.expect(pair)
                is_large = sum(tensor.elements for tensor in _tensors_of(pair.mine)) > _LARGE
                waiting.append(
                    executor.submit(working.work_on, pair).result
                    if is_large
                    else partial(working.work_on, pair)
                )
                if len(waiting) >= _AHEAD * threads:
                    yield working.finish(waiting.popleft()())
            while waiting:
                yield working.finish(waiting.popleft()())
        finally:
            executor.shutdown(wait=True, cancel_futures=True)


def available_cores() -> int:
    """As many as this process may use."""
    has_affinity = hasattr(os, "sched_getaffinity")
    return (len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count()) or 1


def _keep_to_one_core() -> None:
    """Calls are shared out among threads: PyTorch's own threads would stand in their way."""
    if "torch" in sys.modules:
        import torch

        torch.set_num_threads(1)


@contextmanager
def _on_one_core() -> Iterator[None]:
    """The same for this thread, as long as it lasts."""
    if "torch" not in sys.modules:
        yield
        return
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _reported(pairs: Iterable[CallPair], total: _Total, work: ComparingPlan) -> Iterator[CallPair]:
    done = 0
    for pair in pairs:
        yield pair
        done += _nbytes(pair.mine) if pair.mine is not None else 0
        if work.progress is not None:
            work.progress(done, max(total.nbytes, 1))


def _counted(pairs: Iterable[CallPair], bases: Counter[str]) -> Iterator[CallPair]:
    """What the judgements of mine's calls are based on."""
    for pair in pairs:
        if pair.mine is not None:
            is_equal = pair.judgement.verdict is Verdict.EQUAL
            bases["equal" if is_equal else pair.judgement.basis] += 1
        yield pair


def _told(pairs: Iterable[CallPair], work: ComparingPlan) -> Iterator[CallPair]:
    """All calls before the one that is told have been judged."""
    is_told = work.first is None
    for pair in pairs:
        if not is_told and pair.judgement.verdict in (Verdict.PROGRAM, Verdict.FAULT):
            assert work.first is not None
            work.first(pair)
            is_told = True
        yield pair


def _differs(difference: PairDifference) -> bool:
    """As far as is known: of what was kept in part, the statistics tell of the whole."""
    if difference.mine.part is not None and distance_of(difference):
        return True
    return difference.metrics is not None and not difference.metrics.is_equal


_IN_PART = Text(
    "its large tensors were recorded in part: {slices} slices were judged",
    "其大张量只保留了一部分：判定了 {slices} 个切片",
)
_ONLY_IN_PART = Text(
    "its large tensors were recorded in part, so it can't be recomputed",
    "其大张量只保留了一部分，无法据此重新计算",
)


def _by_what_is_kept(
    by_reference: Callable[[CallPair], Judgement], mine: Record, golden: Record | None
) -> Callable[[CallPair], Judgement]:
    """Modules can't be computed again, nor some calls of which tensors were kept in part."""

    def judge(pair: CallPair) -> Judgement:
        call = pair.mine
        assert call is not None
        if is_watched(call):
            return judge_by_figures(pair)
        return _judge_part(pair, mine, golden) if has_parts(call) else by_reference(pair)

    return judge


def _judge_part(pair: CallPair, mine: Record, golden: Record | None) -> Judgement:
    found = None
    if importlib.util.find_spec("torch") is not None:
        from torchferry.accuracy.judge.in_part import judge_in_part

        found = judge_in_part(pair, mine, golden)
    if found is not None and not found.why:
        found = replace(found, why=_IN_PART.format(slices=_slices(pair)))
    if found is None and pair.golden is None:
        return Judgement(Verdict.UNKNOWN, why=_ONLY_IN_PART)
    return with_other_slices(found or judge_by_figures(pair), pair)


def _slices(pair: CallPair) -> int:
    return max(each.part.slices for each in _tensors_of(pair.mine) if each.part is not None)


def _listed(ranks: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(ranks)))


# Measures pairs of tensors of two records: from the mapped files, in pieces. No torch.
#
# Any number of threads may ask at once: the kernels let the others run.

Array = np.ndarray[Any, Any]

WIDTH = 32  # signs of a picture
# What may be held of the files before it is given back: the system counts mapped pages as memory of this process.
_HELD_BYTES = 1 << 27
_REORDERED = 1 << 18  # elements that are put in another order at a time
_REMEMBERED = 1 << 13  # pairs of contents; what is not used again soon is measured again
NO_CONTENTS, OTHER_SHAPE, OTHER_SORT = "statistics", "shape", "dtype"  # why there are no figures


_Measured = tuple[Metrics, str]  # with a picture of where the differences lie


class Figures:
    """Differences of the tensors of two records."""

    def __init__(self, mine: Record, golden: Record) -> None:
        self._mine, self._golden = mine, golden
        self._found: dict[tuple[object, ...], _Measured] = {}  # the last ones
        self._earlier: dict[tuple[object, ...], _Measured] = {}  # those before
        self._held = 0
        self._lock = threading.Lock()

    def difference(self, mine: TensorRecord, golden: TensorRecord) -> PairDifference:
        """How far mine is from golden, and where; positions are those of golden's elements in its file."""
        one, other = mine.kept_part, golden.kept_part
        if one is not None and other is not None and _have_same_slices(mine, golden):
            return replace(self.difference(one, other), mine=mine, golden=golden)
        reason = _obstacle(mine, golden)
        if reason:
            return PairDifference(mine, golden, None, reason=reason)
        # in files that another tool has rewritten, contents alone tell tensors apart
        key = (mine.offset, mine.content, *_layout(mine), golden.offset, golden.content, *_layout(golden))
        found = self._found.get(key) or self._earlier.get(key)
        if found is None:
            try:
                found = self._measure(mine, golden)
            except UnreadableTensorError as error:
                return PairDifference(mine, golden, None, reason=str(error))
        if len(self._found) >= _REMEMBERED:  # all of a long record would fill the memory
            self._found, self._earlier = {}, self._found
        self._found[key] = found
        return PairDifference(mine, golden, *found)

    def _measure(self, mine: TensorRecord, golden: TensorRecord) -> _Measured:
        measuring = Measuring(mine.dtype, golden.dtype)
        sums = measuring.sums(self._pieces(mine, golden))
        if measuring.is_right(sums):
            picture = NONE_WRONG * min(WIDTH, sums.count)
        else:
            picture = measuring.picture(self._pieces(mine, golden), sums.count, sums.golden_rms, WIDTH)
        return metrics_of(sums, golden.dtype), picture

    def _pieces(self, mine: TensorRecord, golden: TensorRecord) -> Iterator[tuple[Array, Array]]:
        """Flat arrays of components that belong together, in the order in which golden lies in its file."""
        x, y = self._mine.array(mine), self._golden.array(golden)
        flat = iter([(x, y)])
        if _layout(mine)[1:] != _layout(golden)[1:]:
            flat = _blocks(*_in_golden_order(shaped(x, mine), shaped(y, golden)))
        for x_block, y_block in flat:
            for piece in pieces(x_block, y_block, mine.dtype, golden.dtype):
                yield piece
                self._count(piece[0].nbytes + piece[1].nbytes)

    def _count(self, nbytes: int) -> None:
        with self._lock:
            self._held += nbytes
            if self._held < _HELD_BYTES:
                return
            self._held = 0
        self._mine.release()
        self._golden.release()


def _have_same_slices(mine: TensorRecord, golden: TensorRecord) -> bool:
    same = mine.part is not None and golden.part is not None and mine.part[1:] == golden.part[1:]
    return same and mine.shape == golden.shape


def _obstacle(mine: TensorRecord, golden: TensorRecord) -> str:
    if mine.unread or golden.unread:
        return mine.unread or golden.unread
    if mine.shape != golden.shape:
        return OTHER_SHAPE
    if mine.dtype.startswith("complex") != golden.dtype.startswith("complex"):
        return OTHER_SORT
    if mine.offset is None or golden.offset is None:  # a view that nobody has read
        return NO_CONTENTS
    return ""


def _layout(tensor: TensorRecord) -> tuple[object, ...]:
    """Tensors in which all but the dtype is equal have their elements in the same order."""
    order = tensor.stride if tensor.is_dense else tuple(min(step, 1) for step in tensor.stride)
    return tensor.dtype, tensor.shape, tensor.is_dense, order


def _in_golden_order(mine: Array, golden: Array) -> tuple[Array, Array]:
    """Two arrays of one shape. What is repeated in both is taken once."""
    once = tuple(
        slice(0, 1) if x == y == 0 else slice(None) for x, y in zip(mine.strides, golden.strides, strict=True)
    )
    order = sorted(range(golden.ndim), key=lambda dimension: -golden.strides[dimension])
    return mine[once].transpose(order), golden[once].transpose(order)


def _blocks(mine: Array, golden: Array) -> Iterator[tuple[Array, Array]]:
    if mine.size <= _REORDERED or mine.ndim == 0:
        yield mine.reshape(-1), golden.reshape(-1)
        return
    inner = mine[0].size
    step = max(_REORDERED // inner, 1)
    for start in range(0, mine.shape[0], step):
        if inner > _REORDERED:
            yield from _blocks(mine[start], golden[start])
        else:
            yield mine[start : start + step].reshape(-1), golden[start : start + step].reshape(-1)
