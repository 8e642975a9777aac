"""Reads records: maps the file, and makes a call out of it when it is asked for."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import re
import struct
import sys
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchferry.accuracy.file.api_folders import ANY_STEP
from torchferry.accuracy.file.call_json import decoded_call, decoded_header, encoded_header
from torchferry.accuracy.file.chunks import (
    CHUNK_HEADER,
    MAGIC,
    OURS,
    SIGNATURE,
    START,
    TRAILER,
    VERSION,
    ChunkKind,
    open_for_repair,
    payload_after,
    superblock,
    write_all,
)
from torchferry.accuracy.file.hdf5 import Groups
from torchferry.accuracy.file.tables import TableObjects, Tables
from torchferry.accuracy.file.writer import CALL_START, INDEX_ENTRY, INDEX_START, index_payload
from torchferry.accuracy.model import (
    Call,
    Kept,
    LazySequence,
    RandomState,
    RecordHeader,
    Slices,
    TensorRecord,
    group_name,
)
from torchferry.errors import InputError, OutputError, not_readable, system_reason
from torchferry.text import Text

if TYPE_CHECKING:
    import numpy as np
    import torch

_REMEMBERED = 2048  # calls that were made last; all of a long record would fill the memory


class LazyCalls(LazySequence[Call]):
    """The calls of a record. Two times the same number gives equal calls, not always the same object."""

    def __init__(self, count: int, make: Callable[[int], Call]) -> None:
        self._count, self._read = count, make
        self._made: dict[int, Call] = {}

    def __len__(self) -> int:
        return self._count

    def _make(self, at: int) -> Call:
        call = self._made.get(at)
        if call is None:
            call = self._read(at)
            if len(self._made) >= _REMEMBERED:
                self._made.clear()
            self._made[at] = call
        return call


class Record(ABC):
    """A record that is open; a context manager."""

    def __init__(self, path: Path, header: RecordHeader, calls: Sequence[Call]) -> None:
        self.path, self.header, self.calls = path, header, calls

    def __enter__(self) -> Record:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @abstractmethod
    def raw(self, tensor: TensorRecord) -> memoryview:
        """A tensor's bytes as they lie in the file."""

    @abstractmethod
    def state(self, random: RandomState) -> bytes:
        """The state of a generator."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the file."""

    @property
    def of_apis(self) -> bool:
        """Whether its calls are those of functions and modules, and not of operators."""
        return self.header.apis

    @property
    def has_gaps(self) -> bool:
        """Whether calls were left out of it, so that the number in a call's name tells which it is."""
        return False

    def stack(self, call: Call) -> list[str]:
        """The lines that have led to a call, the innermost first, where they were kept."""
        return []

    def size(self) -> int:
        """What it takes on the disk, in bytes."""
        return self.path.stat().st_size

    def release(self) -> None:  # noqa: B027 - a record that is not mapped has nothing to give back
        """Give back the memory in which the system keeps what was read."""

    def array(self, tensor: TensorRecord) -> np.ndarray[Any, Any]:
        """A tensor's elements as they lie in the file, flat; of bfloat16 and float8 the bits, as unsigned numbers."""
        import numpy as np

        from torchferry.accuracy.file.contents import numpy_dtype

        return np.frombuffer(self.raw(tensor), dtype=numpy_dtype(tensor.dtype))

    def tensor(self, tensor: TensorRecord) -> torch.Tensor:
        """A tensor on the CPU with its own shape and strides; a copy."""
        from torchferry.accuracy.file.contents import as_tensor

        return as_tensor(self.raw(tensor), tensor)

    def part(self, tensor: TensorRecord, where: Slices, rows: torch.Tensor | None = None) -> torch.Tensor:
        """What lies there, of some rows only; contiguous, and the rest is not read."""
        from torchferry.accuracy.file.contents import as_contiguous, shaped

        whole = shaped(self.array(tensor), tensor)
        if rows is not None:
            whole, where = whole[rows.numpy()], (slice(None), *where[1:])
        chosen = whole[where]
        return as_contiguous(chosen, tensor)


_DAMAGED_PART = Text(
    "{path}: damaged: {what} can't be read ({reason}); record it again",
    "{path}：已损坏：无法读取{what}（{reason}）；请重新记录",
)
_CUT_PART = Text(
    "{path}: damaged: {name} is not in the file; record it again",
    "{path}：已损坏：文件中没有 {name}；请重新记录",
)


