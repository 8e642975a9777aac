"""Writes checkpoints whole or not at all: with torch.save, each storage marked with a device, or as safetensors."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import struct
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import torch

from torchferry.checkpoint.files import SAFETENSORS_NAMES, read_file
from torchferry.checkpoint.loading import Loaded
from torchferry.checkpoint.names import tensors_of
from torchferry.errors import ANOTHER_PLACE, InputError, OutputError, not_writable
from torchferry.files.aside import file_aside
from torchferry.text import Text

_FIRST = 0  # before PyTorch's own devices, which begin at 10
_SMALL = 2**30  # bytes that any file may become
_MOST_REPEATED = 16  # of the tensors, in the size of their data


def write_torch(
    path: Path, tree: Any, devices: Mapping[int, str], tensors: Mapping[str, torch.Tensor] | None = None
) -> None:
    """As torch.save does; a device need not be on this machine. What was written is held against `tensors`."""

    def write(stream: Any) -> None:
        with _marked(devices):
            torch.save(tree, stream)

    _write_whole(path, write, tensors or {})


def write_safetensors(path: Path, tensors: Mapping[str, torch.Tensor], metadata: Mapping[str, str]) -> None:
    """As its library lays it out: a header, then the data by falling size of element, then by name."""
    order = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    header: dict[str, Any] = {"__metadata__": {"format": "pt", **metadata}}
    position = 0
    for name in order:
        tensor = tensors[name]
        dtype = SAFETENSORS_NAMES.get(str(tensor.dtype).removeprefix("torch."))
        if dtype is None or tensor.layout != torch.strided or tensor.is_meta:
            raise InputError(
                Text(
                    f"{name}: safetensors can't store {tensor.dtype} of this kind; write a .pth",
                    f"{name}：safetensors 无法存储这种 {tensor.dtype}；请写成 .pth",
                )
            )
        size = tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": dtype,
            "shape": list(tensor.shape),
            "data_offsets": [position, position + size],
        }
        position += size
    # Every tensor is written whole: those that show the same data again and again would fill the disk.
    storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage() for tensor in tensors.values()}
    data = sum(storage.nbytes() for storage in storages.values())
    if position > max(_SMALL, _MOST_REPEATED * data):
        raise InputError(
            Text(
                f"{path}: tensors that share {data:,} bytes would take {position:,} bytes; write a .pth, which "
                "keeps the sharing",
                f"{path}：共享 {data:,} 字节的张量将占用 {position:,} 字节；请写成可保留共享关系的 .pth",
            )
        )
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)

    def write(stream: Any) -> None:
        stream.write(struct.pack("<Q", len(text)) + text)
        for name in order:
            rows = tensors[name].detach().contiguous()
            size = rows.numel() * rows.element_size()
            if size:
                stream.write((ctypes.c_char * size).from_address(rows.data_ptr()))

    _write_whole(path, write, tensors)


@contextlib.contextmanager
def _marked(devices: Mapping[int, str]) -> Iterator[None]:
    """Have torch.save ask us first which device a storage is on."""
    from torch import serialization

    def tag(storage: Any) -> str | None:
        untyped = getattr(storage, "_untyped_storage", storage)
        return devices.get(untyped._cdata)

    before = list(serialization._package_registry)
    serialization.register_package(_FIRST, tag, lambda storage, location: None)
    try:
        yield
    finally:
        serialization._package_registry[:] = before


def _write_whole(path: Path, write: Callable[[Any], None], tensors: Mapping[str, torch.Tensor]) -> None:
    path = Path(os.path.realpath(path))  # what a link means, not the link
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with file_aside(path) as aside:
            watched = _Watched(aside.stream)
            try:
                write(watched)
                aside.stream.flush()
            except Exception:
                if watched.failed:
                    raise watched.failed from None
                raise
            _check(aside.path, path, tensors)
    except OSError as error:
        raise not_writable(path, error, ANOTHER_PLACE) from None


class _Watched:
    """A stream that remembers why it could not be written to: PyTorch only says that it was not."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.failed: OSError | None = None

    def write(self, data: Any) -> int:
        try:
            return self._stream.write(data)
        except OSError as error:
            self.failed = error
            raise

    def flush(self) -> None:
        self._stream.flush()


def _check(written: Path, path: Path, tensors: Mapping[str, torch.Tensor]) -> None:
    """Read back what is on the disk: every tensor must be there, bit for bit."""
    contents = read_file(written)
    found, back = tensors_of(contents.tree), Loaded(contents)
    for name, tensor in tensors.items():
        if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_meta:
            continue
        if name not in found or not _same_bits(back.tensor(found[name], name), tensor):
            raise OutputError(
                Text(
                    f"{path}: {name} on disk differs from what was written; the disk may be failing",
                    f"{path}：磁盘上的 {name} 与写入的内容不同；磁盘可能有故障",
                )
            )


def _same_bits(left: torch.Tensor, right: torch.Tensor) -> bool:
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    if not left.numel():
        return True
    if left.nbytes > left.untyped_storage().nbytes() and _layout(left) == _layout(right):
        left, right = _all_data(left), _all_data(right)  # what it shows again and again is looked at once
    rows = (each.detach().resolve_conj().resolve_neg().contiguous().reshape(-1) for each in (left, right))
    first, second = (each.view(torch.uint8) for each in rows)
    return torch.equal(first, second)


def _layout(tensor: torch.Tensor) -> tuple[object, ...]:
    return tensor.stride(), tensor.storage_offset(), tensor.is_conj(), tensor.is_neg()


def _all_data(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage())
