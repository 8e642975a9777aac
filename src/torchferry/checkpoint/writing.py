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

from torchferry.checkpoint.reading import SAFETENSORS_NAMES
from torchferry.errors import InputError, OutputError

_FIRST = 0  # before PyTorch's own devices, which begin at 10


def write_torch(path: Path, tree: Any, devices: Mapping[int, str]) -> None:
    """As torch.save does; a device need not be on this machine."""

    def write(stream: IO[bytes]) -> None:
        with _marked(devices):
            torch.save(tree, stream)

    _write_whole(path, write)


def write_safetensors(path: Path, tensors: Mapping[str, torch.Tensor], metadata: Mapping[str, str]) -> None:
    """As its library lays it out: a header, then the data by falling size of element, then by name."""
    order = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    header: dict[str, Any] = {"__metadata__": {"format": "pt", **metadata}}
    position = 0
    for name in order:
        tensor = tensors[name]
        dtype = SAFETENSORS_NAMES.get(str(tensor.dtype).removeprefix("torch."))
        if dtype is None or tensor.layout != torch.strided:
            raise InputError(f"{name}: safetensors has no {tensor.dtype} of this kind; write a .pth")
        size = tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": dtype,
            "shape": list(tensor.shape),
            "data_offsets": [position, position + size],
        }
        position += size
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)

    def write(stream: IO[bytes]) -> None:
        stream.write(struct.pack("<Q", len(text)) + text)
        for name in order:
            _write_data(stream, tensors[name])

    _write_whole(path, write)


def _write_data(stream: IO[bytes], tensor: torch.Tensor) -> None:
    rows = tensor.detach().contiguous()
    size = rows.numel() * rows.element_size()
    if size:
        stream.write((ctypes.c_char * size).from_address(rows.data_ptr()))


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


def _write_whole(path: Path, write: Callable[[IO[bytes]], None]) -> None:
    aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(aside, "wb") as stream:
            write(stream)
        os.replace(aside, path)
    except OSError as error:
        raise OutputError(
            f"{path}: can't be written ({error.strerror or error}); choose another place"
        ) from None
    finally:
        with contextlib.suppress(OSError):
            aside.unlink()
