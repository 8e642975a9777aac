"""Finds out how one file is laid out, and reads what it says about its contents."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import IO

from torchferry.checkpoint.model import Contents
from torchferry.checkpoint.tar_files import is_old_tar, read_tar
from torchferry.checkpoint.tensor_files import NUMPY_MAGIC, read_npy, read_npz, read_safetensors
from torchferry.checkpoint.torch_files import read_pickles, read_zip
from torchferry.errors import InputError

_START = 512
_TAR_MAGIC = slice(257, 262)
_PACKED = {
    b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz", b"\x28\xb5\x2f\xfd": "zstd", b"7z\xbc\xaf": "7-Zip",
    b"Rar!": "RAR",
}  # fmt: skip
_OTHERS = {
    b"\x89HDF": "an HDF5 file, as Keras writes",
    b"GGUF": "a GGUF file of llama.cpp",
    b"version https://git-lfs": "a pointer of Git LFS, not the file itself (git lfs pull fetches it)",
    b"PK\x05\x06": "an empty zip archive",
    b"{": "JSON, not a checkpoint: perhaps a server's error instead of the file",
}


def read_file(path: Path) -> Contents:
    """What is inside; of tensors only the descriptions are read, however large the file is."""
    with _opened(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        start = stream.read(_START)
        stream.seek(0)
        try:
            contents = _read(path, stream, size, start)
        except InputError:
            raise
        except Exception as error:  # whatever a damaged or hostile file makes the standard library raise
            raise damaged(path, error) from None
    if contents is None:
        raise InputError(
            f"{path}: {_what_else(start)}; give a file of torch.save, TorchScript, safetensors or NumPy"
        )
    return contents


def damaged(path: Path, error: Exception) -> InputError:
    """What to say when a part of a file can't be read."""
    text = str(error).splitlines()[0][:200] if str(error) else ""
    reason = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return InputError(f"{path}: damaged, or no checkpoint ({reason}); save or fetch it anew")


def _read(path: Path, stream: IO[bytes], size: int, start: bytes) -> Contents | None:
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
            raise InputError(f"{path}: not a file; give a checkpoint file")
        return open(path, "rb")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{path}: can't be read ({reason}); check the path") from None


def _what_else(start: bytes) -> str:
    if not start.strip(b"\0"):
        return (
            "an empty file"
            if not start
            else "nothing but zeros at its beginning: it was never written to the end"
        )
    if start.lstrip().lower().startswith((b"<!doctype", b"<html", b"<?xml")):
        return "a web page, not a checkpoint: the download went wrong"
    if start[_TAR_MAGIC] == b"ustar":
        return "a tar archive; unpack it first"
    for magic, name in _PACKED.items():
        if start.startswith(magic):
            return f"compressed with {name}; unpack it first"
    return next(
        (name for magic, name in _OTHERS.items() if start.startswith(magic)),
        "no checkpoint that is known here",
    )
