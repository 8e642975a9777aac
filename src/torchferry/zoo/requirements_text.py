"""The requirements of a delivery: the project's own, or what it imports, without what the vendor brings."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path

from torchferry.convert.discover import Entry, read_file

TORCH = ("torch", "torchvision", "torchaudio")
# Installing them pulls in CUDA, or needs it.
_CUDA_ONLY = re.compile(r"nvidia-|cupy|apex$|dali|pynvml|tensorrt|flash-attn|xformers|bitsandbytes|triton$")
_LINE = re.compile(r"([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?\s*(.*)")


def packages(text: str) -> Iterator[tuple[str, str]]:
    """Name -> version of what is pinned."""
    for line in text.splitlines():
        name, rest = named(line)
        if name:
            pinned = re.match(r"(?:===?|@)\s*\S+", rest)
            yield name, pinned[0] if pinned else ""


def named(line: str) -> tuple[str, str]:
    """The package that a line asks for, and the rest of it."""
    line = line.partition("#")[0].strip()
    found = None if line.startswith("-") else _LINE.match(line)
    return (found[1].lower().replace("_", "-"), found[2]) if found else ("", "")


def is_unwanted(name: str) -> bool:
    """Whether a package replaces what the vendor brings, or is of use with CUDA only."""
    return name in TORCH or _CUDA_ONLY.match(name) is not None


def without_unwanted(text: str) -> tuple[str, list[str]]:
    """Requirements without those, and their names."""
    kept, left_out = [], []
    for line in text.splitlines(keepends=True):
        name, _ = named(line)
        if name and is_unwanted(name):
            left_out.append(name)
        else:
            kept.append(line)
    return "".join(kept), left_out


def from_imports(folder: Path, entries: Iterable[Entry]) -> str:
    """What the project imports and is installed here, with the version that is here."""
    entries = list(entries)
    own = {Path(entry.path).parts[0].removesuffix(".py") for entry in entries}
    own |= {Path(entry.path).stem for entry in entries if entry.path.endswith(".py")}
    known: Mapping[str, list[str]] = metadata.packages_distributions()
    lines = set()
    for name in sorted(_imported(folder, entries) - own - set(sys.stdlib_module_names)):
        for package in known.get(name, ()):
            if not is_unwanted(package.lower()) and package.lower() != "torchferry":
                lines.add(f"{package}=={metadata.version(package).partition('+')[0]}")
    return "".join(f"{line}\n" for line in sorted(lines))


def _imported(folder: Path, entries: Iterable[Entry]) -> set[str]:
    found: set[str] = set()
    for entry in entries:
        if entry.is_folder or entry.is_link or entry.problem or not entry.path.endswith(".py"):
            continue
        try:
            tree = ast.parse(read_file(os.path.join(folder, entry.path)))
        except (SyntaxError, ValueError, OSError, RecursionError, MemoryError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                found.add(node.module.partition(".")[0])
    return found
