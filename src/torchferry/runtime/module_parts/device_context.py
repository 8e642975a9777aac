"""The with block that makes a device the current one: torch.<type>.device."""

from __future__ import annotations

from typing import Any


class DeviceContext:
    """Makes a device the current one inside a with block; None or a negative index changes nothing."""

    def __init__(self, device: Any) -> None:
        self.idx = -1 if device is None else self._index(device)
        self.prev_idx = -1

    @staticmethod
    def _index(device: Any) -> int:
        """The index that a device argument means."""
        raise NotImplementedError

    @staticmethod
    def _exchange(index: int) -> int:
        """Make a device the current one and answer which one was; a negative index changes nothing."""
        raise NotImplementedError

    def __enter__(self) -> None:
        self.prev_idx = self._exchange(self.idx)

    def __exit__(self, *error: object) -> None:
        self._exchange(self.prev_idx)