class MappedRecord(Record):
    """A record in chunks."""

    def __init__(self, path: Path, memory: mmap.mmap) -> None:
        self.path = path
        self._memory = memory
        self._view = memoryview(memory)
        self.tables: Tables | None = None  # of a record of statistics
        found = scanned(self._view, str(path))
        self._places = found.calls
        if found.has_tables:
            with self.undamaged(Text("its tables", "表")):
                self.tables = Tables(self._view, found.tables)
        count = len(self._places) if self.tables is None else self.tables.count
        super().__init__(path, found.header, LazyCalls(count, self._call))

    def _call(self, index: int) -> Call:
        with self.undamaged(Text(f"call {index + 1}", f"第 {index + 1} 次调用")):
            if self.tables is not None:
                return self.tables.call(index)
            place, length = self._places[index]
            return decoded_call(bytes(self._view[place : place + length]))

    @contextlib.contextmanager
    def undamaged(self, what: Text) -> Iterator[None]:
        """Around what reads the file: a sentence in the place of an error."""
        try:
            yield
        except (ValueError, LookupError, TypeError, AttributeError, struct.error) as error:
            reason = (str(error).splitlines() or [""])[0]
            raise InputError(_DAMAGED_PART.format(path=self.path, what=what, reason=reason)) from None

    def sketch(self, tensor: TensorRecord) -> tuple[int, tuple[float, ...]] | None:
        """Memory and projections of a tensor (`record/sketches.py`), where the record has them."""
        return None if self.tables is None else self.tables.sketch(tensor.content)

    def raw(self, tensor: TensorRecord) -> memoryview:
        if tensor.offset is None:
            raise InputError(
                Text(
                    f"{self.path}: the contents of {tensor.name} were not recorded",
                    f"{self.path}：没有记录 {tensor.name} 的内容",
                )
            )
        return self._bytes(tensor.offset if tensor.nbytes else 0, tensor.nbytes, tensor.name)

    def state(self, random: RandomState) -> bytes:
        return bytes(
            self._bytes(random.offset, random.nbytes, Text("the generator's state", "随机数生成器的状态"))
        )

    def _bytes(self, start: int, nbytes: int, name: str | Text) -> memoryview:
        if start < 0 or start + nbytes > len(self._view):
            raise InputError(_CUT_PART.format(path=self.path, name=name))
        return self._view[start : start + nbytes]

    def release(self) -> None:
        if hasattr(mmap, "MADV_DONTNEED"):
            self._memory.madvise(mmap.MADV_DONTNEED)

    def close(self) -> None:
        self.calls = ()
        with contextlib.suppress(BufferError):  # arrays that are still in use keep the mapping
            self._view.release()
            self._memory.close()


