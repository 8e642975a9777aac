"""Keeps one of each value: records repeat names and shapes a thousandfold."""

from __future__ import annotations

from typing import Any, TypeVar

Value = TypeVar("Value")


class Once:
    """Called with a value, it answers the first that was equal."""

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}

    def __call__(self, value: Value) -> Value:
        found: Value = self._known.setdefault((type(value), value), value)
        return found
