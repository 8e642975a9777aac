"""An installed TorchFerry has all the files that it reads."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "torchferry"
_FOR_DEVELOPERS = {"README.md"}


def _declared() -> set[Path]:
    tomllib = pytest.importorskip("tomllib") if sys.version_info < (3, 11) else __import__("tomllib")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = settings["tool"]["setuptools"]["package-data"]["torchferry"]
    return {path for pattern in patterns for path in PACKAGE.glob(pattern)}


def test_every_file_of_data_is_packaged() -> None:
    files = {
        path
        for path in PACKAGE.rglob("*")
        if path.is_file()
        and path.suffix not in {".py", ".pyc"}
        and path.name not in _FOR_DEVELOPERS
        and not path.name.startswith(".")
    }
    assert sorted(map(str, files - _declared())) == []
