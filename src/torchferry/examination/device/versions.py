"""Versions as vendors write them, and the rows of a vendor's matrix that they belong to."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum

from torchferry.vendors.machine import DriverRow, MachineTable, Release

# What may follow a plugin's version that a row speaks of; .post1 is another package, with a row of its own.
_SAME_PLUGIN = re.compile(r"(\.\d[\w.]*|(a|b|rc|\.dev)\d*)?(\+.*)?")
_PART = re.compile(r"(\d+)|(alpha|beta|rc|dev|post|a|b)\.?(\d*)", re.IGNORECASE)
_AT_LEAST = ">="


class VersionFit(Enum):
    """How a version stands to those of a table."""

    FITS = "fits"
    OLDER = "older"  # than the oldest that is known to do
    BELOW = "below"  # it is older than those that are named, of which none is known to be the oldest
    NEWER = "newer"  # than all that are known
    OTHER = "other"


def base(version: str) -> str:
    """2.4.0+cpu as 2.4.0, and 2.0.0a0+git1234 as 2.0.0: the release that a build belongs to."""
    found = re.match(r"\d+(\.\d+)*", version)
    return found[0] if found else version.partition("+")[0]


def minor(version: str) -> str:
    """The first two numbers of a version: 2.4 of 2.4.0+cpu."""
    return ".".join(base(version).split(".")[:2])


def release(version: str) -> tuple[int, ...]:
    """The first two numbers of a version: (2, 4) of 2.4.0+cpu."""
    return (*place(version)[0], 0, 0)[:2]


def build(version: str) -> str:
    """The build of a version: cpu of 2.4.0+cpu."""
    return version.partition("+")[2]


def begins(version: str, entry: str) -> bool:
    """Whether a version is this one or one below it: 8.1.RC1.beta1 and 8.1.RC1, but not 8.10 and 8.1."""
    given, wanted = version.lower(), entry.lower()
    return given == wanted or given.startswith(tuple(f"{wanted}{mark}" for mark in ".+-"))


def place(version: str) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
    """What versions are ordered by: 24.1.rc2 < 24.1.rc3 < 24.1.0 < 25.0.rc1 < 25.0.rc1.1, and 2.1.0 < 2.1.0.post3."""
    found = re.match(r"\d+(\.\d+)*", version)
    head = [int(part) for part in found[0].split(".")] if found else []
    while head and not head[-1]:  # 9.1 is 9.1.0
        head.pop()
    rest = re.split(r"\+|-(?!alpha|beta|rc)", version[found.end() if found else 0 :], maxsplit=1)[0]
    parts = [
        (2, int(number)) if number else (3 if word.lower() == "post" else 0, int(count or 0))
        for number, word, count in _PART.findall(rest)
    ]
    return tuple(head), (*parts, (1, 0))  # the end: after any rc, before any number


def fits(version: str, entries: Iterable[str]) -> bool:
    """Whether a version is one of these, or new enough for one that begins with >=."""
    return any(
        begins(version, entry.removeprefix(_AT_LEAST))  # 25.0.rc1 is one of 25.0
        or (entry.startswith(_AT_LEAST) and place(version) >= place(entry[2:]))
        for entry in entries
    )


def fit(version: str, entries: tuple[str, ...]) -> VersionFit:
    """How a version stands to these, of which there is at least one."""
    if fits(version, entries):
        return VersionFit.FITS
    given = place(version)
    least = [place(entry[2:]) for entry in entries if entry.startswith(_AT_LEAST)]
    named = [place(entry) for entry in entries if not entry.startswith(_AT_LEAST)]
    if least:
        return VersionFit.OLDER
    if given > max(named):
        return VersionFit.NEWER
    return VersionFit.BELOW if given < min(named) else VersionFit.OTHER


def release_of(table: MachineTable, plugin: str) -> Release | None:
    """The row of a plugin's version, the most exact one; None: no table speaks of it."""
    rows = [
        row
        for row in table.releases
        if plugin.startswith(row.plugin) and _SAME_PLUGIN.fullmatch(plugin[len(row.plugin) :])
    ]
    return max(rows, key=lambda row: len(row.plugin), default=None)


def is_newer_than_known(table: MachineTable, plugin: str) -> bool:
    """Whether no row of the same release of torch is as new; the table is a snapshot, and vendors go on."""
    alike = [row.plugin for row in table.releases if minor(row.plugin) == minor(plugin)]
    return all(place(plugin) > place(known) for known in alike or (row.plugin for row in table.releases))


def driver_row(table: MachineTable, toolkit: str) -> DriverRow | None:
    """Which drivers a toolkit goes with, the most exact row; None: no table speaks of it."""
    rows = [row for row in table.drivers if fits(toolkit, [row.toolkit])]
    return max(rows, key=lambda row: (not row.toolkit.startswith(_AT_LEAST), len(row.toolkit)), default=None)


def toolkits(table: MachineTable) -> tuple[str, ...]:
    """All that the matrix names."""
    return tuple(dict.fromkeys(name for row in table.releases for name in (*row.toolkit, *row.compatible)))


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
        named = [row for row in rows if fits(toolkit, row.toolkit)]
        rows = named or [row for row in rows if fits(toolkit, row.compatible)] or rows
    if torch:
        same = [row for row in rows if begins(base(torch), row.torch)]
        rows = same or [row for row in rows if minor(row.torch) == minor(torch)] or rows
    return rows[0] if rows else None
