"""Names that a vendor's plugin had in its early days, and what they are called today; read only when asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from torchferry.text import Text
from torchferry.vendors.schema import OLD_NAMES_FILE, read_table


@dataclass(frozen=True)
class OldName:
    """A dotted name, a method of tensors, or an argument of a call; without `new` or `write` it is only reported."""

    name: str
    method: str
    argument: str
    new: str
    write: str  # what the argument is written as today
    why: Text


@cache
def load_old_names(vendor_folder: str) -> tuple[OldName, ...]:
    """Read old_names.toml of a vendor folder, if it has one."""
    file = Path(vendor_folder) / OLD_NAMES_FILE
    if not vendor_folder or not file.exists():
        return ()
    return tuple(
        OldName(
            name=row.get("name", ""),
            method=row.get("method", ""),
            argument=row.get("argument", ""),
            new=row.get("new", ""),
            write=row.get("write", ""),
            why=Text(row["why"], row.get("why_zh") or row["why"]),
        )
        for row in read_table(file)["old"]
    )
