"""Reads the fact tables and brings their sources and names into one form."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

Json = Any  # the fact tables are free-form JSON
Row = dict[str, str]

_PACKAGE = re.compile(r"(?P<name>\S+) (?P<version>\d\S*(?: .*)?)")


class Facts:
    """The fact tables of one folder, read when first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[str, Json] = {}

    def table(self, path: str) -> Json:
        """One fact file; an empty table when the facts have no such file."""
        if path not in self._read:
            file = self.folder / path
            self._read[path] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        return self._read[path]

    def vendor(self, fact_id: str) -> Json:
        return self.table("vendors.json")["vendors"][fact_id]


def source_row(source: Json) -> Row:
    """One source as name, version and path."""
    if "repo" in source:
        name = source["repo"]
        parts = [source.get("commit", "")[:12], source.get("date", "")]
        if "issue" in source:
            parts.insert(0, f"issue {source['issue']}")
        version = " ".join(part for part in parts if part)
        if source.get("ref", "HEAD") != "HEAD":
            version = f"{source['ref']} {version}"
    elif "package" in source:
        match = _PACKAGE.fullmatch(source["package"])
        name, version = (match["name"], match["version"]) if match else (source["package"], "")
    else:
        name, version = _without_file_id(source.get("document", "")), source.get("date", "")
    return {"name": name, "version": version or source.get("note", ""), "path": source.get("path", "")}


def source_rows(source: Json) -> list[Row]:
    """All sources of a table, whichever way the facts hold them."""
    if isinstance(source, list):
        return [source_row(entry) for entry in source]
    if {"repo", "package", "document"} & source.keys():
        return [source_row(source)]
    return [source_row(entry) for entry in source.values()]


def names_of(source: Json) -> list[str]:
    """The source ids that an entry cites."""
    return [source] if isinstance(source, str) else list(source)


def words(value: Json) -> str:
    """A fact in words: a text as it is, a table of calls with its parts one after the other."""
    if isinstance(value, dict):
        return "; ".join(text if key == "call" else f"{key}: {text}" for key, text in value.items())
    return str(value)


def known(value: Json) -> str:
    """A fact's text, or "" where the facts say that they don't know."""
    return "" if value in (None, "unknown") else str(value)


def first_name(value: Json) -> str:
    """The name that a text begins with: `torch.profiler (patched)` is torch.profiler; "" for none and unknown."""
    text = known(value)
    match = re.match(r"[\w.\-]+", text)
    return "" if match is None or text.startswith(("none", "no ")) else match[0]


def _without_file_id(text: str) -> str:
    return re.sub(r"[;,]? ?\(?public index file id \d+\)?", "", text).strip()
