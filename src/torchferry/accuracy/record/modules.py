"""Records what modules are given and answer, and the gradients of that, in the place of operators: through the hooks
that PyTorch has for all modules, and one of each tensor; no operator is looked at, so it costs little."""

from __future__ import annotations

import functools
import os
import sys
import threading
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
from torch.nn.modules import module as modules

from torchferry.accuracy.model import INPUT_GRADIENT, MODULE, OUTPUT_GRADIENT, RecordHeader
from torchferry.accuracy.record.calls import OperatorPlan
from torchferry.accuracy.record.layout import KnownContents, Layouts, host_devices, version_of
from torchferry.accuracy.record.quick_observer import observer_of
from torchferry.accuracy.record.settings import Selection
from torchferry.accuracy.record.sinks import open_sink
from torchferry.accuracy.record.slicing import Slicing
from torchferry.accuracy.record.step_recorder import StepRecorder
from torchferry.observe.modes import has_compiled, unobserved
from torchferry.observe.where import BACKWARD, ProgramSite, Whereabouts

_MOST_TENSORS = 1000  # of one call


def tensors_in(answer: Any) -> Iterator[torch.Tensor]:
    """Those of a tensor, list, dictionary, or an object that has them as fields."""
    if isinstance(answer, torch.Tensor):
        yield answer
    elif isinstance(answer, dict):
        for each in answer.values():
            yield from tensors_in(each)
    elif isinstance(answer, (list, tuple)):
        for each in answer:
            yield from tensors_in(each)
    elif hasattr(answer, "__dataclass_fields__"):
        for name in answer.__dataclass_fields__:
            yield from tensors_in(getattr(answer, name, None))


class ModulePlan(OperatorPlan):
    """In the place of an operator's: a module answers with new tensors as far as anybody knows."""

    def __init__(self, operator: str) -> None:
        self.operator = operator
        self.names = ()
        self.positions = {}
        self.written = self.lost = frozenset()
        self.is_view = self.uninitialised = self.communicates = self.waits = False
        self.has_effects = self.may_be_under_way = self.is_random = False
        self.is_described = True
        self.in_place = None


_NAMES = tuple(f"input_{place}" for place in range(_MOST_TENSORS))


class _GradientOwner:
    """Whose the gradient of a tensor is: of the innermost module that is given the tensor first, whose backward pass
    makes it; else of the one that has answered with it."""

    def __init__(self, tensor: torch.Tensor, operator: str, site: ProgramSite) -> None:
        self.tensor = weakref.ref(tensor)
        self.version = version_of(tensor)
        self.operator, self.site = operator, site

    def is_of(self, tensor: torch.Tensor) -> bool:
        """Whether it is still this tensor, and nothing was written to it since."""
        return self.tensor() is tensor and self.version == version_of(tensor)

    def goes_into(self, site: ProgramSite) -> None:
        """A module is given the tensor."""
        is_inside = self.site.module == self.site.model or site.module.startswith(f"{self.site.module}.")
        if self.operator == OUTPUT_GRADIENT or is_inside:
            self.operator, self.site = INPUT_GRADIENT, site


