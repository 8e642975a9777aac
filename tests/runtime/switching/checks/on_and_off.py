"""Everything comes back; turning on is done once, for one vendor, wholly or not at all."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any
from unittest import mock

import pytest
import torch
import torch.cuda.comm
import torch.distributed.device_mesh
import torch.profiler

from tests.runtime import imported_before
from tests.sim.checking import VENDORS, Target
from torchferry import runtime
from torchferry.errors import FerryError, RunError
from torchferry.runtime import layer
from torchferry.runtime.patches import Action, Change

CLASSES = (
    torch.Tensor,
    torch.device,
    torch.Generator,
    *(getattr(torch, name) for name in ("Stream", "Event") if hasattr(torch, name)),
    torch.UntypedStorage,
    torch.amp.autocast,
    torch.amp.GradScaler,
    torch.profiler.profile,
    torch.distributed.device_mesh.DeviceMesh,
    torch.nn.parallel.DistributedDataParallel,
    type(os.environ),
)


def _held() -> dict[str, Any]:
    """Everything that anything in torch, its classes, the environment and this test's modules is."""
    owners: dict[str, Any] = {
        name: module
        for name, module in list(sys.modules.items())
        if isinstance(module, ModuleType)
        and name.startswith(("torch", "tests.runtime"))
        and "torchferry" not in name
    }
    owners |= {f"{kind.__module__}.{kind.__name__}": kind for kind in CLASSES}
    held = {
        f"{path} {name}": value for path, owner in owners.items() for name, value in list(vars(owner).items())
    }
    held |= {f"environment {name}": value for name, value in os.environ.items()}
    held["readers"] = list(torch.serialization._package_registry)
    held["modules"] = {name for name in sys.modules if not name.startswith("torchferry")}
    return held


def _differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    missing = object()
    names = before.keys() | after.keys()
    simple = (list, set, str, dict)
    return sorted(
        name
        for name in names
        if before.get(name, missing) is not after.get(name, missing)
        and not (isinstance(before.get(name), simple) and before.get(name) == after.get(name))
        and not name.endswith(" __warningregistry__")
    )


def _settle(vendor: str) -> None:
    """What is imported or remembered at a first use is no change of the layer's."""
    runtime.activate(vendor)
    runtime.deactivate()


def check_everything_comes_back(target: Target) -> None:
    _settle(target.vendor.name)
    before = _held()
    for _ in range(2):
        runtime.activate(target.vendor.name)
        assert runtime.is_active() and len(_differences(before, _held())) > 250
        assert torch.ones(1, device="cuda:1").device.index == 1
        torch.Generator("cuda")
        runtime.deactivate()
        left = _differences(before, _held())
        assert left == [], left
        assert not runtime.is_active() and runtime.changes() == ()
    runtime.deactivate()
    assert _differences(before, _held()) == []


def check_without_the_layer_cuda_is_cuda(target: Target) -> None:
    _settle(target.vendor.name)
    there = torch.ones(1, device=f"{target.type}:1")
    assert str(torch.device("cuda:1")) == "cuda:1" and torch.device("cuda", 1).index == 1
    assert there.device.type != "cuda" and type(there.device.type) is str
    assert not there.is_cuda and not torch.cuda.is_available() and not imported_before.is_available()
    with pytest.raises((AssertionError, RuntimeError)):
        torch.ones(1).cuda()
    with pytest.raises((AssertionError, RuntimeError)):
        torch.zeros(1, device="cuda")
    assert torch.device("cpu") == torch.ones(1).device and torch.device(type="cpu").index is None
    assert torch.Generator().device.type == "cpu" and torch.UntypedStorage(4).nbytes() == 4
    assert torch.Generator(device=target.type).device.type == target.type


def check_devices_of_both_times_are_equal(target: Target) -> None:
    own = torch.device(target.type, 1)
    runtime.activate(target.vendor.name)
    during = torch.device("cuda:1")
    assert during == own and hash(during) == hash(own)
    runtime.deactivate()
    assert during == own and during.type == target.type


def check_doing_it_again_does_nothing(target: Target) -> None:
    runtime.activate(target.vendor.name)
    changes, held = runtime.changes(), _held()
    runtime.activate(target.vendor.name)
    runtime.activate(runtime.LayerSettings(target.vendor.name))
    assert runtime.changes() == changes and _differences(held, _held()) == []


def check_another_vendor_is_refused(target: Target) -> None:
    runtime.activate(target.vendor.name)
    other = next(name for name in VENDORS if name != target.vendor.name)
    with pytest.raises(RunError, match=f"CUDA already means {target.vendor.name} in this process"):
        runtime.activate(other)
    assert torch.device("cuda").type == target.type and runtime.is_active()


def check_a_vendor_that_is_not_there(target: Target) -> None:
    before = _held()
    other = next(name for name in VENDORS if name != target.vendor.name)
    with pytest.raises(RunError, match="can't be imported"):
        runtime.activate(other)
    with pytest.raises(FerryError, match="did you mean"):
        runtime.activate(target.vendor.name[:-1] + "x")
    assert _differences(before, _held()) == [] and not runtime.is_active()


def check_threads(target: Target) -> None:
    _settle(target.vendor.name)
    before, seen = _held(), []
    ready = threading.Barrier(8)

    def work() -> None:
        ready.wait()
        runtime.activate(target.vendor.name)
        seen.append((len(runtime.changes()), torch.ones(1, device="cuda").device.type == "cuda"))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [(len(runtime.changes()), True)] * 8
    runtime.deactivate()
    assert _differences(before, _held()) == []


def check_a_failure_in_the_middle_leaves_nothing(target: Target) -> None:
    _settle(target.vendor.name)
    before = _held()

    def fail() -> None:
        raise OSError("in the middle")

    def failing(_: Any) -> Iterator[Change]:
        yield Action("a", "fails", fail, lambda: None)

    def broken(_: Any) -> Iterator[Change]:
        raise OSError("in the middle")
        yield

    for area in (failing, broken):
        for place in (1, 5, len(layer._AREAS)):
            areas = (*layer._AREAS[:place], area, *layer._AREAS[place:])
            with mock.patch.object(layer, "_AREAS", areas), pytest.raises(OSError, match="in the middle"):
                runtime.activate(target.vendor.name)
            assert not runtime.is_active() and _differences(before, _held()) == []
    runtime.activate(target.vendor.name)
    assert torch.ones(1).cuda().is_cuda
