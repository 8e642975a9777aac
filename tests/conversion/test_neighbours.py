"""The modules of a project: which file a name means, and who uses it."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchferry.conversion.program.neighbours import Neighbours


def neighbours(folder: Path, files: dict[str, str], with_paths: bool = True) -> Neighbours:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return Neighbours(folder, paths=[*files] if with_paths else None)


FILES = {
    "main.py": "from lib import run, tools\nfrom lib.deep.core import go as start\n",
    "helper.py": "X = 1\n",
    "lib/__init__.py": "from .work import run\nfrom .stars import *\n",
    "lib/work.py": "from . import tools\ndef run(): pass\nclass Net:\n    def forward(self): pass\n",
    "lib/tools.py": "WHERE = 'cuda'\n",
    "lib/stars.py": "ALL = 1\n",
    "lib/deep/__init__.py": "",
    "lib/deep/core.py": "from ..work import run as go\nfrom ...helper import X\n",
    "src/pkg/__init__.py": "Y = 2\n",
    "broken.py": "def (\n",
}


@pytest.mark.parametrize(
    ("at", "name", "path", "own_name", "attributes"),
    [
        ("main.py", "lib.work.run", "lib/work.py", "run", ()),
        ("main.py", "lib.run", "lib/work.py", "run", ()),
        ("main.py", "lib.ALL", "lib/stars.py", "ALL", ()),
        ("main.py", "lib.deep.core.go", "lib/work.py", "run", ()),
        ("main.py", "lib.work.Net.forward", "lib/work.py", "Net", ("forward",)),
        ("main.py", "pkg.Y", "src/pkg/__init__.py", "Y", ()),
        ("lib/work.py", ".tools.WHERE", "lib/tools.py", "WHERE", ()),
        ("lib/deep/core.py", "..tools.WHERE", "lib/tools.py", "WHERE", ()),
        ("lib/deep/core.py", "helper.X", "helper.py", "X", ()),
        ("lib/work.py", "tools.WHERE", "lib/tools.py", "WHERE", ()),
    ],
)
def test_find(
    tmp_path: Path, at: str, name: str, path: str, own_name: str, attributes: tuple[str, ...]
) -> None:
    found = neighbours(tmp_path, FILES).find(at, name)
    assert found is not None
    assert (found.path, found.name, found.attributes) == (path, own_name, attributes)


@pytest.mark.parametrize("name", ["torch.nn.Linear", "lib.nothing", "lib", "broken.f", ".....x", "", "."])
def test_what_is_not_there_is_not_found(tmp_path: Path, name: str) -> None:
    assert neighbours(tmp_path, FILES).find("main.py", name) is None


def test_circles_end(tmp_path: Path) -> None:
    files = {"a.py": "from b import x\nfrom b import *\n", "b.py": "from a import x\nfrom a import *\n"}
    known = neighbours(tmp_path, files)
    assert known.find("a.py", "b.x") is None
    assert known.find("a.py", "b.y") is None


def test_without_a_folder_nothing_is_known() -> None:
    known = Neighbours()
    assert known.find("main.py", "lib.run") is None
    assert known.importers("main.py", "run") == ()


@pytest.mark.parametrize(
    ("path", "word", "expected"),
    [
        ("lib/tools.py", "WHERE", []),
        (
            "lib/work.py",
            "run",
            [("lib/__init__.py", "run", "run"), ("main.py", "run", "run"), ("lib/deep/core.py", "go", "run")],
        ),
        ("helper.py", "X", [("lib/deep/core.py", "X", "X")]),
        ("lib/__init__.py", "tools", [("main.py", "run", "run")]),
    ],
)
def test_importers(tmp_path: Path, path: str, word: str, expected: list[tuple[str, str, str]]) -> None:
    found = neighbours(tmp_path, FILES).importers(path, word)
    assert sorted((item.path, item.alias, item.name) for item in found) == sorted(expected)


def test_importers_of_the_module_itself(tmp_path: Path) -> None:
    files = {"config.py": "W = 1\n", "a.py": "import config\nconfig.W\n", "b.py": "import config as c\nc.W\n"}
    found = neighbours(tmp_path, files).importers("config.py", "W")
    assert [(item.path, item.alias, item.name) for item in found] == [
        ("a.py", "config", ""),
        ("b.py", "c", ""),
    ]


def test_a_single_file_knows_those_beside_it(tmp_path: Path) -> None:
    files = {"config.py": "W = 1\n", "a.py": "from config import W\n", "below/b.py": "from config import W\n"}
    found = neighbours(tmp_path, files, with_paths=False).importers("config.py", "W")
    assert [item.path for item in found] == ["a.py"]


def test_importers_that_ask_for_a_member(tmp_path: Path) -> None:
    files = {
        "config.py": "class C:\n    where = 1\n",
        "a.py": "from config import C\nC.where\n",
        "b.py": "from config import C\nC['where']\n",
        "c.py": "from config import C\nwhere = 1\n",
    }
    found = neighbours(tmp_path, files).importers_with_member("config.py", "where")
    assert [item.path for item in found] == ["a.py", "b.py"]


@pytest.mark.parametrize(
    ("other", "text"),
    [
        ("package/__init__.py", "from .layers import Net"),
        ("main.py", "import package.layers"),
        ("deep/er/main.py", "from package import layers as parts"),
    ],
)
def test_is_imported(tmp_path: Path, other: str, text: str) -> None:
    files = {"package/__init__.py": "", "package/layers.py": "Net = 1", other: text}
    assert neighbours(tmp_path, files).is_imported("package/layers.py")


def test_is_not_imported(tmp_path: Path) -> None:
    files = {"layers.py": "Net = 1", "main.py": "from other.layers import Net\nlayers = 1"}
    assert not neighbours(tmp_path, files).is_imported("layers.py")
