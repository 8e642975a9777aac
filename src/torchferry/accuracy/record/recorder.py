"""The recorder of one process: writes down every operator from start to stop."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from torchferry.accuracy.file.writer import RecordWriter, StatisticsWriter
from torchferry.accuracy.model import RecordHeader
from torchferry.accuracy.record.calls import OperatorPlan, plan_of
from torchferry.accuracy.record.layout import KnownContents, Layouts, host_devices
from torchferry.accuracy.record.quick_observer import observer_of
from torchferry.accuracy.record.settings import Selection
from torchferry.accuracy.record.sinks import Sink, open_sink
from torchferry.accuracy.record.sketches import SketchSink
from torchferry.accuracy.record.slicing import Slicing
from torchferry.accuracy.record.step_recorder import StepRecorder
from torchferry.observe.modes import ObservingMode, has_compiled
from torchferry.observe.operators import has_own_operators
from torchferry.observe.patching import Patches
from torchferry.observe.where import ProgramSite, Whereabouts

_FAKE = "FakeTensor"  # it computes by shapes alone, and does not call what we could see instead
_DYNAMO = "torch._dynamo.utils"
COMPILED = "compiled"
_without_functions: Any = torch._C.DisableTorchFunction
_function_modes: Callable[[], int] = getattr(torch._C, "_len_torch_function_stack", lambda: 1)


class Recorder(StepRecorder, ObservingMode):  # type: ignore[no-untyped-call]
    """Records into one file every operator of the thread that starts it and of autograd's, whatever the program does
    with it. With `sketches`, records of statistics can tell how far two runs are apart (`sketches.py`), and have the
    contents of views, too."""

    def __init__(
        self,
        path: Path,
        header: RecordHeader,
        selection: Selection | None = None,
        first_step: int = 1,
        *,
        sketches: bool = False,
        most: int | None = None,
        slicing: Slicing | None = None,
    ) -> None:
        """`most`: so large the file may become; `slicing`: which tensors are kept in part."""
        super().__init__(first_step)
        self._selection = selection or Selection()
        contents = KnownContents()
        self._where = Whereabouts()
        self._writer: StatisticsWriter | RecordWriter
        self._sink: Sink
        if sketches:
            self._writer = tables = StatisticsWriter(path, header, most, sketches=True)
            self._sink = SketchSink(contents, tables)
        else:
            self._writer, self._sink = open_sink(path, header, contents, most, slicing)
        layouts = Layouts(host_devices(), by_index=sketches)
        self._observer, self._contents = observer_of(contents, layouts, self._sink, self._where)
        self._is_quick = self._contents is not contents
        self._reads_views = sketches
        self._plans: dict[int, OperatorPlan] = {}
        self._is_selective = bool(self._selection.operators) or self._selection.has_sites
        self._wanted_operators: dict[OperatorPlan, bool] = {}
        self._wanted_sites: dict[ProgramSite, bool] = {}
        self._lock = self._sink.lock  # which can be taken again: a signal's handler may call operators
        self._notes: dict[str, None] = {}
        self._patches = Patches()
        self._is_on = False
        # a mode can't be taken off the stacks of other threads: then it writes nothing more
        self._is_at_work = True
        _recorders.add(self)

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be seen, so far."""
        return tuple(self._notes)

    def forget(self, tensor: torch.Tensor) -> None:
        """Forget what is known of a tensor that was written to out of the recorder's sight."""
        with contextlib.suppress(RuntimeError):  # it has no memory
            self._contents.forget_storage(tensor)

    def stop(self) -> None:
        """Record no more, and end the file."""
        if not self._is_closed and has_compiled():
            self._note(COMPILED)
        super().stop()

    def abandon(self) -> None:
        """Record no more, and leave the file alone: in a forked process it is the parent's."""
        super().abandon()
        self._is_at_work = False

    @contextmanager
    def out_of_sight(self) -> Iterator[None]:
        """What is called in it is not recorded; it may write to anything."""
        with super().out_of_sight():
            yield
        self._contents.forget_all()

    def _switch(self) -> None:
        wanted = self._selection.has_step(self._step) and not self._writer.failed
        if wanted and not self._is_on:
            self._is_on = True
            self._contents.forget_all()
            self._where.watch()
            _watch_graphs(self._patches, self._sink.drain, self._graph_replayed)
            self.switch_on()
        elif not wanted:
            self._off()

    def _off(self) -> None:
        if self._is_on:
            self._is_on = False
            self.switch_off()
            self._patches.take_back()
            self._where.unwatch()

    def _graph_replayed(self) -> None:
        self._note("graphs")  # of a device: what is computed inside does not show
        self._contents.forget_all()

    def _note(self, text: str) -> None:
        self._notes[text] = None

    def observe(self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Look at the arguments, make the call, look at the results."""
        plan = self._plans.get(id(func)) or self._plan(func)
        if plan is None or not self._is_at_work or plan.is_skipped:
            return func(*args, **kwargs)
        if types and any(has_own_operators(kind) and kind.__name__ != _FAKE for kind in types):
            return NotImplemented  # the type's own operators come next, and call those that we can see
        observer = self._observer
        if self._is_quick and not self._is_selective:
            dynamo = sys.modules.get(_DYNAMO)
            if dynamo is not None and dynamo.counters:
                self._look_for_compiled()
            result = observer.observed(self, plan, args, kwargs)
            self.calls += self._is_at_work
            return result
        try:
            with self._lock:
                site = self._where.find_site(1)
                if self._is_selective and not self._is_wanted(plan, site):
                    call = None
                else:
                    dynamo = sys.modules.get(_DYNAMO)
                    if dynamo is not None and dynamo.counters:
                        self._look_for_compiled()
                    if _function_modes():
                        with _without_functions():
                            call = observer.before(plan, site, args, kwargs)
                    else:
                        call = observer.before(plan, site, args, kwargs)
        except BaseException as error:
            self._fail(error)
            return func(*args, **kwargs)
        try:
            result = plan.call(*args, **kwargs)
        except BaseException:
            if plan.has_effects:  # a call that fails may have written already
                with self._lock:
                    _without_overrides(observer.effects_of, plan, args, kwargs)
            raise
        try:
            if call is not None:
                with self._lock:
                    if _function_modes():
                        with _without_functions():
                            observer.take(call, result, self._step)
                    else:
                        observer.take(call, result, self._step)
                    self.calls += 1
            elif plan.has_effects:
                with self._lock:
                    _without_overrides(observer.effects_of, plan, args, kwargs)
        except BaseException as error:
            self._fail(error)
        return result

    def _plan(self, func: Any) -> OperatorPlan | None:
        plan = plan_of(func)
        if plan is None:
            self._note(f"not looked into: {func}")
            self._contents.forget_all()  # whatever it calls is not seen
        else:
            plan.is_view = plan.is_view and not self._reads_views
            self._plans[id(func)] = plan
        return plan

    def _look_for_compiled(self) -> None:
        if not self._contents.is_anything_shifting and has_compiled():
            self._note(COMPILED)
            self._contents.forget_all()
            self._contents.is_anything_shifting = True

    def _is_wanted(self, plan: OperatorPlan, site: ProgramSite) -> bool:
        selection = self._selection
        wanted = self._wanted_operators.get(plan)
        if wanted is None:
            wanted = self._wanted_operators[plan] = selection.has_operator(plan.operator)
        if not wanted or not selection.has_sites:
            return wanted
        wanted = self._wanted_sites.get(site)
        if wanted is None:
            wanted = self._wanted_sites[site] = selection.has_site(site.phase, site.model, site.module)
        return wanted

    def _fail(self, error: BaseException) -> None:
        """The program must not fail for it: recording ends, and the record says why."""
        self._is_at_work = False
        self._failure = f"{type(error).__name__}: {error}".rstrip(": ")
        self._note(f"ended early: {self._failure}")
        if not isinstance(error, Exception):
            raise error


def _without_overrides(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call it so that a program that replaces PyTorch's functions does not see what we ask of its tensors."""
    if not _function_modes():
        return function(*arguments)
    with _without_functions():
        return function(*arguments)


_recorders: weakref.WeakSet[Recorder] = weakref.WeakSet()


def _forked() -> None:
    """A process that was forked records nothing: workers of a DataLoader, helpers of the program's."""
    for recorder in list(_recorders):
        recorder._is_at_work = False


os.register_at_fork(after_in_child=_forked)


def _watch_graphs(patches: Patches, before: Callable[[], None], replayed: Callable[[], None]) -> None:
    """Tell when a graph of a device is to be captured: nobody may ask the device for anything then. And when it is
    run again: it writes to memory without a call that could be seen."""
    kind: Any = getattr(torch.cuda, "CUDAGraph", None)
    for name, is_before, tell in (("capture_begin", True, before), ("replay", False, replayed)):
        original: Callable[..., Any] | None = vars(kind).get(name) if kind is not None else None
        if original is not None:
            patches.replace(kind, name, _telling(original, tell, is_before))


def _telling(original: Callable[..., Any], tell: Callable[[], None], is_before: bool) -> Callable[..., Any]:
    @functools.wraps(original)
    def telling(*args: Any, **kwargs: Any) -> Any:
        if is_before:
            tell()
        answer = original(*args, **kwargs)
        if not is_before:
            tell()
        return answer

    return telling
