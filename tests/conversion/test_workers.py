"""Work in several processes: all of it is done; what ends early ends at once, whatever a process is busy with."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from torchferry.conversion.workers import WorkerEndedError, map_in_processes

LARGE = (
    1 << 24
)  # bytes of a result: no pipe holds them, so a process is in the middle of sending them for a while


def squaring() -> Callable[[int], int]:
    return lambda number: number * number


def sending_large(ends_at: int) -> Callable[[int], bytes]:
    def work(number: int) -> bytes:
        if number == ends_at:
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)  # kills this process while it sends
        return b"x" * LARGE

    return work


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    yield
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("count", [0, 1, 3, 50])
def test_every_item_has_its_result(count: int) -> None:
    assert sorted(map_in_processes(squaring, range(count), 3)) == [number**2 for number in range(count)]


def test_a_process_that_is_killed_while_it_sends_is_noticed() -> None:
    with pytest.raises(WorkerEndedError):
        for _ in map_in_processes(partial(sending_large, 0), range(40), 2):
            time.sleep(0.02)


def test_a_process_that_is_killed_while_it_works_is_noticed() -> None:
    work: Callable[[], Callable[[int], None]] = lambda: lambda number: os.kill(os.getpid(), signal.SIGKILL)  # noqa: E731
    with pytest.raises(WorkerEndedError):
        list(map_in_processes(work, range(4), 2))


def test_who_has_seen_enough_waits_for_nobody() -> None:
    results = map_in_processes(partial(sending_large, -1), range(200), 2)
    assert len(next(results)) == LARGE
    workers = multiprocessing.active_children()
    for worker in workers:  # as a signal's handler does
        worker.kill()
    results.close()  # type: ignore[attr-defined]
    assert len(workers) == 2 and not any(worker.is_alive() for worker in workers)
