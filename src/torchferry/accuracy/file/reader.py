"""Reads records: maps the file, and makes a call out of it when it is asked for."""

from __future__ import annotations

import contextlib
import mmap
import re
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, overload

from torchferry.accuracy.file.call_json import decoded_call
from torchferry.accuracy.file.scanning import Found, scanned, starts_like_ours
from torchferry.accuracy.file.tables import Tables
from torchferry.accuracy.model import Call, Header, Kept, RandomState, TensorRecord
from torchferry.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import torch

_HDF5 = b"\x89HDF\r\n\x1a\n"
_REMEMBERED = 2048  # calls that were made last; all of a long record would fill the memory


class LazyCalls(Sequence[Call]):
    """The calls of a record. Two times the same number gives equal calls, not always the same object."""

    def __init__(self, count: int, make: Callable[[int], Call]) -> None:
        self._count, self._make = count, make
        self._made: dict[int, Call] = {}

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Call: ...
    @overload
    def __getitem__(self, index: slice) -> list[Call]: ...
    def __getitem__(self, index: int | slice) -> Call | list[Call]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(self._count))]
        place = index + self._count if index < 0 else index
        if not 0 <= place < self._count:
            raise IndexError(index)
        call = self._made.get(place)
        if call is None:
            call = self._make(place)
            if len(self._made) >= _REMEMBERED:
                self._made.clear()
            self._made[place] = call
        return call


class Record(ABC):
    """A record that is open; a context manager."""

    def __init__(self, path: Path, header: Header, calls: Sequence[Call]) -> None:
        self.path, self.header, self.calls = path, header, calls

    def __enter__(self) -> Record:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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

    def part(
        self, tensor: TensorRecord, where: tuple[slice, ...], rows: torch.Tensor | None = None
    ) -> torch.Tensor:
        """What lies there, of some rows only; contiguous, and the rest is not read."""
        from torchferry.accuracy.file.contents import as_contiguous, shaped

        whole = shaped(self.array(tensor), tensor)
        if rows is not None:
            whole, where = whole[rows.numpy()], (slice(None), *where[1:])
        chosen = whole[where]
        return as_contiguous(chosen, tensor)


class MappedRecord(Record):
    """A record in chunks."""

    def __init__(self, path: Path, memory: mmap.mmap) -> None:
        self.path = path
        self._memory = memory
        self._view = memoryview(memory)
        self._tables: Tables | None = None
        found = scanned(self._view, str(path))
        with self._undamaged("its tables"):
            count, make = self._source(found)
        super().__init__(path, found.header, LazyCalls(count, lambda index: self._call(index, make)))

    def _source(self, found: Found) -> tuple[int, Callable[[int], Call]]:
        """How many calls there are, and what makes one of its place among them."""
        if found.header.kept is Kept.STATISTICS:
            self._tables = Tables(self._view, found.tables)
            return self._tables.count, self._tables.call

        def make(index: int) -> Call:
            place, length = found.calls[index]
            return decoded_call(bytes(self._view[place : place + length]))

        return len(found.calls), make

    def _call(self, index: int, make: Callable[[int], Call]) -> Call:
        with self._undamaged(f"call {index + 1}"):
            return make(index)

    @contextlib.contextmanager
    def _undamaged(self, what: str) -> Iterator[None]:
        try:
            yield
        except (ValueError, LookupError, TypeError, AttributeError, struct.error) as error:
            reason = (str(error).splitlines() or [""])[0]
            raise InputError(f"{self.path}: is damaged: {what} can't be read ({reason})") from None

    def sketch(self, tensor: TensorRecord) -> tuple[int, tuple[float, ...]] | None:
        """Memory and projections of a tensor (`record/sketches.py`), where the record has them."""
        return None if self._tables is None else self._tables.sketch(tensor.content)

    def raw(self, tensor: TensorRecord) -> memoryview:
        if tensor.offset is None:
            raise InputError(f"{self.path}: the contents of {tensor.name} were not recorded")
        return self._bytes(tensor.offset if tensor.nbytes else 0, tensor.nbytes, tensor.name)

    def state(self, random: RandomState) -> bytes:
        return bytes(self._bytes(random.offset, random.nbytes, "the generator's state"))

    def _bytes(self, start: int, nbytes: int, name: str) -> memoryview:
        if start < 0 or start + nbytes > len(self._view):
            raise InputError(f"{self.path}: is damaged: {name} is not in the file")
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
                raise InputError(f"{path}: is empty; nothing was recorded")
            if starts_like_ours(start):
                return MappedRecord(path, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except IsADirectoryError:
        from torchferry.accuracy.file.dumps import open_dump

        return open_dump(path) or _refused(path)
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path}: can't be read: {getattr(error, 'strerror', None) or str(error).splitlines()[0]}"
        ) from None
    from torchferry.accuracy.file.dumps import open_dump
    from torchferry.accuracy.file.foreign import ForeignRecord

    return (None if start.startswith(_HDF5) else open_dump(path)) or ForeignRecord(path)


def _refused(path: Path) -> Record:
    raise InputError(f"{path}: is a folder without dump files of a runtime; name a record, a file")


def open_records(path: Path) -> list[Record]:
    """The records of all ranks: of this file, or of gpu.rank0.h5, gpu.rank1.h5 ... where there is no gpu.h5."""
    path = Path(path)
    if path.exists():
        return [open_record(path)]
    ranks = rank_files(path)
    if not ranks:
        raise InputError(f"{path}: no such file")
    return [open_record(file) for file in ranks]


def rank_files(path: Path) -> list[Path]:
    """gpu.rank0.h5, gpu.rank1.h5 ... for gpu.h5, in the order of the ranks."""
    pattern = re.compile(rf"{re.escape(path.stem)}\.rank(\d+){re.escape(path.suffix)}")
    try:
        names = [(pattern.fullmatch(file.name), file) for file in path.parent.iterdir()]
    except OSError:
        return []
    return [file for _, file in sorted((int(match[1]), file) for match, file in names if match)]
