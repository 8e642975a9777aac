"""Profilers that the program starts itself: PyTorch has room for one at a time."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from torchferry.observe.patching import Patches

_OURS = tuple(f"{folder}{os.sep}" for folder in (Path(torch.__file__).parent, Path(__file__).parents[2]))
_BEGIN = ("_prepare_profiler", "_enable_profiler")
_END = "_disable_profiler"


class OtherProfilers:
    """Tells of each that begins; knows whether one is on."""

    def __init__(self, begins: Callable[[str], None]) -> None:
        self._begins = begins
        self._is_ours = False
        self.place = ""  # where in the program the one that is on was started; "": none is on

    def watch(self, patches: Patches) -> None:
        """Until the patches are taken back: every way to PyTorch's profiler goes through these functions."""
        module: Any = torch.autograd.profiler
        for name in _BEGIN:
            patches.replace(module, name, self._before(getattr(module, name)))
        original = getattr(module, _END)

        @functools.wraps(original)
        def disable(*args: Any, **kwargs: Any) -> Any:
            if not self._is_ours:
                self.place = ""
            return original(*args, **kwargs)

        patches.replace(module, _END, disable)

    @contextmanager
    def ours(self) -> Iterator[None]:
        """What is started and ended in it is our own."""
        self._is_ours = True
        try:
            yield
        finally:
            self._is_ours = False

    def _before(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def begin(*args: Any, **kwargs: Any) -> Any:
            if not self._is_ours:
                self.place = self.place or _place()
                self._begins(self.place)
            return original(*args, **kwargs)

        return begin


def _place() -> str:
    """The nearest line that is neither PyTorch's nor ours."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
