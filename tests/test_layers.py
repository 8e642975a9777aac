"""Modules import from layers above their own alone: the list is the section "Layers" of the architecture page."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src/torchferry"

Exceptions = dict[str, set[str]]  # module -> parts that it may import although they lie below


def _section(language: str, title: str) -> str:
    page = (ROOT / f"docs/{language}/architecture.md").read_text("utf-8")
    return page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def _layers(section: str) -> dict[str, int]:
    """Part -> the number of its line."""
    (block,) = re.findall(r"```text\n(.*?)```", section, re.DOTALL)
    return {part: number for number, line in enumerate(block.splitlines()) for part in line.split()}


def _exceptions(section: str) -> Exceptions:
    lines = re.findall(r"^- `([\w/.]+)` (?:imports|导入) ([^:：]+)", section, re.MULTILINE)
    return {module: set(re.findall(r"`(\w+)`", parts)) for module, parts in lines}


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


def _wrong_imports(module: str, code: str, layers: dict[str, int], exceptions: Exceptions) -> set[str]:
    own = Path(module).parts[0].removesuffix(".py")
    allowed = exceptions.get(module, set())
    found = set(_imported_parts(code)) - {own}
    return {part for part in found - allowed if layers[part] >= layers[own]} | (allowed - found)


SECTION = _section("en", "Layers")
LAYERS = _layers(SECTION)
EXCEPTIONS = _exceptions(SECTION)


@pytest.mark.parametrize(
    ("module", "code", "wrong"),
    [
        ("perf/run.py", "from torchferry.traces import names", set()),
        ("ops/run.py", "from torchferry.perf import run", {"perf"}),
        ("ops/run.py", "def late():\n    import torchferry.perf.run", {"perf"}),
        ("prove/run.py", "from torchferry.perf import run", {"perf"}),  # a neighbour
        ("prove/run.py", "from torchferry import __version__, errors", set()),
        ("sim/run.py", "from torchferry.accuracy import dumping", {"accuracy"}),
        ("sim/device_module/__init__.py", "from torchferry.accuracy import dumping", set()),
        ("sim/device_module/__init__.py", "", {"accuracy"}),  # an exception that nobody needs
    ],
)
def test_what_is_wrong(module: str, code: str, wrong: set[str]) -> None:
    assert _wrong_imports(module, code, LAYERS, EXCEPTIONS) == wrong


def test_modules_import_from_layers_above_their_own() -> None:
    modules = {path.relative_to(PACKAGE).as_posix(): path for path in PACKAGE.rglob("*.py")}
    modules.pop("__init__.py")
    assert modules.keys() >= EXCEPTIONS.keys()
    found = {
        module: _wrong_imports(module, path.read_text("utf-8"), LAYERS, EXCEPTIONS)
        for module, path in modules.items()
    }
    assert {module: wrong for module, wrong in found.items() if wrong} == {}


def test_every_part_has_a_layer() -> None:
    parts = {
        path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()
    }
    assert LAYERS.keys() == parts - {"__init__"}


def test_both_languages_say_the_same() -> None:
    chinese = _section("zh", "层次")
    assert _layers(chinese) == LAYERS
    assert _exceptions(chinese) == EXCEPTIONS
