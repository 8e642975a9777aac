"""Ends a user's program from inside, when enough of it was seen."""

from __future__ import annotations

import os
import sys

_MOST_REFUSALS = 3


class EarlyEnd:
    """The end of this process with this exit code, asked for as often as the program goes on."""

    def __init__(self, code: int = 0) -> None:
        self._code = code
        self._times = 0

    def ask(self) -> None:
        """Not with an Exception: `finally` blocks run, `except Exception` does not stop it."""
        self._times += 1
        if self._times > _MOST_REFUSALS:  # the program catches whatever comes, and goes on
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(self._code)
        raise SystemExit(self._code)
