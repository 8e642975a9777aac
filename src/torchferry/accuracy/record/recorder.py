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
from torchferry.accuracy.model import Kept, RecordHeader
from torchferry.accuracy.record.calls import CallObserver, OngoingCall, OperatorPlan, plan_of
from torchferry.accuracy.record.layout import KnownContents, Layouts
from torchferry.accuracy.record.settings import Selection
from torchferry.accuracy.record.sinks import StatisticsSink, TensorSink
from torchferry.accuracy.record.sketches import SketchSink
from torchferry.observe.modes import ObservingMode, has_compiled
from torchferry.observe.operators import has_own_operators
from torchferry.observe.where import ProgramSite, Whereabouts
from torchferry.sim.current import simulated

# The mode that records: every operator of this thread and of autograd's, whatever the program does
# with it.

_FAKE = "FakeTensor"  # it computes by shapes alone, and does not call what we could see instead
_DYNAMO = "torch._dynamo.utils"
COMPILED = "compiled"
_without_functions: Any = torch._C.DisableTorchFunction
_function_modes: Callable[[], int] = getattr(torch._C, "_len_torch_function_stack", lambda: 1)


class RecordingMode(ObservingMode):  # type: ignore[no-untyped-call]
    """Hands calls to a sink, from begin() to end()."""

    def __init__(
        self,
        sink: StatisticsSink | TensorSink,
        contents: KnownContents,
        observer: CallObserver,
        where: Whereabouts,
        selection: Selection,
        reads_views: bool = False,
    ) -> None:
        super().__init__()
        self._reads_views = reads_views
        self.step = 1
        self.calls = 0
        self.notes: dict[str, None] = {}
        self.failed = ""  # why recording has ended early
        self._sink = sink
        self._contents = contents
        self._observer = observer
        self._where = where
        self._selection = selection
        self._plans: dict[int, OperatorPlan] = {}
        self._is_selective = bool(selection.operators) or selection.has_sites
        self._wanted_operators: dict[OperatorPlan, bool] = {}
        self._wanted_sites: dict[ProgramSite, bool] = {}
        self._lock = sink.lock  # which can be taken again: a signal's handler may call operators
        self._is_at_work = True
        _modes.add(self)

    def end(self) -> None:
        """Write nothing more: a mode can't be taken off the stacks of other threads."""
        self._is_at_work = False

    def note(self, text: str) -> None:
        """Say so in the record."""
        self.notes[text] = None

    def observe(self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Look at the arguments, make the call, look at the results."""
        plan = self._plans.get(id(func)) or self._plan(func)
        if plan is None or not self._is_at_work or plan.is_skipped:
            return func(*args, **kwargs)
        if types and any(has_own_operators(kind) and kind.__name__ != _FAKE for kind in types):
            return NotImplemented  # the type's own operators come next, and call those that we can see
        try:
            with self._lock:
                call = self._before(plan, args, kwargs)
        except BaseException as error:
            self._fail(error)
            return func(*args, **kwargs)
        try:
            result = plan.call(*args, **kwargs)
        except BaseException:
            self._after_failure(plan, args, kwargs)
            raise
        if call is not None or plan.has_effects:
            try:
                with self._lock:
                    self._after(plan, call, args, kwargs, result)
            except BaseException as error:
                self._fail(error)
        return result

    def _plan(self, func: Any) -> OperatorPlan | None:
        plan = plan_of(func)
        if plan is None:
            self.note(f"not looked into: {func}")
            self._contents.forget_all()  # whatever it calls is not seen
        else:
            plan.is_view = plan.is_view and not self._reads_views
            self._plans[id(func)] = plan
        return plan

    def _before(
        self, plan: OperatorPlan, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> OngoingCall | None:
        """None: the call is not wanted."""
        site = self._where.site(2)
        if self._is_selective and not self._is_wanted(plan, site):
            return None
        if _DYNAMO in sys.modules and sys.modules[_DYNAMO].counters:
            self._see_compiled()
        if not _function_modes():
            call = self._observer.before(plan, site, args, kwargs)
        else:
            with _without_functions():
                call = self._observer.before(plan, site, args, kwargs)
        if plan.is_random:
            self._sink.before(call)
        return call

    def _see_compiled(self) -> None:
        if not self._contents.is_anything_shifting and has_compiled():
            self.note(COMPILED)
            self._contents.forget_all()
            self._contents.is_anything_shifting = True

    def _after(
        self,
        plan: OperatorPlan,
        call: OngoingCall | None,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        result: Any,
    ) -> None:
        if _function_modes():
            with _without_functions():
                self._take(plan, call, args, kwargs, result)
        else:
            self._take(plan, call, args, kwargs, result)

    def _take(
        self,
        plan: OperatorPlan,
        call: OngoingCall | None,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        result: Any,
    ) -> None:
        if call is None:
            self._observer.effects_of(plan, args, kwargs)
            return
        self._observer.after(call, result)
        self._sink.write(call, self.step)
        self.calls += 1

    def _after_failure(self, plan: OperatorPlan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A call that fails may have written already."""
        if plan.has_effects:
            with self._lock:
                self._after(plan, None, args, kwargs, None)

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
        self.end()
        self.failed = f"{type(error).__name__}: {error}".rstrip(": ")
        self.note(f"ended early: {self.failed}")
        if not isinstance(error, Exception):
            raise error


_modes: weakref.WeakSet[RecordingMode] = weakref.WeakSet()


def _forked() -> None:
    """A process that was forked records nothing: workers of a DataLoader, helpers of the program's."""
    for mode in list(_modes):
        mode.end()


os.register_at_fork(after_in_child=_forked)


# Tells when a captured graph of a device is run again: it writes to memory without a call that could
# be seen.

_REPLAY = "replay"


class GraphReplays:
    """Watches the class of graphs that PyTorch has for CUDA."""

    def __init__(self, replayed: Callable[[], None]) -> None:
        self._replayed = replayed
        self._kind: Any = getattr(torch.cuda, "CUDAGraph", None)
        self._original: Callable[..., Any] | None = None

    def watch(self) -> None:
        """From now on."""
        if self._kind is None or self._original is not None:
            return
        original = self._original = self._kind.__dict__.get(_REPLAY)
        if original is None:
            return
        replayed = self._replayed

        @functools.wraps(original)
        def replay(graph: Any, *args: Any, **kwargs: Any) -> Any:
            answer = original(graph, *args, **kwargs)
            replayed()
            return answer

        setattr(self._kind, _REPLAY, replay)

    def unwatch(self) -> None:
        """Leave nothing behind."""
        if self._original is not None:
            setattr(self._kind, _REPLAY, self._original)
            self._original = None


class Recorder:
    """Records into one file. It sees the thread that starts it, and autograd's. With `sketches`, records of statistics
    can tell how far two runs are apart (`sketches.py`), and have the contents of views, too."""

    def __init__(
        self,
        path: Path,
        header: RecordHeader,
        selection: Selection | None = None,
        first_step: int = 1,
        *,
        sketches: bool = False,
    ) -> None:
        self._selection = selection or Selection()
        self._step = first_step
        self._process = os.getpid()
        self._contents = KnownContents()
        self._where = Whereabouts()
        self._writer: StatisticsWriter | RecordWriter
        self._sink: StatisticsSink | TensorSink
        if header.kept is Kept.STATISTICS:
            self._writer = StatisticsWriter(path, header, sketches=sketches)
            self._sink = (SketchSink if sketches else StatisticsSink)(self._contents, self._writer)
        else:
            self._writer = RecordWriter(path, header)
            self._sink = TensorSink(self._contents, self._writer, header.kept)
        self._observer = CallObserver(
            self._contents, Layouts(_host_devices(), by_index=sketches), self._sink, self._where
        )
        self.mode = RecordingMode(
            self._sink, self._contents, self._observer, self._where, self._selection, sketches
        )
        self._replays = GraphReplays(self._graph_replayed)
        self._is_on = False
        self._is_closed = False

    @property
    def calls(self) -> int:
        """How many were written."""
        return self.mode.calls

    @property
    def nbytes(self) -> int:
        """How large the file is."""
        return self._writer.nbytes

    @property
    def failed(self) -> str:
        """Why recording ended early; "" if it did not."""
        return self._writer.failed or self.mode.failed

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be seen, so far."""
        return tuple(self.mode.notes)

    def forget(self, tensor: torch.Tensor) -> None:
        """The tensor was written to, out of the recorder's sight."""
        with contextlib.suppress(RuntimeError):  # it has no memory
            self._contents.forget_storage(tensor)

    def start(self) -> None:
        """From now on, if this step is wanted."""
        if not self._is_closed:
            self._switch()

    def next_step(self) -> None:
        """A step has ended, the next one begins."""
        if self._is_closed or os.getpid() != self._process:
            return
        self._step += 1
        self._sink.settle()
        self._writer.checkpoint()
        self._switch()

    def stop(self) -> None:
        """Until now; ends the file."""
        if self._is_closed:
            return
        self._is_closed = True
        self._off()
        self.mode.end()
        if os.getpid() == self._process:
            if has_compiled():
                self.mode.note(COMPILED)
            self._sink.settle()
            self._writer.close(self.notes)

    def abandon(self) -> None:
        """In a forked process: leave the parent's file alone."""
        self._is_closed = True
        self._off()
        self.mode.end()

    @contextmanager
    def out_of_sight(self) -> Iterator[None]:
        """What is called in it is not recorded; it may write to anything."""
        with self.mode.out_of_sight():
            yield
        self._contents.forget_all()

    def _switch(self) -> None:
        self.mode.step = self._step
        wanted = self._selection.has_step(self._step) and not self._writer.failed
        if wanted and not self._is_on:
            self._is_on = True
            self._contents.forget_all()
            self._where.watch()
            self._replays.watch()
            self.mode.switch_on()
        elif not wanted:
            self._off()

    def _off(self) -> None:
        if self._is_on:
            self._is_on = False
            self.mode.switch_off()
            self._replays.unwatch()
            self._where.unwatch()

    def _graph_replayed(self) -> None:
        self.mode.note("graphs")  # of a device: what is computed inside does not show
        self._contents.forget_all()


def _host_devices() -> frozenset[str]:
    """The types of devices whose memory is the host's: a simulated one's is."""
    now = simulated()
    return frozenset({"cpu"} if now is None else {"cpu", now.vendor.device_type})
