"""Modules import from layers above their own alone: the list is the section "Layers" of the architecture page."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src/torchferry"


def _section(language: str, title: str) -> str:
    page = (ROOT / f"docs/{language}/how-it-works/architecture.md").read_text("utf-8")
    return page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def _layers(section: str) -> dict[str, int]:
    """Part -> the number of its line."""
    (block,) = re.findall(r"```text\n(.*?)```", section, re.DOTALL)
    return {part: number for number, line in enumerate(block.splitlines()) for part in line.split()}


def _imported_parts(code: str) -> Iterator[str]:
    """`vendors` of `from torchferry.vendors.model import Vendor`, wherever it stands."""
    for node in ast.walk(ast.parse(code)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            package, _, rest = name.partition(".")
            if package == "torchferry" and rest and rest != "__version__":
                yield rest.partition(".")[0]


def _wrong_imports(module: str, code: str, layers: dict[str, int]) -> set[str]:
    own = Path(module).parts[0].removesuffix(".py")
    found = set(_imported_parts(code)) - {own}
    return {part for part in found if layers[part] >= layers[own]}


SECTION = _section("en", "Layers")
LAYERS = _layers(SECTION)


@pytest.mark.parametrize(
    ("module", "code", "wrong"),
    [
        ("perf/run.py", "from torchferry.traces import names", set()),
        ("readiness/run.py", "from torchferry.perf import run", {"perf"}),
        ("readiness/run.py", "def late():\n    import torchferry.perf.run", {"perf"}),
        ("proof/run.py", "from torchferry.perf import run", {"perf"}),  # a neighbour
        ("proof/run.py", "from torchferry import __version__, errors", set()),
        ("sim/run.py", "from torchferry.accuracy import dumping", {"accuracy"}),
    ],
)
def test_what_is_wrong(module: str, code: str, wrong: set[str]) -> None:
    assert _wrong_imports(module, code, LAYERS) == wrong


def test_modules_import_from_layers_above_their_own() -> None:
    modules = {path.relative_to(PACKAGE).as_posix(): path for path in PACKAGE.rglob("*.py")}
    modules.pop("__init__.py")
    found = {
        module: _wrong_imports(module, path.read_text("utf-8"), LAYERS) for module, path in modules.items()
    }
    assert {module: wrong for module, wrong in found.items() if wrong} == {}


def test_every_part_has_a_layer() -> None:
    parts = {
        path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()
    }
    assert LAYERS.keys() == parts - {"__init__"}


def test_both_languages_say_the_same() -> None:
    assert _layers(_section("zh", "层次")) == LAYERS
