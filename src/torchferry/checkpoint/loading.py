"""Makes tensors of what a checkpoint describes, on the CPU whatever device they were saved on; runs nothing of the file.

The bytes are mapped, not read: a checkpoint may be larger than the memory. What is no tensor and no plain value
(quantized tensors, objects of classes) is left to torch.load, first with `weights_only`, and with all that a pickle can
do only where the user has allowed it.
"""

from __future__ import annotations

import ctypes
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from torchferry.checkpoint.classes import NotAValueError, value
from torchferry.checkpoint.files import damaged, readable
from torchferry.checkpoint.folders import read_piece
from torchferry.checkpoint.model import (
    SPARSE,
    Checkpoint,
    FileFormat,
    Global,
    Known,
    Opaque,
    Ordered,
    StoragePlace,
    TensorEntry,
)
from torchferry.checkpoint.names import key_name, parts
from torchferry.errors import InputError
from torchferry.text import Text
from torchferry.units import ITEM_SIZES

_ALIGNMENT = 16
# A small file must not become a large one in memory: what is compressed, what repeats itself.
_SMALL = 2**30  # bytes that any file may ask for
_MOST_UNPACKED = 10  # of a compressed archive, in the size of the file
_MOST_REPEATED = 4  # of a tensor, in the size of the data that it shows
_CHUNK = 2**20


class NotPlainError(Exception):
    """A part that can't be made without code of the file: its name, and what it is."""

    def __init__(self, name: str, what: Text) -> None:
        whole = Text(name, name) if name else Text("the whole file", "整个文件")
        self.text = Text("{name} is {what}", "{name} 是{what}").format(name=whole, what=what)
        super().__init__(self.text.en)
        self.name, self.what = name, what