def open_record(path: Path) -> Record:
    """A record; what was cut off is read up to its last complete call."""
    path = Path(path)
    try:
        with open(path, "rb") as file:
            start = file.read(128)
            if not start:
                raise InputError(
                    Text(
                        f"{path}: empty, nothing was recorded; record again",
                        f"{path}：文件为空，没有记录任何内容；请重新记录",
                    )
                )
            if starts_like_ours(start):
                return MappedRecord(path, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (IsADirectoryError, FileNotFoundError) as error:
        if isinstance(error, FileNotFoundError) and path.parent.name != ANY_STEP:
            raise not_readable(path, error) from None
        start = b""
    except (OSError, ValueError) as error:
        raise not_readable(
            path, error if isinstance(error, OSError) else str(error).splitlines()[0]
        ) from None
    from torchferry.accuracy.file.api_dump import open_api_dumps
    from torchferry.accuracy.file.dumps import open_dump
    from torchferry.accuracy.file.foreign import ForeignRecord

    ranks = [] if start.startswith(SIGNATURE) else open_api_dumps(path)
    if len(ranks) > 1:
        names = ", ".join(str(each.path) for each in ranks)
        raise InputError(
            Text(
                f"{path}: holds the dumps of several ranks; name one of {names}",
                f"{path}：含有多个 rank 的 dump；请指定其中一个：{names}",
            )
        )
    if ranks:
        return ranks[0]
    dump = None if start.startswith(SIGNATURE) else open_dump(path)
    if dump is None and path.is_dir():
        raise InputError(
            Text(
                f"{path}: a folder without a runtime's dump files and without msprobe's dump.json; name a "
                "recording",
                f"{path}：文件夹中既没有运行时的 dump 文件，也没有 msprobe 的 dump.json；请给出一份记录",
            )
        )
    return dump or ForeignRecord(path)


def open_records(path: Path) -> list[Record]:
    """The records of all ranks: of this file, or of gpu.rank0.h5, gpu.rank1.h5 ... where there is no gpu.h5; or those of
    a folder of msprobe's."""
    path = Path(path)
    if path.is_dir():
        from torchferry.accuracy.file.api_dump import open_api_dumps

        return open_api_dumps(path) or [open_record(path)]
    if path.exists():
        return [open_record(path)]
    ranks = rank_files(path)
    if not ranks:
        raise InputError(
            Text(
                f"no such file: {path}; give a recording of `ferry record`",
                f"没有该文件：{path}；请给出 `ferry record` 的记录",
            )
        )
    return [open_record(file) for file in ranks]


def rank_files(path: Path) -> list[Path]:
    """gpu.rank0.h5, gpu.rank1.h5 ... for gpu.h5, in the order of the ranks."""
    pattern = re.compile(rf"{re.escape(path.stem)}\.rank(\d+){re.escape(path.suffix)}")
    try:
        names = [(pattern.fullmatch(file.name), file) for file in path.parent.iterdir()]
    except OSError:
        return []
    return [file for _, file in sorted((int(match[1]), file) for match, file in names if match)]


# Finds what is in the file of a record: by its index, or from chunk to chunk where it was cut off.

_CUT_OFF = "the file was cut off; it holds what was recorded until then"


class Places:
    """Place and length of each call's JSON."""

    def __init__(self, entries: bytes | memoryview = b"") -> None:
        self._numbers = array("Q")
        self._numbers.frombytes(entries)
        if sys.byteorder != "little":
            self._numbers.byteswap()

    def append(self, place: int, length: int) -> None:
        """Add a call."""
        self._numbers.extend((place, length))

    def __len__(self) -> int:
        return len(self._numbers) // 2

    def __getitem__(self, index: int) -> tuple[int, int]:
        return self._numbers[2 * index], self._numbers[2 * index + 1]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._numbers[::2], self._numbers[1::2], strict=True)


@dataclass
class RecordContents:
    """What the file of a record holds."""

    header: RecordHeader
    calls: Places = field(default_factory=Places)
    tables: dict[ChunkKind, list[tuple[int, int]]] = field(default_factory=dict)  # of statistics
    groups: list[int] = field(default_factory=list)  # where each call's group is; only of files cut off
    end: int = START  # of the last whole chunk

    @property
    def has_tables(self) -> bool:
        """Whether its calls lie in tables: those of a recorder of statistics do, those that were cut out of it don't."""
        return self.header.kept is Kept.STATISTICS and not len(self.calls)


def starts_like_ours(start: bytes) -> bool:
    """Whether these are the first bytes of a file in chunks."""
    is_long_enough = len(start) >= START
    return is_long_enough and start.startswith(SIGNATURE) and start.startswith(OURS, START - TRAILER.size)


def has_index(memory: Any) -> bool:
    """Whether the file was ended, and is all there."""
    *_, index, length = TRAILER.unpack_from(memory, START - TRAILER.size)
    return bool(index and index + length <= len(memory))


def scanned(memory: Any, name: str) -> RecordContents:
    """Everything that is whole in the file."""
    _, version, _, index, length = TRAILER.unpack_from(memory, START - TRAILER.size)
    if version > VERSION:
        raise InputError(
            Text(
                f"{name}: written by a newer TorchFerry; update TorchFerry to read it",
                f"{name}：由更新版本的 TorchFerry 写入；请升级 TorchFerry 后再读取",
            )
        )
    try:
        if not has_index(memory):
            return _hopped(memory, name)
        found = _indexed(memory, index, length)
        if found.has_tables:  # a few large chunks
            found.tables = _hopped(memory, name).tables
        return found
    except (ValueError, KeyError, TypeError, struct.error) as error:
        raise InputError(
            Text(
                f"{name}: damaged ({str(error).splitlines()[0]}); record it again",
                f"{name}：已损坏（{str(error).splitlines()[0]}）；请重新记录",
            )
        ) from None


