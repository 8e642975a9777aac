"""Dispatch modes that watch: put on and taken off a running program, beside torch.compile and modes of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import torch
from torch.utils import _python_dispatch
from torch.utils._python_dispatch import TorchDispatchMode

from torchferry.observe.where import Whereabouts

Mode = TypeVar("Mode", bound=TorchDispatchMode)
_GUARDS: tuple[Any, ...] = tuple(
    getattr(torch._C, name)
    for name in ("DisableTorchFunction", "_DisableTorchDispatch", "_DisableAutocast")
    if hasattr(torch._C, name)
)


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
        """See every operator of this thread from now on."""
        if "torch._dynamo" in sys.modules:
            self.__class__ = _beside_dynamo(type(self))  # type: ignore[arg-type]  # types can be hashed
        self.__enter__()  # type: ignore[no-untyped-call]

    def switch_off(self) -> None:
        """Stop watching operators."""
        self.take_off()

    @contextmanager
    def switched_on(self) -> Iterator[None]:
        """Have the mode on in this block, and off on every way out of it."""
        try:
            self.switch_on()
            yield
        finally:
            self.switch_off()

    @contextmanager
    def out_of_sight(self) -> Iterator[None]:
        """Take the mode off for what can't stand any: it is on again afterwards if it was on."""
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


class LocatingMode(ObservingMode):  # type: ignore[no-untyped-call]
    """One that also keeps account of where in the program each call is made, while it is on."""

    def __init__(self) -> None:
        super().__init__()
        self.where = Whereabouts()

    def switch_on(self) -> None:
        """See every operator of this thread from now on."""
        self.where.watch()
        super().switch_on()

    def switch_off(self) -> None:
        """Stop watching operators."""
        super().switch_off()
        self.where.unwatch()


def active_mode(kind: type[Mode]) -> Mode | None:
    """The innermost mode of this kind that is on in this thread."""
    modes = reversed(_python_dispatch._get_current_dispatch_mode_stack())
    return next((mode for mode in modes if isinstance(mode, kind)), None)


@cache
def _beside_dynamo(kind: type[ObservingMode]) -> type[ObservingMode]:
    """The same for a program that uses torch.compile: it must not compile what watches it."""
    dispatch = _quickly_shielded() or _shielded
    members = {
        "__torch_dispatch__": dispatch,
        "_should_skip_dynamo": classmethod(lambda _cls: dispatch is _shielded),
    }
    return type(kind.__name__, (kind,), members)


def _shielded(
    self: Any, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
) -> Any:
    """PyTorch shields this from torch.compile, at each call."""
    return self.observe(func, types, args, kwargs or {})


@cache
def _quickly_shielded() -> Callable[..., Any] | None:
    """The same where torch.compile is not at work all the time: a shield is put up while it is. None: this version
    of PyTorch can't tell."""
    frames = sys.modules.get("torch._dynamo.eval_frame")
    is_compiling = getattr(getattr(torch._C._dynamo, "eval_frame", None), "get_eval_frame_callback", None)
    skip_code = getattr(frames, "skip_code", None)
    if is_compiling is None or skip_code is None:
        return None
    shielded: Callable[..., Any] = torch._compile._disable_dynamo(_shielded, recursive=True)

    def dispatch(
        self: Any, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if is_compiling() is None:
            return self.observe(func, types, args, kwargs or {})
        return shielded(self, func, types, args, kwargs)

    skip_code(dispatch.__code__)
    return dispatch


def has_compiled() -> bool:
    """Whether torch.compile has made code in this process: what happens inside it may not show."""
    utils = sys.modules.get("torch._dynamo.utils")
    counters = getattr(utils, "counters", {})
    return bool(counters and counters["stats"].get("unique_graphs"))


class unobserved:  # noqa: N801  it is used as a function would be
    """What is computed here leaves no trace: no graph, no modes or subclasses of the program, no autocast."""

    __slots__ = ("_guards", "_had_gradients")

    def __enter__(self) -> None:
        self._had_gradients = torch.is_grad_enabled()
        self._guards = [guard() for guard in _GUARDS]
        for guard in self._guards:
            guard.__enter__()
        torch._C._set_grad_enabled(False)

    def __exit__(self, *_error: object) -> None:
        torch._C._set_grad_enabled(self._had_gradients)
        for guard in reversed(self._guards):
            guard.__exit__(None, None, None)
