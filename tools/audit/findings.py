"""The findings of a conversion, looked up by place."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from .model import Site
from .text import Lines

REPORTS = {"todo", "unsupported", "unknown"}
NOTES = REPORTS | {"risk", "info"}


@dataclass(frozen=True)
class Finding:
    """One record of findings.json, as far as the audit needs it."""

    kind: str
    line: int
    col: int
    text: str
    before: str
    after: str


@dataclass
class Findings:
    """All findings by file, and what was said about whole files."""

    by_path: dict[str, list[Finding]] = field(default_factory=lambda: defaultdict(list))
    files: dict[str, str] = field(default_factory=dict)

    def of(self, path: str) -> list[Finding]:
        """The findings of one file."""
        return self.by_path.get(path, [])

    def at(self, site: Site, original: Lines) -> list[Finding]:
        """The findings that speak of a site: in the lines of its statement, and about its place or its word."""
        return [item for item in self.of(site.path) if _speaks_of(item, site, original)]

    def about(self, path: str, words: tuple[str, ...]) -> list[Finding]:
        """The findings of a file that mention one of the words."""
        return [item for item in self.of(path) if any(word.lower() in item.text for word in words)]


def load(path: Path) -> Findings:
    """Reads findings.json."""
    data = json.loads(path.read_text(encoding="utf-8"))
    found = Findings()
    for row in data.get("findings", []):
        parts = [str(row.get(key) or "") for key in ("rule", "before", "after", "message")]
        item = Finding(
            str(row.get("kind", "")),
            int(row.get("line") or 0),
            int(row.get("col") or 0),
            " ".join(parts).lower(),
            parts[1],
            parts[2],
        )
        found.by_path[_normal(str(row.get("path", "")))].append(item)
    for row in data.get("files", []):
        found.files[_normal(str(row.get("path", "")))] = f"{row.get('status', '')}: {row.get('reason', '')}"
    return found


def _normal(path: str) -> str:
    return PurePosixPath(path.replace("\\", "/")).as_posix()


def _speaks_of(item: Finding, site: Site, original: Lines) -> bool:
    if not (item.line == site.line or site.first_line <= item.line <= site.last_line):
        return False
    start = original.offset(item.line, item.col - 1)
    if item.before and original.text.startswith(item.before, start):
        first, last = _chain(original.text, site)
        return start < last and first < start + len(item.before)
    return site.word in item.text  # a finding about the statement as a whole


def _chain(text: str, site: Site) -> tuple[int, int]:
    """The dotted name around a site: a finding about `CUDAGraph` speaks of the `cuda` in torch.cuda.CUDAGraph."""
    first, last = site.offset, site.offset + len(site.text)
    while first and (text[first - 1].isalnum() or text[first - 1] in "._"):
        first -= 1
    while last < len(text) and (text[last].isalnum() or text[last] in "._"):
        last += 1
    return first, last
