"""Finds every trigger word of a file or folder and gives each a class."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .idents import judge_name
from .model import KEEP, TRIGGER, Call, Site
from .names import Names
from .strings import judge_string
from .text import decode
from .tree import Tree, UnparsedError, Word

COMMENT = Call(KEEP, "comment")


@dataclass(frozen=True)
class File:
    """A classified file; `tree` is None where it could not be parsed."""

    path: str
    text: str
    sites: list[Site]
    tree: Tree | None = None
    names: Names | None = None


def classify_text(text: str, path: str = "<text>") -> File:
    """The sites of one file."""
    if not TRIGGER.search(text):
        return File(path, text, [])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = Tree(text)
    except UnparsedError:
        return File(path, text, [])
    names = Names(tree)
    sites = [site for word in tree.words for site in _sites(tree, names, word, path)]
    return File(path, text, sites, tree, names)


def _sites(tree: Tree, names: Names, word: Word, path: str) -> Iterator[Site]:
    hits = list(TRIGGER.finditer(word.text))
    if not hits:
        return
    if word.kind == "name":
        yield _site(tree, path, word.start, word.text, hits[-1].group(), judge_name(tree, names, word))
        return
    call = COMMENT if word.kind == "comment" else judge_string(tree, names, word)
    for hit in hits:
        yield _site(tree, path, word.start + hit.start(), hit.group(), hit.group(), call)


def _site(tree: Tree, path: str, offset: int, text: str, word: str, call: Call) -> Site:
    line, col = tree.lines.position(offset)
    first, last = tree.span(line)
    return Site(path, line, col, offset, text, word.lower(), first, last, call)


def python_files(folder: Path) -> list[str]:
    """The Python files under a folder, as sorted relative POSIX paths."""
    found: list[str] = []
    for top, dirs, files in os.walk(folder):
        dirs[:] = sorted(name for name in dirs if not name.startswith(".git"))
        found += [(Path(top) / name).relative_to(folder).as_posix() for name in files if name.endswith(".py")]
    return sorted(found)


def classify_folder(folder: Path) -> Iterator[File]:
    """Every Python file of a folder, classified."""
    for path in python_files(folder):
        yield classify_text(decode((folder / path).read_bytes()), path)
