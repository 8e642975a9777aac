"""Records what modules are given and answer, and the gradients of that, in the place of operators: through the hooks
that PyTorch has for all modules, and one of each tensor; no operator is looked at, so it costs little."""

from __future__ import annotations

import functools
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.nn.modules import module as modules

from torchferry.accuracy.model import INPUT_GRADIENT, MODULE, OUTPUT_GRADIENT, RecordHeader
from torchferry.accuracy.record.calls import OperatorPlan
from torchferry.accuracy.record.layout import KnownContents, Layouts, host_devices, version_of
from torchferry.accuracy.record.quick_observer import gradient_watcher, observer_of
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
        self._is_guarded = self._contents is not contents  # the observer in C++ leaves no trace by itself
        self._watch_gradient = gradient_watcher(self._observer)
        self._plans = {name: ModulePlan(name) for name in (MODULE, OUTPUT_GRADIENT, INPUT_GRADIENT)}
        for plan in self._plans.values():
            plan.names = _NAMES
            plan.positions = {name: place for place, name in enumerate(_NAMES)}
        self._lock = self._sink.lock
        self._thread = threading.local()
        self._sites: dict[ProgramSite, ProgramSite] = {}
        # sites of modules and of gradients, by the site of whatever runs there and by the module's type
        self._module_sites: dict[tuple[ProgramSite, type], ProgramSite | None] = {}
        self._gradient_sites: dict[ProgramSite, ProgramSite | None] = {}
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
            with _Unharmed(self):
                site = self._site_of(module)
                if site is not None:
                    given = list(tensors_in((arguments, _keywords())))[:_MOST_TENSORS]
                    call = self._observer.before(self._plans[MODULE], site, tuple(given), {})
                    self._under_way().append((id(module), call, site))
                    self._watch_gradients(given, INPUT_GRADIENT, site)

    def _answered(self, module: torch.nn.Module, _arguments: Any, answer: Any) -> None:
        if not self._is_at_work:
            return
        with _Unharmed(self):
            calls = self._under_way()
            if not (calls and calls[-1][0] == id(module)) and all(each[0] != id(module) for each in calls):
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
                try:
                    self._watch_gradient(tensor, functools.partial(self._gradient_came, self._step, made))
                except RuntimeError:  # a tensor that takes no hooks
                    continue

    def _gradient_came(self, step: int, of: _GradientOwner, gradient: torch.Tensor | None) -> None:
        """Not every derivative has one for each of its results."""
        is_at_work = self._handles and not self._hidden and not self._failure and os.getpid() == self._process
        if step != self._step or gradient is None or not is_at_work:
            return
        with _Unharmed(self):
            site = self._site_of_gradient(of.site)
            if site is not None:
                self._take(self._observer.before(self._plans[of.operator], site, (), {}), [gradient])

    def _site_of(self, module: torch.nn.Module) -> ProgramSite | None:
        """Of the module that is called now; None: it is not wanted."""
        key = (self._where.find_site(0), type(module))
        if key not in self._module_sites:
            site = key[0]._replace(node=type(module).__name__, inside="")
            self._module_sites[key] = self._wanted(site)
        return self._module_sites[key]

    def _site_of_gradient(self, site: ProgramSite) -> ProgramSite | None:
        if site not in self._gradient_sites:
            self._gradient_sites[site] = self._wanted(site._replace(phase=BACKWARD))
        return self._gradient_sites[site]

    def _wanted(self, site: ProgramSite) -> ProgramSite | None:
        """The one object for this place; None if it is not selected."""
        is_wanted = self._selection.has_site(site.phase, site.model, site.module)
        return self._sites.setdefault(site, site) if is_wanted else None


class _Unharmed:
    """Around what looks at a program's tensors: it leaves no trace, and what fails in it ends the recording and never the
    program."""

    __slots__ = ("_guard", "_recorder")

    def __init__(self, recorder: ModuleRecorder) -> None:
        self._recorder = recorder
        self._guard: unobserved | None = None

    def __enter__(self) -> None:
        recorder = self._recorder
        recorder._lock.acquire()
        if not recorder._is_guarded or _function_modes():
            self._guard = unobserved()
            self._guard.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> bool:
        recorder = self._recorder
        if self._guard is not None:
            self._guard.__exit__(None, None, None)
        recorder._lock.release()
        if not isinstance(error, Exception):
            return False
        recorder._failure = f"{type(error).__name__}: {error}".rstrip(": ")
        return True


_function_modes: Callable[[], int] = getattr(torch._C, "_len_torch_function_stack", lambda: 1)


def _keywords() -> object:
    """The keyword arguments of the module whose hook asks: hooks of all modules are not told of them."""
    return sys._getframe(2).f_locals.get("kwargs")
