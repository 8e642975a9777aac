"""Calls that rules treat as a table says: libraries that choose the device themselves, and a plugin's names of old."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from torchferry.text import Text
from torchferry.vendors import keys
from torchferry.vendors.schema import FOR_ALL, LIBRARIES_FILE, OLD_NAMES_FILE, read_file


@dataclass(frozen=True, kw_only=True)
class LibraryCalls:
    """Calls of a library that behave alike."""

    name: str = keys.text('"timm"', r".+", required=True)
    calls: tuple[str, ...] = keys.texts('["timm.data.create_loader"]', keys.DOTTED, required=True)
    knows: tuple[str, ...] = keys.texts('["cuda", "npu"]', r"[a-z]\w*")
    what: Text = keys.translated('"what it does on other devices"', r".+", required=True)
    helper: str = keys.text('"ferry_lightning"', rf"({keys.NAME})?")
    argument: str = keys.text('"device"', rf"({keys.NAME})?")
    position: int = keys.number("1", -1)
    write: str = keys.text('"{device}"')
    source: str = keys.text('"where this is known from"', r".+", required=True)


@dataclass(frozen=True)
class LibrariesFile:
    """libraries.toml of the folder `any`."""

    libraries: tuple[LibraryCalls, ...] = keys.rows(
        LibraryCalls, '[[libraries]] with name = "...", calls = ["..."], what = "...", source = "..."'
    )
    sources: tuple[keys.Source, ...] = keys.sources()


@dataclass(frozen=True, kw_only=True)
class OldName:
    """A dotted name, a method of tensors, or an argument of a call; without `new` or `write` it is only reported."""

    name: str = keys.text('"torch.acme.old"', keys.OPTIONAL_DOTTED)
    method: str = keys.text('"acme_cast"', rf"({keys.NAME})?")
    argument: str = keys.text('"use_acme"', rf"({keys.NAME})?")
    new: str = keys.text('"torch_acme.today"', keys.OPTIONAL_DOTTED)
    write: str = keys.text('"use_device=\\"acme\\""', rf"({keys.NAME}=.+)?")
    why: Text = keys.translated('"why"', r".+", required=True)
    source: str = keys.text('"where this is known from"', r".+", required=True)


@dataclass(frozen=True)
class OldNamesFile:
    """What old_names.toml says."""

    old: tuple[OldName, ...] = keys.rows(
        OldName, '[[old]] with name = "torch.acme.old", new = "torch_acme.today", why = "...", source = "..."'
    )
    sources: tuple[keys.Source, ...] = keys.sources()


@cache
def load_libraries(folder: Path = FOR_ALL) -> tuple[LibraryCalls, ...]:
    """Read libraries.toml."""
    return read_file(folder / LIBRARIES_FILE, LibrariesFile).libraries


@cache
def load_old_names(vendor_folder: str) -> tuple[OldName, ...]:
    """Read old_names.toml of a vendor folder, if it has one."""
    if not vendor_folder:
        return ()
    return read_file(Path(vendor_folder) / OLD_NAMES_FILE, OldNamesFile).old
