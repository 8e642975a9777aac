"""Dispatch modes that watch: put on and taken off a running program, beside torch.compile and modes of its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any, TypeVar

import torch
from torch.utils import _python_dispatch
from torch.utils._python_dispatch import TorchDispatchMode

Mode = TypeVar("Mode", bound=TorchDispatchMode)


class ObservingMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees each operator that this thread is about to run, below autograd; `observe` makes the call."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def observe(self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What is done with a call; it must answer with the call's result."""
        raise NotImplementedError

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return self.observe(func, types, args, kwargs or {})

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """To keep torch.compile away from the method above imports torch._dynamo, which takes seconds."""
        return False

    def switch_on(self) -> None:
        """From now on, in this thread."""
        if "torch._dynamo" in sys.modules:
            self.__class__ = _beside_dynamo(type(self))  # type: ignore[arg-type]  # types can be hashed
        self.__enter__()  # type: ignore[no-untyped-call]

    def switch_off(self) -> None:
        """Until now."""
        self.take_off()

    @contextmanager
    def out_of_sight(self) -> Iterator[None]:
        """For what can't stand any mode: it is off in this thread, and on again afterwards if it was on."""
        was_on = self.take_off()
        try:
            yield
        finally:
            if was_on:
                self.__enter__()  # type: ignore[no-untyped-call]

    def take_off(self) -> bool:
        """Though the mode may lie beneath modes that the program has entered since, or be gone already: was it on?"""
        above = []
        is_on = False
        while (top := _python_dispatch._get_current_dispatch_mode()) is not None and not is_on:
            if top is self:
                self.__exit__(None, None, None)  # type: ignore[no-untyped-call]
                is_on = True
            else:
                above.append(_python_dispatch._pop_mode())
        for other in reversed(above):
            _python_dispatch._push_mode(other)
        return is_on


def active_mode(kind: type[Mode]) -> Mode | None:
    """The innermost mode of this kind that is on in this thread."""
    modes = reversed(_python_dispatch._get_current_dispatch_mode_stack())
    return next((mode for mode in modes if isinstance(mode, kind)), None)


@cache
def _beside_dynamo(kind: type[ObservingMode]) -> type[ObservingMode]:
    """The same for a program that uses torch.compile: it must not compile what watches it."""

    def dispatch(
        self: Any, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return self.observe(func, types, args, kwargs or {})

    members = {"__torch_dispatch__": dispatch, "_should_skip_dynamo": classmethod(lambda _cls: True)}
    return type(kind.__name__, (kind,), members)


def has_compiled() -> bool:
    """Whether torch.compile has made code in this process: what happens inside it may not show."""
    utils = sys.modules.get("torch._dynamo.utils")
    counters = getattr(utils, "counters", {})
    return bool(counters and counters["stats"].get("unique_graphs"))


@contextmanager
def unobserved() -> Iterator[None]:
    """What is computed here leaves no trace: no graph, no modes or subclasses of the program, no autocast."""
    with ExitStack() as stack:
        for name in ("DisableTorchFunction", "_DisableTorchDispatch", "_DisableAutocast"):
            if hasattr(torch._C, name):
                stack.enter_context(getattr(torch._C, name)())
        stack.enter_context(torch.no_grad())
        yield
