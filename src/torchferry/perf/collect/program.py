"""Watches a user's program from `import torch` on: profiles the steps that are wanted, then ends it."""

from __future__ import annotations

import functools
import gc
import os
import platform
import statistics
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch.autograd.profiler import record_function

from torchferry.accuracy.record.program import device_in_use, rank_and_world
from torchferry.errors import RunError
from torchferry.observe.modes import has_compiled
from torchferry.observe.patching import Patches
from torchferry.observe.program import EarlyEnd, Entrance, before_every_end, seed_all
from torchferry.observe.steps import StepCounter
from torchferry.perf.collect.settings import CollectOutcome, ProfileSettings, write_outcome
from torchferry.perf.collect.tracing import OtherProfilers, Tracer, make_tracer
from torchferry.sim import fallback_calls
from torchferry.text import Text
from torchferry.vendors.registry import get_vendor

_Step = TypeVar("_Step", bound=Callable[..., Any])


class IterationCounter(StepCounter):
    """Tells that a step has ended when PyTorch's own mark around the optimizer's step has ended as well, so that no
    mark reaches from one step into the next.

    PyTorch calls its hooks inside of that mark. So this wraps what PyTorch puts around the step of each class.
    """

    def __init__(self, ended: Callable[[int], None]) -> None:
        super().__init__(ended)
        # An optimizer may step others, or its own base class, inside its step.
        self._depth = threading.local()

    def _watch_steps(self, patches: Patches) -> None:
        optimizer: Any = torch.optim.Optimizer
        original = optimizer.profile_hook_step
        # torch.compile may look into a step: these two are none of its business
        disable: Callable[[_Step], _Step] = vars(torch)["_disable_dynamo"]

        @disable
        def begins(optimizer: torch.optim.Optimizer) -> None:
            depth = self._depth.value = getattr(self._depth, "value", 0) + 1
            if depth == 1:
                self._begins(optimizer)

        @disable
        def ends(optimizer: torch.optim.Optimizer, done: bool) -> None:
            self._depth.value -= 1
            if self._depth.value:
                self._had_turn.add(optimizer)  # that of the one around it
            elif done:
                self._has_stepped(optimizer)

        @functools.wraps(original)
        def profile_hook_step(function: _Step) -> Any:
            wrapped = original(function)

            @functools.wraps(wrapped)
            def step(*args: Any, **kwargs: Any) -> Any:
                begins(args[0])
                done = False
                try:
                    answer = wrapped(*args, **kwargs)
                    done = True
                finally:
                    ends(args[0], done)
                return answer

            return step

        patches.replace(optimizer, "profile_hook_step", staticmethod(profile_hook_step))


def _device_facts(device: str) -> dict[str, Any]:
    """The device's name and memory, by the fields of CollectOutcome; those that are not known are left out."""
    found: dict[str, Any] = {"device": device}
    module: Any = None if device == "cpu" else getattr(torch, device, None)
    with suppress(Exception):  # a plugin may lack the function, or have it for another device
        found["device_name"] = str(module.get_device_name())
    with suppress(Exception):
        found["memory_limit"] = int(module.mem_get_info()[1])
    with suppress(Exception):
        found["memory_peak"] = int(module.max_memory_allocated())
        found["memory_reserved"] = int(module.max_memory_reserved())
    return found


_MOST_LOOKED_AT = 100  # items of a batch