class Loaded:
    """Tensors and containers, with the device that each storage was saved on."""

    def __init__(self, contents: Checkpoint, plain: bool = False) -> None:
        self.contents = contents
        self.made_plain: list[tuple[str, str]] | None = [] if plain else None  # name, class; None: not wanted
        self.devices: dict[int, str] = {}  # by the address of the storage's object
        self._storages: dict[str, Any] = {}
        self._mapped: dict[Path, Any] = {}
        self._unpacked = 0  # bytes

    def tensors(self, described: Mapping[str, TensorEntry]) -> dict[str, torch.Tensor]:
        """The tensors of a state dict."""
        return {name: self.tensor(tensor, name) for name, tensor in described.items()}

    def tree(self, node: object, name: str = "") -> Any:
        """A node with all that it holds; raises NotPlainError."""
        if isinstance(node, TensorEntry):
            made_tensor = self.tensor(node, name)
            return made_tensor.numpy() if node.is_array and self.made_plain is None else made_tensor
        if isinstance(node, dict):
            return self._dictionary(node, name)
        if isinstance(node, (list, tuple)):
            made = [self.tree(part, f"{name}.{key}" if name else str(key)) for key, part in enumerate(node)]
            return tuple(made) if isinstance(node, tuple) else made
        if isinstance(node, Opaque):
            return self._object(node, name)
        if isinstance(node, (Known, Global)):
            return _known(node, name, self.made_plain is not None)
        return node

    def _dictionary(self, node: dict[object, object], name: str) -> dict[Any, Any]:
        made: dict[Any, Any] = OrderedDict() if isinstance(node, Ordered) else {}
        for key, part in node.items():
            made[self.tree(key)] = self.tree(part, f"{name}.{key_name(key)}" if name else key_name(key))
        if isinstance(node, Ordered) and node.metadata is not None:
            made._metadata = self.tree(node.metadata, name)  # type: ignore[attr-defined]
        return made

    def _object(self, node: Opaque, name: str) -> Any:
        if node.class_name == SPARSE:
            return self._sparse(node, name)
        if self.made_plain is not None:
            self.made_plain.append((name, node.class_name))
            # What it holds, without the object: its attributes, else what it was made of.
            inside = parts(node)
            if inside:
                return self._dictionary(dict(inside), name)
            made = [self.tree(part, name) for part in node.arguments]
            return made[0] if len(made) == 1 else made
        try:
            return value(node, lambda part: self.tree(part, name))
        except NotAValueError:
            raise NotPlainError(name, Text(f"a {node.class_name}", f" {node.class_name}")) from None

    def _sparse(self, node: Opaque, name: str) -> torch.Tensor:
        layout, data = node.arguments
        kind = layout.arguments[0] if isinstance(layout, Opaque) else ""
        made = self.tree(data, name)
        try:
            if kind == "torch.sparse_coo":
                coalesced = made[3] if len(made) > 3 else None
                return torch.sparse_coo_tensor(*made[:3], is_coalesced=coalesced, check_invariants=True)
            layouts = [torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc]
            (wanted,) = (each for each in layouts if str(each) == kind)
            return torch.sparse_compressed_tensor(*made, layout=wanted, check_invariants=True)
        except (RuntimeError, TypeError, ValueError) as error:
            raise damaged(self.contents.path, error) from None

    def tensor(self, described: TensorEntry, name: str) -> torch.Tensor:
        """One tensor, over the bytes in the file."""
        if not described.is_plain:
            raise NotPlainError(name, Text("a quantized tensor", "量化张量"))
        dtype = getattr(torch, described.dtype, None)
        if not isinstance(dtype, torch.dtype):
            raise NotPlainError(
                name,
                Text(
                    f"a tensor of {described.dtype or 'an unknown dtype'}",
                    f"数据类型为 {described.dtype or '未知'} 的张量",
                ),
            )
        if described.device == "meta":
            return torch.empty_strided(described.shape, described.strides, dtype=dtype, device="meta")
        storage = self._storage(described, name)
        offset = described.offset + described.storage.first
        last = offset + sum(
            (size - 1) * step for size, step in zip(described.shape, described.strides, strict=True)
        )
        if described.elements and (last + 1) * dtype.itemsize > storage.nbytes():
            raise InputError(
                Text(
                    f"{self.contents.path}: damaged: {name} extends past its data; download it again",
                    f"{self.contents.path}：已损坏：{name} 超出其数据范围；请重新下载",
                )
            )
        if described.nbytes > max(_SMALL, _MOST_REPEATED * storage.nbytes()):
            raise InputError(
                Text(
                    f"{self.contents.path}: {name} expands {storage.nbytes():,} bytes to {described.nbytes:,} by "
                    "repetition; save it as it was before expand()",
                    f"{self.contents.path}：{name} 将 {storage.nbytes():,} 字节重复扩展为 {described.nbytes:,} 字节；"
                    "请保存 expand() 之前的张量",
                )
            )
        made = torch.empty((0,), dtype=dtype).set_(storage, offset, described.shape, described.strides)
        self.devices.setdefault(storage._cdata, described.device)
        if described.is_parameter:
            return torch.nn.Parameter(made, described.requires_grad)
        return made.requires_grad_(described.requires_grad)

    def _storage(self, described: TensorEntry, name: str) -> Any:
        storage = described.storage
        if storage.key not in self._storages:
            place = self.contents.places.get(storage.key)
            wanted = storage.elements * ITEM_SIZES.get(storage.dtype, 0)
            if place is None or (not storage.first and place.size < wanted):
                raise InputError(
                    Text(
                        f"{self.contents.path}: truncated: the data of {name} is missing; download it again",
                        f"{self.contents.path}：文件被截断：缺少 {name} 的数据；请重新下载",
                    )
                )
            made = self._put_together(described, place, name) if place.pieces else self._bytes(place, name)
            # Whether the bytes are those that were saved, where the file can tell.
            if place.checksum and place.size:
                data = (ctypes.c_char * place.size).from_address(made.data_ptr())
                if zlib.crc32(data) != place.checksum:
                    path = place.path or self.contents.path
                    raise InputError(
                        Text(
                            f"{path}: damaged: the checksum of {name} does not match; download it again",
                            f"{path}：已损坏：{name} 的校验和不符；请重新下载",
                        )
                    )
            if self.contents.is_big_endian and place.data is None:
                made = made.clone()
                made.byteswap(getattr(torch, storage.dtype))
            self._storages[storage.key] = made
        return self._storages[storage.key]

    def _bytes(self, place: StoragePlace, name: str) -> Any:
        path = place.path or self.contents.path
        if place.data is not None:
            return _storage_of(bytearray(place.data))
        if place.offset is None:
            with readable(path):
                return _storage_of(self._unpack(path, place, name))
        if place.offset + place.size > path.stat().st_size:
            raise InputError(
                Text(
                    f"{path}: truncated: the data of {name} extends past the end of the file; download it again",
                    f"{path}：文件被截断：{name} 的数据超出文件末尾；请重新下载",
                )
            )
        if place.size == 0:
            return torch.empty(0, dtype=torch.uint8).untyped_storage()
        if place.offset % _ALIGNMENT:  # kernels may expect tensors where numbers can lie
            with open(path, "rb") as stream:
                stream.seek(place.offset)
                return _storage_of(bytearray(stream.read(place.size)))
        if path not in self._mapped:
            self._mapped[path] = torch.UntypedStorage.from_file(str(path), False, path.stat().st_size)
        return self._mapped[path][place.offset : place.offset + place.size]

    def _unpack(self, path: Path, place: StoragePlace, name: str) -> bytearray:
        """A compressed member, piece by piece: memory is claimed for what is there, not for what the archive says."""
        allowed = max(_SMALL, _MOST_UNPACKED * path.stat().st_size)
        data = bytearray()
        with zipfile.ZipFile(path) as archive, archive.open(place.member) as member:
            while len(data) < place.size and (chunk := member.read(_CHUNK)):
                data += chunk
                if self._unpacked + len(data) > allowed:
                    raise InputError(
                        Text(
                            f"{path}: {name} and what precedes it would unpack to more than {allowed:,} bytes of memory; "
                            "unpack the archive and save it without compression",
                            f"{path}：{name} 及其之前的内容解压后将超过 {allowed:,} 字节内存；请解压该归档并以不压缩方式保存",
                        )
                    )
        if len(data) != place.size:
            raise InputError(
                Text(
                    f"{path}: truncated: the data of {name} ends too early; download it again",
                    f"{path}：文件被截断：{name} 的数据不完整；请重新下载",
                )
            )
        self._unpacked += len(data)
        return data

    def _put_together(self, described: TensorEntry, place: StoragePlace, name: str) -> Any:
        """A tensor of which parts were saved by themselves."""
        files = sum(path.stat().st_size for path in {piece.path for piece in place.pieces})
        if described.nbytes > max(_SMALL, _MOST_REPEATED * files):
            raise InputError(
                Text(
                    f"{self.contents.path}: damaged: {name} is larger than the files that hold it; download it again",
                    f"{self.contents.path}：已损坏：{name} 比存放它的文件还大；请重新下载",
                )
            )
        made = torch.zeros(described.shape, dtype=getattr(torch, described.dtype))
        for piece in place.pieces:
            with readable(piece.path, Text("download it again", "请重新下载")):
                contents = read_piece(piece)
            if not isinstance(contents.tree, TensorEntry):
                raise InputError(
                    Text(
                        f"{piece.path}: damaged: a part of {name} is not a tensor; download it again",
                        f"{piece.path}：已损坏：{name} 的一部分不是张量；请重新下载",
                    )
                )
            part = Loaded(contents).tensor(contents.tree, name).detach()
            target = made
            for dimension, (start, length) in enumerate(zip(piece.starts, part.shape, strict=False)):
                if start + length > made.shape[dimension]:
                    raise InputError(
                        Text(
                            f"{piece.path}: damaged: a part of {name} lies outside it; download it again",
                            f"{piece.path}：已损坏：{name} 的一部分超出其范围；请重新下载",
                        )
                    )
                target = target.narrow(dimension, start, length)
            if target.shape != part.shape or part.dtype != made.dtype:
                raise InputError(
                    Text(
                        f"{piece.path}: damaged: a part of {name} has another shape; download it again",
                        f"{piece.path}：已损坏：{name} 的一部分形状不符；请重新下载",
                    )
                )
            target.copy_(part)
        return made.untyped_storage()


