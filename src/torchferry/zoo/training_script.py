"""Which script of a project trains: those that may, the likeliest first, and why."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from torchferry.convert.discover import Entry
from torchferry.convert.filesystem import read_file

_LEAD = 3  # points by which the first must be ahead to be chosen without asking
_LEAST = 5  # and how many it must have
_ELSEWHERE = {"test", "tests", "doc", "docs", "benchmark", "benchmarks", ".github", "build", "dist"}
_NO_TRAINING = re.compile(
    r"(?i)setup|conf|conftest|__init__|test_.*|.*_test|eval.*|infer.*|demo|export.*|val"
)
_TRAINS = re.compile(r"(?i)(?:pre)?train(?:ing)?")
_MAY_TRAIN = re.compile(r"(?i)(?:.*_)?(?:pre|fine)?-?_?(?:train|tune|tuning|fit|learn)(?:ing|er)?(?:_.*)?")
_STARTS = re.compile(r"(?i)main|run(?:_.*)?")
_STEPS = {"backward"}
_FITS = {"fit", "train_model", "from_cfg"}
_WORDS = re.compile(rb"\.(?:backward|fit|train_model|from_cfg)\b")  # reading a tree takes far longer


@dataclass(frozen=True)
class Candidate:
    """A script, and what speaks for it."""

    path: str  # relative, with forward slashes
    points: int
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.path} ({', '.join(self.reasons)})"


def candidates(folder: str, entries: Iterable[Entry]) -> tuple[Candidate, ...]:
    """The likeliest first; what has nothing of a script that trains is not listed."""
    found = [candidate for entry in entries if (candidate := _judged(folder, entry)) is not None]
    return tuple(sorted(found, key=lambda candidate: (-candidate.points, candidate.path)))


def clear_one(found: tuple[Candidate, ...]) -> Candidate | None:
    """The first, if nothing else is nearly as likely."""
    if not found or found[0].points < _LEAST:
        return None
    ahead = len(found) == 1 or found[0].points - found[1].points >= _LEAD
    return found[0] if ahead else None


def _judged(folder: str, entry: Entry) -> Candidate | None:
    path = entry.path.replace(os.sep, "/")
    *folders, name = path.split("/")
    stem = name.removesuffix(".py")
    if entry.is_folder or entry.is_link or entry.problem or stem == name or _ELSEWHERE & set(folders):
        return None
    if _NO_TRAINING.fullmatch(stem):
        return None
    try:
        data = read_file(os.path.join(folder, entry.path))
        if not (_WORDS.search(data) or _MAY_TRAIN.fullmatch(stem)):
            return None
        tree = ast.parse(data)
    except (SyntaxError, ValueError, OSError, RecursionError, MemoryError):
        return None
    reasons = [*_by_name(stem), *_by_content(tree)]
    kinds = {kind for kind, _, _ in reasons}
    # what is only called so is some other file; what only goes backward is a part of a program
    if "runs" not in kinds or not kinds & {"name", "trains"}:
        return None
    points = sum(points for _, points, _ in reasons) - len(folders)
    return Candidate(path, points, tuple(reason for _, _, reason in reasons))


def _by_name(stem: str) -> Iterator[tuple[str, int, str]]:
    if _TRAINS.fullmatch(stem):
        yield "name", 5, f"is called {stem}"
    elif _MAY_TRAIN.fullmatch(stem):
        yield "name", 3, f"is called {stem}"
    elif _STARTS.fullmatch(stem):
        yield "start", 2, f"is called {stem}"


def _by_content(tree: ast.Module) -> Iterator[tuple[str, int, str]]:
    if any(_is_guard(node) for node in tree.body):
        yield "runs", 2, "runs as a script"
    elif any(isinstance(node, (ast.For, ast.While, ast.With)) or _is_call(node) for node in tree.body):
        yield "runs", 1, "does something when it runs"
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    if attributes & _STEPS:
        yield "trains", 3, "goes backward"
    elif attributes & _FITS:
        yield "trains", 2, f"calls {min(attributes & _FITS)}"
    if "add_argument" in attributes:
        yield "arguments", 1, "takes arguments"


def _is_guard(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and any(
        isinstance(each, ast.Name) and each.id == "__name__" for each in ast.walk(node.test)
    )


def _is_call(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
