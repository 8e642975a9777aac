"""torch.profiler: CUDA's activity is the vendor's, in the vendor's own profiler where it has one."""

from __future__ import annotations

import functools
import importlib
import inspect
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import torch
import torch.profiler

from torchferry.runtime.patches import Change, Patch
from torchferry.runtime.target import CUDA, LayerTarget

_IN_TREE = "torch.profiler"


def changes(target: LayerTarget) -> Iterator[Change]:
    """The profiler's class, and the handler that writes traces."""
    own = _own_profiler(target)
    kind = target.vendor.profiler_activity if target.vendor else ""
    kinds = own.ProfilerActivity if own else torch.profiler.ProfilerActivity
    activity = getattr(kinds, kind, None) if kind else None  # what CUDA's is for the vendor
    means = f"ProfilerActivity.CUDA is {activity}" if activity is not None else "profiles only the CPU"
    profile = _profile(own, activity)
    for owner in (torch.profiler, torch.profiler.profiler):
        yield Patch("torch.profiler.profile", owner, "profile", profile, means)
    if own is not None:
        yield Patch(
            "torch.profiler.tensorboard_trace_handler",
            torch.profiler,
            "tensorboard_trace_handler",
            _trace_handler(own),
            f"{own.__name__}.tensorboard_trace_handler for traces of the device",
        )
    yield _older(target)
    older: Any = torch.autograd.profiler
    marks: Any = older.emit_nvtx  # NVIDIA's marks for operators, which there is nobody to read

    class emit_nvtx(marks):  # type: ignore[misc] # noqa: N801
        def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
            super().__init__(False, record_shapes)

    emit_nvtx.__module__, emit_nvtx.__qualname__ = marks.__module__, marks.__qualname__
    yield Patch("torch.autograd.profiler.emit_nvtx", older, "emit_nvtx", emit_nvtx, "marks nothing")


def _own_profiler(target: LayerTarget) -> ModuleType | None:
    """The vendor's profiler module; None when it extends torch's."""
    name = target.vendor.profiler_module if target.vendor else ""
    if not name or name == _IN_TREE:
        return None
    try:
        module = importlib.import_module(name)
    except ImportError:
        return None
    return module if hasattr(module, "profile") and hasattr(module, "ProfilerActivity") else None


def _profile(own: ModuleType | None, activity: Any) -> type:
    """torch.profiler.profile; where CUDA is watched and the vendor has a profiler, an instance of the vendor's."""
    original: Any = torch.profiler.profile
    cuda, cpu = torch.profiler.ProfilerActivity.CUDA, torch.profiler.ProfilerActivity.CPU

    class kind_of_profile(type(original)):  # type: ignore[misc] # noqa: N801
        def __instancecheck__(cls, instance: Any) -> bool:
            return super().__instancecheck__(instance) or (
                own is not None and isinstance(instance, own.profile)
            )

    class profile(original, metaclass=kind_of_profile):  # type: ignore[misc] # noqa: N801
        def __new__(cls, *args: Any, **settings: Any) -> Any:
            if own is None or activity is None or cuda not in (settings.get("activities") or ()):
                return super().__new__(cls)
            return _make_own(own, activity, settings)

        def __init__(self, *, activities: Any = None, **settings: Any) -> None:
            if activities is not None:
                mapped = [activity if kind == cuda else kind for kind in activities]
                activities = [kind for kind in mapped if kind is not None] or [cpu]
            super().__init__(activities=activities, **settings)

    # Libraries look up which settings there are.
    profile.__init__.__signature__ = inspect.signature(original.__init__)  # type: ignore[attr-defined]
    profile.__module__, profile.__qualname__ = original.__module__, original.__qualname__
    profile.__doc__ = original.__doc__
    return profile


def _older(target: LayerTarget) -> Patch:
    """torch.autograd.profiler.profile, which takes the type of a device, or CUDA's own flag."""
    owner = torch.autograd.profiler.profile
    original = owner.__init__

    @functools.wraps(original)
    def init(
        self: Any, enabled: bool = True, *, use_device: Any = None, use_cuda: bool = False, **settings: Any
    ) -> None:
        if use_cuda or use_device == CUDA:
            use_device = None if target.is_reference else target.device_type
        original(self, enabled, use_device=use_device, **settings)

    means = f'"cuda" is "{target.device_type}"'
    return Patch("torch.autograd.profiler.profile", owner, "__init__", init, means)


def _make_own(own: ModuleType, activity: Any, settings: dict[str, Any]) -> Any:
    """The vendor's profiler for the same settings; those that it does not take are left out."""
    cuda = torch.profiler.ProfilerActivity.CUDA
    kinds = [
        activity if kind == cuda else getattr(own.ProfilerActivity, kind.name)
        for kind in settings["activities"]
        if kind == cuda or hasattr(own.ProfilerActivity, kind.name)
    ]
    given = {**settings, "activities": kinds}
    if given.get("schedule") is not None and hasattr(own, "ProfilerAction"):
        schedule: Callable[[int], Any] = given["schedule"]
        given["schedule"] = lambda step: getattr(own.ProfilerAction, schedule(step).name)
    takes = inspect.signature(own.profile.__init__).parameters
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in takes.values())
    kept = {name: value for name, value in given.items() if takes_any or name in takes}
    return _with_tables(own)(**kept)


def _with_tables(own: ModuleType) -> Any:
    """The vendor's class. Where it has no tables of operators in the process, they are empty, so that a program or a
    library which prints one runs on."""

    def table(self: Any, *_: Any, **__: Any) -> Any:
        from torch.autograd.profiler_util import EventList

        warnings.warn(f"{own.__name__} makes no tables here; see the traces that it writes", stacklevel=2)
        events = EventList([])  # type: ignore[no-untyped-call]
        events._build_tree()  # type: ignore[no-untyped-call]
        return events

    missing = {name: table for name in ("events", "key_averages") if not hasattr(own.profile, name)}
    return (
        type("profile", (own.profile,), {**missing, "__module__": own.__name__}) if missing else own.profile
    )


def _trace_handler(own: ModuleType) -> Callable[..., Any]:
    original = torch.profiler.tensorboard_trace_handler

    def tensorboard_trace_handler(
        dir_name: str, worker_name: str | None = None, use_gzip: bool = False
    ) -> Any:
        in_tree = original(dir_name, worker_name, use_gzip)

        def handle(profiler: Any) -> None:
            if isinstance(profiler, own.profile):
                own.tensorboard_trace_handler(dir_name, worker_name)(profiler)
            else:
                in_tree(profiler)

        return handle

    return tensorboard_trace_handler
