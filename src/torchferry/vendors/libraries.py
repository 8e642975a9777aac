"""Libraries that choose the device themselves: which of their calls do, and what they do without CUDA."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from torchferry.text import Text
from torchferry.vendors.schema import LIBRARIES_FILE, read_table

_FOR_ALL = Path(__file__).parent / "any"


@dataclass(frozen=True)
class Library:
    """Calls of a library that behave alike."""

    name: str
    calls: tuple[str, ...]
    knows: tuple[str, ...]  # device types that it looks for or takes by itself
    what: Text  # what it does on other devices
    helper: str  # the module that a conversion adds to teach it the device; "" if there is none
    argument: str  # decides the device where it is given; "" if no argument does
    position: int  # of that argument; -1 if it must be named
    write: str  # the argument's value, with {device}
    source: str


@cache
def load_libraries(folder: Path = _FOR_ALL) -> tuple[Library, ...]:
    """Read libraries.toml."""
    return tuple(
        Library(
            name=row["name"],
            calls=tuple(row["calls"]),
            knows=tuple(row.get("knows", ())),
            what=Text(row["what"], row.get("what_zh") or row["what"]),
            helper=row.get("helper", ""),
            argument=row.get("argument", ""),
            position=row.get("position", -1),
            write=row.get("write", ""),
            source=row["source"],
        )
        for row in read_table(folder / LIBRARIES_FILE)["libraries"]
    )
