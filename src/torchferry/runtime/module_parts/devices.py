"""What modules of devices share: the with block of a device, how busy one is, what to do at a synchronization."""

from __future__ import annotations

import time
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


class Load:
    """How busy this process kept the CPU between two questions."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.monotonic(), time.process_time()

    def percent(self) -> int:
        """CPU time over wall time since the last question, at most 100."""
        wall, cpu = time.monotonic(), time.process_time()
        share = (cpu - self._cpu) / max(wall - self._wall, 1e-9)
        self._wall, self._cpu = wall, cpu
        return min(100, round(100 * share))


class SyncDebug:
    """The mode that set_sync_debug_mode remembers; where nothing synchronizes, nothing warns."""

    modes = ("default", "warn", "error")

    def __init__(self) -> None:
        self._mode = 0

    def set(self, debug_mode: int | str) -> None:
        """Remember what to do at a synchronizing operation: default, warn or error."""
        if isinstance(debug_mode, str):
            if debug_mode not in self.modes:
                raise RuntimeError("invalid value of debug_mode, expected one of `default`, `warn`, `error`")
            debug_mode = self.modes.index(debug_mode)
        self._mode = debug_mode

    def get(self) -> int:
        """What was told last."""
        return self._mode
