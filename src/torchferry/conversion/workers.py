"""Work divided among processes. There are no threads and no shared queues: ending it never has to wait for anything."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

Item = TypeVar("Item")
Result = TypeVar("Result")
_TOGETHER = 4  # items; one at a time, processes would wait for each other's messages


class WorkerEndedError(Exception):
    """A process ended in the middle of its work."""


def map_in_processes(
    make_work: Callable[[], Callable[[Item], Result]], items: Sequence[Item], jobs: int
) -> Iterator[Result]:
    """The results in the order in which they are ready. Each process makes what works for it."""
    import multiprocessing
    from multiprocessing.connection import wait

    chunks = (items[start : start + _TOGETHER] for start in range(0, len(items), _TOGETHER))
    workers: dict[Connection, BaseProcess] = {}
    try:
        for chunk in islice(chunks, jobs):
            ours, theirs = multiprocessing.Pipe()
            workers[ours] = multiprocessing.Process(target=_serve, args=(theirs, make_work), daemon=True)
            workers[ours].start()
            theirs.close()  # so that the end of the process is the end of what it sends
            _send(ours, chunk)
        busy = list(workers)
        while busy:
            for each in wait(busy):
                connection = next(worker for worker in busy if worker is each)
                yield from _receive(connection)
                following = next(chunks, None)
                if following is None:
                    busy.remove(connection)
                else:
                    _send(connection, following)
    finally:
        for connection, worker in workers.items():
            worker.kill()
            worker.join()
            connection.close()


def _send(connection: Connection, chunk: Sequence[object]) -> None:
    try:
        connection.send(chunk)
    except OSError:
        raise WorkerEndedError from None


def _receive(connection: Connection) -> list[Any]:
    try:
        return connection.recv()  # type: ignore[no-any-return]
    except (EOFError, OSError):
        raise WorkerEndedError from None


def _serve(connection: Connection, make_work: Callable[[], Callable[[Item], Result]]) -> None:
    """In a process of its own, until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one who asks ends it
    try:
        work = make_work()
        while True:
            connection.send([work(item) for item in connection.recv()])
    except (EOFError, OSError):
        os._exit(1)


# Room for code that is nested more deeply than Python's own stack lets us follow.

# Long chains (`a + b + ...`, `elif`) are nested in the tree. Python compiles a few thousand levels; each needs
# several calls of ours, and in Python 3.10 each call takes about a kilobyte of the stack.
_LIMIT = 200_000
_STACK = 512 << 20  # address space; only what is used is taken from memory


def with_deep_stack(work: Callable[[], Result]) -> Result:
    """What `work` answers, or raises, in a thread that may recurse far more deeply than this one."""
    results: list[Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    limit, size = sys.getrecursionlimit(), threading.stack_size(_STACK)
    sys.setrecursionlimit(_LIMIT)
    try:
        thread = threading.Thread(target=run, daemon=True)  # must not keep a process that was interrupted
        try:
            thread.start()
        except RuntimeError:  # where the address space is limited
            raise RecursionError("nested too deeply, and there is no room for a larger stack") from None
        thread.join()
    finally:
        threading.stack_size(size)
        sys.setrecursionlimit(limit)
    if errors:
        raise errors[0]
    return results[0]
