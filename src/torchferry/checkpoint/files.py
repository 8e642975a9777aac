"""Reads the files of checkpoints: PyTorch's of all ages, TorchScript, safetensors, NumPy's."""

from __future__ import annotations

import ast
import io
import json
import os
import stat
import struct
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from torchferry.checkpoint.classes import array, contiguous_strides, dtype_named
from torchferry.checkpoint.model import (
    Checkpoint,
    FileFormat,
    Global,
    Ordered,
    Storage,
    StoragePlace,
    TensorEntry,
)
from torchferry.checkpoint.unpickling import STORAGE_DTYPES, Bounded, Reader
from torchferry.errors import InputError, not_readable
from torchferry.text import NOTHING, Text
from torchferry.units import ITEM_SIZES

# Files that hold tensors and nothing else: safetensors, and NumPy's .npy and .npz.

NUMPY_MAGIC = b"\x93NUMPY"
_LONGEST_HEADER = 100_000_000  # of safetensors, as its library has it
_LONGEST_NUMPY_HEADER = 2**16
_SAFETENSORS_DTYPES: Mapping[str, str] = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32",
    "I16": "int16", "I8": "int8", "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool",
    "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu", "C64": "complex64",
}  # fmt: skip
SAFETENSORS_NAMES = {dtype: name for name, dtype in _SAFETENSORS_DTYPES.items()}


def read_safetensors(path: Path, stream: IO[bytes], size: int) -> Checkpoint:
    """A header in JSON, then the numbers."""
    (length,) = struct.unpack("<Q", stream.read(8))
    if length > min(_LONGEST_HEADER, size - 8):
        raise InputError(
            Text(
                f"{path}: truncated, or not a safetensors file: its header claims {length} bytes; download it "
                "again",
                f"{path}：文件被截断，或不是 safetensors 文件：文件头声称有 {length} 字节；请重新下载",
            )
        )
    header = json.loads(stream.read(length))
    metadata = header.pop("__metadata__", {})
    tree, places = Ordered(), {}
    for name, entry in header.items():
        begin, end = map(int, entry["data_offsets"])
        place = StoragePlace(end - begin, 8 + length + begin)
        tree[name] = _safetensor(path, name, entry, place, size)
        places[name] = place
    words = {str(key): str(value) for key, value in metadata.items()}
    return Checkpoint(path, FileFormat.SAFETENSORS, size, tree, places, metadata=words)


