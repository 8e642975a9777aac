"""How the toolkit calls a collective, and what was moved."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from zlib import crc32

from torchferry.emulate.cann.msprof.records import StreamTask


@dataclass(frozen=True)
class Collective:
    """One that was done."""

    name: str  # hcom_allReduce__944_0_1
    type: str  # hcom_allReduce_
    group: str
    rank: int
    ranks: int
    count: int  # of elements
    dtype: str
    bytes: int
    peers: tuple[int, ...]  # of messages to single ranks; empty: all

    @property
    def links(self) -> list[tuple[int, int]]:
        """From which rank to which, as far as this one takes part."""
        others = self.peers or tuple(rank for rank in range(self.ranks) if rank != self.rank)
        return [(self.rank, other) for other in others]


def collective_of(task: StreamTask) -> Collective:
    """What was recorded: name of the group, rank, ranks, elements, type, bytes, peers."""
    group, rank, ranks, count, dtype, size, peers = task.details.rsplit("|", 6)
    type_ = type_of(task.function)
    return Collective(
        f"{type_}_{crc32(group.encode()) % 1000:03d}_{task.number}_1",
        type_,
        group,
        int(rank),
        int(ranks),
        int(count),
        dtype,
        int(size),
        tuple(int(peer) for peer in peers.split(",") if peer),
    )


@cache
def type_of(function: str) -> str:
    """hcom_allReduce_ for HcclAllReduce."""
    plain = function.removeprefix("Hccl")
    plain = {
        "Recv": "Receive",
        "AlltoAll": "Alltoall",
        "AlltoAllV": "Alltoallv",
        "AlltoAllVC": "Alltoallvc",
    }.get(plain, plain)
    return f"hcom_{plain[:1].lower()}{plain[1:]}_"
