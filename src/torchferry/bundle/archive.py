"""Writes an archive whose bytes follow from its files alone: sorted names, one time for all, no owner. Imports no torch."""

from __future__ import annotations

import gzip
import hashlib
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

from torchferry.errors import OutputError
from torchferry.text import Text

_TIME = (1980, 1, 1, 0, 0, 0)  # the first that a zip can say
_SECONDS = 315532800  # the same, as a tar says it
_MODE = 0o644
_LEVEL = 6


def write_archive(folder: Path, root: str, name: str, stream: IO[bytes]) -> None:
    """All files of a folder, below one folder of the archive; the name says which form."""
    write, files = _form(name), sorted(path for path in folder.iterdir() if path.is_file())
    write(files, root, stream)


def check_archive_name(path: Path) -> None:
    """Refuse a name that is no archive's."""
    _form(path.name)


def sha256_of(path: Path) -> str:
    """Of a file's bytes, as `sha256sum` prints it."""
    state = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            state.update(chunk)
    return state.hexdigest()


def _form(name: str) -> Callable[[list[Path], str, IO[bytes]], None]:
    for suffixes, write in _FORMS.items():
        if name.lower().endswith(suffixes):
            return write
    raise OutputError(
        Text(
            f"{name}: unknown archive format; end the name in .zip or .tar.gz",
            f"{name}：未知的归档格式；文件名请以 .zip 或 .tar.gz 结尾",
        )
    )


def _write_zip(files: list[Path], root: str, stream: IO[bytes]) -> None:
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive:
        for file in files:
            entry = zipfile.ZipInfo(f"{root}/{file.name}", _TIME)
            entry.compress_type, entry.create_system = zipfile.ZIP_DEFLATED, 3
            entry.external_attr = (0o100000 | _MODE) << 16
            entry.file_size = file.stat().st_size
            with file.open("rb") as source, archive.open(entry, "w") as target:
                shutil.copyfileobj(source, target, 1 << 20)


def _write_tar(files: list[Path], root: str, stream: IO[bytes]) -> None:
    with (
        gzip.GzipFile("", "wb", _LEVEL, stream, mtime=_SECONDS) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for file in files:
            entry = tarfile.TarInfo(f"{root}/{file.name}")
            entry.size, entry.mtime, entry.mode = file.stat().st_size, _SECONDS, _MODE
            with file.open("rb") as source:
                archive.addfile(entry, source)


_FORMS = {(".zip",): _write_zip, (".tar.gz", ".tgz"): _write_tar}
