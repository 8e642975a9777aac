"""Versions as vendors write them, and the rows of a vendor's matrix that they belong to."""

from __future__ import annotations

import re
from collections.abc import Iterable

from torchferry.vendors.machine import MachineTable, Release

# What may follow a plugin's version that a row speaks of; .post1 is another package, with a row of its own.
_SAME_PLUGIN = re.compile(r"(\.\d[\w.]*|(a|b|rc|\.dev)\d*)?(\+.*)?")


def base(version: str) -> str:
    """2.4.0+cpu as 2.4.0."""
    return version.partition("+")[0]


def build(version: str) -> str:
    """2.4.0+cpu as cpu."""
    return version.partition("+")[2]


def begins(version: str, entry: str) -> bool:
    """Whether a version is this one or one below it: 8.1.RC1.beta1 and 8.1.RC1, but not 8.10 and 8.1."""
    given, wanted = version.lower(), entry.lower()
    return given == wanted or given.startswith((f"{wanted}.", f"{wanted}+"))


def fits(version: str, entries: Iterable[str]) -> bool:
    """Whether a version is one of these, or new enough for one that begins with >=."""
    return any(
        _numbers(version) >= _numbers(entry[2:]) if entry.startswith(">=") else begins(version, entry)
        for entry in entries
    )


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers at the beginning: 5.1.0-server as (5, 1, 0)."""
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def release_of(table: MachineTable, plugin: str) -> Release | None:
    """The row of a plugin's version, the most exact one; None: no table speaks of it."""
    rows = [row for row in table.releases if _is_of(plugin, row.plugin)]
    return max(rows, key=lambda row: len(row.plugin), default=None)


def _is_of(plugin: str, entry: str) -> bool:
    return plugin.startswith(entry) and _SAME_PLUGIN.fullmatch(plugin[len(entry) :]) is not None


def advised(
    table: MachineTable, torch: str | None, toolkit: str | None, python: str, architecture: str
) -> Release | None:
    """The newest release for what is here: the toolkit counts most, since it is the hardest to change."""
    rows = [
        row
        for row in table.releases
        if (not row.python or python in row.python)
        and (not row.architectures or architecture in row.architectures)
    ]
    if toolkit:
        rows = [row for row in rows if fits(toolkit, row.toolkit)] or rows
    if torch:
        rows = [row for row in rows if begins(base(torch), row.torch)] or rows
    return rows[0] if rows else None
