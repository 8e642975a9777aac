"""Wheels of plugins: which one fits this Python, this PyTorch and this machine; checked before it is unpacked."""

from __future__ import annotations

import platform
import re
import shutil
import sys
import zipfile
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path, PurePosixPath

from torchferry.errors import InputError, OutputError

_SPARE_BYTES = 1 << 24
_MOST_BYTES = 1 << 32  # no plugin is larger when it is unpacked
_MOST_METADATA = 1 << 22


@dataclass(frozen=True)
class Wanted:
    """The plugin that is looked for."""

    module: str  # torch_npu
    package: str  # torch-npu, as pip names it
    torch: str  # 2.13.0

    @property
    def pattern(self) -> str:
        """The name of its wheel; how a wheel says which Linux it is for, and whether it was made again, is open."""
        tag = python_tag()
        return f"{self.module}-{self.torch}*-{tag}-{tag}-manylinux*_{platform.machine()}.whl"

    @property
    def requirement(self) -> str:
        """As pip takes it: the newest that was made for this PyTorch."""
        return f"{self.package}=={self.torch}.*"


def python_tag() -> str:
    """cp311"""
    return f"cp{sys.version_info[0]}{sys.version_info[1]}"


def version_in(folder: Path, module: str) -> str:
    """The version of a package in a folder; "" if the folder does not say it."""
    for metadata in sorted(folder.glob(f"{module}-*.dist-info/METADATA")):
        text = metadata.read_text("utf-8", "replace")
        return str(HeaderParser().parsestr(text)["Version"] or "")
    return ""


def unpack(wheel: Path, wanted: Wanted, folder: Path) -> None:
    """Unpack a wheel if it is the one that is wanted."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            _check(wheel, archive, names, wanted)
            _check_size(wheel, archive, folder.parent)
            archive.extractall(folder)
    except FileNotFoundError:
        raise InputError(f"{wheel}: no such wheel; {_bring(wanted)}") from None
    except IsADirectoryError:
        raise InputError(f"{wheel}: is a folder; {_bring(wanted)}") from None
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise InputError(f"{wheel}: is no wheel, or a damaged one ({error}); {_bring(wanted)}") from None


def _bring(wanted: Wanted) -> str:
    return f"bring {wanted.pattern}"


def _check(wheel: Path, archive: zipfile.ZipFile, names: list[str], wanted: Wanted) -> None:
    for name in names:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name:
            raise InputError(
                f"{wheel}: holds a file with the path {name!r}, as no wheel does; {_bring(wanted)}"
            )
    info = _text_in(archive, names, "WHEEL")
    metadata = HeaderParser().parsestr(_text_in(archive, names, "METADATA"))
    if not info or f"{wanted.module}/__init__.py" not in names:
        raise InputError(f"{wheel}: is not a wheel of {wanted.module}; {_bring(wanted)}")
    version = str(metadata["Version"] or "")
    if not re.match(rf"{re.escape(wanted.torch)}(?!\d|\.\d)", version):
        raise InputError(
            f"{wheel}: is {wanted.package} {version}, made for another PyTorch than the installed torch "
            f"{wanted.torch}; {_bring(wanted)}"
        )
    tags = HeaderParser().parsestr(info).get_all("Tag") or []
    if not any(map(_is_for_here, tags)):
        raise InputError(
            f"{wheel}: is for {', '.join(tags) or 'no machine'}, this is {python_tag()} on {platform.machine()}; "
            f"{_bring(wanted)}"
        )


def _text_in(archive: zipfile.ZipFile, names: list[str], file: str) -> str:
    """A file of the folder that describes a wheel; "" if there is none."""
    found = [name for name in names if re.fullmatch(rf"[^/]+\.dist-info/{file}", name)]
    if len(found) != 1 or archive.getinfo(found[0]).file_size > _MOST_METADATA:
        return ""
    return archive.read(found[0]).decode("utf-8", "replace")


def _is_for_here(tag: str) -> bool:
    python, _, rest = tag.partition("-")
    place = rest.partition("-")[2]
    fits_python = python == python_tag() or python == f"py{sys.version_info[0]}"
    return fits_python and (place == "any" or ("linux" in place and place.endswith(f"_{platform.machine()}")))


def _check_size(wheel: Path, archive: zipfile.ZipFile, folder: Path) -> None:
    size = sum(info.file_size for info in archive.infolist())
    if size > _MOST_BYTES:
        raise InputError(f"{wheel}: would take {size} bytes, more than any plugin does")
    if size + _SPARE_BYTES > shutil.disk_usage(folder).free:
        raise OutputError(
            f"{folder}: there is no room for the {size >> 20} MiB of {wheel.name}; $TORCHFERRY_CACHE names another place"
        )
