"""What a vendor's error messages mean: patterns and codes with cause and remedy; read only when asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from torchferry.text import Text
from torchferry.vendors import keys
from torchferry.vendors.schema import ERRORS_FILE, FOR_ALL, read_file


class Effect(Enum):
    """What a message says about the run."""

    ERROR = "error"
    CONSEQUENCE = "consequence"  # it follows from another error, which may have been logged later
    NOTICE = "notice"  # the run goes on, but not as was meant
    HARMLESS = "harmless"  # it looks like an error and is none


@dataclass(frozen=True, kw_only=True)
class ErrorPattern:
    """One sort of message: how it is recognised, why it appears and what to do.

    {name} in the texts stands for the pattern's group of that name, {name|other} for the one of them that was found;
    {code} and {meaning} for the code that was found.
    """

    id: str = keys.text('"out-of-memory"', r"[a-z0-9-]+")
    regex: str = keys.expression('"out of memory"', r"(?s).+")
    frames: str = keys.expression('"/urllib/"', r"(?s).+")
    codes: tuple[str, ...] = keys.texts('["207001"]', r"\w+|\*")
    kind: str = keys.text('"oom"', r"\w+", required=True, name="class")
    effect: Effect = keys.choice(Effect, '"consequence"', Effect.ERROR)
    cause: Text = keys.translated('"why"', required=True)
    remedy: Text = keys.translated('"what to do"', required=True)
    late: str = keys.text('"CUDA_LAUNCH_BLOCKING=1"')
    rank: int = keys.number("1", 1)
    source: str = keys.text('"where this is known from"')
    any_vendor: bool = False


@dataclass(frozen=True)
class ErrorsFile:
    """errors.toml: patterns of messages, and error codes."""

    errors: tuple[ErrorPattern, ...] = keys.rows(
        ErrorPattern, '[[errors]] with regex = "...", class = "...", cause = "...", remedy = "..."'
    )
    code_forms: tuple[str, ...] = keys.texts('["error code is ([0-9]+)"]', regex=True)
    codes: Mapping[str, str] = keys.text_table('[codes] with E001 = "meaning"')
    codes_zh: Mapping[str, str] = keys.text_table('[codes_zh] with E001 = "the same in Chinese"')
    sources: tuple[keys.Source, ...] = keys.sources()


@dataclass(frozen=True)
class ErrorTable:
    """A vendor's messages in the order in which to try them, and its error codes."""

    patterns: tuple[ErrorPattern, ...]
    codes: Mapping[str, Text]
    code_forms: tuple[str, ...]  # patterns whose only group is a code
    sources: tuple[keys.Source, ...]


def load_errors(vendor_folder: Path) -> ErrorTable:
    """Read errors.toml of a vendor folder, and that for all vendors."""
    own = read_file(vendor_folder / ERRORS_FILE, ErrorsFile)
    shared = read_file(FOR_ALL / ERRORS_FILE, ErrorsFile)
    patterns = [*_named(own, vendor_folder.name), *_named(shared, "")]
    patterns.sort(key=lambda pattern: (pattern.rank, pattern.any_vendor))
    codes = {code: Text(meaning, own.codes_zh.get(code, meaning)) for code, meaning in own.codes.items()}
    return ErrorTable(tuple(patterns), codes, own.code_forms, own.sources)


def _named(file: ErrorsFile, vendor: str) -> list[ErrorPattern]:
    """Those of one file; `vendor` is "" for the file that holds for all."""
    return [
        replace(
            pattern,
            id=f"{vendor or 'any'}.{pattern.id or f'{pattern.kind}-{number}'}",
            any_vendor=not vendor,
        )
        for number, pattern in enumerate(file.errors, 1)
    ]
