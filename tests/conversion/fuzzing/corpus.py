"""Stretches of real modules: the standard library, torch, and libraries around it as they are installed."""

from __future__ import annotations

import ast
import importlib.util
import sysconfig
import warnings
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from random import Random

from torchferry.conversion.program.blocks import first_line

PACKAGES = ("torch", "transformers", "accelerate", "lightning", "torchvision", "timm")
_MOST_LINES = 120
_LARGEST = 300_000  # bytes of a file worth parsing


@cache
def files() -> tuple[list[Path], list[Path]]:
    """All modules, and those which speak of CUDA."""
    found = sorted(path for folder in _folders() for path in folder.rglob("*.py") if _is_fit(path))
    return found, [path for path in found if b"cuda" in path.read_bytes()]


def _folders() -> Iterator[Path]:
    yield Path(sysconfig.get_path("stdlib")) / "test"
    yield Path(sysconfig.get_path("stdlib")) / "asyncio"
    yield Path(sysconfig.get_path("stdlib")) / "unittest"
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            yield Path(spec.origin).parent


def _is_fit(path: Path) -> bool:
    return path.stat().st_size < _LARGEST


@lru_cache(maxsize=256)
def _statements(path: Path) -> list[tuple[int, str]]:
    """The statements of a module: lines and text of each."""
    data = path.read_bytes()
    try:
        text = data.decode("utf-8").replace("\r\n", "\n").replace("\f", "")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    lines = text.split("\n")
    starts = [first_line(node) for node in tree.body] + [len(lines) + 1]
    pieces = ["\n".join(lines[begin - 1 : end - 1]) for begin, end in pairwise(starts)]
    return [(piece.count("\n") + 1, piece) for piece in pieces]


def stretch(random: Random) -> str:
    """A few statements of a module, one after the other; half of them from modules that speak of CUDA."""
    everything, of_cuda = files()
    statements: list[tuple[int, str]] = []
    while not statements:
        statements = _statements(random.choice(of_cuda if random.random() < 0.6 else everything))
    index = random.randrange(len(statements))
    chosen: list[str] = []
    lines = 0
    while index < len(statements) and lines < _MOST_LINES:
        count, text = statements[index]
        lines += count
        chosen.append(text if count <= _MOST_LINES else _part(text, random))
        index += 1
        if random.random() < 0.3:
            break
    return "\n".join(chosen) + "\n"


def _part(text: str, random: Random) -> str:
    """A method or function from within a long definition, moved to the left as it stands."""
    tree = ast.parse(text)
    inner = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    fitting = [node for node in inner if (node.end_lineno or 0) - node.lineno < _MOST_LINES]
    if not fitting:
        return ""
    node = random.choice(fitting)
    lines = text.split("\n")[first_line(node) - 1 : node.end_lineno]
    indent = len(lines[0]) - len(lines[0].lstrip())
    return "if True:\n" + "\n".join(lines) if indent else "\n".join(lines)
