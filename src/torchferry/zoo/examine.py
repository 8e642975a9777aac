"""Runs every check of a delivery."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass

from torchferry.zoo import checks
from torchferry.zoo.delivery import Delivery
from torchferry.zoo.model import Item, Status

_ORDER = list(Status)


@dataclass(frozen=True)
class Review:
    """What all checks say, the worst first."""

    delivery: Delivery
    items: tuple[Item, ...]

    def count(self, status: Status) -> int:
        """How many items have this status."""
        return sum(item.status is status for item in self.items)

    @property
    def is_complete(self) -> bool:
        return not self.count(Status.MISSING)


def review(delivery: Delivery, more: tuple[Item, ...] = ()) -> Review:
    """All checks in turn, and items that were found otherwise."""
    items = list(more)
    for found in pkgutil.iter_modules(checks.__path__):
        items += importlib.import_module(f"{checks.__name__}.{found.name}").check(delivery)
    return Review(delivery, tuple(sorted(items, key=lambda item: _ORDER.index(item.status))))
