"""Every name of torch.cuda answers: as the vendor's does, neutrally, or with an error that says what is missing."""

from __future__ import annotations

import contextlib
import inspect
import io
import pickle
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch
import torch.cuda.comm

from tests.runtime import imported_before
from tests.sim.checking import Target
from torchferry import runtime
from torchferry.runtime.cuda_gaps import NotOnThisDeviceError
from torchferry.runtime.patches import Patch

# What a build of torch without CUDA says, wherever it is asked.
WITHOUT_CUDA = (
    "not compiled with CUDA",
    "module 'torch._C' has no attribute",
    "dummy base class",
    "NVIDIA driver",
)
NO_WAY_BACK = ("change_current_allocator", "caching_allocator_delete")  # can't be called for a try
ARGUMENTS: dict[str, Any] = {
    "device": 0,
    "device_index": 0,
    "peer_device": 1,
    "seed": 1,
    "fraction": 0.5,
    "size": 512,
    "msg": "a",
    "name": "a",
    "cycles": 10,
    "mode": "default",
}


def _modules(module: ModuleType = torch.cuda) -> Iterator[ModuleType]:
    yield module
    for value in list(vars(module).values()):
        if isinstance(value, ModuleType) and value.__name__.startswith(module.__name__ + "."):
            yield from _modules(value)


def _public_functions() -> Iterator[tuple[str, Any]]:
    for module in _modules():
        for name, value in list(vars(module).items()):
            hidden = name.startswith("_") or any(part.startswith("_") for part in module.__name__.split("."))
            theirs = str(getattr(value, "__module__", "")).startswith(("typing", "collections", "functools"))
            if callable(value) and not hidden and not theirs and name not in NO_WAY_BACK:
                yield f"{module.__name__}.{name}", value


