"""init_dump, set_dump and finalize_dump of a vendor's module, for its simulated device."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from torchferry.accuracy.dump.configuration import read_configuration


class DumpFunctions:
    """One dump at a time: begun, configured, ended."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._has_begun = False
        self._mode: Any = None  # a DumpingMode; it is imported when it is needed

    def by_name(self) -> dict[str, Callable[..., None]]:
        """As data calls them."""
        return {"begin": self.begin, "configure": self.configure, "end": self.end}

    def begin(self) -> None:
        """Get ready."""
        if self._has_begun:
            raise RuntimeError("a dump has begun already; finalize_dump() ends it")
        self._has_begun = True

    def configure(self, cfg_file: str) -> None:
        """Dump as the file says, from now on."""
        if not self._has_begun:
            raise RuntimeError("no dump has begun; call init_dump() first")
        configuration = read_configuration(cfg_file)
        self._switch_off()
        if not configuration.is_on:
            warnings.warn(f'{cfg_file}: dump_op_switch is not "on", so no operator is dumped', stacklevel=2)
            return
        from torchferry.accuracy.dump.mode import DumpingMode

        self._mode = DumpingMode(configuration, self._device)
        self._mode.switch_on()

    def end(self) -> None:
        """Dump no more."""
        if not self._has_begun:
            raise RuntimeError("no dump has begun; call init_dump() first")
        self._has_begun = False
        self._switch_off()

    def _switch_off(self) -> None:
        mode, self._mode = self._mode, None
        if mode is not None:
            mode.switch_off()
