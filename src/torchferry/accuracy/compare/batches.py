"""Which samples of one batch each of several processes has, found by the bytes of the batch's rows. No torch."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from torchferry.accuracy.compare.layouts import Array, SampleRows
from torchferry.text import Text

_NAMED = 4  # samples that a sentence lists
_CONTIGUOUS = Text("each rank takes the next consecutive block of samples", "各 rank 依次取连续的一段样本")
_STRIDED = Text(
    "samples are dealt out one by one, as by DistributedSampler",
    "样本逐个轮流分给各 rank（DistributedSampler 的方式）",
)
_OTHER = Text(
    "in another order, found by comparing the bytes of the samples", "以其他顺序划分（按样本的字节找到）"
)
_WHOLE = Text("every rank has the whole batch", "每个 rank 都有整个批次")
_MISSING = Text(
    "on rank {rank}, {count} of {total} samples are not in the other side's batch: other data, "
    "another order of samples, or random augmentation",
    "rank {rank} 的 {total} 个样本中有 {count} 个不在对方的批次里：数据或样本顺序不同，或样本经过随机增强",
)
_TWICE = Text(
    "sample {samples} of the batch is on several ranks ({ranks})",
    "批次中第 {samples} 个样本同时在多个 rank 上（{ranks}）",
)
_LEFT = Text("; sample {samples} is on no rank", "；第 {samples} 个样本不在任何 rank 上")
_SIZES = Text(
    "the ranks have {many} samples in total, the other side has {few}: the global batches differ",
    "各 rank 共有 {many} 个样本，对方有 {few} 个：全局批次不同",
)


@dataclass(frozen=True)
class BatchDivision:
    """How a batch is divided among ranks."""

    rows: SampleRows
    said: Text  # how
    problem: Text | None = None  # why it is no division of the other side's batch
    rank: int | None = None  # whose samples are wrong


def divided(many: Sequence[Array], few: Sequence[Array], ranks: Sequence[int]) -> BatchDivision | None:
    """How the batch of the few is divided among the many, which are of these ranks; None: these tensors tell nothing."""
    for axis in (0, 1):
        if any(each.ndim <= axis for each in (*many, *few)):
            return None
        found = _along(
            [np.moveaxis(each, axis, 0) for each in many], [np.moveaxis(each, axis, 0) for each in few], ranks
        )
        if found is not None:
            return found
    return None


def _along(many: Sequence[Array], few: Sequence[Array], labels: Sequence[int]) -> BatchDivision | None:
    if len({each.shape[1:] for each in (*many, *few)}) > 1:
        return None
    whole = [row.tobytes() for each in few for row in np.ascontiguousarray(each)]
    if all(np.array_equal(few[0], each) for each in few[1:]):  # all of them have the whole batch
        whole = whole[: len(few[0])]
    if 2 * len(set(whole)) <= len(whole) and len(whole) > 1:
        return None  # rows that repeat, as labels do
    ranks = [[row.tobytes() for row in np.ascontiguousarray(each)] for each in many]
    if all(rank == whole for rank in ranks):
        return BatchDivision(SampleRows(), _WHOLE)
    return _found(ranks, whole, labels)


def _found(ranks: Sequence[Sequence[bytes]], whole: Sequence[bytes], labels: Sequence[int]) -> BatchDivision:
    places: dict[bytes, list[int]] = defaultdict(list)
    for at, row in enumerate(whole):
        places[row].append(at)
    taken: Counter[bytes] = Counter()
    of_ranks: list[list[int]] = []
    holders: dict[int, list[int]] = defaultdict(list)
    for rank, rows in zip(labels, ranks, strict=True):
        missing = sum(row not in places for row in rows)
        if missing:
            problem = _MISSING.format(rank=rank, count=missing, total=len(rows))
            return BatchDivision(SampleRows(), _OTHER, _of_sizes(ranks, whole) or problem, rank)
        found = []
        for row in rows:
            known = places[row]
            at = known[min(taken[row], len(known) - 1)]
            taken[row] += 1
            holders[at].append(rank)
            found.append(at)
        of_ranks.append(found)
    rows_found = SampleRows(tuple(np.array(each, dtype=np.int64) for each in of_ranks), len(whole))
    twice = [at for at, held in sorted(holders.items()) if len(held) > 1]
    if twice:
        problem = _TWICE.format(
            samples=_listed(twice), ranks=_listed(sorted({rank for at in twice for rank in holders[at]}))
        )
        left = [at for at in range(len(whole)) if at not in holders]
        more = _LEFT.format(samples=_listed(left)) if left else Text("", "")
        problem = Text(problem.en + more.en, problem.zh + more.zh)
        return BatchDivision(rows_found, _OTHER, problem, holders[twice[0]][-1])
    return BatchDivision(rows_found, _named(of_ranks), _of_sizes(ranks, whole))


def _of_sizes(ranks: Sequence[Sequence[bytes]], whole: Sequence[bytes]) -> Text | None:
    count = sum(map(len, ranks))
    return None if count == len(whole) else _SIZES.format(many=count, few=len(whole))


def _named(of_ranks: Sequence[Sequence[int]]) -> Text:
    if [at for each in of_ranks for at in each] == list(range(sum(map(len, of_ranks)))):
        return _CONTIGUOUS
    if all(
        list(each) == list(range(rank, rank + len(of_ranks) * len(each), len(of_ranks)))
        for rank, each in enumerate(of_ranks)
    ):
        return _STRIDED
    return _OTHER


def _listed(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:_NAMED]))
    return shown + (" ..." if len(numbers) > _NAMED else "")
