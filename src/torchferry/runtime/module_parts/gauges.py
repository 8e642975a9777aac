"""Small things that a device module is asked for: how busy the device is, what to do at a synchronization."""

from __future__ import annotations

import time


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
