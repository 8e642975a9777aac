"""The user's lines of code that call operators, with a few lines around them, as far as the files can be read."""

from __future__ import annotations

import tokenize
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torchferry.readiness.model import OperatorSupport, Use
from torchferry.readiness.report.tables import Overview, use_key, worst
from torchferry.report.records import file_and_line

AROUND = 2
MAX_BYTES = 4_000_000


@dataclass(frozen=True)
class SourceLine:
    """One line of a file."""

    number: int
    text: str  # "" where the file can't be read
    share: float = 0.0
    # the worst of each device; empty: the line calls nothing
    supports: tuple[OperatorSupport | None, ...] = ()
    operators: tuple[str, ...] = ()


@dataclass(frozen=True)
class SourceFile:
    """A file of the program."""

    name: str  # as the capture names it
    is_readable: bool
    share: float
    lines: tuple[SourceLine, ...]  # those that call operators, and those around them


def source_files(overview: Overview, folder: Path | None) -> list[SourceFile]:
    """The files whose lines call operators, that with the most time first. `folder`: where the program ran."""
    places: dict[str, dict[int, list[Use]]] = {}
    for use in overview.uses:
        name, line = file_and_line(use.site.place)
        if line:
            places.setdefault(name, {}).setdefault(line, []).append(use)
    judged = [{use_key(each.use): each.support for each in one.judgements} for one in overview.readinesses]
    files = [_file(name, lines, overview, judged, folder) for name, lines in places.items()]
    return sorted(files, key=lambda file: (-file.share, file.name))


def _file(
    name: str,
    lines: dict[int, list[Use]],
    overview: Overview,
    judged: Sequence[dict[object, OperatorSupport]],
    folder: Path | None,
) -> SourceFile:
    texts = read_lines(name, folder)
    wanted = set(lines)
    if texts:
        wanted |= {near for line in lines for near in range(line - AROUND, line + AROUND + 1)}
        wanted = {line for line in wanted if line in lines or 1 <= line <= len(texts)}
    shown = []
    for number in sorted(wanted):
        text = texts[number - 1] if number <= len(texts) else ""
        uses = lines.get(number, [])
        columns = [worst(column[use_key(use)] for use in uses if use_key(use) in column) for column in judged]
        operators = tuple(dict.fromkeys(use.operator for use in uses))
        shown.append(
            SourceLine(number, text, overview.share(uses), tuple(columns) if uses else (), operators)
        )
    return SourceFile(
        name, bool(texts), overview.share(use for uses in lines.values() for use in uses), tuple(shown)
    )


def read_lines(name: str, folder: Path | None) -> list[str]:
    """The lines of a Python file below the folder; none of any other file, because a capture may come from others."""
    if folder is None or "\0" in name:
        return []
    try:
        root = folder.resolve()
        path = (root / name).resolve()
        if not path.is_relative_to(root) or path.suffix != ".py" or not path.is_file():
            return []
        if path.stat().st_size > MAX_BYTES:
            return []
        with tokenize.open(path) as file:
            return file.read().splitlines()
    except (OSError, SyntaxError, UnicodeError, ValueError, RuntimeError):
        return []