class StepObserver:
    """Watches, from `begin` to `end`, what a trace does not say: collected garbage, autocast, the size of batches."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._collection: Any = None  # the mark of the one that is going on
        self._uses_autocast = False
        self.batch: int | None = None  # how many samples a DataLoader has given at a time
        self._undo: list[Callable[[], None]] = []

    @property
    def autocast(self) -> bool | None:
        """Whether autocast was on; None where compiled code may have switched it on inside."""
        if self._uses_autocast:
            return True
        return None if has_compiled() else False

    def begin(self) -> None:
        """Begin to watch the program."""
        self._uses_autocast = _is_autocast_on(self._device)
        gc.callbacks.append(self._collects)
        self._undo.append(lambda: gc.callbacks.remove(self._collects))
        self._replace(torch.amp.autocast_mode.autocast, "__enter__", self._entering_autocast)
        self._replace(torch.utils.data.dataloader._BaseDataLoaderIter, "__next__", self._taking_batch)

    def end(self) -> None:
        """Watch no longer; everything is as it was."""
        while self._undo:
            self._undo.pop()()
        self._collection = None

    def _replace(self, owner: Any, name: str, wrapped: Callable[[Any], Any]) -> None:
        original = getattr(owner, name)
        setattr(owner, name, wrapped(original))
        self._undo.append(lambda: setattr(owner, name, original))

    def _collects(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._collection = record_function(f"torchferry::gc generation {info['generation']}")
            self._collection.__enter__()
        elif self._collection is not None:
            mark, self._collection = self._collection, None
            mark.__exit__(None, None, None)

    def _entering_autocast(self, original: Any) -> Any:
        def enter(autocast: Any) -> Any:
            self._uses_autocast = self._uses_autocast or bool(getattr(autocast, "_enabled", False))
            return original(autocast)

        return enter

    def _taking_batch(self, original: Any) -> Any:
        def following(iterator: Any) -> Any:
            batch = original(iterator)
            if self.batch is None:
                self.batch = _samples(batch)
            return batch

        return following


def _is_autocast_on(device: str) -> bool:
    try:
        return bool(torch.is_autocast_enabled(device))
    except TypeError:  # before 2.4 it took no type
        return bool(torch.is_autocast_enabled() or torch.is_autocast_cpu_enabled())
    except RuntimeError:  # a device that has none
        return False


def _samples(batch: Any) -> int | None:
    """The length of the first tensor in it."""
    waiting = [batch]
    for _ in range(_MOST_LOOKED_AT):
        if not waiting:
            break
        item = waiting.pop(0)
        if isinstance(item, torch.Tensor):
            if item.dim() > 0:
                return int(item.shape[0])
        elif isinstance(item, dict):
            waiting.extend(item.values())
        elif isinstance(item, (list, tuple)):
            waiting.extend(item)
    return None


_MOST_UNPROFILED, _FEWEST_UNPROFILED = 16, 3  # steps whose time is compared with that of profiled ones
_OTHER = Text(
    "the program profiles itself ({place}), and PyTorch runs one profiler at a time; switch that one off, or let "
    "`ferry analyze` read its trace",
    "程序自己在做 profiling（{place}），而 PyTorch 同一时间只能运行一个 profiler；请将其关闭，或用 `ferry analyze` 读取它的 trace",
)


def start(settings: ProfileSettings) -> None:
    """Profile this process."""
    ProfiledProgram(settings).begin()


class ProfiledProgram:
    """One process of a program that is profiled."""

    def __init__(self, settings: ProfileSettings) -> None:
        self._settings = settings
        self._process = os.getpid()
        self._made = 0  # steps
        self._tracer: Tracer | None = None  # None: it is not on
        self._first = 0  # the first step that is kept; 0: none yet
        self._began = self._ended = 0.0
        # Seconds of the steps before the profiler.
        self._unprofiled: deque[float] = deque(maxlen=_MOST_UNPROFILED)
        self._fallbacks: dict[str, int] = {}
        self._outcome = CollectOutcome()
        self._is_over = False
        self._observer = StepObserver(settings.device or "cpu")
        self._counter = IterationCounter(self._step_ended)
        self._others = OtherProfilers(self._other_begins)
        self._early_end = EarlyEnd()
        self._entrance = Entrance(self._first_step_begins)
        self._patches = Patches()
        # Stays while the process is to end: a program may catch what ends it, and go on.
        self._counting = Patches()

    def begin(self) -> None:
        """From now on, until the steps are made or the process ends."""
        if self._settings.seed is not None:
            seed_all(self._settings.seed)
        self._counter.watch(self._counting)
        self._others.watch(self._patches)
        os.register_at_fork(after_in_child=self._leave_child_alone)
        before_every_end(self._counting, self._process_ends)
        self._patches.add(self._entrance.close)
        if self._settings.first_warm == 1:
            self._entrance.open()
            _before_loading(self._patches, self._entrance, self._first_step_begins)

    def _leave_child_alone(self) -> None:
        """In a process that was just forked: it begins anew if its parent was not at work; else it helps its parent,
        as a DataLoader's does, and must not go on to collect its parent's events."""
        if self._tracer is not None:
            self._is_over = True
            sys.setprofile(None)
            vars(torch.autograd)["_enable_record_function"](False)
        elif not self._is_over:
            self._process = os.getpid()
            self._counter.begin_anew()
            self._made = 0

    def _is_ours(self) -> bool:
        return (
            not self._is_over and os.getpid() == self._process and torch.utils.data.get_worker_info() is None
        )

    def _first_step_begins(self) -> None:
        """There is no step before it whose end would tell."""
        if self._is_ours():
            self._step_begins(1)

    def _step_ended(self, step: int) -> None:
        if os.getpid() != self._process:
            return
        before, self._ended = self._ended, time.monotonic()
        self._made = step
        if before and self._tracer is None:
            self._unprofiled.append(self._ended - before)
        if self._is_over:
            if not self._settings.keep_running:
                self._early_end.ask()  # the program has gone on
            return
        if self._first and step >= self._settings.last_step:
            self._finish(step, is_whole=True)
            if not self._settings.keep_running:
                self._early_end.ask()
            self._counting.take_back()
            return
        self._step_begins(step + 1)

    def _step_begins(self, step: int) -> None:
        settings = self._settings
        if not settings.first_warm <= step <= settings.last_step:
            return
        if self._others.place:
            self._give_up(_OTHER.format(place=self._others.place))
            return
        with self._others.ours():
            if self._tracer is None:
                paths = tuple(map(Path, settings.vendor_paths))
                vendor = get_vendor(settings.vendor, paths) if settings.vendor else None
                self._tracer = make_tracer(settings, vendor, rank_and_world()[0])
                if step < settings.first_step:
                    self._tracer.prepare(step)
            elif step != settings.first_step:
                self._tracer.next_step(step)
            if step == settings.first_step:
                self._fallbacks = fallback_calls()
                self._tracer.start(step)
                self._observer.begin()
                self._first, self._began = step, time.monotonic()

    def _other_begins(self, place: str) -> None:
        if self._tracer is not None and self._is_ours():
            self._give_up(_OTHER.format(place=place))

    def _give_up(self, problem: Text) -> None:
        """End without a trace; the program's own profiler works as it would."""
        tracer, self._tracer = self._tracer, None
        self._is_over = True
        self._observer.end()
        self._patches.take_back()
        if tracer is not None:
            with self._others.ours():
                tracer.abandon()
        self._say(CollectOutcome(*rank_and_world(), problem=RunError(problem).to_json()))

    def _finish(self, step: int, is_whole: bool) -> None:
        """This step was the last one, or it is broken off as the process ends."""
        tracer, self._tracer = self._tracer, None
        self._is_over = True
        self._observer.end()
        self._patches.take_back()
        if tracer is None:
            return
        with self._others.ours():
            tracer.stop(step, is_whole)
        last = step if is_whole else step - 1
        if last < self._first or not self._first:
            return
        # The first steps of a program are slow: of too few nothing is said.
        enough = len(self._unprofiled) >= _FEWEST_UNPROFILED
        before = self._fallbacks
        fallbacks = {name: count - before.get(name, 0) for name, count in sorted(fallback_calls().items())}
        self._say(
            CollectOutcome(
                *rank_and_world(),
                first_step=self._first,
                last_step=last,
                trace=tracer.write(Path(self._settings.folder), f"trace.{os.getpid()}"),
                first_mark=tracer.first_mark,
                seconds=round(self._ended - self._began, 6),
                unprofiled_step=round(statistics.median(self._unprofiled), 6) if enough else 0.0,
                torch=torch.__version__,
                python=platform.python_version(),
                autocast=self._observer.autocast,
                batch=self._observer.batch,
                fallbacks={name: count for name, count in fallbacks.items() if count},
                **_device_facts(self._settings.device or device_in_use()),
            )
        )

    def _process_ends(self) -> None:
        """Say how many steps there were, also if the process ends before those that were wanted."""
        if os.getpid() != self._process:
            return
        if not self._is_over:
            self._finish(self._made + 1, is_whole=False)
        if self._made or self._outcome.problem:
            self._say(self._outcome)

    def _say(self, outcome: CollectOutcome) -> None:
        self._outcome = replace(outcome, made=self._made)
        folder = Path(self._settings.folder)
        if folder.is_dir():  # else the launcher is gone
            write_outcome(folder, self._outcome)


def _before_loading(patches: Patches, entrance: Entrance, enter: Callable[[], None]) -> None:
    """A step begins with its data: the first DataLoader that is gone through opens the first one, if no module was
    called before."""
    loader: Any = torch.utils.data.DataLoader
    original = loader.__iter__

    @functools.wraps(original)
    def iterate(self: Any) -> Any:
        if entrance.close():
            enter()
        return original(self)

    patches.replace(loader, "__iter__", iterate)