def _storage_of(data: bytearray) -> Any:
    if not data:
        return torch.empty(0, dtype=torch.uint8).untyped_storage()
    return torch.frombuffer(data, dtype=torch.uint8).untyped_storage()


def _known(node: Known | Global, name: str, plain: bool) -> Any:
    if isinstance(node, Known):
        make: Any = torch.Size if node.name == "torch.Size" else torch.device
        if node.name.startswith("numpy."):
            if plain:
                return node.arguments[0]
            import numpy

            make = numpy.dtype(node.name.removeprefix("numpy.")).type
        try:
            return make(*node.arguments)
        except (TypeError, ValueError, RuntimeError):
            raise NotPlainError(name, Text(f"an invalid {node.name}", f"非法的 {node.name}")) from None
    found = getattr(torch, node.name, None) if node.module == "torch" else None
    if isinstance(found, torch.dtype):
        return found
    if plain:
        return node.dotted
    raise NotPlainError(name, Text(f"the name {node.dotted}", f"名称 {node.dotted}"))


def load_tree(contents: Checkpoint, allow_pickle: bool) -> tuple[Any, dict[int, str], bool]:
    """All of a file: the tree, the devices of its storages, and whether code of the file was allowed to run."""
    loaded = Loaded(contents)
    try:
        return loaded.tree(contents.tree), loaded.devices, False
    except NotPlainError as problem:
        return _left_to_torch(contents, problem, allow_pickle)


def _left_to_torch(
    contents: Checkpoint, problem: NotPlainError, allow_pickle: bool
) -> tuple[Any, dict[int, str], bool]:
    devices: dict[int, str] = {}

    def stay(storage: Any, device: str) -> Any:
        devices[storage._cdata] = device
        return storage

    if contents.format in (FileFormat.ZIP, FileFormat.LEGACY):
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
        raise InputError(
            Text(
                f"{contents.path}: loading failed: {type(error).__name__}: {first}",
                f"{contents.path}：加载失败：{type(error).__name__}: {first}",
            )
        ) from None


def refusal(contents: Checkpoint, problem: NotPlainError) -> InputError:
    """Why a file is not loaded, and the two ways out."""
    return InputError(
        Text(
            "{path}: {problem}, and loading it would run code that the file names; pick the weights with --part, or "
            "add --allow-pickle if you trust the file",
            "{path}：{problem}，加载它会执行文件引用的代码；请用 --part 只取权重，如果信任该文件也可加 --allow-pickle",
        ).format(path=contents.path, problem=problem.text)
    )
