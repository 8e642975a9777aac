"""The mode that checks: every operator of this thread and of autograd's is looked at before and after it is called."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch

from torchferry.accuracy.overflow.calls import CheckedCall, is_checked
from torchferry.accuracy.overflow.check import OverflowCheck
from torchferry.accuracy.record.plans import Plan, plan_of
from torchferry.observe.modes import LocatingMode, has_compiled
from torchferry.observe.tensors import has_own_operators

_FAKE = "FakeTensor"  # it computes with shapes alone


class CheckingMode(LocatingMode):  # type: ignore[no-untyped-call]
    """Hands every call to a check."""

    def __init__(self, check: OverflowCheck, step: int = 1) -> None:
        super().__init__()
        self.step = step
        self.notes: set[str] = set()
        self._check = check
        self._plans: dict[Any, Plan | None] = {}
        self._unchecked: set[int] = set()  # operators, by their numbers; `_plans` keeps them
        self._process = os.getpid()
        self._is_capturing: Callable[[], bool] = (
            torch.cuda.is_current_stream_capturing if torch.cuda.is_available() else _never
        )

    @property
    def is_at_work(self) -> bool:
        """Whether calls of this process are checked."""
        return self._process == os.getpid()

    def switch_off(self) -> None:
        """Until now."""
        super().switch_off()
        self._process = -1  # threads that still have the mode on their stack
        if has_compiled():
            self.notes.add("compiled")

    def observe(self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make the call, and check it."""
        if not self.is_at_work or id(func) in self._unchecked:
            return func(*args, **kwargs)
        if types and any(map(_calls_others, types)):
            return NotImplemented  # what its class calls instead is seen
        if func not in self._plans:
            self._plans[func] = plan_of(func)
        plan = self._plans[func]
        if plan is None:
            self.notes.add("higher_order")
            return func(*args, **kwargs)
        if not is_checked(plan):
            self._unchecked.add(id(func))
            return func(*args, **kwargs)
        if types and any(kind.__name__ == _FAKE for kind in types):
            return func(*args, **kwargs)
        return self._checked(plan, args, kwargs)

    def _checked(self, plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        call = self._begun(plan, args, kwargs)
        result = plan.func(*args, **kwargs)
        if call is not None:
            try:
                self._check.after(call, result)
            except Exception as error:  # what we can't check must not end the program
                self.notes.add(f"{plan.operator}: not checked: {type(error).__name__}: {error}")
        return result

    def _begun(self, plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CheckedCall | None:
        """None: it can't be checked. While a graph of a device is captured, nothing is computed."""
        if self._is_capturing():
            self.notes.add("graphs")
            return None
        try:
            call = CheckedCall(plan, args, kwargs)
            call.step = self.step
            call.site = self.where.site()
            self._check.before(call)
        except Exception as error:
            self.notes.add(f"{plan.operator}: not checked: {type(error).__name__}: {error}")
            return None
        return call


def _never() -> bool:
    return False


def _calls_others(kind: Any) -> bool:
    """Whether tensors of this class make other calls of each call, as nested and distributed ones do."""
    return kind.__name__ != _FAKE and has_own_operators(kind)
