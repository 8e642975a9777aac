"""Paths and globs on a command line."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path

from torchferry.errors import InputError
from torchferry.text import Text

_NO_MATCH = Text("{pattern}: no file or folder matches", "{pattern}：没有匹配的文件或文件夹")


def expanded(words: Sequence[str]) -> list[Path]:
    """The paths that words stand for, each once; a pattern in quotation marks is expanded here. What lies in a folder
    that is named as well is left out."""
    paths: list[Path] = []
    for word in words:
        if Path(word).exists() or not glob.has_magic(word):
            paths.append(Path(word))
            continue
        found = sorted(glob.glob(word, recursive=True))
        if not found:
            raise InputError(_NO_MATCH.format(pattern=word))
        paths += map(Path, found)
    whole = {path.resolve(): path for path in reversed(paths)}
    return [
        path for place, path in reversed(whole.items()) if not any(above in whole for above in place.parents)
    ]