def _arguments(function: Any) -> dict[str, Any]:
    """Arguments for what a function demands, as far as a name says what is meant."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return {}
    demanded = [one.name for one in parameters if one.default is one.empty and one.kind in (0, 1, 3)]
    known: dict[str, Any] = {
        **ARGUMENTS,
        "tensor": torch.ones(2, device="cuda"),
        "new_state": torch.cuda.get_rng_state(),
    }
    return {name: known[name] for name in demanded if name in known}


def check_no_name_reaches_a_build_without_cuda(target: Target) -> None:
    reached, tried = {}, 0
    for name, function in _public_functions():
        tried += 1
        try:
            with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                warnings.simplefilter("ignore")
                function(**_arguments(function))
        except BaseException as error:
            if any(text in str(error) for text in WITHOUT_CUDA):
                reached[name] = str(error)
    assert tried > 200, tried
    assert reached == {}


def check_what_the_vendor_has_is_the_vendors_own_function(target: Target) -> None:
    for name in (
        "is_available",
        "device_count",
        "synchronize",
        "empty_cache",
        "memory_allocated",
        "manual_seed",
    ):
        assert getattr(torch.cuda, name) is getattr(target.module, name), name
    for name in ("Stream", "Event", "FloatTensor", "device", "current_stream", "set_device"):
        assert getattr(torch.cuda, name) is getattr(target.module, name), name
    assert torch.cuda.is_available() is True
    assert torch.cuda.device_count() == 2


def check_what_the_vendor_does_not_have_says_so(target: Target) -> None:
    absent = [
        change for change in runtime.changes() if change.means == "not available on this device: raises"
    ]
    assert len(absent) > 20
    for change in absent:
        assert isinstance(change, Patch)
        try:
            change.value()
        except NotOnThisDeviceError as error:
            message = str(error)
        assert message.startswith(
            f"{change.name} has no equivalent on {target.vendor.company}'s `{target.type}` device"
        )
        assert f"ferry scan --to {target.vendor.name}" in message


def check_a_library_that_was_imported_before(target: Target) -> None:
    assert imported_before.is_available() is True
    assert imported_before.current_device() == 0
    assert imported_before.zeros(1, device="cuda:1").device.index == 1
    assert imported_before.tensor([1.0], device="cuda").is_cuda
    assert imported_before.load is torch.load
    assert imported_before.profile is torch.profiler.profile
    assert imported_before.init_process_group is torch.distributed.init_process_group
    with imported_before.autocast("cuda"):
        assert torch.is_autocast_enabled("cuda")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with imported_before.cuda_autocast():
            assert torch.is_autocast_enabled(target.type)
        assert imported_before.GradScaler().is_enabled()


def check_neutral_answers(target: Target) -> None:
    torch.cuda.nvtx.range_push("a")
    torch.cuda.nvtx.mark("b")
    torch.cuda.nvtx.range_pop()
    with torch.cuda.nvtx.range("c {}", 1):
        pass
    torch.cuda.profiler.start()
    torch.cuda.profiler.stop()
    with torch.cuda.profiler.profile():
        pass
    assert torch.cuda.cudart().cudaProfilerStart() == 0
    assert torch.cuda.nccl.version() >= (2, 10)
    torch.cuda.ipc_collect()
    assert torch.cuda.get_arch_list() == []
    assert torch.cuda.is_current_stream_capturing() is False


def check_graphs_are_replayed_or_raise_clearly(target: Target) -> None:
    total = torch.zeros(2, device="cuda")
    try:
        graph = torch.cuda.CUDAGraph()
    except NotImplementedError as error:
        assert "graph" in str(error).lower(), error
        return
    with torch.no_grad(), torch.cuda.graph(graph):
        total.add_(1)
        assert torch.cuda.is_current_stream_capturing()
    assert total.tolist() == [0, 0]
    graph.replay()
    assert total.tolist() == [1, 1]


def check_every_change_says_what_it_means(target: Target) -> None:
    changes = runtime.changes()
    assert len(changes) > 250
    for change in changes:
        assert change.name.startswith(
            ("torch", "os.environ", "CUDA", "TORCHFERRY", "tests.", target.vendor.plugin)
        ), change
        assert change.means and change.means[0] != "<" and "object at 0x" not in change.means, change
    means = {change.name: change.means for change in changes}
    assert means["torch.cuda.is_available"] == f"torch.{target.type}.is_available"
    assert means["torch.device(...)"] == f'torch.device("cuda:1") is {target.type}:1'
    assert means["tests.runtime.imported_before.is_available"] == "redirected to torch.cuda.is_available"


def check_libraries_that_compare_names(target: Target) -> None:
    """What a program finds with hasattr, dir and inspect is still there."""
    assert torch.cuda.__name__ == "torch.cuda"
    assert {"is_available", "amp", "Stream", "FloatTensor", "memory_summary"} <= set(dir(torch.cuda))
    assert not hasattr(torch.cuda, "no_such_name")
    assert torch.zeros.__name__ == "zeros"
    assert torch.Tensor.to.__name__ == "to"


def check_functions_can_be_pickled(target: Target) -> None:
    """Transforms and collate functions that hold them go to workers that are spawned."""
    names = (
        "torch.zeros",
        "torch.tensor",
        "torch.empty_like",
        "torch.load",
        "torch.Tensor.to",
        "torch.Tensor.cuda",
    )
    more = (
        "torch.Tensor.type",
        "torch.Tensor.pin_memory",
        "torch.Tensor.new_zeros",
        "torch.profiler.profile",
    )
    for name in (
        *names,
        *more,
        "torch.cuda.is_available",
        "torch.compile",
        "torch.distributed.init_process_group",
    ):
        value: Any = torch
        for part in name.split(".")[1:]:
            value = getattr(value, part)
        assert pickle.loads(pickle.dumps(value)) is value, name


def check_nothing_is_said_that_a_gpu_would_not_say(target: Target) -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        lstm = torch.nn.LSTM(3, 4, 2).cuda()
        lstm.flatten_parameters()
        lstm(torch.ones(2, 1, 3, device="cuda"))
        torch.nn.MultiheadAttention(4, 2).cuda().eval()(*[torch.ones(2, 1, 4, device="cuda")] * 3)
        torch.nn.Conv2d(1, 2, 3, padding=1).cuda()(torch.ones(1, 1, 4, 4, device="cuda"))
    assert [str(one.message) for one in said] == []
