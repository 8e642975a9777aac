"""Adds up calls with the same signature from the same site."""

from __future__ import annotations

from dataclasses import dataclass

from torchferry.ops.model import Signature, Site, Use

MOST_SIGNATURES = 50  # of one operator at one site; further ones are counted with the last


@dataclass
class _Row:
    calls: int = 0
    nanoseconds: int = 0
    expanded: bool = False
    varied: bool = False


class Folding:
    """The rows so far."""

    def __init__(self) -> None:
        self.has_varied = False
        self._rows: dict[tuple[str, Site, bool], dict[Signature, _Row]] = {}

    def add(self, signature: Signature, site: Site, calls: int, nanoseconds: int, expanded: bool) -> None:
        """Some calls."""
        rows = self._rows.setdefault((signature.operator, site, expanded), {})
        row = rows.get(signature)
        if row is None:
            if len(rows) < MOST_SIGNATURES:
                row = rows[signature] = _Row(expanded=expanded)
            else:
                row = next(reversed(rows.values()))
                row.varied = self.has_varied = True
        row.calls += calls
        row.nanoseconds += nanoseconds

    def uses(self) -> tuple[Use, ...]:
        """In the order in which they first came."""
        return tuple(
            Use(signature, site, row.calls, row.nanoseconds / 1e9, row.expanded, row.varied)
            for (_, site, _), rows in self._rows.items()
            for signature, row in rows.items()
        )
