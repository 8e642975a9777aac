"""A record's file as chunks that are appended one after the other, behind HDF5's superblock.

A chunk is a header of 16 bytes (magic, kind, length), then its bytes, which start at a multiple of 64. So whatever is
in a file that was cut off can be found again by going from header to header. HDF5 itself sees only what the superblock
leads to; that is written last, whenever all it leads to is in the file.
"""

from __future__ import annotations

import contextlib
import errno
import os
import struct
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from enum import IntEnum
from pathlib import Path

from torchferry.accuracy.file.background import BackgroundWriter, Buffer, Copy, RingMemory
from torchferry.accuracy.file.hdf5 import INTERNAL_K, LEAF_K, UNDEFINED
from torchferry.accuracy.file.room import Room
from torchferry.errors import InputError, OutputError, not_writable, system_reason
from torchferry.files.aside import file_aside
from torchferry.text import Text, user_language

SIGNATURE = b"\x89HDF\r\n\x1a\n"
OURS = b"FERRYREC"  # behind the superblock: the file is in chunks
VERSION = 1
ALIGNMENT = 64
CHUNK_HEADER = struct.Struct("<4sIQ")
MAGIC = b"FRRY"
_SUPERBLOCK = struct.Struct("<8s4B4BHHI4Q QQII16x")
TRAILER = struct.Struct("<8sIIQQ")  # OURS, VERSION, 0, place and length of the index; 0: none yet
START = _SUPERBLOCK.size + TRAILER.size
_AT_ONCE = 512  # pieces in one system call
COPIED = 1 << 14  # what is smaller waits, as a copy, for the call that it belongs to
_WAITING = 1 << 20  # bytes that wait at most
_END = 1 << 12  # bytes that the end of a file takes at least
_ZEROS = [bytes(count) for count in range(ALIGNMENT + 1)]


class ChunkKind(IntEnum):
    """The kind of a chunk's contents."""

    HEADER = 1  # JSON: what the record is of
    DATA = 2  # bytes of a tensor, or a generator's state
    CALL = 3  # length of the JSON, address of the call's group, JSON, HDF5's objects
    GROUPS = 4  # HDF5's root and the groups of operators
    INDEX = 5  # where every call is
    PADDING = 6
    ROWS = 7  # statistics of contents
    CALLS = 8  # calls of a record of statistics
    CONTENTS = 9  # numbers of rows, for these calls
    SITES = 10  # JSON lines
    SIGNATURES = 11  # JSON lines
    SKETCHES = 12  # of the same contents as the rows

    @property
    def is_table(self) -> bool:
        """Whether it is of a record of statistics."""
        return self >= ChunkKind.ROWS


