"""Files of torch.save from before 0.1.10: a tar archive with the storages, the tensors and the tree in three members."""

from __future__ import annotations

import struct
import tarfile
from pathlib import Path
from typing import IO, Any

from torchferry.checkpoint.model import ITEM_SIZES, Contents, Format, Global, Place, Storage, Tensor
from torchferry.checkpoint.torch_files import Window
from torchferry.checkpoint.unpickling import STORAGE_DTYPES, Bounded, Reader
from torchferry.errors import InputError

_MEMBERS = ("storages", "tensors", "pickle")
_MOST_DIMENSIONS = 64


class _TreeReader(Reader):
    """Tensors are referred to by numbers, classes with their source."""

    def __init__(self, stream: Bounded, tensors: dict[int, Tensor]) -> None:
        super().__init__(stream)
        self._tensors = tensors

    def persistent_load(self, pid: Any) -> Any:
        return pid[0] if isinstance(pid, tuple) else self._tensors[int(pid)]


def is_old_tar(stream: IO[bytes]) -> bool:
    """Whether a tar archive is one of these; any other was packed by hand."""
    try:
        with tarfile.open(fileobj=stream, mode="r:") as archive:
            return archive.next() is not None and {"storages", "pickle"} <= set(archive.getnames())
    except tarfile.TarError:
        return False
    finally:
        stream.seek(0)


def read_tar(path: Path, stream: IO[bytes], size: int) -> Contents:
    """The tree, with the tensors that it refers to."""
    with tarfile.open(fileobj=stream, mode="r:") as archive:
        members = {name: archive.getmember(name) for name in _MEMBERS}
    parts = {name: Window(stream, member.offset_data, member.size) for name, member in members.items()}
    storages, places = _storages(path, parts["storages"], members["storages"])
    tensors = _tensors(parts["tensors"], members["tensors"].size, storages)
    reader = _TreeReader(Bounded(parts["pickle"], members["pickle"].size), tensors)
    tree = reader.load()
    places.update(reader.places)
    return Contents(path, Format.LEGACY, size, tree, places, tuple(reader.globals))


def _next(window: Window, size: int) -> Any:
    return Reader(Bounded(window, size)).load()


def _storages(
    path: Path, window: Window, member: tarfile.TarInfo
) -> tuple[dict[int, Storage], dict[str, Place]]:
    found: dict[int, Storage] = {}
    places: dict[str, Place] = {}
    for _ in range(_next(window, member.size)):
        key, device, kind = _next(window, member.size)
        dtype = STORAGE_DTYPES.get(kind.name, "") if isinstance(kind, Global) else ""
        (elements,) = struct.unpack("<q", window.read(8) or b"")
        size = elements * ITEM_SIZES.get(dtype, 0)
        if elements < 0 or window.tell() + size > member.size:
            raise InputError(f"{path}: cut short: storage {key} ends after the file; fetch it anew")
        found[int(key)] = Storage(str(key), dtype, str(device), elements)
        places[str(key)] = Place(size, member.offset_data + window.tell())
        window.seek(window.tell() + size)
    for target, root, first, count in _next(window, member.size):
        whole = found[int(root)]
        found[int(target)] = Storage(whole.key, whole.dtype, whole.device, int(count), int(first))
    return found, places


def _tensors(window: Window, size: int, storages: dict[int, Storage]) -> dict[int, Tensor]:
    found = {}
    for _ in range(_next(window, size)):
        key, storage_key, _ = _next(window, size)
        (dimensions,) = struct.unpack("<i4x", window.read(8) or b"")
        if not 0 <= dimensions <= _MOST_DIMENSIONS:
            raise ValueError("a tensor of too many dimensions")
        numbers = struct.unpack(f"<{2 * dimensions + 1}q", window.read(16 * dimensions + 8) or b"")
        if min(numbers) < 0:
            raise ValueError("a tensor's shape, strides and offset don't fit each other")
        storage = storages[int(storage_key)]
        shape, strides = numbers[:dimensions], numbers[dimensions:-1]
        found[int(key)] = Tensor(storage, storage.dtype, shape, strides, numbers[-1], storage.device)
    return found
