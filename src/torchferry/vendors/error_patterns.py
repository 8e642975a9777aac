"""What a vendor's error messages mean: patterns with cause and remedy, and error codes; read only when asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torchferry.vendors.model import Source
from torchferry.vendors.schema import ERRORS_FILE, read_table


@dataclass(frozen=True)
class ErrorPattern:
    """One sort of message: a regular expression to search for, why it appears and what to do."""

    regex: str
    kind: str  # oom, distributed, unsupported_op, ...
    cause: str
    remedy: str
    rank: int  # lower ones are tried first
    any_vendor: bool


@dataclass(frozen=True)
class ErrorTable:
    """A vendor's messages in the order in which to try them, and its error codes."""

    patterns: tuple[ErrorPattern, ...]
    codes: Mapping[str, str]
    sources: tuple[Source, ...]


def load_errors(vendor_folder: Path) -> ErrorTable:
    """Read errors.toml of a vendor folder; without one nothing is known."""
    file = vendor_folder / ERRORS_FILE
    data = read_table(file) if file.exists() else {}
    patterns = [
        ErrorPattern(
            row["regex"],
            row["class"],
            row["cause"],
            row["remedy"],
            row.get("rank", 1),
            row.get("any_vendor", False),
        )
        for row in data.get("errors", ())
    ]
    patterns.sort(key=lambda pattern: (pattern.rank, pattern.any_vendor))
    sources = tuple(
        Source(row["name"], row.get("version", ""), row.get("path", "")) for row in data.get("sources", ())
    )
    return ErrorTable(tuple(patterns), data.get("codes", {}), sources)
