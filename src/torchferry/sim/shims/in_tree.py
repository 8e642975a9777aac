"""What programs of the time wrote when the vendor's adapter was a changed PyTorch, with no plugin to import."""

from __future__ import annotations

import functools
import importlib
import itertools
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torchferry.files.aside import write_whole
from torchferry.vendors.calls import OldName, load_old_names
from torchferry.vendors.model import Vendor

_INNERMOST = "_torchferry_innermost_only"


def accept_profiler_arguments(vendor: Vendor) -> None:
    """torch.autograd.profiler.profile(use_npu=True): the argument was named after the device, as CUDA's is;
    use_npu_simple=True leaves the innermost operators alone."""
    from torch.autograd.profiler import profile

    watch, simple = f"use_{vendor.device_type}", f"use_{vendor.device_type}_simple"
    target: Any = profile
    make = target.__init__

    @functools.wraps(make)
    def accept(self: Any, enabled: bool = True, **settings: Any) -> None:
        setattr(self, _INNERMOST, bool(settings.pop(simple, False)))
        if settings.pop(watch, False):
            settings["use_device"] = vendor.device_type
        make(self, enabled, **settings)

    target.__init__ = accept
    _simplify(target)


def add_old_methods(vendor: Vendor) -> None:
    """Tensor.npu_format_cast(29): such methods were PyTorch's own; where a program imports the plugin, they are what
    today's plugin makes of them."""
    from torch import Tensor

    for old in load_old_names(vendor.folder):
        if old.method and old.new and not hasattr(Tensor, old.method):
            setattr(Tensor, old.method, _old_method(old))


def _old_method(old: OldName) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **settings: Any) -> Any:
        return _function(old)(self, *args, **settings)

    method.__name__ = method.__qualname__ = old.method
    return method


@functools.cache
def _function(old: OldName) -> Callable[..., Any]:
    """The plugin's function for an old method of tensors. Importing the plugin for it leaves the methods as they are."""
    from torch import Tensor

    warnings.warn(f"Tensor.{old.method}: {old.why.en}; write {old.new}(tensor, ...)", stacklevel=3)
    package, _, name = old.new.rpartition(".")
    before = dict(vars(Tensor))
    plugin = importlib.import_module(package)
    for known, value in before.items():
        if vars(Tensor)[known] is not value:
            setattr(Tensor, known, value)
    function: Callable[..., Any] = getattr(plugin, name)
    return function


def _simplify(profile: Any) -> None:
    """Tables and traces of a profile that asks for it."""
    leave, export = profile.__exit__, profile.export_chrome_trace

    @functools.wraps(leave)
    def exit_(self: Any, *error: Any) -> Any:
        answer = leave(self, *error)
        events = self.function_events if self.enabled and getattr(self, _INNERMOST, False) else None
        if events is not None:
            events[:] = [event for event in events if not event.cpu_children]
        return answer

    @functools.wraps(export)
    def export_chrome_trace(self: Any, path: str, *args: Any, **settings: Any) -> Any:
        answer = export(self, path, *args, **settings)
        if getattr(self, _INNERMOST, False):
            _keep_innermost(path)
        return answer

    profile.__exit__ = exit_
    profile.export_chrome_trace = export_chrome_trace


def _keep_innermost(path: str) -> None:
    with open(path, encoding="utf-8") as file:
        trace = json.load(file)
    operators = [event for event in trace["traceEvents"] if event.get("cat") == "cpu_op"]
    operators.sort(key=lambda event: (event["tid"], float(event["ts"]), -float(event["dur"])))
    outer = {
        id(one)
        for one, following in itertools.pairwise(operators)
        if one["tid"] == following["tid"] and float(following["ts"]) < float(one["ts"]) + float(one["dur"])
    }
    trace["traceEvents"] = [event for event in trace["traceEvents"] if id(event) not in outer]
    write_whole(Path(path), json.dumps(trace).encode())
