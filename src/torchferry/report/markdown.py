"""Markdown: text that is shown as it is, code, rows and tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from torchferry.report.safe import one_line, with_code

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$])")


def escape(text: str) -> str:
    """Plain text that Markdown shows as it is, on one line."""
    return _SPECIAL.sub(r"\\\1", one_line(text))


def code(text: str) -> str:
    """A code span for a table cell: fenced by more backticks than it holds, with pipes escaped."""
    line = one_line(text).replace("|", "\\|")
    if not line.strip():
        return ""
    fence = "`" * (max(map(len, re.findall("`+", line)), default=0) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def prose(text: str) -> str:
    """Sentences of which the pieces between backticks are code."""
    return with_code(text, escape, code)


def row(cells: Iterable[str]) -> str:
    """A row of a table; the cells are Markdown already."""
    return f"| {' | '.join(cells)} |"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int] = ()) -> Iterator[str]:
    """The lines of a table; `numbers` are the positions of its columns of numbers."""
    right = set(numbers)
    yield row(heads)
    yield "|" + "|".join("---:" if at in right else "---" for at in range(len(heads))) + "|"
    yield from map(row, rows)
