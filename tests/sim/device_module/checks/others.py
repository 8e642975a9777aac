"""Marks, the runtime library, forks, and what the vendor has beside CUDA's names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from tests.sim.checking import Target
from tests.sim.device_module.names import lookup
from torchferry.sim.device_module.extras import load_extras


def check_marks_appear_in_a_profile(target: Target) -> None:
    if not target.vendor.marker_module:
        return
    marks = lookup(target.vendor.marker_module)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        marks.range_push("outer")
        marks.mark("here")
        assert marks.range_pop() == 0
        marks.range_end(marks.range_start("numbered"))
    assert {"outer", "here", "numbered"} <= {event.name for event in profile.events()}
    assert marks.range_pop() == -1


def check_the_runtime_library_answers(target: Target) -> None:
    api = target.vendor.api("torch.cuda.cudart")
    if api.name:
        runtime = lookup(api.name)()
        assert runtime.cudaMemGetInfo(0) == target.module.mem_get_info(0)
        with pytest.raises(AttributeError):
            _ = runtime.cudaNonsense


def check_every_extra_is_there(target: Target) -> None:
    for extra in load_extras(Path(target.vendor.folder)):
        name = f"{target.vendor.torch_module}.{extra.name}"
        if extra.kind == "property":
            assert getattr(target.module.get_device_properties(), extra.name) == extra.value
        elif extra.kind in ("constant", "getter", "negation"):
            assert lookup(name)() == extra.value, name
        elif extra.kind == "switch":
            assert lookup(name) == extra.value, name
        elif extra.kind == "nothing":
            assert lookup(name)({"any": "thing"}) is None, name
        elif extra.kind == "context":
            with lookup(name)("any", thing=1):
                pass
        elif extra.kind == "alias":
            assert lookup(name) is lookup(f"{target.vendor.torch_module}.{extra.key}")
        elif extra.kind == "nonfinite":
            assert lookup(name)(torch.tensor([1.0, float("nan")], device=target.type)) is True
            assert lookup(name)([torch.ones(2, device=target.type)]) is False


def check_switches_and_setters_are_remembered(target: Target) -> None:
    extras = load_extras(Path(target.vendor.folder))
    readers = {extra.key: extra for extra in extras if extra.kind in ("getter", "negation")}
    for extra in extras:
        name = f"{target.vendor.torch_module}.{extra.name}"
        if extra.kind == "switch":
            holder, _, leaf = name.rpartition(".")
            setattr(lookup(holder), leaf, not extra.value)
            assert lookup(name) is not extra.value
            setattr(lookup(holder), leaf, extra.value)
        elif extra.kind == "setter" and extra.key in readers:
            reader = readers[extra.key]
            lookup(name)(value=True)
            expected = reader.kind == "getter"
            assert lookup(f"{target.vendor.torch_module}.{reader.name}")() is expected


def check_a_fork_of_a_process_that_used_the_device_cannot_use_it(target: Target) -> None:
    tensor = torch.ones(1, device=target.type)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            target.module.set_device(0)
            answer = "usable"
        except RuntimeError as error:
            answer = f"{error} {target.module.is_initialized()}"
        os.write(writing, answer.encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as pipe:
        answer = pipe.read()
    assert f"Cannot re-initialize {target.type.upper()} in forked subprocess" in answer
    assert answer.endswith("False")
    assert target.module.is_initialized()
    del tensor
