"""A delivery as checks see it: its files, its code, the zoo that it is for; and what lies in any project."""

from __future__ import annotations

import ast
import contextlib
import difflib
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from importlib import metadata
from pathlib import Path

from torchferry.conversion.discover import ProjectEntry, read_file
from torchferry.errors import InputError
from torchferry.source.decode import UndecodableError, decode
from torchferry.source.module import ParseError, PythonModule
from torchferry.text import Language, Text, did_you_mean, then
from torchferry.vendors.model import Vendor
from torchferry.vendors.zoo import ZooTable
from torchferry.zoo.evidence import SUFFIXES

# The folder of a delivery: which framework, domain and model it names.


@dataclass(frozen=True)
class DeliveryPath:
    """The parts of the path that the zoo's layout names."""

    framework: str
    domain: str
    model: str
    fixed: bool  # whether the parts between them are those of the layout


@dataclass(frozen=True)
class DeliveryRequest:
    """What a user has said of a delivery that is to be made."""

    path: Path
    origin: Path
    main: str = ""  # the script that trains
    arguments: str = ""  # that make its training short
    results: Path | None = None  # of the migrated program
    original: Path | None = None  # of the original
    source: str = ""
    commit: str = ""
    dataset: str = ""


def parse_place(path: Path, table: ZooTable) -> DeliveryPath:
    """The parts of a path that ends as the layout says; what is missing is ""."""
    wanted = table.layout.split("/")
    given = Path(os.path.abspath(path)).parts[-len(wanted) :]
    found = {"framework": "", "domain": "", "model": ""}
    fixed = len(given) == len(wanted)
    for name, part in zip(wanted, given, strict=False):
        key = name.strip("{}")
        if key in found:
            found[key] = part
        else:
            fixed = fixed and name == part
    return DeliveryPath(**found, fixed=fixed)


def checked_place(path: Path, table: ZooTable) -> DeliveryPath:
    """The same for a folder that is to be made: a path that does not fit is refused."""
    place = parse_place(path, table)
    if not place.fixed or not place.model:
        example = table.layout.format(
            framework=table.frameworks[0], domain=table.domains[0], model="ResNet50"
        )
        raise InputError(
            Text(
                f"{path}: {table.name} requires the path {table.layout}, such as {example}; rename the folder",
                f"{path}：{table.name} 要求路径为 {table.layout}，例如 {example}；请重命名文件夹",
            )
        )
    if place.framework not in table.frameworks:
        known = ", ".join(table.frameworks)
        meant = _meant(place.framework, table.frameworks)
        unknown = Text(
            f"{path}: '{place.framework}' is not a framework of {table.name}; known: {known}",
            f"{path}：'{place.framework}' 不是 {table.name} 的框架；已知的有 {known}",
        )
        raise InputError(then(unknown, meant))
    meant = _meant(place.domain, table.domains)
    if meant.en:
        unknown = Text(
            f"{path}: '{place.domain}' is not a domain of {table.name}",
            f"{path}：'{place.domain}' 不是 {table.name} 的领域",
        )
        raise InputError(then(unknown, meant))
    if not re.fullmatch(r"\w[\w.+-]*", place.model):
        raise InputError(
            Text(
                f"{path}: '{place.model}' is not a valid model name; use letters, digits, . - + _",
                f"{path}：'{place.model}' 不是合法的模型名；请使用字母、数字、. - + _",
            )
        )
    return place


def closest(name: str, known: tuple[str, ...]) -> str:
    """The known name that another one was most probably meant to be; "": it is one, or is like none."""
    if name in known:
        return ""
    folded = {each.casefold(): each for each in known}
    found = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.8)
    return folded[found[0]] if found else ""


def _meant(name: str, known: tuple[str, ...]) -> Text:
    close = closest(name, known)
    return did_you_mean([close] if close else [])


FRAMEWORK = "PyTorch"  # the one whose programs are converted and read
READMES: Mapping[Language, str] = {"zh": "README.md", "en": "README.en.md"}
REQUIREMENTS = "requirements.txt"
PLACEHOLDER = "<TODO"
_SKIPPED = {".git", ".hg", ".svn"}
_NO_TRAINING = {"test", "tests", "doc", "docs"}  # folders whose code shows nothing of a training
_WELL_KNOWN = frozenset({"torch"})


