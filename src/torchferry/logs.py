"""Reads logs of any size: which files are logs, packed or not, and their bytes in blocks of whole lines. No torch."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import itertools
import lzma
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from torchferry.errors import InputError
from torchferry.text import Text

_NAME = re.compile(r"\.(?:log|out|err|txt)(?:\.\d+)?(?:\.(?:gz|bz2|xz|zst))?$")
_NUMBERS = re.compile(r"(\d+)")


def log_files(paths: list[Path], skipped_folders: str) -> tuple[list[Path], dict[str, str]]:
    """The files that are named, and the logs below folders that are; and what can't be read, with why."""
    found: dict[object, Path] = {}
    unread: dict[str, str] = {}
    skipped = re.compile(skipped_folders) if skipped_folders else None
    for path in paths:
        if path.is_dir():
            for file in _below(path, skipped, unread):
                found.setdefault(_identity(file), file)
        elif path.exists():
            found.setdefault(_identity(path), path)
        else:
            raise InputError(
                Text(
                    f"no such file or folder: {path}; give a log, or a folder of logs",
                    f"没有该文件或文件夹：{path}；请给出日志或日志文件夹",
                )
            )
    if not found and not unread:
        where = ", ".join(map(str, paths))
        raise InputError(
            Text(
                f"{where}: no log there (*.log, *.out, *.err, *.txt, also compressed); give the folder of logs",
                f"{where}：没有日志（*.log、*.out、*.err、*.txt 及其压缩文件）；请给出日志文件夹",
            )
        )
    return list(found.values()), unread


def _below(folder: Path, skipped: re.Pattern[str] | None, unread: dict[str, str]) -> list[Path]:
    def refused(error: OSError) -> None:
        unread[os.fsdecode(error.filename)] = error.strerror or str(error)

    files: list[Path] = []
    for place, folders, names in os.walk(folder, onerror=refused):
        folders[:] = [name for name in folders if not (skipped and skipped.fullmatch(name))]
        for file in (Path(place, name) for name in names if _NAME.search(name)):
            is_file = True
            with suppress(OSError):  # said when it is read
                is_file = stat.S_ISREG(os.stat(file).st_mode)
            if is_file:
                files.append(file)
            else:  # to read it may never end
                unread[str(file)] = "a pipe or a device"
    return sorted(files, key=lambda file: [_written(file.name), str(file)])


def _identity(file: Path) -> object:
    """What is the same for all names of a file."""
    try:
        found = os.stat(file)
    except OSError:
        return file
    return found.st_dev, found.st_ino


def _written(name: str) -> list[int | str]:
    """plog-7_20240101.log comes before plog-7_20240102.log and plog-12_...: the order in which a process wrote them."""
    parts = _NUMBERS.split(name)
    return [part.zfill(24) if part.isdigit() else part for part in parts]


BLOCK = 1 << 19  # fits the cache of a processor, which makes a search of it faster by a third
Progress = Callable[[int], None]  # is told how many bytes of the file were read since the last call
Damaged = Callable[[str], None]  # is told why a log could not be read to its end
Stream = io.BufferedReader | gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile

_GZIP, _BZIP2, _XZ, _ZSTD = b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd"
_UTF_16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_SAMPLE = 1 << 12
_MOST_CONTROLS = 0.05  # of the bytes of a text
# A log that was cut while it was written may begin with zero bytes.
_CONTROLS = bytes({*range(32)} - {*b"\0\t\n\r\f\b\x1b"})


def blocks_of_file(
    file: Path, progress: Progress | None = None, damaged: Damaged | None = None
) -> Iterator[bytes]:
    """The blocks of a file. Raises OSError, also for what is no text; a torn archive gives what it has."""
    with open(file, "rb") as raw:
        yield from blocks(raw, progress, damaged)


def blocks(
    raw: io.BufferedReader, progress: Progress | None = None, damaged: Damaged | None = None
) -> Iterator[bytes]:
    """The blocks of a stream as they come, also from a pipe."""
    found = _bytes_of(raw, progress, damaged)
    first = next(found, b"")
    is_wide = first[:_SAMPLE].count(0) > len(first[:_SAMPLE]) // 4  # two bytes are a mark only where it is
    encoding = next((name for mark, name in _UTF_16.items() if is_wide and first.startswith(mark)), "")
    if encoding:
        decoder = codecs.getincrementaldecoder(encoding)("replace")
        for block in itertools.chain([first], found):
            yield decoder.decode(block).lstrip("\ufeff").encode()
        return
    sample = first[:_SAMPLE].replace(b"\0", b"")
    if len(sample) - len(sample.translate(None, _CONTROLS)) > _MOST_CONTROLS * len(sample):
        raise OSError("binary data, not a log")
    if first:
        yield first
    yield from found


def _bytes_of(raw: io.BufferedReader, progress: Progress | None, damaged: Damaged | None) -> Iterator[bytes]:
    """The unpacked bytes of a stream, as they come."""
    stream = _unpacked(raw)
    told = 0
    while True:
        try:
            block = stream.read1(BLOCK)  # what there is: `read` loses it where the archive is torn
        except (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError) as error:
            block = b""
            if damaged is not None:
                damaged(str(error))
        if progress is not None:
            now = 0
            with suppress(OSError):  # a pipe has no position
                now = raw.tell()
            progress(now - told)
            told = now
        if not block:
            return
        yield block


def _unpacked(raw: io.BufferedReader) -> Stream:
    head = raw.peek(len(_XZ))
    if head.startswith(_GZIP):
        return gzip.GzipFile(fileobj=raw)
    if head.startswith(_BZIP2):
        return bz2.BZ2File(raw)
    if head.startswith(_XZ):
        return lzma.LZMAFile(raw)
    if head.startswith(_ZSTD):
        raise OSError("packed with zstd, which is not read here; unpack it with `zstd -d`")
    return raw
