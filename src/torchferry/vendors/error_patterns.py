"""What a vendor's error messages mean: patterns and codes with cause and remedy; read only when asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from torchferry.errors import VendorError
from torchferry.text import Text
from torchferry.vendors.model import Source
from torchferry.vendors.schema import ERRORS_FILE, Table, read_table

_FOR_ALL = Path(__file__).parent / "any"


class Effect(Enum):
    """What a message says about the run."""

    ERROR = "error"
    CONSEQUENCE = "consequence"  # it follows from another error, which may have been logged later
    NOTICE = "notice"  # the run goes on, but not as was meant
    HARMLESS = "harmless"  # it looks like an error and is none


@dataclass(frozen=True)
class ErrorPattern:
    """One sort of message: how it is recognised, why it appears and what to do.

    {name} in the texts stands for the pattern's group of that name, {name|other} for the one of them that was found;
    {code} and {meaning} for the code that was found.
    """

    id: str
    regex: str  # "": known by its codes alone
    kind: str  # oom, distributed, unsupported_op, ...
    cause: Text
    remedy: Text
    rank: int  # lower ones are tried first
    any_vendor: bool
    effect: Effect = Effect.ERROR
    codes: tuple[str, ...] = ()
    source: str = ""
    late: str = ""  # the device reports it later than it happens, unless this is set
    frames: str = ""  # fits only an exception that went through a file with such a path


@dataclass(frozen=True)
class ErrorTable:
    """A vendor's messages in the order in which to try them, and its error codes."""

    patterns: tuple[ErrorPattern, ...]
    codes: Mapping[str, Text]
    code_forms: tuple[str, ...]  # patterns whose only group is a code
    sources: tuple[Source, ...]


def load_errors(vendor_folder: Path) -> ErrorTable:
    """Read errors.toml of a vendor folder, and that for all vendors."""
    own = _read(vendor_folder / ERRORS_FILE)
    shared = _read(_FOR_ALL / ERRORS_FILE)
    patterns = [*_patterns(own, vendor_folder.name), *_patterns(shared, "")]
    patterns.sort(key=lambda pattern: (pattern.rank, pattern.any_vendor))
    in_chinese = own.get("codes_zh", {})
    sources = tuple(
        Source(row["name"], row.get("version", ""), row.get("path", "")) for row in own.get("sources", ())
    )
    return ErrorTable(
        tuple(patterns),
        {
            code: Text(meaning, in_chinese.get(code, meaning))
            for code, meaning in own.get("codes", {}).items()
        },
        tuple(own.get("code_forms", ())),
        sources,
    )


def _read(file: Path) -> Table:
    """Without a file nothing is known."""
    data = read_table(file) if file.exists() else {}
    named = {f"code_forms[{number}]": form for number, form in enumerate(data.get("code_forms", ()), 1)}
    named |= {
        f"errors[{number}].{key}": row.get(key, "")
        for number, row in enumerate(data.get("errors", ()), 1)
        for key in ("regex", "frames")
    }
    for name, pattern in named.items():
        try:
            re.compile(pattern)
        except re.error as error:
            raise VendorError(
                f"{file}: key '{name}' is no regular expression ({error}); correct it"
            ) from None
    return data


def _patterns(data: Table, vendor: str) -> list[ErrorPattern]:
    """Those of one file; `vendor` is "" for the file that holds for all."""
    return [
        ErrorPattern(
            f"{vendor or 'any'}.{row.get('id') or '{}-{}'.format(row['class'], number)}",
            row.get("regex", ""),
            row["class"],
            Text(row["cause"], row.get("cause_zh") or row["cause"]),
            Text(row["remedy"], row.get("remedy_zh") or row["remedy"]),
            row.get("rank", 1),
            not vendor,
            Effect(row.get("effect", Effect.ERROR.value)),
            tuple(row.get("codes", ())),
            row.get("source", ""),
            row.get("late", ""),
            row.get("frames", ""),
        )
        for number, row in enumerate(data.get("errors", ()), 1)
    ]
