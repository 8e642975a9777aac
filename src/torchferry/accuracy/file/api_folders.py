"""How msprobe lays out its dumps: step0/rank0/dump.json, with stack.json and construct.json beside it. No torch."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

DUMP, STACKS, MODULES, TENSORS = "dump.json", "stack.json", "construct.json", "dump_tensor_data"
ANY_STEP = "step*"  # in the place of a step's folder: all steps of one rank
_STEP = re.compile(r"step(\d+)")
_RANK = re.compile(
    r"(rank|proc)(\d*)"
)  # without torch.distributed: rank, or proc and the number of the process


@dataclass(frozen=True, slots=True)
class StepFolder:
    """What one process has dumped of one step."""

    folder: Path
    step: int  # the first is 1


def api_dumps(path: Path) -> dict[int, tuple[Path, list[StepFolder]]]:
    """By rank: how it is named by itself, and its steps. Empty: there is no dump of msprobe."""
    if path.name == DUMP and path.is_file():
        path = path.parent
    if path.parent.name == ANY_STEP and path.parent.parent.is_dir():
        found = [
            (step, path.name, place)
            for step, _, place in _places(path.parent.parent)
            if place.name == path.name
        ]
    else:
        found = list(_places(path))
    by_name: dict[str, list[StepFolder]] = defaultdict(list)
    for step, name, folder in found:
        by_name[name].append(StepFolder(folder, step))
    ranks = _ranks(list(by_name))
    whole = path if len(by_name) == 1 else None
    return {
        ranks[name]: (whole or _named_alone(steps), sorted(steps, key=lambda each: each.step))
        for name, steps in by_name.items()
    }


def _places(path: Path) -> list[tuple[int, str, Path]]:
    """Step, rank and folder of each dump.json."""
    if (path / DUMP).is_file():
        return [(_step_of(path.parent.name), path.name if _RANK.fullmatch(path.name) else "", path)]
    found = []
    for folder in _folders(path):
        if _STEP.fullmatch(folder.name):
            found += [(_step_of(folder.name), name, place) for _, name, place in _places(folder)]
        elif _RANK.fullmatch(folder.name) and (folder / DUMP).is_file():
            found.append((_step_of(path.name), folder.name, folder))
    return found


def _folders(path: Path) -> list[Path]:
    try:
        with os.scandir(path) as entries:
            return sorted(path / each.name for each in entries if each.is_dir())
    except OSError:
        return []


def _step_of(name: str) -> int:
    match = _STEP.fullmatch(name)
    return int(match[1]) + 1 if match else 1


def _ranks(names: list[str]) -> dict[str, int]:
    """The numbers of the ranks; processes that do not know theirs are counted in the order of their numbers."""
    known: dict[str, int] = {}
    for name in sorted(names, key=lambda each: (len(each), each)):
        match = _RANK.fullmatch(name)
        is_told = match is not None and match[1] == "rank" and match[2]
        known[name] = int(match[2]) if match is not None and is_told else len(known)
    if len(set(known.values())) < len(names):  # both kinds in one folder
        return {name: at for at, name in enumerate(known)}
    return known


def _named_alone(steps: list[StepFolder]) -> Path:
    folder = steps[0].folder
    return folder if len(steps) == 1 else folder.parent.parent / ANY_STEP / folder.name
