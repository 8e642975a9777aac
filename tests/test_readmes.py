"""The README of a package names what is there: every file that it points at exists, and holds what it is said to hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src/torchferry"
READMES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("README.md"))
_FILE = re.compile(r"`((?:[\w-]+/)*[\w-]+\.(?:py|cpp|h|toml|tsv|txt)|(?:[\w-]+/)+)`")


def _named_files(text: str) -> Iterator[str]:
    for found in _FILE.finditer(text):
        yield found[1]


def _exists(name: str, folder: Path) -> bool:
    """Beside the README, in the package above, from the package's root, or from that of the repository."""
    return any((base / name).exists() for base in (folder, folder.parent, PACKAGE, PACKAGE.parent.parent))


@pytest.mark.parametrize("readme", READMES)
def test_the_files_that_it_names_exist(readme: str) -> None:
    path = PACKAGE / readme
    missing = [name for name in _named_files(path.read_text("utf-8")) if not _exists(name, path.parent)]
    assert not missing


def test_a_file_that_is_gone_is_noticed(tmp_path: Path) -> None:
    assert list(_named_files("see `gone.py` and `also/`, not `a.b.c`")) == ["gone.py", "also/"]
    assert not _exists("gone.py", tmp_path)


def test_features_of_the_simulated_device_are_where_the_map_says() -> None:
    rows = re.findall(
        r"^\| .+ \| `([^`]+)`.* \| `([^`]+)` \|$", (PACKAGE / "sim/README.md").read_text("utf-8"), re.M
    )
    assert len(rows) > 15
    wrong = [
        (file, symbol) for file, symbol in rows if symbol not in (PACKAGE / "sim" / file).read_text("utf-8")
    ]
    assert not wrong
