"""What each rank does where something goes wrong, by name."""

from __future__ import annotations

import os
import signal
import time

import numpy as np

from tests.emulate.collectives.checks import Group
from tests.emulate.collectives.hccl import (
    REMOTE,
    STREAM_EXCEPTION,
    STREAM_TIMEOUT,
    TYPES,
    raises,
)


def _all_reduce(group: Group, count: int = 10) -> None:
    data = np.ones(count, np.float32)
    group.communicator.all_reduce(data, data, "float32")


def _dead_peer(group: Group, text: str) -> None:
    with raises(STREAM_TIMEOUT, "EI0002", "Waiting peer rank: 1", group.communicator.name(), text):
        _all_reduce(group)
    assert group.communicator.number("HcclGetCommAsyncError") == REMOTE
    with raises(STREAM_EXCEPTION, "Waiting peer rank: 1"):  # at once, the second time
        _all_reduce(group)


def killed_peer(group: Group) -> None:
    _all_reduce(group)
    if group.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    _dead_peer(group, "its process has exited")
    if group.ranks > 2:
        return
    others = group.libraries.communicator(group.libraries.root_info(), 1, 0)  # the process lives on
    data = np.ones(3, np.float32)
    others.all_reduce(data, data, "float32")


def killed_sender(group: Group) -> None:
    if group.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    with raises(STREAM_TIMEOUT, "EI0002", "Waiting peer rank: 1", "Recv_", "its process has exited"):
        group.communicator.receive(np.zeros(10, np.float32), 1)


def last_words(group: Group) -> None:
    """What a process has sent before it died arrives."""
    if group.rank == 1:
        group.communicator.send(np.full(10, 3, np.float32), 0)
        os.kill(os.getpid(), signal.SIGKILL)
    out = np.zeros(10, np.float32)
    group.communicator.receive(out, 1)
    assert (out == 3).all()


def destroyed_peer(group: Group) -> None:
    if group.rank == 1:
        group.communicator.destroy()
        while not (group.folder / "told").exists():
            time.sleep(0.01)
        os._exit(0)
    _dead_peer(group, "it has destroyed its communicator")
    (group.folder / "told").touch()


def slow_peer(group: Group) -> None:
    """HCCL_EXEC_TIMEOUT is a second here."""
    if group.rank == 1:
        while not (group.folder / "told").exists():
            time.sleep(0.01)
        with raises(STREAM_EXCEPTION, "EI0002"):
            _all_reduce(group)
        return
    with raises(STREAM_TIMEOUT, "EI0002", "Waiting peer rank: 1", "HCCL_EXEC_TIMEOUT (1 s)"):
        _all_reduce(group)
    (group.folder / "told").touch()


def other_count(group: Group) -> None:
    mine, others = (10, 20) if group.rank == 0 else (20, 10)
    wanted = f"parameter count, local rank {mine} (rank {group.rank}), remote rank {others} (rank {1 - group.rank})"
    with raises(STREAM_EXCEPTION, "EI0005", "inconsistent between ranks", "HcclAllReduce", wanted):
        _all_reduce(group, mine)
    assert group.communicator.number("HcclGetCommAsyncError") == REMOTE


def other_type(group: Group) -> None:
    data = np.zeros(8, np.float32)
    with raises(STREAM_EXCEPTION, "EI0005", "parameter dataType", "float16", "float32"):
        group.communicator.all_reduce(data, data, ("float32", "float16")[group.rank])


def other_operation(group: Group) -> None:
    data, out = np.zeros(8, np.float32), np.zeros(16, np.float32)
    with raises(STREAM_EXCEPTION, "EI0005", "parameter cmdType", "HcclAllReduce", "HcclAllGather"):
        if group.rank == 0:
            group.communicator.all_reduce(data, data, "float32")
        else:
            group.communicator.call("HcclAllGather", data, out, 8, TYPES["float32"])


def other_root(group: Group) -> None:
    data = np.zeros(8, np.float32)
    with raises(STREAM_EXCEPTION, "EI0005", "parameter root"):
        group.communicator.call("HcclBroadcast", data, 8, TYPES["float32"], group.rank)


def other_split(group: Group) -> None:
    """Rank 0 sends 3 to rank 1, which waits for 4."""
    sent = np.array([[1, 3], [1, 1]], np.uint64)[group.rank].copy()
    received = np.array([[1, 1], [4, 1]], np.uint64)[group.rank].copy()
    offsets = np.zeros(2, np.uint64)
    data, out, number = np.zeros(8, np.float32), np.zeros(8, np.float32), TYPES["float32"]
    with raises(STREAM_EXCEPTION, "EI0005", "Counts, local rank"):
        group.communicator.call("HcclAlltoAllV", data, sent, offsets, number, out, received, offsets, number)


def other_message(group: Group) -> None:
    if group.rank == 0:
        group.communicator.send(np.zeros(10, np.float32), 1)
        return
    with raises(STREAM_EXCEPTION, "EI0005", "80 bytes (received by rank 1)", "40 bytes (sent by rank 0)"):
        group.communicator.receive(np.zeros(20, np.float32), 0)
