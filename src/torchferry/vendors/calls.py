"""Calls that rules treat as a table says: libraries that choose the device themselves, and a plugin's names of old."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from torchferry.text import Text
from torchferry.vendors.keys import (
    DOTTED,
    NAME,
    OPTIONAL_DOTTED,
    Source,
    number,
    rows,
    sources,
    text,
    texts,
    translated,
)
from torchferry.vendors.schema import LIBRARIES_FILE, OLD_NAMES_FILE, read_file

_FOR_ALL = Path(__file__).parent / "any"


@dataclass(frozen=True, kw_only=True)
class LibraryCalls:
    """Calls of a library that behave alike."""

    name: str = text('"timm"', r".+", required=True)
    calls: tuple[str, ...] = texts('["timm.data.create_loader"]', DOTTED, required=True)
    knows: tuple[str, ...] = texts('["cuda", "npu"]', r"[a-z]\w*")
    what: Text = translated('"what it does on other devices"', r".+", required=True)
    helper: str = text('"ferry_lightning"', rf"({NAME})?")
    argument: str = text('"device"', rf"({NAME})?")
    position: int = number("1", -1)
    write: str = text('"{device}"')
    source: str = text('"where this is known from"', r".+", required=True)


@dataclass(frozen=True)
class LibrariesFile:
    """libraries.toml of the folder `any`."""

    libraries: tuple[LibraryCalls, ...] = rows(
        LibraryCalls, '[[libraries]] with name = "...", calls = ["..."], what = "...", source = "..."'
    )
    sources: tuple[Source, ...] = sources()


@dataclass(frozen=True, kw_only=True)
class OldName:
    """A dotted name, a method of tensors, or an argument of a call; without `new` or `write` it is only reported."""

    name: str = text('"torch.acme.old"', OPTIONAL_DOTTED)
    method: str = text('"acme_cast"', rf"({NAME})?")
    argument: str = text('"use_acme"', rf"({NAME})?")
    new: str = text('"torch_acme.today"', OPTIONAL_DOTTED)
    write: str = text('"use_device=\\"acme\\""', rf"({NAME}=.+)?")
    why: Text = translated('"why"', r".+", required=True)
    source: str = text('"where this is known from"', r".+", required=True)


@dataclass(frozen=True)
class OldNamesFile:
    """old_names.toml."""

    old: tuple[OldName, ...] = rows(
        OldName, '[[old]] with name = "torch.acme.old", new = "torch_acme.today", why = "...", source = "..."'
    )
    sources: tuple[Source, ...] = sources()


@cache
def load_libraries(folder: Path = _FOR_ALL) -> tuple[LibraryCalls, ...]:
    """Read libraries.toml."""
    return read_file(folder / LIBRARIES_FILE, LibrariesFile).libraries


@cache
def load_old_names(vendor_folder: str) -> tuple[OldName, ...]:
    """Read old_names.toml of a vendor folder, if it has one."""
    if not vendor_folder:
        return ()
    return read_file(Path(vendor_folder) / OLD_NAMES_FILE, OldNamesFile).old
