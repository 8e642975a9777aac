"""Writes a file in the background: memory that is filled at one end while a thread writes what is at the other."""

from __future__ import annotations

import ctypes
import errno
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

Buffer = bytes | bytearray | memoryview
_AT_ONCE = 1 << 24  # bytes of one system call: what is written is room again
_READ, _WRITE = 0x100, 0x200  # PyBUF_READ, PyBUF_WRITE
_memory = ctypes.pythonapi.PyMemoryView_FromMemory
_memory.restype = ctypes.py_object
_memory.argtypes = (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)


def memory_at(address: int, nbytes: int, *, writable: bool = False) -> memoryview:
    """Memory of this process; it must stay there while it is looked at."""
    view: memoryview = _memory(address, nbytes, _WRITE if writable else _READ)
    return view


class Waitable(Protocol):
    """What tells that a copy has come, as an event of a device does."""

    def query(self) -> bool:
        """Whether it has."""

    def synchronize(self) -> object:
        """Wait for it."""


# Copies the bytes from the second number to the third to the place in the ring that the first says; answers what tells
# that they are there, None if they are.
Copy = Callable[[int, int, int], Waitable | None]


class RingMemory(Protocol):
    """Memory that bytes go through."""

    @property
    def address(self) -> int:
        """Where it begins."""

    @property
    def nbytes(self) -> int:
        """How large it is."""


class BackgroundWriter:
    """Appends to a file from a position on. One thread at a time may put bytes in; an error comes out there, too."""

    def __init__(self, descriptor: int, position: int, memory: RingMemory) -> None:
        self._descriptor = descriptor
        self._memory = memory
        self._view = memory_at(memory.address, memory.nbytes)
        self.written = position  # all bytes before it are in the file
        self._filled = position
        self._coming: deque[tuple[int, Waitable]] = deque()  # where a copy begins that may be under way
        self._patches: deque[tuple[int, bytes]] = (
            deque()
        )  # for the file's first bytes, once it reaches so far
        self._error: OSError | None = None
        self._is_closing = False
        lock = threading.Lock()
        self._work, self._room = threading.Condition(lock), threading.Condition(lock)
        self._thread = threading.Thread(target=self._run, name="torchferry record", daemon=True)
        self._thread.start()

    # What the program's threads do.

    def put(self, data: bytes) -> None:
        """Append bytes of the host; they are copied."""
        self.put_memory(ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0, len(data))

    def put_memory(self, address: int, nbytes: int) -> None:
        """The same of bytes that lie there now."""
        ring = self._memory.address

        def copy(place: int, start: int, stop: int) -> None:
            ctypes.memmove(ring + place, address + start, stop - start)

        self.fill(nbytes, copy)

    def fill(self, nbytes: int, copy: Copy) -> None:
        """Append so many bytes, which `copy` puts into the ring: in several pieces if there is no room for all."""
        start = 0
        while start < nbytes:
            place, room = self._wait_for_room(min(nbytes - start, self._memory.nbytes // 4))
            stop = min(nbytes, start + room)
            coming = copy(place, start, stop)
            with self._work:
                if coming is not None:
                    self._coming.append((self._filled, coming))
                self._filled += stop - start
                self._work.notify()
            start = stop

    def patch(self, data: bytes) -> None:
        """Write these as the file's first bytes when all that was put up to now is in the file."""
        with self._work:
            self._patches.append((self._filled, data))
            self._work.notify()

    def drain(self) -> None:
        """Wait until all is in the file."""
        with self._room:
            while self._error is None and (self.written < self._filled or self._patches):
                self._room.wait()
        self._raise()

    def close(self) -> None:
        """Write all that is there, and end the thread."""
        with self._work:
            self._is_closing = True
            self._work.notify()
        self._thread.join()

    def _wait_for_room(self, wanted: int) -> tuple[int, int]:
        """The next free place, and how much fits there in one piece: as much as is wanted, unless the ring ends."""
        size = self._memory.nbytes
        place = self._filled % size  # so that what is aligned in the file is aligned here
        wanted = min(wanted, size - place)
        with self._room:
            while self._error is None and self._filled + wanted - self.written > size:
                self._room.wait()
        self._raise()
        return place, wanted

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error

    # What the thread does.

    def _run(self) -> None:
        try:
            while self._write_some():
                pass
        except OSError as error:
            self._error = error
        except Exception as error:  # a device that failed says so to whoever waits for it
            self._error = OSError(errno.EIO, f"{type(error).__name__}: {error}".partition("\n")[0])
        with self._room:
            self._room.notify_all()

    def _write_some(self) -> bool:
        """Write what is there, up to a limit; whether to go on."""
        with self._work:
            while self.written == self._filled and not self._patches:
                if self._is_closing:
                    return False
                self._work.wait()
            start = self.written
            place = start % self._memory.nbytes
            stop = min(self._filled, start + _AT_ONCE, start + self._memory.nbytes - place)
            coming = []
            while self._coming and self._coming[0][0] < stop:
                coming.append(self._coming.popleft()[1])
        for each in reversed(coming):  # as a rule, the last one comes last
            if not each.query():
                each.synchronize()
        while start < stop:
            count = os.pwrite(self._descriptor, self._view[place : place + stop - start], start)
            start, place = start + count, place + count
            with self._room:
                self.written = start
                self._room.notify_all()
        self._apply_patches()
        return True

    def _apply_patches(self) -> None:
        while self._patches and self._patches[0][0] <= self.written:
            os.pwrite(self._descriptor, self._patches[0][1], 0)
            with self._room:
                self._patches.popleft()
                self._room.notify_all()
