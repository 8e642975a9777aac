"""The differences between what two devices gave, and the reasons of those that stay."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
REASONS = Path(__file__).with_name("reasons.toml")

DEVICES = ("simulated", "emulated")
CUDA_NAMES = ("layer", "native")

Runs = Mapping[str, Mapping[str, Any]]  # program -> what was seen


@dataclass(frozen=True)
class Difference:
    """One thing in which the devices differ."""

    program: str
    what: str  # values, error, warnings
    ours: str
    theirs: str


@dataclass(frozen=True)
class Verdict:
    """All of them."""

    programs: int
    differences: tuple[Difference, ...]


@dataclass(frozen=True)
class Reason:
    """Why a difference stays."""

    en: str
    zh: str


def compare(vendor: str, pattern: str = "*", places: tuple[str, str] = DEVICES) -> Verdict:
    """Run the programs in two places."""
    ours, theirs = (_runs(place, vendor, pattern) for place in places)
    return Verdict(len(ours), tuple(_differences(ours, theirs)))


def _runs(place: str, vendor: str, pattern: str) -> Runs:
    command = [sys.executable, "-m", "tools.judge.running", place, vendor, pattern]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(
            f"the programs on the {place} device ended with {done.returncode}:\n{done.stderr[-2000:]}"
        )
    found: Runs = json.loads(done.stdout)
    return found


def _differences(ours: Runs, theirs: Runs) -> Iterator[Difference]:
    for program, one in ours.items():
        other = theirs[program]
        if one["error"] or other["error"]:
            if one["error"] != other["error"]:
                yield Difference(
                    program, "error", one["error"] or _result(one), other["error"] or _result(other)
                )
        elif one["values"] != other["values"]:
            yield Difference(program, "values", *_where_they_part(one["values"], other["values"]))
        if one["warnings"] != other["warnings"]:
            yield Difference(program, "warnings", _listed(one["warnings"]), _listed(other["warnings"]))


def _result(seen: Mapping[str, Any]) -> str:
    return f"no error, {_listed(seen['values'])}"


def _where_they_part(one: list[str], other: list[str]) -> tuple[str, str]:
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            return mine, theirs
    return _listed(one), _listed(other)


def _listed(words: list[str]) -> str:
    return " | ".join(words) or "nothing"


def known_reasons(places: tuple[str, str] = DEVICES) -> dict[tuple[str, str], Reason]:
    """Program and what differs -> why it stays."""
    toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    table = toml.loads(REASONS.read_text("utf-8"))
    return {
        (program, what): Reason(row["en"], row["zh"])
        for row in table[places[0]]
        for program in row.get("programs", [row.get("program")])
        for what in row["what"]
    }


def unexplained(
    verdict: Verdict, reasons: Mapping[tuple[str, str], Reason], is_whole: bool = True
) -> list[str]:
    """What needs a look: differences without a reason, and reasons without a difference."""
    found = {(difference.program, difference.what) for difference in verdict.differences}
    new = [
        f"{program}: {what} differ, and reasons.toml does not say why"
        for program, what in sorted(found - set(reasons))
    ]
    if not is_whole:
        return new
    gone = sorted(set(reasons) - found)
    return [
        *new,
        *(f"{program}: {what} do not differ any more; take the reason out" for program, what in gone),
    ]