def _indexed(memory: Any, index: int, length: int) -> RecordContents:
    size, count = INDEX_START.unpack_from(memory, index)
    start = index + INDEX_START.size
    found = RecordContents(decoded_header(bytes(memory[start : start + size])), end=index + length)
    start += size + -size % 8
    if start + count * INDEX_ENTRY.size > index + length:
        raise ValueError("its index is cut off")
    found.calls = Places(memory[start : start + count * INDEX_ENTRY.size])
    return found


def chunks_in(memory: Any) -> Iterator[tuple[ChunkKind, int, int]]:
    """Kind, place and length of each whole chunk."""
    end, size = START, len(memory)
    while True:
        start = payload_after(end)
        if start > size:
            return
        magic, kind, length = CHUNK_HEADER.unpack_from(memory, start - CHUNK_HEADER.size)
        if magic != MAGIC or start + length > size or kind not in ChunkKind._value2member_map_:
            return
        yield ChunkKind(kind), start, length
        end = start + length


def _hopped(memory: Any, name: str) -> RecordContents:
    """A file without an index: its recorder is still at work, or did not live to write it."""
    found: RecordContents | None = None
    for kind, start, length in chunks_in(memory):
        if kind is ChunkKind.HEADER:
            header = decoded_header(bytes(memory[start : start + length]))
            found = RecordContents(replace(header, complete=False, notes=(*header.notes, _CUT_OFF)))
        if found is None:
            break
        if kind is ChunkKind.CALL:
            size, group = CALL_START.unpack_from(memory, start)
            found.calls.append(start + CALL_START.size, size)
            found.groups.append(group)
        elif kind.is_table:
            found.tables.setdefault(kind, []).append((start, length))
        found.end = start + length
    if found is None:
        raise InputError(
            Text(
                f"{name}: cut off before anything was recorded; record again",
                f"{name}：在记录任何内容之前就被截断；请重新记录",
            )
        )
    return found


# Completes a record that was cut off, so that plain h5py and other tools see all of its calls.


def repair(path: Path) -> bool:
    """Complete a file in place; False if nothing is missing. What is whole in it is not touched."""
    path = Path(path)
    descriptor = open_for_repair(path)
    try:
        size = os.fstat(descriptor).st_size
        if not starts_like_ours(os.pread(descriptor, 128, 0)):
            raise InputError(
                Text(
                    f"{path}: not a recording of TorchFerry; only those can be repaired",
                    f"{path}：不是 TorchFerry 的记录；只能修复 TorchFerry 的记录",
                )
            )
        with mmap.mmap(descriptor, size, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as memory:
            if has_index(memory):
                return False
            found = scanned(memory, str(path))
            pieces, end, place = _completed(memory, found)
        os.ftruncate(descriptor, found.end)
        os.lseek(descriptor, found.end, os.SEEK_SET)
        write_all(descriptor, pieces)
        root, index, length = place
        os.pwrite(descriptor, superblock(root, end, index, length), 0)
        return True
    except OSError as error:
        raise OutputError(
            Text(
                f"{path}: can't be repaired: {system_reason(error).en}",
                f"{path}：无法修复：{system_reason(error).zh}",
            )
        ) from None
    finally:
        os.close(descriptor)


def _completed(memory: memoryview, found: RecordContents) -> tuple[list[bytes], int, tuple[int, int, int]]:
    """What is to be appended, where the file ends then, and places of the root and of the index with its length."""
    start = payload_after(found.end)
    if found.has_tables:
        tables = Tables(memory, found.tables)
        data, root = TableObjects().encoded(start, found.header, tables.extents, tables.lines)
    else:
        data, root = _groups(memory, found, start)
    entries = [INDEX_ENTRY.pack(*place) for place in found.calls]
    index = index_payload(encoded_header(found.header).encode(), entries)
    pieces, end = [], found.end
    for kind, payload in ((ChunkKind.GROUPS, data), (ChunkKind.INDEX, index)):
        place = payload_after(end)
        pieces += [
            bytes(place - CHUNK_HEADER.size - end) + CHUNK_HEADER.pack(MAGIC, kind, len(payload)),
            payload,
        ]
        end = place + len(payload)
    return pieces, end, (root, end - len(index), len(index))


def _groups(memory: memoryview, found: RecordContents, start: int) -> tuple[bytes, int]:
    groups = Groups()
    for (place, length), address in zip(found.calls, found.groups, strict=True):
        made = json.loads(bytes(memory[place : place + length]))
        groups.add(group_name(made["operator"]), made["number"], address)
    return groups.encoded(start, found.header)
