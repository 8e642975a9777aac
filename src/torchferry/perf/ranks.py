"""The processes of one run beside each other: whether some wait for others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from torchferry.perf.model import Diagnosis, Evidence, TimePart
from torchferry.perf.run import Run
from torchferry.text import Text

ID = "unbalanced_ranks"
LEAST_SHARE = 0.05  # of a step, that the slowest takes longer than the average: less is noise between devices

_TITLE = Text("Some processes are slower than the others", "部分进程慢于其他进程")
_SUMMARY = Text(
    "Rank {rank} works {slowest:.1f} ms per step, the average is {mean:.1f} ms: the others wait for "
    "it for {share:.1%} of the time.",
    "rank {rank} 每步工作 {slowest:.1f} ms，平均为 {mean:.1f} ms：其他 rank 有 {share:.1%} 的时间在等待它。",
)
_LOADER = Text(
    "It waits longer for data than the others: check its disk, its cores and the data split.",
    "它等待数据的时间比其他 rank 长：请检查其磁盘、CPU 核与数据划分。",
)
_HOST = Text(
    "Its host calls operators more slowly: bind each process to its own cores, and check what else "
    "runs on them.",
    "它的主机下发算子较慢：为每个进程绑定各自的核，并检查这些核上的其他负载。",
)
_COMPUTE = Text(
    "It computes longer than the others: give every rank batches of the same size and length, and "
    "compare clocks and temperatures of the devices.",
    "它的计算时间比其他 rank 长：让各 rank 的批量和序列长度相同，并比较各设备的频率与温度。",
)
_BASIS = Text(
    "what the slowest process would save if all took the average",
    "若所有进程都为平均值，最慢者可节省的时间",
)
_RANK = Text("rank {number}", "rank {number}")
_PARTS = {
    TimePart.COMPUTE: Text("compute", "计算"),
    TimePart.COMMUNICATION: Text("communication", "通信"),
    TimePart.LOADER: Text("data", "等待数据"),
    TimePart.HOST: Text("host", "等待主机"),
}
_REMEDIES = ((TimePart.COMPUTE, _COMPUTE), (TimePart.LOADER, _LOADER), (TimePart.HOST, _HOST))


class _RankRun(NamedTuple):
    number: int
    source: str
    step: float  # seconds per step
    work: float  # of them without waiting for others
    parts: dict[TimePart, float]


def compare_ranks(runs: Sequence[Run]) -> Iterator[Diagnosis]:
    """Compare the processes of one run, by what each does in a step apart from communication."""
    ranks = [rank for at, run in enumerate(runs) if (rank := _rank(run, at)) is not None]
    # Processes that a program starts for other ends have no ranks of their own, and do not communicate.
    communicate = any(rank.parts.get(TimePart.COMMUNICATION) for rank in ranks)
    if len(ranks) < 2 or not communicate or len({rank.number for rank in ranks}) < len(ranks):
        return
    slowest = max(ranks, key=lambda rank: rank.work)
    mean = sum(rank.work for rank in ranks) / len(ranks)
    share = (slowest.work - mean) / slowest.step if slowest.step else 0.0
    if share < LEAST_SHARE:
        return
    summary = _SUMMARY.format(rank=slowest.number, slowest=slowest.work * 1e3, mean=mean * 1e3, share=share)
    # The remedy for the part in which the slowest is furthest behind.
    means = {part: sum(rank.parts.get(part, 0.0) for rank in ranks) / len(ranks) for part, _ in _REMEDIES}
    _, remedy = max(_REMEDIES, key=lambda each: slowest.parts.get(each[0], 0.0) - means[each[0]])
    evidence = tuple(_evidence(rank) for rank in sorted(ranks, key=lambda rank: -rank.work))
    yield Diagnosis(ID, _TITLE, summary, share, (remedy,), evidence, gain=share, gain_basis=_BASIS)


def _rank(run: Run, at: int) -> _RankRun | None:
    trace = run.trace
    if trace is None or not trace.window.total:
        return None
    steps = max(len(trace.steps), 1)
    parts = {part: moments.total / 1e9 / steps for part, moments in run.parts.items()}
    step = trace.seconds / steps
    work = step - parts.get(TimePart.COMMUNICATION, 0.0)
    return _RankRun(at if run.rank is None else run.rank, run.sources[0], step, work, parts)


def _evidence(rank: _RankRun) -> Evidence:
    times = [(name, f"{rank.parts.get(part, 0.0) * 1e3:.1f} ms") for part, name in _PARTS.items()]
    detail = Text(
        ", ".join(f"{name.en} {time}" for name, time in times),
        "，".join(f"{name.zh} {time}" for name, time in times),
    )
    share = rank.work / rank.step if rank.step else 0.0
    return Evidence(_RANK.format(number=rank.number), detail, rank.source, 1, rank.work, share)
