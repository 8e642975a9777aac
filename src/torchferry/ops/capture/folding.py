"""Folds calls: the same operator with the same arguments from the same place is one row, however often it comes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torchferry.ops.capture.values import Key, value_of
from torchferry.ops.model import Argument, Signature, Site, Use

# A loop over sequences of a thousand lengths calls each operator with a thousand shapes: these are kept of them.
MOST_SIGNATURES = 200


@dataclass
class Row:
    """What has been added up for one signature at one site."""

    expanded: bool
    results: tuple[Key, ...] | None = None  # until the first call has returned
    calls: int = 0
    nanoseconds: int = 0
    quickest: int | None = None  # nanoseconds
    varied: bool = False

    def add_time(self, nanoseconds: int) -> None:
        """Of one call."""
        self.nanoseconds += nanoseconds
        self.quickest = nanoseconds if self.quickest is None else min(self.quickest, nanoseconds)

    @property
    def seconds(self) -> float:
        """Of all calls. The first one may pay for what the others find made: the quickest counts for each of them,
        unless they differ."""
        steady = self.nanoseconds if self.varied else (self.quickest or 0) * self.calls
        return steady / 1e9


@dataclass(frozen=True)
class PastCall:
    """A call that has been counted, and what is needed to count it elsewhere."""

    func: Any
    inside: str
    arguments: Key
    row: Row
    nanoseconds: int


class Folded:
    """The table of a process."""

    def __init__(self) -> None:
        # operator and site -> arguments -> row. Two levels, so that the shapes at one site can be counted.
        self._rows: dict[tuple[Any, Site], dict[Key, Row]] = {}
        self._sites: dict[Site, Site] = {}

    def row(self, func: Any, site: Site, arguments: Key, expanded: bool) -> Row:
        """The row for a call that is about to be made."""
        site = self._sites.setdefault(site, site)
        rows = self._rows.setdefault((func, site), {})
        row = rows.get(arguments)
        if row is None:
            if len(rows) < MOST_SIGNATURES:
                row = rows[arguments] = Row(expanded)
            else:
                row = next(reversed(rows.values()))
                row.varied = True
        row.calls += 1
        return row

    def move(self, call: PastCall, site: Site) -> None:
        """Count a call elsewhere than where it was counted."""
        call.row.calls -= 1
        call.row.nanoseconds -= call.nanoseconds
        row = self.row(call.func, site, call.arguments, call.row.expanded)
        row.add_time(call.nanoseconds)
        row.results = row.results or call.row.results

    def uses(self) -> tuple[Use, ...]:
        """All rows as records, in the order in which they first came."""
        return tuple(
            Use(
                signature=_signature(func, arguments, row.results or ()),
                site=site,
                calls=row.calls,
                seconds=row.seconds,
                expanded=row.expanded,
                varied=row.varied,
            )
            for (func, site), rows in self._rows.items()
            for arguments, row in rows.items()
            if row.calls
        )


def _signature(func: Any, arguments: Any, results: Any) -> Signature:
    described = func._schema.arguments
    positional, named = arguments
    given = [Argument(described[index].name, value_of(key)) for index, key in enumerate(positional)]
    given += [Argument(name, value_of(key)) for name, key in named]
    return Signature(func.name(), tuple(given), tuple(map(value_of, results)))
