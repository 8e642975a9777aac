"""What each rank does and compares, by name: all collectives with all data types and sizes, against NumPy."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from tests.emulate.collectives.hccl import (
    OPS,
    SUSPENDING,
    TYPES,
    Array,
    Communicator,
    Libraries,
    Message,
    raises,
)

# Elements: the last ones are more than a rank's place in the shared memory (1 MiB) holds, and no multiple of it.
SIZES = (1, 7, 1000, 300_001)
REDUCED = ("int8", "int16", "int32", "int64", "float16", "float32", "bfloat16")
MOVED = (*REDUCED, "uint8", "uint16", "uint32", "uint64", "float64")


@dataclass(frozen=True)
class Group:
    """What a check is given."""

    libraries: Libraries
    communicator: Communicator
    rank: int
    ranks: int
    folder: Path


def stored(type_: str) -> Any:
    return np.dtype("uint16" if type_ == "bfloat16" else type_)


def values(type_: str, count: int, rank: int) -> Array:
    """The same in every process: small numbers, so that a product stays in the type."""
    random = np.random.default_rng([count, rank, TYPES[type_]])
    if type_ == "bfloat16":
        return to_bfloat16(random.standard_normal(count).astype(np.float32))
    if stored(type_).kind == "f":
        return random.standard_normal(count).astype(stored(type_))
    return random.integers(0, 4, count).astype(stored(type_))


def from_bfloat16(bits: Array) -> Array:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def to_bfloat16(numbers: Array) -> Array:
    bits = numbers.view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def folded(arrays: list[Array], type_: str, op: str, owners: list[int] | None = None) -> Array:
    """The reduction in the order that a ring has, in float32 for the half types. `owners`: by element."""
    function = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[op]
    wide = [from_bfloat16(a) if type_ == "bfloat16" else a.astype(np.float32) for a in arrays]
    used = wide if type_ in ("float16", "bfloat16") else arrays
    count = len(arrays)

    def in_order(owner: int) -> Array:
        return reduce(function, [used[(owner - back) % count] for back in range(1, count + 1)])

    with np.errstate(over="ignore"):
        if owners is None:
            total = in_order(0)
        else:
            total = np.empty_like(used[0])
            for owner in set(owners):
                chosen = np.array(owners) == owner
                total[chosen] = in_order(owner)[chosen]
        return to_bfloat16(total) if type_ == "bfloat16" else total.astype(stored(type_))


def owners_of(count: int, size: int, ranks: int) -> list[int]:
    """Gloo's ring: which rank has the sum of an element first."""
    largest = size * max(1, (1 << 20) // size)
    segments = _up(max(_up(count * size, largest) // largest, ranks * 2), ranks)
    own = _up(_up(count * size, segments) // segments, size) // size * (segments // ranks)
    return [element // own for element in range(count)]


def _up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def same(got: Array, wanted: Array) -> None:
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got.view(np.uint8), wanted.view(np.uint8))


def check_size_and_rank(group: Group) -> None:
    assert group.communicator.number("HcclGetRankSize") == group.ranks
    assert group.communicator.number("HcclGetRankId") == group.rank
    assert group.communicator.name()
    assert group.communicator.number("HcclGetCommAsyncError") == 0


def check_all_reduce(group: Group) -> None:
    for type_ in REDUCED:
        for op in OPS:
            if op == "prod" and type_ in ("int16", "bfloat16"):
                continue
            for count in SIZES if op == "sum" else SIZES[1:2]:
                inputs = [values(type_, count, rank) for rank in range(group.ranks)]
                out = np.zeros(count, stored(type_))
                group.communicator.all_reduce(inputs[group.rank], out, type_, op)
                owners = owners_of(count, out.itemsize, group.ranks)
                same(out, folded(inputs, type_, op, owners))


def check_all_reduce_in_place(group: Group) -> None:
    inputs = [values("float32", 300_001, rank) for rank in range(group.ranks)]
    own = inputs[group.rank].copy()
    group.communicator.all_reduce(own, own, "float32")
    same(own, folded(inputs, "float32", "sum", owners_of(300_001, 4, group.ranks)))


def check_half_conversions(group: Group) -> None:
    """Every number of the half types plus zeros: nothing is lost on the way to float32 and back."""
    everything = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)
    for type_ in ("float16", "bfloat16"):
        given = everything.view(stored(type_))
        numbers = from_bfloat16(given) if type_ == "bfloat16" else given.astype(np.float32)
        given = given[np.isfinite(numbers) & (numbers != 0)]
        out = np.empty_like(given)
        group.communicator.all_reduce(given if group.rank == 0 else np.zeros_like(given), out, type_)
        same(out, given)


def check_half_rounding(group: Group) -> None:
    """Sums beyond the mantissa's end: to the nearest, to the even one, to infinity; once, not once for each rank."""
    near_one = np.ones(3, np.float16) + np.array([0, 2**-10, 3 * 2**-10], np.float16)
    given = np.concatenate([near_one, np.array([65504, -65504, 6e-8, 5e-4], np.float16)])
    tiny = np.array([2**-11] * 3 + [16, -15.9, 6e-8, 1e-7], np.float16)
    inputs = [given if rank == 0 else tiny for rank in range(group.ranks)]
    out = np.empty_like(given)
    group.communicator.all_reduce(inputs[group.rank], out, "float16")
    same(out, folded(inputs, "float16", "sum", owners_of(given.size, 2, group.ranks)))


def check_reduce(group: Group) -> None:
    for root in range(group.ranks):
        for count in SIZES:
            inputs = [values("float32", count, rank) for rank in range(group.ranks)]
            out = np.full(count, 5, np.float32)
            group.communicator.call(
                "HcclReduce", inputs[group.rank], out, count, TYPES["float32"], OPS["sum"], root
            )
            wanted = folded(inputs, "float32", "sum", owners_of(count, 4, group.ranks))
            same(out, wanted if group.rank == root else np.full(count, 5, np.float32))


def check_reduce_scatter(group: Group) -> None:
    for type_ in REDUCED:
        for count in SIZES if type_ == "float32" else SIZES[:2]:
            inputs = [values(type_, count * group.ranks, rank) for rank in range(group.ranks)]
            out = np.zeros(count, stored(type_))
            group.communicator.call(
                "HcclReduceScatter", inputs[group.rank], out, count, TYPES[type_], OPS["sum"]
            )
            part = slice(group.rank * count, (group.rank + 1) * count)
            same(out, folded([one[part] for one in inputs], type_, "sum", [group.rank] * count))


def check_reduce_scatter_v(group: Group) -> None:
    counts = np.array([3 * rank for rank in range(group.ranks)], np.uint64)  # of rank 0 nothing
    offsets = np.cumsum(counts, dtype=np.uint64) - counts
    inputs = [values("float32", int(counts.sum()) + 1, rank) for rank in range(group.ranks)]
    count, begin = int(counts[group.rank]), int(offsets[group.rank])
    out = np.zeros(count, np.float32)
    group.communicator.call(
        "HcclReduceScatterV", inputs[group.rank], counts, offsets, out, count, TYPES["float32"], OPS["sum"]
    )
    part = [one[begin : begin + count] for one in inputs]
    same(out, folded(part, "float32", "sum", [group.rank] * count))


def check_broadcast(group: Group) -> None:
    for root in range(group.ranks):
        for type_ in MOVED:
            for count in SIZES if type_ == "uint8" else SIZES[1:2]:
                data = values(type_, count, group.rank)
                group.communicator.call("HcclBroadcast", data, count, TYPES[type_], root)
                same(data, values(type_, count, root))


def check_broadcast_larger_than_all_slots(group: Group) -> None:
    count = (group.ranks << 20) + 5
    data = values("uint8", count, group.rank)
    group.communicator.call("HcclBroadcast", data, count, TYPES["uint8"], group.ranks - 1)
    same(data, values("uint8", count, group.ranks - 1))


def check_scatter(group: Group) -> None:
    for count in SIZES:
        root = group.ranks - 1
        whole = values("int64", count * group.ranks, root)
        out = np.zeros(count, np.int64)
        given = whole if group.rank == root else None
        group.communicator.call("HcclScatter", given, out, count, TYPES["int64"], root)
        same(out, whole[group.rank * count : (group.rank + 1) * count])


def check_all_gather(group: Group) -> None:
    for type_ in MOVED:
        for count in SIZES if type_ == "float64" else SIZES[1:2]:
            out = np.zeros(count * group.ranks, stored(type_))
            own = values(type_, count, group.rank)
            group.communicator.call("HcclAllGather", own, out, count, TYPES[type_])
            same(out, np.concatenate([values(type_, count, rank) for rank in range(group.ranks)]))


def check_all_gather_in_place(group: Group) -> None:
    count = 300_001
    out = np.zeros(count * group.ranks, np.float32)
    own = out[group.rank * count : (group.rank + 1) * count]
    own[:] = values("float32", count, group.rank)
    group.communicator.call("HcclAllGather", own, out, count, TYPES["float32"])
    same(out, np.concatenate([values("float32", count, rank) for rank in range(group.ranks)]))


def check_all_gather_v(group: Group) -> None:
    counts = np.array([300_001 * rank for rank in range(group.ranks)], np.uint64)
    offsets = np.cumsum(counts, dtype=np.uint64) - counts
    own = values("float32", int(counts[group.rank]), group.rank)
    out = np.zeros(int(counts.sum()) or 1, np.float32)
    group.communicator.call("HcclAllGatherV", own, own.size, out, counts, offsets, TYPES["float32"])
    wanted = [values("float32", int(counts[rank]), rank) for rank in range(group.ranks)]
    same(out[: int(counts.sum())], np.concatenate(wanted))


def check_all_to_all(group: Group) -> None:
    for type_ in MOVED:
        for count in SIZES if type_ == "float32" else SIZES[1:2]:
            number = TYPES[type_]
            sent = values(type_, count * group.ranks, group.rank)
            out = np.zeros_like(sent)
            group.communicator.call("HcclAlltoAll", sent, count, number, out, count, number)
            part = slice(group.rank * count, (group.rank + 1) * count)
            wanted = [values(type_, count * group.ranks, rank)[part] for rank in range(group.ranks)]
            same(out, np.concatenate(wanted))


def check_all_to_all_v(group: Group) -> None:
    """Rank a sends (a + 1) * b elements to rank b: to rank 0 nothing."""
    matrix = np.array(
        [[(a + 1) * b * 40_000 for b in range(group.ranks)] for a in range(group.ranks)], np.uint64
    )
    sent, received = matrix[group.rank].copy(), matrix[:, group.rank].copy()
    data = [values("float32", int(matrix[rank].sum()), rank) for rank in range(group.ranks)]
    begins = [np.concatenate([[0], np.cumsum(row)]).astype(int) for row in matrix]
    wanted = [
        data[rank][begins[rank][group.rank] : begins[rank][group.rank + 1]] for rank in range(group.ranks)
    ]
    number = TYPES["float32"]
    out = np.zeros(int(received.sum()), np.float32)
    offsets = [np.cumsum(row, dtype=np.uint64) - row for row in (sent, received)]
    own = data[group.rank] if sent.any() else None
    target = out if out.size else None
    group.communicator.call(
        "HcclAlltoAllV", own, sent, offsets[0], number, target, received, offsets[1], number
    )
    same(out, np.concatenate(wanted))
    out[:] = 0
    group.communicator.call("HcclAlltoAllVC", own, matrix.copy(), number, target, number)
    same(out, np.concatenate(wanted))


def check_ring_of_messages(group: Group) -> None:
    """Everybody sends first, less than a channel holds."""
    right, left = (group.rank + 1) % group.ranks, (group.rank - 1) % group.ranks
    out = np.zeros(1000, np.float32)
    group.communicator.send(values("float32", 1000, group.rank), right)
    group.communicator.receive(out, left)
    same(out, values("float32", 1000, left))


def check_large_messages(group: Group) -> None:
    """More than a channel holds: both directions on streams of their own."""
    right, left = (group.rank + 1) % group.ranks, (group.rank - 1) % group.ranks
    streams = [group.libraries.stream() for _ in range(2)]
    for count in (1, 3_000_001):
        out = np.zeros(count, np.float32)
        given = values("float32", count, group.rank)
        group.communicator.send(given, right, stream=streams[0])
        group.communicator.receive(out, left, stream=streams[1])
        for stream in streams:
            stream.wait()
        same(out, values("float32", count, left))


def check_batch_of_messages(group: Group) -> None:
    """To and from everybody, itself too, twice, in one batch; more than the channels hold."""
    counts = (400_001, 3)
    sent = [
        [values("float32", count, 100 * group.rank + peer) for count in counts] for peer in range(group.ranks)
    ]
    got = [[np.zeros(count, np.float32) for count in counts] for _ in range(group.ranks)]
    messages = [Message(array, peer, True) for peer, arrays in enumerate(sent) for array in arrays]
    messages += [Message(array, peer, False) for peer, arrays in enumerate(got) for array in arrays]
    group.communicator.batch(messages)
    for peer, arrays in enumerate(got):
        for count, array in zip(counts, arrays, strict=True):
            same(array, values("float32", count, 100 * peer + group.rank))


def check_group_of_messages(group: Group) -> None:
    """What is sent and received between HcclGroupStart and HcclGroupEnd goes side by side on one stream."""
    right, left = (group.rank + 1) % group.ranks, (group.rank - 1) % group.ranks
    out = np.zeros(3_000_001, np.float32)
    given = values("float32", out.size, group.rank)
    communicator, stream = group.communicator, group.communicator.stream
    group.libraries.hccl("HcclGroupStart")
    communicator.send(given, right, stream=stream)
    communicator.receive(out, left, stream=stream)
    group.libraries.hccl("HcclGroupEnd")
    stream.wait()
    same(out, values("float32", out.size, left))


def check_nothing_to_move(group: Group) -> None:
    empty, number = np.zeros(0, np.float32), TYPES["float32"]
    group.communicator.all_reduce(empty, empty, "float32")
    group.communicator.call("HcclBroadcast", None, 0, number, 0)
    group.communicator.call("HcclAllGather", None, None, 0, number)
    group.communicator.send(empty, 0)
    zeros = np.zeros(group.ranks, np.uint64)
    group.communicator.call("HcclAlltoAllV", None, zeros, zeros, number, None, zeros, zeros, number)


def check_barrier(group: Group) -> None:
    mark = group.folder / f"before-{group.rank}"
    mark.touch()
    group.communicator.barrier()
    assert all((group.folder / f"before-{rank}").exists() for rank in range(group.ranks))


def check_streams_in_opposite_order(group: Group) -> None:
    """Two communicators, each on its stream: every second rank begins with the other one."""
    others = group.communicator.split(list(range(group.ranks)), 7, group.rank)
    inputs = [values("float32", 50_000, rank) for rank in range(group.ranks)]
    outs = [np.zeros(50_000, np.float32) for _ in range(2)]
    pair = list(zip((group.communicator, others), outs, strict=True))
    for communicator, out in reversed(pair) if group.rank % 2 else pair:
        communicator.all_reduce(inputs[group.rank], out, "float32", stream=communicator.stream)
    for communicator, out in pair:
        communicator.stream.wait()
        same(out, folded(inputs, "float32", "sum", owners_of(50_000, 4, group.ranks)))
    others.destroy()


def check_part_of_the_ranks(group: Group) -> None:
    """Odd and even ranks apart."""
    members = list(range(group.rank % 2, group.ranks, 2))
    part = group.communicator.split(members, 8 + group.rank % 2, members.index(group.rank))
    assert part.number("HcclGetRankSize") == len(members)
    assert part.name() == f"{group.communicator.name()}_sub_{8 + group.rank % 2}"
    inputs = [values("int32", 10, rank) for rank in members]
    out = np.zeros(10, np.int32)
    part.all_reduce(inputs[members.index(group.rank)], out, "int32")
    same(out, sum(inputs[1:], inputs[0]))
    part.destroy()


def check_suspended(group: Group) -> None:
    data = np.zeros(1, np.float32)
    group.libraries.hccl("HcclCommSuspend", group.communicator.handle)
    with raises(SUSPENDING, "is suspended"):
        group.communicator.all_reduce(data, data, "float32")
    group.libraries.hccl("HcclCommResume", group.communicator.handle)
    group.communicator.barrier()


def check_nothing_stays_open(group: Group) -> None:
    def shared() -> int:
        files = Path("/proc/self/fd").iterdir()
        return sum("torchferry-hccl" in os.path.realpath(file) for file in files)

    before = shared()
    for number in range(20):
        other = group.communicator.split(list(range(group.ranks)), 100 + number, group.rank)
        other.barrier()
        other.destroy()
    assert shared() == before


def check_rank_table(group: Group) -> None:
    devices = ",".join(f'{{"device_id": "{rank}", "rank_id": "{rank}"}}' for rank in range(group.ranks))
    table = group.folder / f"table-{group.rank}.json"
    table.write_text(
        f'{{"status": "completed", "server_list": [{{"server_id": "a", "device": [{devices}]}}]}}'
    )
    other = group.libraries.communicators_of_table(table, group.rank)
    assert other.name() == "hccl_world_group"
    other.barrier()
    other.destroy()
