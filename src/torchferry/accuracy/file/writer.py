"""Writes a record of calls with the contents of their tensors. No torch, numpy or h5py."""

from __future__ import annotations

import ctypes
import struct
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from torchferry.accuracy.file.call_json import encoded_header, figures_of
from torchferry.accuracy.file.call_objects import CallForm, CallObjects, kept_tensors
from torchferry.accuracy.file.chunks import COPIED, Buffer, ChunkFile, Kind, payload_after
from torchferry.accuracy.file.groups import Groups
from torchferry.accuracy.model import Call, Header

CALL_START = struct.Struct("<QQ")  # in a CALL chunk: length of its JSON, where the call's group is
INDEX_START = struct.Struct("<QQ")  # in an INDEX chunk: length of the header's JSON, number of calls
INDEX_ENTRY = struct.Struct("<QQ")  # place and length of a call's JSON
_SECONDS = 0.5  # between checkpoints, at least
_SHARE = 20  # a checkpoint may take this part of the time since the last
_READ = 0x100  # PyBUF_READ
_memory = ctypes.pythonapi.PyMemoryView_FromMemory
_memory.restype = ctypes.py_object
_memory.argtypes = (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)


def memory_at(address: int, nbytes: int) -> memoryview:
    """Memory of this process; it must stay there while it is looked at."""
    view: memoryview = _memory(address, nbytes, _READ)
    return view


class RecordWriter:
    """Appends calls to a file that can be read at any time, also if the process is killed."""

    def __init__(self, path: Path, header: Header) -> None:
        self.path = path
        self._header = header
        self._file = ChunkFile(path)
        self._file.rescue = self._rescue
        self.lock = self._file.lock
        self._objects = CallObjects()
        self._groups = Groups(header)
        self._index: list[bytes] = []
        self._checkpointed = 0  # calls that a checkpoint has seen
        self._due = 0.0
        text = encoded_header(header).encode()
        self._file.add(Kind.HEADER, text, len(text))
        self._save_groups()

    @property
    def failed(self) -> str:
        """Why nothing more is written; "" all is well."""
        return self._file.failed

    @property
    def nbytes(self) -> int:
        """How large the file is."""
        return self._file.end

    def append(self, data: Buffer) -> int:
        """Append bytes; where they lie."""
        view = memoryview(data).cast("B")
        return self._append(view, len(view))

    def append_memory(self, address: int, nbytes: int) -> int:
        """Append bytes straight from memory; where they lie."""
        if nbytes <= COPIED:  # it is copied anyway
            return self._append(ctypes.string_at(address, nbytes), nbytes)
        return self._append(memory_at(address, nbytes), nbytes)

    def _append(self, data: Buffer, nbytes: int) -> int:
        if not self._file.is_mine:
            return 0
        with self._file.lock:
            if nbytes == 0:
                return payload_after(self._file.end)
            return self._file.add(Kind.DATA, data, nbytes)

    def write(self, call: Call) -> None:
        """Append a complete call, whose tensors were appended before."""
        figures = figures_of((*call.inputs, *call.outputs), call.random)
        offsets = [tensor.offset or 0 for tensor in kept_tensors(call)]
        self.write_alike(CallForm(call), call.number, call.step, figures, offsets)

    def write_alike(
        self, form: CallForm, number: int, step: int, figures: Sequence[int | str], offsets: Sequence[int]
    ) -> None:
        """Append a call of a form that belongs to this file alone: with what `figures_of` would give for it, and the
        offsets of the tensors that are kept."""
        if not self._file.is_mine:
            return
        text = form.line.of(number, step, figures)
        with self._file.lock:
            start = payload_after(self._file.end) + CALL_START.size
            objects, group = self._objects.of(form, offsets, start, text)
            payload = CALL_START.pack(len(text), group) + objects
            self._file.add(Kind.CALL, payload, len(payload))
            if not self._file.flush():
                return
            self._groups.add(form.group, number, group)
            self._index.append(INDEX_ENTRY.pack(start, len(text)))
            if time.monotonic() >= self._due:
                self._save_groups()

    def checkpoint(self) -> None:
        """Let plain h5py see all calls up to now, unless that would cost too much again."""
        if not self._file.is_mine:
            return
        with self._file.lock:
            grown = len(self._index) - self._checkpointed
            if grown * 8 > self._checkpointed or (grown and time.monotonic() >= self._due):
                self._save_groups()

    def close(self, notes: Iterable[str] = ()) -> None:
        """End the file."""
        if self._file.is_mine:
            with self._file.lock:
                self._save_all(notes, complete=True)
        self._file.close()

    def _save_groups(self) -> None:
        started = time.monotonic()
        data, root = self._groups.encoded(payload_after(self._file.end))
        self._file.add(Kind.GROUPS, data, len(data))
        if self._file.flush():
            self._file.point_to(root, self._file.end)
        ended = time.monotonic()
        self._checkpointed = len(self._index)
        self._due = ended + max(_SECONDS, _SHARE * (ended - started))

    def _save_all(self, notes: Iterable[str], complete: bool) -> None:
        notes = tuple(notes)
        data, root = self._groups.encoded(payload_after(self._file.end), notes, complete)
        self._file.add(Kind.GROUPS, data, len(data))
        index = index_payload(encoded_header(self._header, notes, complete).encode(), self._index)
        place = self._file.add(Kind.INDEX, index, len(index))
        if self._file.flush():
            self._file.point_to(root, self._file.end, place, len(index))

    def _rescue(self, reason: str) -> None:
        """Let the file lead to all calls that are in it: there may be room now that the last one is not."""
        self._groups.forget()
        self._save_all((f"cut off: {reason}",), complete=False)


def index_payload(header: bytes, entries: Sequence[bytes]) -> bytes:
    """An INDEX chunk."""
    padded = header + bytes(-len(header) % 8)
    return b"".join([INDEX_START.pack(len(header), len(entries)), padded, *entries])