def payload_after(end: int) -> int:
    """Where the bytes of the next chunk start, if the last one ends there."""
    return -(-(end + CHUNK_HEADER.size) // ALIGNMENT) * ALIGNMENT


def superblock(root: int, end: int, index: int = 0, index_length: int = 0) -> bytes:
    """The first bytes of the file: HDF5's superblock (version 0), and ours."""
    ours = TRAILER.pack(OURS, VERSION, 0, index, index_length)
    versions = (0, 0, 0, 0, 0, 8, 8, 0)
    addresses = (0, UNDEFINED, end, UNDEFINED)
    return _SUPERBLOCK.pack(SIGNATURE, *versions, LEAF_K, INTERNAL_K, 0, *addresses, 0, root, 0, 0) + ours


_ENDS_HERE = Text(
    "{path}: {reason}; recording stops here, the program continues",
    "{path}：{reason}；记录到此为止，程序继续运行",
)


class ChunkFile:
    """Appends chunks; what can't be written ends the recording, and never the program.

    `lock` is held around everything that appends. A process that was forked from the one that opened the file
    leaves it alone (`is_mine`).
    """

    def __init__(self, path: Path, most: int | None = None) -> None:
        """`most`: so large it may become at most; None: as the disk allows."""
        self.path = path
        self.lock = threading.RLock()
        self.failed = ""  # why nothing more is written
        self.is_forked = False  # this process is not the one that opened it
        self.descriptor = _created(path)
        self._room = Room(self.descriptor, most)
        self.written = START  # where the last whole chunk in the file ends
        self.end = START  # with those that wait
        self._waiting: list[Buffer] = [bytes(START)]
        self._waits = START
        self.is_closed = False
        self._background: BackgroundWriter | None = None
        self._ends: deque[int] = (
            deque()
        )  # of pieces that are whole, and may still be on their way to the file
        self.when_forked: Callable[[], None] | None = None  # called in a process that was forked
        self.rescue: Callable[[str], None] | None = None  # completes the file as far as it goes, if it failed
        self.is_ending = False  # what is appended now makes the file whole
        self.spare = _END  # bytes that will be needed for that
        self._has_failed = False
        _files.add(self)

    @property
    def is_mine(self) -> bool:
        """Whether this process may write: it is no fork, the file is open and can be written to."""
        return not (self.failed or self.is_closed or self.is_forked)

    def add(self, kind: ChunkKind, data: Buffer, nbytes: int) -> int:
        """Append a chunk; what is small is copied and waits for `flush`."""
        if self.end + nbytes > self._room.sure and not self._has_room(nbytes):
            return payload_after(self.end)
        start = payload_after(self.end)
        head = _ZEROS[start - CHUNK_HEADER.size - self.end] + CHUNK_HEADER.pack(MAGIC, kind, nbytes)
        if nbytes > COPIED:
            self._write([*self._waiting, head, data], start + nbytes)
            return start
        self._waiting += (head, bytes(data))
        self._waits += len(head) + nbytes
        self.end = start + nbytes
        if self._waits > _WAITING or len(self._waiting) > _AT_ONCE - 8:
            self.flush()
        return start

    @property
    def is_in_background(self) -> bool:
        """Whether a thread writes what is appended."""
        return self._background is not None

    def write_in_background(self, memory: RingMemory) -> None:
        """From now on a thread writes, and what is appended goes through this memory."""
        self.flush()
        if self.is_mine:
            with contextlib.suppress(
                RuntimeError
            ):  # threads can't be started any more, as at the end of a process
                self._background = BackgroundWriter(self.descriptor, self.written, memory)

    def add_copied(self, kind: ChunkKind, nbytes: int, copy: Copy) -> int:
        """Append a chunk that `copy` puts into the memory that goes to the file in the background."""
        background = self._background
        assert background is not None
        if self.end + nbytes > self._room.sure and not self._has_room(nbytes):
            return payload_after(self.end)
        start = payload_after(self.end)
        head = _ZEROS[start - CHUNK_HEADER.size - self.end] + CHUNK_HEADER.pack(MAGIC, kind, nbytes)
        waiting, self._waiting, self._waits = self._waiting, [], 0
        try:
            background.put(b"".join([*waiting, head]))
            self._ends.append(self.end)
            background.fill(nbytes, copy)
            self._has_appended(start + nbytes)
        except OSError as error:
            self.fail(error)
        except BaseException:  # only a part of the chunk is there
            self._stop_background()
            self._drop_rest()
            raise
        return start

    def drain(self) -> None:
        """Wait until all that was appended is in the file."""
        if self._background is not None and self.flush():
            try:
                self._background.drain()
            except OSError as error:
                self.fail(error)

    def reserve(self, kind: ChunkKind, nbytes: int, alignment: int) -> int:
        """Append a chunk of zeros whose place on the disk is sure, at a multiple of `alignment`; 0 if it failed."""
        if self.end + nbytes > self._room.sure and not self._has_room(nbytes):
            return 0
        start = -(-(payload_after(self.end) + ALIGNMENT) // alignment) * alignment
        gap = start - CHUNK_HEADER.size - payload_after(self.end)
        self.add(ChunkKind.PADDING, bytes(gap), gap)
        head = CHUNK_HEADER.pack(MAGIC, kind, nbytes)
        self._waiting.append(head)
        self.end += len(head)
        if not self.flush():
            return 0
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(self.descriptor, start, nbytes)
            else:
                write_all(self.descriptor, [bytes(nbytes)])
            os.lseek(self.descriptor, start + nbytes, os.SEEK_SET)
        except OSError as error:
            self.fail(error)
            return 0
        self.written = self.end = start + nbytes
        return start

    def flush(self) -> bool:
        """Write what waits; whether the file is as it should be."""
        if self._waiting:
            self._write(self._waiting, self.end)
        return not self.failed

    def _write(self, pieces: Sequence[Buffer], end: int) -> None:
        self._waiting, self._waits = [], 0
        try:
            if self._background is not None:
                self._background.put(b"".join(pieces))
            else:
                write_all(self.descriptor, pieces)
            self._has_appended(end)
        except OSError as error:
            self.fail(error)

    def _has_appended(self, end: int) -> None:
        self.end = end
        if self._background is None:
            self.written = end
            return
        ends = self._ends
        ends.append(end)
        while ends and ends[0] <= self._background.written:
            self.written = ends.popleft()

    @property
    def most(self) -> int:
        """How large it may become."""
        return self._room.most(self.written)

    def _has_room(self, nbytes: int) -> bool:
        """Whether so much more may be appended; else the record ends. What makes its end whole is little."""
        if self.is_ending:
            return True
        problem = self._room.problem(self.end + nbytes, self.written, self.spare)
        if problem:
            self.fail(OSError(errno.EDQUOT, problem))
        return not problem

    def point_to(self, root: int, end: int, index: int = 0, index_length: int = 0) -> None:
        """Let the superblock lead to a new root; all that it leads to must have been written."""
        data = superblock(root, end, index, index_length)
        if self._background is not None:
            self._background.patch(data)
            return
        try:
            os.pwrite(self.descriptor, data, 0)
        except OSError as error:
            self.fail(error)

    def fail(self, error: OSError) -> None:
        """Give up: leave the chunks that are whole, and say so once."""
        self._stop_background()
        self._drop_rest()
        if not self._has_failed:
            self.is_ending = self._has_failed = True
            said = _ENDS_HERE.format(path=self.path, reason=system_reason(error))
            print(f"torchferry: {said.in_language(user_language())}", file=sys.stderr)
            if self.rescue is not None:
                self.rescue(error.strerror or str(error))
        self.failed = error.strerror or str(error)

    def _stop_background(self) -> None:
        """Let the thread write what it can, and end; what is written afterwards is written at once."""
        background, self._background = self._background, None
        if background is not None:
            background.close()
            while self._ends and self._ends[0] <= background.written:
                self.written = self._ends.popleft()
            self._ends.clear()

    def _drop_rest(self) -> None:
        """Cut off what is behind the last whole chunk; the disk has room again for what leads to the others."""
        self._waiting, self._waits = [], 0
        with contextlib.suppress(OSError):
            os.ftruncate(self.descriptor, self.written)
            os.lseek(self.descriptor, self.written, os.SEEK_SET)
        self.end = self.written

    def close(self) -> None:
        """Let go of the file."""
        if not self.is_closed:
            if not self.is_forked:
                self.drain()
                self._stop_background()
            self.is_closed = True
            os.close(self.descriptor)


_files: weakref.WeakSet[ChunkFile] = weakref.WeakSet()


def _forked() -> None:
    """In a process that was forked. To ask for the process's number at each call would take longer than all else."""
    for file in list(_files):
        file.is_forked = True
        if file.when_forked is not None:
            file.when_forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def write_all(descriptor: int, pieces: Sequence[Buffer]) -> None:
    """Write pieces one after the other, in as few system calls as there can be."""
    waiting = list(pieces)
    while waiting:
        some = waiting[:_AT_ONCE]
        count = os.writev(descriptor, some)
        if count == sum(map(len, some)):
            del waiting[:_AT_ONCE]
            continue
        while count >= len(waiting[0]):
            count -= len(waiting.pop(0))
        waiting[0] = memoryview(waiting[0])[count:]


def _created(path: Path) -> int:
    """A new empty file in the place of an old record, which stays whole for whoever reads it."""
    real = Path(os.path.realpath(path))
    try:
        check_replaceable(real)
        real.parent.mkdir(parents=True, exist_ok=True)
        with file_aside(real) as made:
            descriptor = made.detach()
            _lock(descriptor)
    except OSError as error:
        raise not_writable(path, error) from None
    return descriptor


def _lock(descriptor: int) -> bool:
    """Mark a file as being written; whether nobody else writes it. HDF5 does not look at these locks."""
    try:
        import fcntl

        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except (ImportError, OSError):  # a system, or a file system, without locks
        return True
    return True


def is_being_written(path: Path) -> bool:
    """Whether a process writes the file now; where there are no locks, nobody can tell, and the answer is no."""
    try:
        import fcntl

        with open(path, "rb") as file:
            fcntl.lockf(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return True
    except (ImportError, OSError):
        return False
    return False


def open_for_repair(path: Path) -> int:
    """A file that nobody writes, to be changed."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise InputError(
            Text(
                f"{path}: can't be repaired: {system_reason(error).en}",
                f"{path}：无法修复：{system_reason(error).zh}",
            )
        ) from None
    if not _lock(descriptor):
        os.close(descriptor)
        raise InputError(
            Text(
                f"{path}: still being recorded; repair it when the program has ended",
                f"{path}：仍在记录中；请在程序结束后修复",
            )
        )
    return descriptor


def check_replaceable(path: Path) -> None:
    """Refuse to put a record in the place of something that is no HDF5 file."""
    if path.is_dir():
        raise OutputError(Text(f"{path}: is a folder; name a file", f"{path}：是文件夹；请给出文件名"))
    if path.exists() and not path.is_file():
        raise OutputError(
            Text(
                f"{path}: not a regular file; a recording needs one",
                f"{path}：不是普通文件；记录必须写入普通文件",
            )
        )
    if path.is_file() and path.stat().st_size:
        with open(path, "rb") as file:
            if file.read(len(SIGNATURE)) != SIGNATURE:
                raise OutputError(
                    Text(
                        f"{path}: already exists and is not a recording; name another file, or remove it first",
                        f"{path}：已存在且不是记录；请另选文件名，或先将其删除",
                    )
                )
