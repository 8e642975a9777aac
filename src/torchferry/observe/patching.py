"""What is replaced in a process that is not ours, and put back."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

_ABSENT = object()


class Patches:
    """Replaced attributes and added hooks; all of it is taken back at once, the last first."""

    def __init__(self) -> None:
        self._undo = ExitStack()

    def replace(self, owner: Any, name: str, value: Any) -> None:
        """Give an attribute of a module or class another value."""
        before = vars(owner).get(name, _ABSENT)
        setattr(owner, name, value)
        put = vars(owner)[name]

        def put_back() -> None:
            # Where the program has wrapped ours since, its wrapper stays, and ours in it.
            if vars(owner).get(name, _ABSENT) is not put:
                return
            if before is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, before)

        self._undo.callback(put_back)

    def add(self, undo: Callable[[], Any]) -> None:
        """Something else was changed; this takes it back."""
        self._undo.callback(undo)

    def take_back(self) -> None:
        """Everything is as it was; doing it again does nothing. Each is taken back though another may fail."""
        self._undo.close()
