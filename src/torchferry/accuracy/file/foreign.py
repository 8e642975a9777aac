"""Records that others wrote, or rewrote, in the vendors' layout: read through h5py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from torchferry.accuracy.file.call_json import decoded_call
from torchferry.accuracy.file.foreign_values import elements_of, value_of
from torchferry.accuracy.file.reader import LazyCalls, Record
from torchferry.accuracy.model import (
    INPUT,
    OUTPUT,
    Call,
    Header,
    Kept,
    RandomState,
    TensorRecord,
    TensorRef,
    Value,
)
from torchferry.errors import InputError


class ForeignRecord(Record):
    """A record without our chunks. A tensor's `content` is where its dataset is in the file."""

    def __init__(self, path: Path) -> None:
        self._datasets: dict[int, str] = {}  # content -> name of the dataset
        self._file = _opened(path)
        try:
            with _readable(path):
                found = [
                    (int(number), name)
                    for name, group in self._file.items()
                    if hasattr(group, "items")
                    for number in group
                    if number.isdecimal() and hasattr(group[number], "items")
                ]
                header = _header(self._file.attrs)
            if header.kept is Kept.STATISTICS:
                raise InputError(f"{path}: was rewritten by another tool; its statistics can't be read")
        except BaseException:
            self._file.close()
            raise
        self.names = sorted(found)  # number of each call, and its operator as the file has it
        super().__init__(path, header, LazyCalls(len(self.names), self._call))
        self.is_ours = "kept" in self._file.attrs  # written by us, and rewritten by another tool

    def _call(self, index: int) -> Call:
        number, name = self.names[index]
        with _readable(self.path):
            group = self._file[f"/{name}/{number}"]
            line = group.get("call")
            if line is not None and not hasattr(line, "items"):
                return self._rewritten(decoded_call(bytes(line[()])), group)
            return self._taken(name, number, group)

    def _rewritten(self, call: Call, group: Any) -> Call:
        """One of ours: only the places in the file are others now."""

        def placed(tensor: TensorRecord) -> TensorRecord:
            item = group.get(tensor.name)
            kept = tensor.offset is not None and item is not None
            return self._kept(item, tensor) if kept else replace(tensor, offset=None)

        return replace(
            call,
            inputs=tuple(map(placed, call.inputs)),
            outputs=tuple(map(placed, call.outputs)),
            random=None,
        )

    def _taken(self, name: str, number: int, group: Any) -> Call:
        """A call of the dumper's."""
        place = f"{self.path}: /{name}/{number}"
        inputs, arguments = self._members(group, INPUT, place)
        outputs, answers = self._members(group, OUTPUT, place)
        results = tuple(value for _, value in answers)
        operator = name if "::" in name else f"aten::{name}"
        return Call(
            number,
            operator,
            step=1,
            phase="",
            arguments=tuple(arguments),
            inputs=tuple(inputs),
            outputs=tuple(outputs),
            results=results[0] if len(results) == 1 else results or None,
        )

    def _members(
        self, group: Any, part: str, place: str
    ) -> tuple[list[TensorRecord], list[tuple[str, Value]]]:
        """The tensors of a call's inputs or outputs, and the values by name."""
        members = group.get(part, {})
        if not hasattr(members, "items"):
            raise InputError(f"{place}/{part} is no group of arguments")
        tensors: list[TensorRecord] = []

        def keep(item: Any, tensor: TensorRecord) -> TensorRef:
            tensors.append(self._kept(item, tensor))
            return TensorRef(len(tensors) - 1)

        return tensors, [(key, value_of(item, f"{part}/{key}", place, keep)) for key, item in members.items()]

    def _kept(self, item: Any, tensor: TensorRecord) -> TensorRecord:
        import h5py

        content = int(h5py.h5o.get_info(item.id).addr)
        self._datasets.setdefault(content, item.name)
        return replace(tensor, content=content, offset=0)

    def raw(self, tensor: TensorRecord) -> memoryview:
        name = self._datasets.get(tensor.content)
        if name is None:
            raise InputError(f"{self.path}: the contents of {tensor.name} were not recorded")
        with _readable(self.path):
            flat = elements_of(self._file[name], tensor)
        return memoryview(flat.tobytes())

    def state(self, random: RandomState) -> bytes:
        raise InputError(f"{self.path}: was rewritten by another tool; states of generators are not in it")

    def close(self) -> None:
        self.calls = ()
        self._file.close()


def _header(attributes: Any) -> Header:
    """From the attributes of the root; a dumper's file has none."""
    if "kept" not in attributes:
        return Header(Kept.TENSORS, "", "", "", notes=("written by another tool",))

    def word(name: str) -> str:
        value = attributes.get(name, b"")
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)

    return Header(
        Kept(word("kept")),
        word("program"),
        word("device"),
        word("torch"),
        int(attributes.get("rank", 0)),
        int(attributes.get("world", 1)),
        word("vendor"),
        bool(attributes.get("simulated", 0)),
        word("replayed"),
        word("selected"),
        tuple(word("notes").splitlines()),
        bool(attributes.get("complete", 1)),
    )


def _opened(path: Path) -> Any:
    try:
        import h5py
    except ImportError:
        raise InputError(f"{path}: HDF5 records need h5py; pip install 'torchferry[record]'") from None
    try:
        return h5py.File(path, "r")
    except OSError as error:
        reason = str(error).partition("(")[2].rstrip(")") or str(error)
        raise InputError(f"{path}: can't be read as an HDF5 record: {reason}") from None


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (
        OSError,
        RuntimeError,
        KeyError,
        ValueError,
    ) as error:  # what h5py raises where the file is damaged
        raise InputError(f"{path}: can't be read as an HDF5 record: {error}") from None