@dataclass(frozen=True)
class Delivery:
    """One folder of a model zoo."""

    root: Path
    vendor: Vendor
    table: ZooTable
    tolerance: float | None = None  # None: the zoo's own

    @cached_property
    def place(self) -> DeliveryPath:
        """What the folder's path names."""
        return parse_place(self.root, self.table)

    @property
    def is_read(self) -> bool:
        """Whether the programs of its framework can be read; one that is not known is judged as PyTorch's."""
        return self.place.framework == FRAMEWORK or self.place.framework not in self.table.frameworks

    @cached_property
    def files(self) -> tuple[str, ...]:
        """All files, relative, with forward slashes; what can't be opened without harm, as a pipe, is left out."""
        return tuple(sorted(name for name, mode in self._walk() if stat.S_ISREG(mode)))

    @cached_property
    def links(self) -> tuple[str, ...]:
        """All links, to files and to folders; no link is followed."""
        return tuple(sorted(name for name, mode in self._walk() if stat.S_ISLNK(mode)))

    def _walk(self) -> Iterator[tuple[str, int]]:
        for folder, folders, names in os.walk(self.root):
            folders[:] = [name for name in folders if name not in _SKIPPED]
            for name in (*folders, *names):
                path = os.path.join(folder, name)
                with contextlib.suppress(OSError):
                    yield os.path.relpath(path, self.root).replace(os.sep, "/"), os.lstat(path).st_mode

    def read(self, name: str) -> str | None:
        """The text of a file, whatever the case of its name; None: it is not there, or can't be read."""
        found = next((each for each in self.files if each.casefold() == name.casefold()), None)
        try:
            return None if found is None else (self.root / found).read_text("utf-8", "replace")
        except OSError:
            return None

    def log(self, name: str) -> Path | None:
        """The log of this name among the scripts, whatever its form."""
        for suffix in SUFFIXES:
            path = f"{self.table.run_folder}/{name}{suffix}"
            if path in self.files:
                return self.root / path
        return None

    @cached_property
    def training(self) -> dict[str, PythonModule]:
        """The Python files that may have to do with training."""
        return {
            name: module
            for name, module in self.modules.items()
            if not _NO_TRAINING & set(name.split("/")[:-1])
        }

    @cached_property
    def modules(self) -> dict[str, PythonModule]:
        """Every Python file that can be parsed."""
        found = {}
        for name in self.files:
            if name.endswith(".py"):
                try:
                    found[name] = PythonModule(decode((self.root / name).read_bytes()), _WELL_KNOWN)
                except (OSError, UndecodableError, ParseError):
                    continue
        return found


# What lies in a project: licences, files that do not belong there, requirements.

_LICENCE_FILE = re.compile(r"(licen[cs]e|copying)(\.(txt|md|rst))?", re.IGNORECASE)
# The first that fits counts: the longer names first.
_LICENCE_WORDS = {
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
    return [name for name in names if _LICENCE_FILE.fullmatch(name)]


def licence_name(text: str) -> str:
    """As SPDX names it; "" for one that is not recognised."""
    plain = " ".join(text.split())
    return next(
        (
            name
            for name, words in _LICENCE_WORDS.items()
            if re.search(words, plain, re.IGNORECASE | re.DOTALL)
        ),
        "",
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


def parsed(path: str) -> ast.Module | None:
    """The tree of a file; None: it can't be read, or is no Python."""
    try:
        return ast.parse(read_file(path))
    except (SyntaxError, ValueError, OSError, RecursionError, MemoryError):
        return None


def imported_modules(tree: ast.Module | None) -> Iterator[tuple[ast.Import | ast.ImportFrom, str]]:
    """Every import statement with each module that it names; nothing of a file that has no tree."""
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node, node.module


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
    imported = {
        name.partition(".")[0]
        for entry in entries
        if not (entry.is_folder or entry.is_link or entry.problem) and entry.path.endswith(".py")
        for node, name in imported_modules(parsed(os.path.join(folder, entry.path)))
        if isinstance(node, ast.Import) or not node.level
    }
    for name in sorted(imported - own - set(sys.stdlib_module_names)):
        for package in known.get(name, ()):
            if not is_unwanted(package.lower()) and package.lower() != "torchferry":
                lines.add(f"{package}=={metadata.version(package).partition('+')[0]}")
    return "".join(f"{line}\n" for line in sorted(lines))
