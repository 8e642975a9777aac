"""Records as JSON: frozen dataclasses by their fields, sentences in both languages, nothing that JSON can't hold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from torchferry import __version__
from torchferry.report.safe import printable

NotFinite = tuple[Any, Any, Any]  # what stands for not a number, infinity and minus infinity
NULL: NotFinite = (None, None, None)


def plain(value: Any, not_finite: NotFinite = NULL) -> Any:
    """The value in what JSON knows: a record is an object of its fields, an enum its value, a Text {"en", "zh"}."""
    if isinstance(value, str):
        return printable(value.value if isinstance(value, Enum) else value)
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return not_finite[0 if math.isnan(value) else 1 if value > 0 else 2]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {plain(key): plain(each, not_finite) for key, each in value.items()}
    if is_dataclass(value):
        return picked(value, *(each.name for each in fields(value)), not_finite=not_finite)
    if hasattr(value, "_asdict"):  # a named tuple, as Text
        return plain(value._asdict(), not_finite)
    if isinstance(value, Iterable) and not isinstance(value, Path):
        return [plain(each, not_finite) for each in value]
    return value.item() if hasattr(value, "item") else printable(str(value))


def picked(record: object, *names: str, not_finite: NotFinite = NULL) -> dict[str, Any]:
    """Some fields of a record, in this order."""
    return {name: plain(getattr(record, name), not_finite) for name in names}


def head(name: str) -> dict[str, Any]:
    """What a file begins with: which format it is, and what wrote it."""
    return {"format": name, "version": 1, "tool": f"TorchFerry {__version__}"}


def document(name: str, content: Any) -> str:
    """A whole file: which format it is, what wrote it, and the record's fields; or the list of several records."""
    import json

    body = plain(content)
    found = body if isinstance(body, dict) else {"results": body}
    return json.dumps({**head(name), **found}, indent=1) + "\n"
