"""PyTorch's profiler, or a vendor's own one, steered step by step."""

from __future__ import annotations

import functools
import gzip
import importlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import torch
import torch.profiler
from torch.autograd.profiler import record_function

from torchferry.observe.patching import Patches
from torchferry.perf.collect.settings import ProfileSettings
from torchferry.vendors.model import Vendor

_IN_TREE = "torch.profiler"
_MARK = "ProfilerStep#{}"
_UNFINISHED = "torchferry::unfinished step {}"
_COMPRESSION = 3  # traces shrink to a tenth at once; the best level takes many times as long for little


class Tracer(Protocol):
    """One profile of one process."""

    first_mark: int  # the number of the first step's mark

    def prepare(self, step: int) -> None:
        """Warm up: this step begins."""

    def start(self, step: int) -> None:
        """This step, which begins now, and those after it are kept."""

    def next_step(self, step: int) -> None:
        """The one before has ended, this one begins: of the warm-up, or of those that are kept."""

    def stop(self, step: int, is_whole: bool) -> None:
        """This step was the last one; it has ended, or it was broken off."""

    def write(self, folder: Path, name: str) -> str:
        """Write what was kept; answers the name of the file or folder in that folder."""

    def abandon(self) -> None:
        """Keep nothing; whatever was begun has ended."""


def make_tracer(settings: ProfileSettings, vendor: Vendor | None, rank: int) -> Tracer:
    """The one that shows most of where the program runs."""
    if vendor is not None and not settings.simulated:
        own = _own_module(vendor)
        if own is not None:
            return VendorTracer(own, vendor.profiler_activity, settings, rank)
    return TorchTracer(settings, _activities(settings, vendor))


class TorchTracer:
    """torch.profiler without its schedule: the steps are marked here, by the numbers that the user knows."""

    def __init__(self, settings: ProfileSettings, activities: Iterable[Any]) -> None:
        self.first_mark = settings.first_step
        # The class below torch.profiler.profile starts and stops when it is told to.
        self._profile: Any = vars(torch.profiler)["_KinetoProfile"](
            activities=list(activities),
            record_shapes=settings.shapes,
            profile_memory=settings.memory,
            with_stack=settings.stacks,
        )
        self._is_prepared = self._is_started = False
        self._mark: Any = None
        self._unfinished = 0  # the step that was broken off; 0: none

    def prepare(self, step: int) -> None:
        """Warm the profiler up."""
        self._profile.prepare_trace()
        self._is_prepared = True

    def start(self, step: int) -> None:
        """Begin to keep what happens, with this step."""
        if not self._is_prepared:
            self.prepare(step)
        self._profile.start_trace()
        self._is_started = True
        self._begin_step(step)

    def next_step(self, step: int) -> None:
        """End one mark, begin another; in the warm-up there are none."""
        if self._mark is not None:
            self._end_step()
            self._begin_step(step)

    def stop(self, step: int, is_whole: bool) -> None:
        """End the profile."""
        if is_whole:
            self._end_step()
        else:
            self._unfinished = step
        self.abandon()

    def write(self, folder: Path, name: str) -> str:
        """Write the trace as one compressed file."""
        plain, packed = folder / f"{name}.json", folder / f"{name}.json.gz"
        try:
            self._profile.export_chrome_trace(str(plain))
            with plain.open("rb") as file, gzip.open(packed, "wb", _COMPRESSION) as output:
                lines: Iterable[bytes] = file
                if self._unfinished:  # the mark of a step that was broken off is none of a step
                    mark, other = (
                        f'"{form.format(self._unfinished)}"'.encode() for form in (_MARK, _UNFINISHED)
                    )
                    lines = (line.replace(mark, other) for line in file)
                output.writelines(lines)
        finally:
            plain.unlink(missing_ok=True)
        return packed.name

    def abandon(self) -> None:
        """End the profile; what was only warmed up can't be stopped without a start."""
        self._mark = None
        if not self._is_started:
            self._profile.start_trace()
        self._profile.stop_trace()

    def _begin_step(self, step: int) -> None:
        self._mark = record_function(_MARK.format(step))
        self._mark.__enter__()

    def _end_step(self) -> None:
        mark, self._mark = self._mark, None
        mark.__exit__(None, None, None)


class VendorTracer:
    """A vendor's own profiler, by the calls that its documentation has: it writes a folder, and counts its own way."""

    def __init__(self, module: ModuleType, activity: str, settings: ProfileSettings, rank: int) -> None:
        warm = settings.first_step - settings.first_warm
        self.first_mark = warm
        self._folder = Path(settings.folder)
        self._worker = f"rank{rank}.{os.getpid()}"
        kinds: Any = module.ProfilerActivity
        self._profile: Any = module.profile(
            activities=[getattr(kinds, name) for name in ("CPU", activity) if hasattr(kinds, name)],
            schedule=module.schedule(wait=0, warmup=warm, active=settings.steps, repeat=1),
            on_trace_ready=module.tensorboard_trace_handler(str(self._folder), self._worker),
            record_shapes=settings.shapes,
            profile_memory=settings.memory,
            with_stack=settings.stacks,
        )
        self._is_on = False

    def prepare(self, step: int) -> None:
        """Its schedule begins with the warm-up."""
        self._profile.start()
        self._is_on = True

    def start(self, step: int) -> None:
        """Its schedule begins, or goes on from the warm-up to what is kept."""
        if self._is_on:
            self._profile.step()
        else:
            self.prepare(step)

    def next_step(self, step: int) -> None:
        """Go on in the schedule."""
        self._profile.step()

    def stop(self, step: int, is_whole: bool) -> None:
        """After the last step its schedule ends, and it writes."""
        if is_whole:
            self._profile.step()
        self.abandon()

    def write(self, folder: Path, name: str) -> str:
        """The name of the folder that the profiler has written."""
        return next((path.name for path in folder.glob(f"{self._worker}*")), "")

    def abandon(self) -> None:
        """End the profile."""
        self._profile.stop()


def _own_module(vendor: Vendor) -> ModuleType | None:
    if vendor.profiler_module in ("", _IN_TREE):
        return None
    try:
        module = importlib.import_module(vendor.profiler_module)
    except ImportError:
        return None
    needed = ("profile", "schedule", "tensorboard_trace_handler", "ProfilerActivity")
    return module if all(hasattr(module, name) for name in needed) else None


def _activities(settings: ProfileSettings, vendor: Vendor | None) -> Iterable[Any]:
    """Simulated kernels run on the CPU, inside of their operators: the CPU's events are all there is."""
    kinds: Any = torch.profiler.ProfilerActivity
    yield kinds.CPU
    if settings.simulated:
        return
    supported: Any = torch.profiler.supported_activities()  # type: ignore[no-untyped-call]
    wanted = ("CUDA", "XPU") if vendor is None else (vendor.profiler_activity,)
    yield from (kind for name in wanted if (kind := getattr(kinds, name, None)) in supported)


# Profilers that the program starts itself: PyTorch has room for one at a time.

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
        """Watch until the patches are taken back: every way to PyTorch's profiler goes through these functions."""
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
