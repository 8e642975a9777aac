"""Recognises what lies in a project: licences, files that do not belong there, requirements."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from importlib import metadata
from pathlib import Path

from torchferry.conversion.discover import ProjectEntry, read_file

_FILE = re.compile(r"(licen[cs]e|copying)(\.(txt|md|rst))?", re.IGNORECASE)
# The first that fits counts: the longer names first.
_WORDS = {
    "AGPL-3.0": r"GNU AFFERO GENERAL PUBLIC LICENSE",
    "LGPL": r"GNU LESSER GENERAL PUBLIC LICENSE",
    "GPL": r"GNU GENERAL PUBLIC LICENSE",
    "Apache-2.0": r"Apache License,?\s+Version 2\.0",
    "MPL-2.0": r"Mozilla Public License",
    "CC-BY-NC": r"Attribution-NonCommercial|Creative Commons.*NonCommercial",
    "MIT": r"Permission is hereby granted, free of charge, to any person obtaining a copy",
    "BSD-3-Clause": r"Neither the name of",
    "BSD-2-Clause": r"Redistribution and use in source and binary forms",
}


def licence_files(names: Iterable[str]) -> list[str]:
    """The licence files at the top of a folder."""
    return [name for name in names if _FILE.fullmatch(name)]


def licence_name(text: str) -> str:
    """As SPDX names it; "" for one that is not recognised."""
    plain = " ".join(text.split())
    return next(
        (name for name, words in _WORDS.items() if re.search(words, plain, re.IGNORECASE | re.DOTALL)), ""
    )


# Files that do not belong into a repository of code: weights, data, what running has made.

LARGE = 10 << 20
_WEIGHTS = (".pth", ".pt", ".ckpt", ".safetensors", ".onnx", ".om", ".pth.tar", ".pdparams", ".h5", ".bin")
_DATA = (".tar", ".tar.gz", ".tgz", ".zip", ".lmdb", ".tfrecord", ".rec", ".npy", ".npz", ".parquet")
_CACHES = {"__pycache__", ".pytest_cache", ".ipynb_checkpoints", "kernel_meta", "wandb"}


class MisfitReason(Enum):
    """Why a file does not belong there."""

    LARGE = "larger than 10 MiB"
    WEIGHTS = "weights"
    DATA = "data"
    CACHE = "made by running"


def sort_of(name: str, size: int) -> MisfitReason | None:
    """Of which sort a file is, by its path with forward slashes; None: it may stay."""
    folders = name.split("/")[:-1]
    if _CACHES & set(folders) or any(folder.endswith(".egg-info") for folder in folders):
        return MisfitReason.CACHE
    if name.lower().endswith(_WEIGHTS):
        return MisfitReason.WEIGHTS
    if size > LARGE:
        return MisfitReason.LARGE
    return MisfitReason.DATA if name.lower().endswith(_DATA) else None


def leads_out(root: Path, link: str) -> bool:
    """Whether a link points to something that is not in the folder, so that nobody else has it."""
    target = os.readlink(root / link)
    if os.path.isabs(target):
        return True
    place = os.path.normpath(os.path.join(os.path.dirname(link), target))
    return place.split(os.sep)[0] == os.pardir or not os.path.exists(root / link)


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


def from_imports(folder: Path, entries: Iterable[ProjectEntry]) -> str:
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


def _imported(folder: Path, entries: Iterable[ProjectEntry]) -> set[str]:
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