class ModuleRecorder(StepRecorder):
    """Records into one file the calls of all modules of the process, from start to stop."""

    def __init__(
        self,
        path: Path,
        header: RecordHeader,
        selection: Selection | None = None,
        first_step: int = 1,
        *,
        most: int | None = None,
        slicing: Slicing | None = None,
    ) -> None:
        """`most`: so large the file may become; `slicing`: which tensors are kept in part."""
        super().__init__(first_step)
        self._selection = selection or Selection()
        contents = KnownContents()
        self._where = Whereabouts()
        self._writer, self._sink = open_sink(path, header, contents, most, slicing)
        layouts = Layouts(host_devices())
        self._observer, self._contents = observer_of(contents, layouts, self._sink, self._where)
        self._plans = {name: ModulePlan(name) for name in (MODULE, OUTPUT_GRADIENT, INPUT_GRADIENT)}
        for plan in self._plans.values():
            plan.names = _NAMES
            plan.positions = {name: place for place, name in enumerate(_NAMES)}
        self._lock = self._sink.lock
        self._thread = threading.local()
        self._sites: dict[ProgramSite, ProgramSite] = {}
        self._gradients: dict[int, _GradientOwner] = {}  # by the tensor; of this step
        self._handles: list[Any] = []
        self._hidden = 0  # what is called now does not count

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be seen."""
        ended = (f"ended early: {self._failure}",) if self._failure else ()
        return (*(("compiled",) if has_compiled() else ()), *ended)

    @contextmanager
    def out_of_sight(self) -> Iterator[None]:
        """What is called in it is not recorded."""
        self._hidden += 1
        try:
            yield
        finally:
            self._hidden -= 1

    def _switch(self) -> None:
        self._gradients = {}
        self._contents.forget_all()  # an optimizer may write past all versions
        if not self._selection.has_step(self._step) or self.failed:
            self._off()
        elif not self._handles:
            # ours is the inner one: it is called while the module is the innermost that is being called
            answered = modules.register_module_forward_hook(self._answered)
            self._where.watch()
            self._handles = [answered, modules.register_module_forward_pre_hook(self._called)]

    def _off(self) -> None:
        if self._handles:
            for handle in self._handles:
                handle.remove()
            self._handles = []
            self._where.unwatch()

    @property
    def _is_at_work(self) -> bool:
        is_here = bool(self._handles) and os.getpid() == self._process
        # a checkpoint calls modules again in the backward pass
        return is_here and not self._hidden and not self._failure and torch._C._current_graph_task_id() == -1

    def _under_way(self) -> list[tuple[int, Any, ProgramSite]]:
        """The calls of this thread that have not answered yet, with their modules and places."""
        found: list[tuple[int, Any, ProgramSite]] | None = getattr(self._thread, "calls", None)
        if found is None:
            found = self._thread.calls = []
        return found

    def _called(self, module: torch.nn.Module, arguments: Any) -> None:
        if self._is_at_work:
            keywords = _keywords()
            with self._unharmed():
                site = self._site(self._where.site()._replace(node=type(module).__name__, inside=""))
                if self._selection.has_site(site.phase, site.model, site.module):
                    given = list(tensors_in((arguments, keywords)))[:_MOST_TENSORS]
                    call = self._observer.before(self._plans[MODULE], site, tuple(given), {})
                    self._under_way().append((id(module), call, site))
                    self._watch_gradients(given, INPUT_GRADIENT, site)

    def _answered(self, module: torch.nn.Module, _arguments: Any, answer: Any) -> None:
        if not self._is_at_work:
            return
        with self._unharmed():
            calls = self._under_way()
            if not any(each == id(module) for each, *_ in calls):
                return
            while calls[-1][0] != id(module):  # modules that have raised an error
                calls.pop()
            _, call, site = calls.pop()
            answered = list(tensors_in(answer))[:_MOST_TENSORS]
            self._take(call, answered)
            self._watch_gradients(answered, OUTPUT_GRADIENT, site)

    def _take(self, call: Any, results: list[torch.Tensor]) -> None:
        self._observer.take(call, results[0] if len(results) == 1 else tuple(results), self._step)
        self.calls += 1

    def _watch_gradients(self, tensors: Iterable[torch.Tensor], operator: str, site: ProgramSite) -> None:
        """Each tensor has one hook, however many modules have to do with it."""
        for tensor in tensors:
            known = self._gradients.get(id(tensor))
            if known is not None and known.is_of(tensor):
                if operator == INPUT_GRADIENT:
                    known.goes_into(site)
            elif tensor.requires_grad and type(tensor) is not torch.nn.Parameter:
                made = self._gradients[id(tensor)] = _GradientOwner(tensor, operator, site)
                with suppress(RuntimeError):  # tensors that take no hooks
                    tensor.register_hook(  # type: ignore[no-untyped-call]
                        functools.partial(self._gradient_came, self._step, made)
                    )

    def _gradient_came(self, step: int, of: _GradientOwner, gradient: torch.Tensor | None) -> None:
        """Not every derivative has one for each of its results."""
        is_at_work = self._handles and not self._hidden and not self._failure and os.getpid() == self._process
        if step != self._step or gradient is None or not is_at_work:
            return
        site = self._site(of.site._replace(phase=BACKWARD))
        if not self._selection.has_site(site.phase, site.model, site.module):
            return
        with self._unharmed():
            self._take(self._observer.before(self._plans[of.operator], site, (), {}), [gradient])

    def _site(self, site: ProgramSite) -> ProgramSite:
        """The one object for this place."""
        return self._sites.setdefault(site, site)

    @contextmanager
    def _unharmed(self) -> Iterator[None]:
        """Around what looks at a program's tensors: what fails in it ends the recording, and never the program."""
        try:
            with self._lock, unobserved():
                yield
        except Exception as error:
            self._failure = f"{type(error).__name__}: {error}".rstrip(": ")


def _keywords() -> object:
    """The keyword arguments of the module whose hook asks: hooks of all modules are not told of them."""
    return sys._getframe(2).f_locals.get("kwargs")
