"""The mode that captures: every operator of this thread and of autograd's, with what it is called and from where."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from torchferry.observe.modes import ObservingMode, has_compiled
from torchferry.observe.where import BACKWARD, OPTIMIZER, Whereabouts
from torchferry.ops.capture.folding import Folded
from torchferry.ops.capture.plans import formula_of
from torchferry.ops.capture.values import Key, is_the_hosts, key_of, make_the_hosts, tensors_among
from torchferry.ops.model import ModuleInfo, Phase, Site, Use

_SKIPPED_NAMESPACES = frozenset({"profiler", "prim", "torchferry_sim"})
_IN = "\0"  # between a model and a path in it
_PHASES = {BACKWARD: Phase.BACKWARD, OPTIMIZER: Phase.OPTIMIZER}


class CapturingMode(ObservingMode):  # type: ignore[no-untyped-call]
    """Adds up calls until it is switched off. `wait` waits for a device that computes by itself."""

    def __init__(self, wait: Callable[[], None] | None = None) -> None:
        super().__init__()
        self.folded = Folded()
        self.where = Whereabouts()
        self.notes: set[str] = set()
        self.is_loading_data = False
        self._wait = wait
        self._process = os.getpid()
        self._thread = threading.local()
        self._lock = threading.Lock()

    def switch_on(self) -> None:
        """From now on, in this thread."""
        self.where.watch()
        super().switch_on()

    def switch_off(self) -> None:
        """Until now."""
        super().switch_off()
        self.where.unwatch()
        self._process = -1  # threads that still have the mode on their stack
        if has_compiled():
            self.notes.add("compiled")

    def observe(self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make the call, its composite parts one by one, and add it up."""
        if os.getpid() != self._process or getattr(func, "namespace", "") in _SKIPPED_NAMESPACES:
            return func(*args, **kwargs)
        if not isinstance(func, torch._ops.OpOverload):
            self.notes.add("higher_order")
            return func(*args, **kwargs)
        if not self.is_loading_data and _only_the_hosts(args, kwargs):
            return self._make_on_host(func, args, kwargs)
        formula = None if any(call.func is func for call in self._calls()) else formula_of(func)
        return self._add_up(func, formula and self._watched(formula), args, kwargs)

    def take_whole(self, func: Any, formula: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Compute what a device knows as one operator by what the CPU makes of it; its derivative belongs to it."""

        def parts(*args: Any) -> Any:
            self.where.inside = func.name()
            try:
                return formula(*args)
            finally:
                self.where.inside = ""

        return self._add_up(func, parts, args, {})

    def _add_up(
        self, func: Any, formula: Callable[..., Any] | None, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        calls = self._calls()
        arguments = _arguments_key(args, kwargs)  # before the call: it may resize them
        with self._lock:
            row = self.folded.row(func, self._site(calls), arguments, formula is not None)
        call = _Call(func)
        calls.append(call)
        begin = time.perf_counter_ns()
        try:
            result = self._make(func, formula, args, kwargs)
        finally:
            calls.pop()
            taken = time.perf_counter_ns() - begin
            row.add_time(max(taken - call.inner, 0))
        if row.results is None:
            row.results = _results_key(result)
        if calls:
            calls[-1].inner += time.perf_counter_ns() - begin
        return result

    def _make(
        self, func: Any, formula: Callable[..., Any] | None, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if formula is not None:
            return formula(*args, **kwargs)
        result = func(*args, **kwargs)
        if self._wait is not None:
            self._wait()
        return result

    def _make_on_host(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.is_loading_data = True
        try:
            result = self._add_up(func, None, args, kwargs)
        finally:
            self.is_loading_data = False
        make_the_hosts([result])
        return result

    def _watched(self, formula: Callable[..., Any]) -> Callable[..., Any]:
        """The mode is off while it handles a call: what the formula calls is to be seen as well."""

        def watched(*args: Any, **kwargs: Any) -> Any:
            with self:
                return formula(*args, **kwargs)

        return watched

    def _calls(self) -> list[_Call]:
        if not hasattr(self._thread, "calls"):
            self._thread.calls = []
        calls: list[_Call] = self._thread.calls
        return calls

    def _site(self, calls: list[_Call]) -> Site:
        inside = calls[-1].func.name() if calls else ""
        if self.is_loading_data:
            return Site(Phase.DATA, inside=inside)
        now = self.where.now()
        if not self.where.has_begun:
            return Site(Phase.SETUP, place=now["place"], inside=inside)
        phase = _PHASES.get(now["phase"], Phase.FORWARD)
        module = f"{now['model']}{_IN}{now['module']}" if "model" in now else ""
        return Site(phase, module, now["place"], now.get("node", ""), now.get("inside", inside))

    def uses(self) -> tuple[Use, ...]:
        """What was called, so far. Without modules nothing tells where set-up ends: all of it is the program's work."""
        with self._lock:
            uses = self.folded.uses()
        if not self.where.models:
            return tuple(map(_as_work, uses))
        main = self._main_model()
        return tuple(_at(use, self._path(use.site.module, main)) for use in uses)

    def modules(self) -> tuple[ModuleInfo, ...]:
        """The modules that took part, and those around them."""
        main = self._main_model()
        return tuple(
            ModuleInfo(_joined("" if model == main else model, path), kind)
            for model, parts in self.where.models.items()
            for path, kind in parts.items()
        )

    def _main_model(self) -> str:
        """The one with the most parts: its paths stand for themselves, those of others begin with their names."""
        models = self.where.models
        return max(models, key=lambda model: len(models[model]), default="")

    def _path(self, module: str, main: str) -> str:
        model, between, inner = module.partition(_IN)
        if not between:
            return module
        path = inner if inner in self.where.models.get(model, {}) else ""  # the model itself goes by its type
        return _joined("" if model == main else model, path)


def _joined(model: str, path: str) -> str:
    return f"{model}.{path}" if model and path else model or path


def _at(use: Use, module: str) -> Use:
    return use if module == use.site.module else replace(use, site=replace(use.site, module=module))


def _as_work(use: Use) -> Use:
    if use.site.phase is not Phase.SETUP:
        return use
    return replace(use, site=replace(use.site, phase=Phase.FORWARD))


class _Call:
    """A call that is being made."""

    def __init__(self, func: Any) -> None:
        self.func = func
        self.inner = 0  # nanoseconds of the calls that it makes


def _arguments_key(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Key:
    return tuple(map(key_of, args)), tuple((name, key_of(value)) for name, value in kwargs.items())


def _only_the_hosts(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    found = False
    for tensor in tensors_among((*args, *kwargs.values()) if kwargs else args):
        if not is_the_hosts(tensor):
            return False
        found = True
    return found


def _results_key(result: Any) -> tuple[Key, ...]:
    results = result if isinstance(result, (list, tuple)) else [result]
    return tuple(map(key_of, results))