def _safetensor(
    path: Path, name: str, entry: Mapping[str, Any], place: StoragePlace, size: int
) -> TensorEntry:
    dtype = _SAFETENSORS_DTYPES.get(entry["dtype"])
    if dtype is None:
        raise InputError(
            Text(
                f"{path}: {name} has the unknown dtype {entry['dtype']}; update TorchFerry, or save it with "
                "another dtype",
                f"{path}：{name} 的数据类型 {entry['dtype']} 未知；请升级 TorchFerry，或换用其他数据类型保存",
            )
        )
    shape = tuple(map(int, entry["shape"]))
    storage = Storage(name, dtype, "cpu", place.size // ITEM_SIZES[dtype])
    tensor = TensorEntry(storage, dtype, shape, contiguous_strides(shape), 0, "cpu")
    begin = place.offset or 0
    if min(shape, default=0) < 0 or tensor.nbytes != place.size or begin < 8 or begin + place.size > size:
        raise InputError(
            Text(
                f"{path}: truncated or damaged: the data of {name} does not match its shape; download it again",
                f"{path}：被截断或已损坏：{name} 的数据与形状不符；请重新下载",
            )
        )
    return tensor


def read_npy(path: Path, stream: IO[bytes], size: int) -> Checkpoint:
    """One array, called after the file."""
    tree = Ordered({path.stem: _npy(path, stream, size, "0")})
    return Checkpoint(path, FileFormat.NUMPY, size, tree, {"0": StoragePlace(size, 0)})


def read_npz(path: Path, stream: IO[bytes], size: int) -> Checkpoint:
    """Arrays in a zip archive."""
    tree, places = Ordered(), {}
    with zipfile.ZipFile(stream) as archive:
        for name, member in members_of(path, archive).items():
            with archive.open(member) as data:
                tree[name.removesuffix(".npy")] = _npy(path, data, member.file_size, name)
            places[name] = member_place(stream, member)
    return Checkpoint(path, FileFormat.NUMPY, size, tree, places)


def _npy(path: Path, stream: IO[bytes], size: int, key: str) -> TensorEntry:
    start = stream.read(8)
    if start[:6] != NUMPY_MAGIC:
        raise InputError(
            Text(
                f"{path}: damaged: {key} is not a NumPy array; download it again",
                f"{path}：已损坏：{key} 不是 NumPy 数组；请重新下载",
            )
        )
    form = "<H" if start[6] == 1 else "<I"
    (length,) = struct.unpack(form, stream.read(struct.calcsize(form)))
    if length > _LONGEST_NUMPY_HEADER:
        raise InputError(
            Text(
                f"{path}: damaged: the header of {key} claims {length} bytes; download it again",
                f"{path}：已损坏：{key} 的文件头声称有 {length} 字节；请重新下载",
            )
        )
    header = ast.literal_eval(stream.read(length).decode("latin-1").strip())
    dtype = dtype_named(header["descr"]) if isinstance(header["descr"], str) else ""
    if not dtype:
        raise InputError(
            Text(
                f"{path}: {key} holds {header['descr']}, which no tensor can hold; save only numbers",
                f"{path}：{key} 的内容为 {header['descr']}，张量不支持；请只保存数字",
            )
        )
    begin = len(start) + struct.calcsize(form) + length
    shape = tuple(map(int, header["shape"]))
    described = array(shape, dtype, bool(header["fortran_order"]), key)
    if begin % ITEM_SIZES[dtype] or min(shape, default=0) < 0 or begin + described.nbytes > size:
        raise InputError(
            Text(
                f"{path}: truncated or damaged: the data of {key} does not match its shape; download it again",
                f"{path}：被截断或已损坏：{key} 的数据与形状不符；请重新下载",
            )
        )
    storage = Storage(key, dtype, "cpu", size // ITEM_SIZES[dtype])  # the header lies before the first number
    offset = begin // ITEM_SIZES[dtype]
    return TensorEntry(storage, dtype, shape, described.strides, offset, "cpu")


_START = 512
_TAR_MAGIC = slice(257, 262)
_PACKED = {
    b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz", b"\x28\xb5\x2f\xfd": "zstd", b"7z\xbc\xaf": "7-Zip",
    b"Rar!": "RAR",
}  # fmt: skip
_OTHERS = {
    b"\x89HDF": Text("an HDF5 file, as Keras writes", "HDF5 文件，例如 Keras 写入的文件"),
    b"GGUF": Text("a GGUF file of llama.cpp", "llama.cpp 的 GGUF 文件"),
    b"version https://git-lfs": Text(
        "a Git LFS pointer, not the file itself (git lfs pull downloads it)",
        "是 Git LFS 指针而不是文件本身（git lfs pull 可下载）",
    ),
    b"PK\x05\x06": Text("an empty zip archive", "空的 zip 归档"),
    b"{": Text(
        "JSON, not a checkpoint: perhaps a server's error message instead of the file",
        "是 JSON 而不是 checkpoint：可能是服务器返回的错误信息",
    ),
}


CHECK_PATH = Text("check the path", "请检查路径")


def read_file(path: Path) -> Checkpoint:
    """What is inside; of tensors only the descriptions are read, however large the file is."""
    with _opened(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        start = stream.read(_START)
        stream.seek(0)
        with readable(path):
            contents = _read(path, stream, size, start)
    if contents is None:
        raise InputError(
            Text(
                "{path}: {what}; give a file of torch.save, TorchScript, safetensors or NumPy",
                "{path}：{what}；请给出 torch.save、TorchScript、safetensors 或 NumPy 的文件",
            ).format(path=path, what=_what_else(start))
        )
    return contents


def damaged(path: Path, error: Exception) -> InputError:
    """What to say when a part of a file can't be read."""
    text = str(error).splitlines()[0][:200] if str(error) else ""
    reason = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return InputError(
        Text(
            f"{path}: damaged, or not a checkpoint ({reason}); save or download it again",
            f"{path}：已损坏，或不是 checkpoint（{reason}）；请重新保存或下载",
        )
    )


@contextmanager
def readable(path: Path, remedy: Text = NOTHING) -> Iterator[None]:
    """Whatever a damaged or hostile file makes the standard library raise is an InputError.

    With a `remedy` an error of the system is told apart: the file may be whole, but can't be read.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        if remedy.en and isinstance(error, OSError):
            raise not_readable(path, error, remedy) from None
        raise damaged(path, error) from None


def _read(path: Path, stream: IO[bytes], size: int, start: bytes) -> Checkpoint | None:
    if start.startswith(b"PK\x03\x04"):
        first = start[30 : 30 + int.from_bytes(start[26:28], "little")]
        return read_npz(path, stream, size) if first.endswith(b".npy") else read_zip(path, stream, size)
    if start[8:9] == b"{" and b"\0" in start[:8]:
        return read_safetensors(path, stream, size)
    if start.startswith(b"\x80"):
        return read_pickles(path, stream, size)
    if start.startswith(NUMPY_MAGIC):
        return read_npy(path, stream, size)
    if start[_TAR_MAGIC] == b"ustar" and is_old_tar(stream):
        return read_tar(path, stream, size)
    return None


def _opened(path: Path) -> IO[bytes]:
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise InputError(
                Text(
                    f"{path}: not a regular file; give a checkpoint file",
                    f"{path}：不是普通文件；请给出 checkpoint 文件",
                )
            )
        return open(path, "rb")
    except (OSError, ValueError) as error:
        reason = error if isinstance(error, OSError) else str(error)
        raise not_readable(path, reason, CHECK_PATH) from None


def _what_else(start: bytes) -> Text:
    if not start:
        return Text("an empty file", "文件为空")
    if not start.strip(b"\0"):
        return Text("starts with zeros only, so it was never fully written", "开头全是零，说明没有写完")
    if start.lstrip().lower().startswith((b"<!doctype", b"<html", b"<?xml")):
        return Text("a web page, not a checkpoint: the download failed", "是网页而不是 checkpoint：下载失败")
    if start[_TAR_MAGIC] == b"ustar":
        return Text("a tar archive; unpack it first", "是 tar 归档；请先解包")
    for magic, name in _PACKED.items():
        if start.startswith(magic):
            return Text(f"compressed with {name}; decompress it first", f"经过 {name} 压缩；请先解压")
    return next(
        (name for magic, name in _OTHERS.items() if start.startswith(magic)),
        Text("an unknown kind of file", "未知的文件类型"),
    )


_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
# Of a member of a zip archive: the lengths of its name and its extra field.
_LOCAL_HEADER = struct.Struct("<26xHH")
_LONGEST_PACKED = 2**26  # of a compressed pickle: a small file must not become a large one
_SHOWN = 3


class Window(io.RawIOBase):
    """A part of a file, as a file."""

    def __init__(self, stream: IO[bytes], begin: int, size: int) -> None:
        self._stream, self._begin, self._size, self._at = stream, begin, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        self._stream.seek(self._begin + self._at)
        data = self._stream.read(max(0, min(len(buffer), self._size - self._at)))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def members_of(path: Path, archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The members by name; what one program takes from two of a name, another would not."""
    members = {member.filename: member for member in archive.infolist()}
    if len(members) != len(archive.infolist()):
        raise InputError(
            Text(
                f"{path}: damaged: a zip archive with two members of the same name; download it again",
                f"{path}：已损坏：zip 归档中有两个同名成员；请重新下载",
            )
        )
    return members


def read_zip(path: Path, stream: IO[bytes], size: int, begin: int = 0, prefix: str = "") -> Checkpoint:
    """A zip archive of this size, which may begin within a file; the prefix is for the names of its storages."""
    window: Any = Window(stream, begin, size)
    whole = io.BufferedReader(window)  # all reads go through it: it would not notice a seek beneath it
    with zipfile.ZipFile(whole) as archive:
        members = members_of(path, archive)
        pickled = next((name for name in members if name.split("/", 1)[-1] == "data.pkl"), None)
        if pickled is None:
            shown = ", ".join(list(members)[:_SHOWN]) + (" ..." if len(members) > _SHOWN else "")
            inside = f"it holds {shown}" if members else "it is empty"
            raise InputError(
                Text(
                    f"{path}: a zip archive, but not one of torch.save: {inside}; unpack it first",
                    f"{path}：是 zip 归档，但不是 torch.save 保存的：{inside}；请先解压",
                )
            )
        folder = pickled.removesuffix("data.pkl")
        packed = members[pickled]
        size_read = packed.file_size
        if packed.compress_type != zipfile.ZIP_STORED:
            size_read = min(size_read, _LONGEST_PACKED)
        reader = Reader(Bounded(_opened_member(archive, whole, packed), size_read), prefix)
        tree = reader.load()
        places = {
            prefix + name.removeprefix(f"{folder}data/"): member_place(whole, member, begin)
            for name, member in members.items()
            if name.startswith(f"{folder}data/")
        }
        order = f"{folder}byteorder"
        is_big = order in members and _opened_member(archive, whole, members[order]).read(8) == b"big"
    has_code = any(name.startswith(f"{folder}code/") for name in members)
    is_script = has_code or f"{folder}constants.pkl" in members
    form = FileFormat.TORCHSCRIPT if is_script else FileFormat.ZIP
    places.update(reader.places)
    return Checkpoint(path, form, size, tree, places, tuple(reader.globals), is_big_endian=is_big)


def _opened_member(archive: zipfile.ZipFile, whole: Any, member: zipfile.ZipInfo) -> IO[bytes]:
    """A member, as a file; torch.save can be told to leave out checksums, on which zipfile insists."""
    place = member_place(whole, member)
    if member.CRC or place.offset is None:
        return archive.open(member)
    bare: Any = Window(whole, place.offset, place.size)
    return io.BufferedReader(bare)


def member_place(
    stream: IO[bytes] | io.BufferedReader, member: zipfile.ZipInfo, begin: int = 0
) -> StoragePlace:
    """Where the bytes of a member are."""
    if member.compress_type != zipfile.ZIP_STORED:
        return StoragePlace(member.file_size, None, member.filename)
    stream.seek(member.header_offset)
    name_length, extra_length = _LOCAL_HEADER.unpack(stream.read(30))
    data = begin + member.header_offset + 30 + name_length + extra_length
    return StoragePlace(member.file_size, data, member.filename, member.CRC)


def read_pickles(path: Path, stream: IO[bytes], size: int) -> Checkpoint:
    """The old layout, or a pickle of the standard library."""
    reader = Reader(Bounded(stream, size))
    first = reader.load()
    if first != _LEGACY_MAGIC:
        return Checkpoint(path, FileFormat.PICKLE, size, first, reader.places, tuple(reader.globals))
    Reader(Bounded(stream, size)).load()  # the version of the layout
    about: Any = Reader(Bounded(stream, size)).load()
    reader = Reader(Bounded(stream, size))
    tree = reader.load()
    keys: Any = Reader(Bounded(stream, size)).load()
    places = {}
    for key in keys:
        (elements,) = struct.unpack("<q", stream.read(8))
        count = elements * ITEM_SIZES.get(reader.storages[str(key)].dtype, 0)
        if elements < 0 or stream.tell() + count > size:
            raise InputError(
                Text(
                    f"{path}: truncated: storage {key} extends past the end of the file; save or download it again",
                    f"{path}：文件被截断：存储 {key} 超出文件末尾；请重新保存或下载",
                )
            )
        places[str(key)] = StoragePlace(count, stream.tell())
        stream.seek(count, os.SEEK_CUR)
    places.update(reader.places)
    is_big = isinstance(about, dict) and about.get("little_endian") is False
    return Checkpoint(
        path, FileFormat.LEGACY, size, tree, places, tuple(reader.globals), is_big_endian=is_big
    )


# Files of torch.save from before 0.1.10: a tar archive with the storages, the tensors and the tree in
# three members.

_MEMBERS = ("storages", "tensors", "pickle")
_MOST_DIMENSIONS = 64


class _TreeReader(Reader):
    """Tensors are referred to by numbers, classes with their source."""

    def __init__(self, stream: Bounded, tensors: dict[int, TensorEntry]) -> None:
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


def read_tar(path: Path, stream: IO[bytes], size: int) -> Checkpoint:
    """The tree, with the tensors that it refers to."""
    with tarfile.open(fileobj=stream, mode="r:") as archive:
        members = {name: archive.getmember(name) for name in _MEMBERS}
    parts = {name: Window(stream, member.offset_data, member.size) for name, member in members.items()}
    storages, places = _storages(path, parts["storages"], members["storages"])
    tensors = _tensors(parts["tensors"], members["tensors"].size, storages)
    reader = _TreeReader(Bounded(parts["pickle"], members["pickle"].size), tensors)
    tree = reader.load()
    places.update(reader.places)
    return Checkpoint(path, FileFormat.LEGACY, size, tree, places, tuple(reader.globals))


def _next(window: Window, size: int) -> Any:
    return Reader(Bounded(window, size)).load()


def _storages(
    path: Path, window: Window, member: tarfile.TarInfo
) -> tuple[dict[int, Storage], dict[str, StoragePlace]]:
    found: dict[int, Storage] = {}
    places: dict[str, StoragePlace] = {}
    for _ in range(_next(window, member.size)):
        key, device, kind = _next(window, member.size)
        dtype = STORAGE_DTYPES.get(kind.name, "") if isinstance(kind, Global) else ""
        (elements,) = struct.unpack("<q", window.read(8) or b"")
        size = elements * ITEM_SIZES.get(dtype, 0)
        if elements < 0 or window.tell() + size > member.size:
            raise InputError(
                Text(
                    f"{path}: truncated: storage {key} extends past the end of the file; download it again",
                    f"{path}：文件被截断：存储 {key} 超出文件末尾；请重新下载",
                )
            )
        found[int(key)] = Storage(str(key), dtype, str(device), elements)
        places[str(key)] = StoragePlace(size, member.offset_data + window.tell())
        window.seek(window.tell() + size)
    for target, root, first, count in _next(window, member.size):
        whole = found[int(root)]
        found[int(target)] = Storage(whole.key, whole.dtype, whole.device, int(count), int(first))
    return found, places


def _tensors(window: Window, size: int, storages: dict[int, Storage]) -> dict[int, TensorEntry]:
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
        found[int(key)] = TensorEntry(storage, storage.dtype, shape, strides, numbers[-1], storage.device)
    return found
