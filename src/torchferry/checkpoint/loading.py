"""Makes tensors of what a checkpoint describes, on the CPU whatever device they were saved on; runs nothing of the file.

The bytes are mapped, not read: a checkpoint may be larger than the memory. What is no tensor and no plain container
(sparse and quantized tensors, objects of classes) is left to torch.load, first with `weights_only`, and with all that a
pickle can do only where the user has allowed it.
"""

from __future__ import annotations

import zipfile
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import torch

from torchferry.checkpoint.model import (
    ITEM_SIZES,
    Contents,
    Format,
    Global,
    Known,
    Opaque,
    Ordered,
    Place,
    Storage,
    Tensor,
)
from torchferry.checkpoint.names import parts
from torchferry.errors import InputError

_ALIGNMENT = 16


class NotPlainError(Exception):
    """A part that can't be made without code of the file: its name, and what it is."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(f"{name or 'the whole file'} is {what}")
        self.name, self.what = name, what


class Loaded:
    """Tensors and containers, with the device that each storage was saved on."""

    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        self.devices: dict[int, str] = {}  # by the address of the storage's object
        self._storages: dict[str, Any] = {}
        self._mapped: Any = None

    def tensors(self, described: Mapping[str, Tensor]) -> dict[str, torch.Tensor]:
        """The tensors of a state dict."""
        return {name: self.tensor(tensor, name) for name, tensor in described.items()}

    def tree(self, node: object, name: str = "") -> Any:
        """A node with all that it holds; raises NotPlainError."""
        if isinstance(node, Tensor):
            return self.tensor(node, name)
        if isinstance(node, dict):
            return self._dictionary(node, name)
        if isinstance(node, (list, tuple)):
            made = [
                self.tree(part, f"{name}.{key}" if name else str(key)) for key, part in parts(node).items()
            ]
            return tuple(made) if isinstance(node, tuple) else made
        if isinstance(node, Opaque):
            raise NotPlainError(name, f"a {node.class_name}")
        if isinstance(node, (Known, Global)):
            return _known(node, name)
        return node

    def _dictionary(self, node: dict[object, object], name: str) -> dict[Any, Any]:
        made: dict[Any, Any] = OrderedDict() if isinstance(node, Ordered) else {}
        for key, part in node.items():
            made[self.tree(key)] = self.tree(part, f"{name}.{key}" if name else str(key))
        if isinstance(node, Ordered) and node.metadata is not None:
            made._metadata = self.tree(node.metadata, name)  # type: ignore[attr-defined]
        return made

    def tensor(self, described: Tensor, name: str) -> torch.Tensor:
        """One tensor, over the bytes in the file."""
        if not described.is_plain:
            raise NotPlainError(name, "a quantized tensor")
        dtype = getattr(torch, described.dtype, None)
        if not isinstance(dtype, torch.dtype):
            raise NotPlainError(name, f"a tensor of {described.dtype or 'an unknown dtype'}")
        storage = self._storage(described.storage, name)
        offset = described.offset + described.storage.first
        last = offset + sum(
            (size - 1) * step for size, step in zip(described.shape, described.strides, strict=True)
        )
        if described.elements and (last + 1) * dtype.itemsize > storage.nbytes():
            raise InputError(f"{self.contents.path}: damaged: {name} reaches beyond its data; fetch it anew")
        made = torch.empty((0,), dtype=dtype).set_(storage, offset, described.shape, described.strides)
        self.devices.setdefault(storage._cdata, described.device)
        if described.is_parameter:
            return torch.nn.Parameter(made, described.requires_grad)
        return made.requires_grad_(described.requires_grad)

    def _storage(self, storage: Storage, name: str) -> Any:
        if storage.key not in self._storages:
            place = self.contents.places.get(storage.key)
            wanted = storage.elements * ITEM_SIZES.get(storage.dtype, 0)
            if place is None or (not storage.first and place.size < wanted):
                raise InputError(
                    f"{self.contents.path}: cut short: the data of {name} is not there; fetch it anew"
                )
            if self.contents.is_big_endian:
                raise NotPlainError(name, "big-endian")
            self._storages[storage.key] = self._bytes(place)
        return self._storages[storage.key]

    def _bytes(self, place: Place) -> Any:
        path = self.contents.path
        if place.offset is None:
            with zipfile.ZipFile(path) as archive:
                return _owned(archive.read(place.member))
        if place.size == 0:
            return torch.empty(0, dtype=torch.uint8).untyped_storage()
        if place.offset % _ALIGNMENT:  # kernels may expect tensors where numbers can lie
            with open(path, "rb") as stream:
                stream.seek(place.offset)
                return _owned(stream.read(place.size))
        if self._mapped is None:
            self._mapped = torch.UntypedStorage.from_file(str(path), False, self.contents.size)
        return self._mapped[place.offset : place.offset + place.size]


def _owned(data: bytes) -> Any:
    if not data:
        return torch.empty(0, dtype=torch.uint8).untyped_storage()
    return torch.frombuffer(bytearray(data), dtype=torch.uint8).untyped_storage()


def _known(node: Known | Global, name: str) -> Any:
    if isinstance(node, Known):
        make: Any = torch.Size if node.name == "torch.Size" else torch.device
        return make(*node.arguments)
    found = getattr(torch, node.name, None) if node.module == "torch" else None
    if not isinstance(found, torch.dtype):
        raise NotPlainError(name, f"the name {node.dotted}")
    return found


def load_tree(contents: Contents, allow_pickle: bool) -> tuple[Any, dict[int, str], bool]:
    """All of a file: the tree, the devices of its storages, and whether code of the file was allowed to run."""
    loaded = Loaded(contents)
    try:
        return loaded.tree(contents.tree), loaded.devices, False
    except NotPlainError as problem:
        return _left_to_torch(contents, problem, allow_pickle)


def _left_to_torch(
    contents: Contents, problem: NotPlainError, allow_pickle: bool
) -> tuple[Any, dict[int, str], bool]:
    devices: dict[int, str] = {}

    def stay(storage: Any, device: str) -> Any:
        devices[storage._cdata] = device
        return storage

    if contents.format in (Format.ZIP, Format.LEGACY):
        try:
            return torch.load(contents.path, map_location=stay, weights_only=True), devices, False
        except Exception:  # whatever it is, the answer is below
            devices.clear()
    if not allow_pickle:
        raise refusal(contents, problem)
    try:
        return torch.load(contents.path, map_location=stay, weights_only=False), devices, True
    except Exception as error:  # code of the file
        first = str(error).splitlines()[0] if str(error) else ""
        raise InputError(f"{contents.path}: loading it failed: {type(error).__name__}: {first}") from None


def refusal(contents: Contents, problem: NotPlainError) -> InputError:
    """Why a file is not loaded, and the two ways out."""
    return InputError(
        f"{contents.path}: {problem}, and making it would run code that the file names; take the weights alone with "
        "--only, or add --allow-pickle if you trust where the file comes from"
    )
