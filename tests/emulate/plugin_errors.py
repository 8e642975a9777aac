"""Programs that fail on the vendor's plugin, each in its own way; prints what each raised, or wrote, as JSON.

Run by test_plugin_errors.py in a process with the plugin: python plugin_errors.py (device | collectives | codes).
"""

from __future__ import annotations

import importlib
import io
import json
import multiprocessing
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed import ReduceOp
from torch.nn import functional

Case = Callable[[], object]
DEVICE = "npu"


def plugin() -> Any:
    """The vendor's; where it is not set up, what is only data here can still be read."""
    return importlib.import_module("torch_npu")


def ones(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """On the device; what the plugin can't make there comes from the CPU."""
    return torch.ones(shape, dtype=dtype).to(DEVICE)


def double(*shape: int) -> Tensor:
    """Double precision, which a copy to the device would make single."""
    return torch.ones(shape, dtype=torch.float64, device=DEVICE)


def loaded(tensor: Tensor, place: str) -> object:
    """A checkpoint that is to be loaded to another device."""
    file = io.BytesIO()
    torch.save(tensor, file)
    file.seek(0)
    return torch.load(file, map_location=place)


def freed_twice() -> None:
    pointer = torch.npu.caching_allocator_alloc(1024)
    for _ in range(2):
        torch.npu.caching_allocator_delete(pointer)


def waited_for_in_a_capture() -> None:
    with torch.npu.graph(torch.npu.NPUGraph()):
        ones(3).sum().item()


def copied_in_a_capture() -> None:
    numbers = ones(3)
    with torch.npu.graph(torch.npu.NPUGraph()):
        numbers.cpu()


def time_between_events_that_were_not_recorded() -> None:
    first, second = (torch.npu.Event(enable_timing=True) for _ in range(2))
    first.elapsed_time(second)


def event_on_another_device() -> None:
    event = torch.npu.Event()
    event.record()
    with torch.npu.device(1):
        event.record(torch.npu.Stream())


def without_the_cpu() -> None:
    os.environ["TORCH_NPU_FALLBACK_CPU_DISABLE"] = "1"
    try:
        torch.special.bessel_j0(ones(3))
    finally:
        del os.environ["TORCH_NPU_FALLBACK_CPU_DISABLE"]


def without_waiting() -> None:
    torch.npu.set_sync_debug_mode("error")
    try:
        ones(1).item()
    finally:
        torch.npu.set_sync_debug_mode(0)


def under_a_limit_of_memory() -> None:
    torch.npu.set_per_process_memory_fraction(0.001)
    try:
        torch.empty(1 << 30, device=DEVICE)
    finally:
        torch.npu.set_per_process_memory_fraction(1.0)


def old_test() -> None:
    from torch.testing._internal.common_utils import TestCase

    TestCase().assertEqual(1.0, 1.0, prec=0.1)  # type: ignore[call-arg]


def in_a_fork() -> None:
    """What the child says is written by multiprocessing."""
    child = multiprocessing.get_context("fork").Process(target=ones, args=(1,))
    child.start()
    child.join()


def joined(rank: int = 0, ranks: int = 1, address: str = "") -> None:
    """A group that can't come about."""
    store = None if address else dist.HashStore()
    dist.init_process_group("hccl", address or None, timedelta(seconds=1), ranks, rank, store)


def with_a_variable(name: str, value: str) -> None:
    """A collective of a new group, whose communicator reads it."""
    group = dist.new_group()
    os.environ[name] = value
    try:
        dist.all_reduce(ones(2), group=group)
    finally:
        del os.environ[name]


def attended(**options: object) -> object:
    """The plugin's own attention."""
    heads = ones(1, 2, 3, 4)
    return plugin().npu_fusion_attention(heads, heads, heads, 2, **{"input_layout": "BNSD", **options})


# The rule that is to explain it: what raises it.
ON_THE_DEVICE: dict[str, dict[str, Case]] = {
    "ascend.device-number": {
        "set_device": lambda: torch.npu.set_device(9),
        "a tensor": lambda: torch.ones(1, device="npu:9"),
        "a stream": lambda: torch.npu.Stream(device="npu:9"),
        "memory_stats": lambda: torch.npu.memory_stats(9),
        "a peer": lambda: torch.npu.can_device_access_peer(0, 9),
    },
    "any.invalid-device": {"properties": lambda: torch.npu.get_device_properties(9)},
    "ascend.oom": {
        "too large": lambda: torch.empty(1 << 40, device=DEVICE),
        "a fraction": under_a_limit_of_memory,
    },
    "ascend.cpu-tensor": {
        "add": lambda: ones(3) + torch.ones(3),
        "where": lambda: torch.where(ones(2) > 0, torch.ones(2), ones(2)),
        "index": lambda: torch.ones(2)[torch.tensor([0], device=DEVICE)],
    },
    "any.devices-differ": {
        "matmul": lambda: ones(3, 3) @ torch.ones(3, 3),
        "input of a layer": lambda: nn.Linear(3, 3).to(DEVICE)(torch.ones(3, 3)),
        "layer": lambda: nn.Conv2d(3, 3, 1)(ones(1, 3, 3, 3)),
        "labels": lambda: functional.cross_entropy(ones(2, 3), torch.tensor([1, 1])),
        "cat": lambda: torch.cat([ones(2), torch.ones(2)]),
    },
    "any.input-dtype": {"half into float": lambda: nn.Conv2d(1, 1, 1).to(DEVICE)(ones(1, 1, 2, 2).half())},
    "any.shapes": {
        "add": lambda: ones(2, 3) + ones(4),
        "channels": lambda: functional.conv2d(ones(1, 3, 4, 4), ones(1, 2, 2, 2)),
        "reshape": lambda: ones(3).reshape(2, 2),
        "pooling": lambda: functional.max_pool2d(ones(1, 1, 2, 2), 5),
        "recurrent": lambda: nn.LSTM(3, 4).to(DEVICE)(ones(2, 2, 5)),
        "einsum": lambda: torch.einsum("ij,jk", ones(2, 3), ones(2, 3)),
    },
    "ascend.aclnn-parameter": {
        "shapes of matmul": lambda: ones(2, 3) @ ones(2, 3),
        "shapes of bmm": lambda: torch.bmm(ones(2, 3, 4), ones(2, 3, 4)),
        "shapes of cat": lambda: torch.cat([ones(2, 3), ones(2, 4)]),
        "shape of a weight": lambda: plugin().npu_rms_norm(ones(2, 3), ones(4)),
        "float64 in matmul": lambda: double(2, 2) @ double(2, 2),
        "float64 in convolution": lambda: functional.conv2d(double(1, 1, 4, 4), double(1, 1, 2, 2)),
        "float64 in a layer": lambda: nn.Linear(2, 2).to(DEVICE)(double(1, 2)),
        "float indices": lambda: nn.Embedding(3, 3).to(DEVICE)(ones(2)),
        "nine dimensions": lambda: torch.ones([1] * 9, device=DEVICE),
        "dtype of a mask": lambda: attended(atten_mask=ones(1)),
        "float32 in inference": lambda: plugin().npu_prompt_flash_attention(*[ones(1, 2, 3, 4)] * 3),
    },
    "ascend.aicore-exception": {
        "a word too many": lambda: nn.Embedding(3, 3).to(DEVICE)(torch.tensor([7], device=DEVICE)),
        "a class too many": lambda: functional.cross_entropy(ones(2, 3), torch.tensor([1, 9], device=DEVICE)),
        "an index too many": lambda: ones(3)[torch.tensor([7], device=DEVICE)],
    },
    "ascend.memory-format": {
        "to": lambda: ones(1, 2, 3, 4).to(memory_format=torch.channels_last),
        "contiguous": lambda: ones(1, 2, 3, 4).contiguous(memory_format=torch.channels_last),
        "empty": lambda: torch.empty(1, 2, 3, 4, device=DEVICE, memory_format=torch.channels_last),
        "a module": lambda: nn.Conv2d(2, 2, 2).to(DEVICE, memory_format=torch.channels_last),
        "three dimensions": lambda: ones(1, 2, 3, 4, 5).to(memory_format=torch.channels_last_3d),
    },
    "ascend.function-missing": {
        "feed-forward": lambda: plugin().npu_ffn(ones(2, 3), ones(3, 4), ones(4, 3), "none")
    },
    "ascend.op-unsupported": {"the old way": lambda: plugin().npu_nms_rotated(ones(2), ones(2), 0.1)},
    "ascend.fallback-forbidden": {"bessel": without_the_cpu},
    "ascend.device-pointer": {"freed twice": freed_twice},
    "ascend.graph-capture": {"item": waited_for_in_a_capture, "copy": copied_in_a_capture},
    "ascend.graph-empty": {"replay": lambda: torch.npu.NPUGraph().replay()},
    "ascend.event-order": {"elapsed time": time_between_events_that_were_not_recorded},
    "ascend.other-context": {"event": event_on_another_device},
    "ascend.sync-forbidden": {"item": without_waiting},
    "ascend.feature": {"external stream": lambda: torch.npu.ExternalStream(12345).synchronize()},
    "ascend.argument": {
        "device of another type": lambda: torch.npu.set_device("cuda:0"),
        "fraction of memory": lambda: torch.npu.set_per_process_memory_fraction(2.0),
        "layout of attention": lambda: attended(input_layout="XYZ"),
        "probability of attention": lambda: attended(keep_prob=3.0),
        "learning rate": lambda: plugin().optim.NpuFusedSGD(nn.Linear(2, 2).to(DEVICE).parameters(), lr=-1),
        "option": lambda: torch.npu.set_option({"ACL_PRECISION_MODE": "x"}),
        "name of an option": lambda: torch.npu.set_option({"nonsense": "1"}),
        "format": lambda: plugin().npu_format_cast(ones(2, 2), 99),
        "experts": lambda: plugin().npu_moe_gating_top_k_softmax(ones(2, 3), k=9),
        "groups": lambda: plugin().npu_grouped_matmul([ones(2, 3)], [ones(2, 3)]),
        "pinned memory": lambda: ones(3).pin_memory(),
        "steps": lambda: torch.linspace(0, 1, -1, device=DEVICE),
        "dtype of an index": lambda: ones(3)[ones(1)],
    },
    "ascend.sparse-operator": {
        "product": lambda: torch.sparse.mm(torch.eye(3).to_sparse().npu(), ones(3, 3))
    },
    "ascend.old-affinity-library": {"import": lambda: importlib.import_module("torch.contrib.npu")},
    "ascend.old-dumper": {"dumper": lambda: torch.utils.dumper},
    "ascend.old-test-case": {"assertEqual": old_test},
    "ascend.tvm-te-cce": {"import": lambda: importlib.import_module("tbe.common")},
    "any.tensor-to-numpy": {"numpy": lambda: ones(1).numpy()},
    "any.generator-device": {
        "rand": lambda: torch.rand(2, device=DEVICE, generator=torch.Generator()),
    },
    "any.not-compiled-with-cuda": {
        "cuda": lambda: torch.ones(1).cuda(),
        "to": lambda: ones(1).to("cuda"),
    },
    "any.not-implemented-for": {
        "half": lambda: functional.ctc_loss(
            ones(4, 1, 3).half(), torch.tensor([[1]], device=DEVICE), [4], [1]
        ),
    },
    "any.no-gradient": {"backward": lambda: ones(1).backward()},
    "any.deserialize-cuda": {"load": lambda: loaded(torch.ones(1), "cuda:0")},
    "ascend.deserialize-npu": {"load": lambda: loaded(ones(1), "npu:9")},
}
# What goes on, and writes the rule's words to stderr.
WRITTEN: dict[str, dict[str, Case]] = {
    "ascend.cpu-fallback": {"an operator without a kernel": lambda: torch.digamma(ones(2))},
    "ascend.double-cast": {"a cast": lambda: ones(2).double()},
    "ascend.fork": {"a child": in_a_fork},
    # the last: it changes this process
    "ascend.script-disabled": {
        "migration": lambda: importlib.import_module("torch_npu.contrib.transfer_to_npu")
    },
}
WITHOUT_A_GROUP: dict[str, dict[str, Case]] = {
    "any.group-not-initialised": {
        "a collective": lambda: dist.all_reduce(ones(2)),
        "a model": lambda: nn.parallel.DistributedDataParallel(nn.Linear(2, 2).to(DEVICE)),
    },
    "any.launch-variable": {"no torchrun": lambda: dist.init_process_group("hccl")},
    "any.backend-missing": {
        "nccl": lambda: dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
    },
    "any.rendezvous": {"alone of two": lambda: joined(0, 2, "tcp://127.0.0.1:0")},
    "any.connect-timed-out": {"nobody listens": lambda: joined(1, 2, "tcp://127.0.0.1:9")},
}
IN_A_GROUP: dict[str, dict[str, Case]] = {
    "any.backend-missing": {"nccl": lambda: dist.new_group(backend="nccl")},
    "any.backend-of-device": {
        "a tensor of the CPU": lambda: dist.all_reduce(torch.ones(2)),
        "a model on the CPU": lambda: nn.parallel.DistributedDataParallel(nn.Linear(2, 2)),
    },
    "any.contiguous": {"transposed": lambda: dist.all_reduce(ones(2, 3).t())},
    "ascend.hccl-dtype": {
        "all_reduce": lambda: dist.all_reduce(double(2)),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(double(2), double(2)),
    },
    "ascend.hccl-reduction": {"band": lambda: dist.all_reduce(ones(2).int(), ReduceOp.BAND)},
    "ascend.hccl-unsupported": {"from anyone": lambda: dist.recv(ones(2))},
    "ascend.argument": {
        "all_gather": lambda: dist.all_gather_into_tensor(ones(3), ones(2)),
        "all_to_all": lambda: dist.all_to_all_single(ones(3), ones(2)),
    },
    "any.group-twice": {"init_process_group": joined},
    "ascend.hccl-environment": {"time-out": lambda: with_a_variable("HCCL_EXEC_TIMEOUT", "soon")},
    "ascend.hccl-arguments": {"a root that there is not": lambda: dist.broadcast(ones(2), 5)},
}


ALL = (ON_THE_DEVICE, WRITTEN, WITHOUT_A_GROUP, IN_A_GROUP)


def raised(cases: Mapping[str, Mapping[str, Case]]) -> list[tuple[str, str, str]]:
    """Rule, case, and the traceback as Python prints it; "" if it ran well."""
    found = []
    for rule, programs in cases.items():
        for name, program in programs.items():
            try:
                program()
                torch.npu.synchronize()
                found.append((rule, name, ""))
            except Exception:
                found.append((rule, name, traceback.format_exc()))
    return found


def written(cases: Mapping[str, Mapping[str, Case]]) -> list[tuple[str, str, str]]:
    """Rule, case, and what came on stderr."""
    found = []
    for rule, programs in cases.items():
        for name, program in programs.items():
            with tempfile.TemporaryFile("w+") as file:
                with stderr_to(file.fileno()):
                    program()
                file.seek(0)
                found.append((rule, name, file.read()))
    return found


@contextmanager
def stderr_to(descriptor: int) -> Iterator[None]:
    """That of the process: the plugin writes there itself."""
    before = os.dup(2)
    os.dup2(descriptor, 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(before, 2)
        os.close(before)


def codes() -> list[tuple[str, str, str]]:
    """Every line that the plugin's Python puts behind an error of its own: module, code, text."""
    table = importlib.import_module("torch_npu.utils._error_code")

    return [
        (module.name, code.name, table._format_error_msg(module, code).strip())
        for module in table._SubModuleID
        for code in table.ErrCode
        if code is not table.ErrCode.SUCCESS
    ]


def main() -> None:
    """Print what the sort of programs gave that the first argument names."""
    plugin()
    torch.ones(1, device=DEVICE)
    sort = sys.argv[1]
    if sort == "device":
        found = raised(ON_THE_DEVICE)
    elif sort == "collectives":
        found = raised(WITHOUT_A_GROUP)
        joined()
        found += raised(IN_A_GROUP)
    else:
        found = written(WRITTEN) + codes()
    print(json.dumps(found), flush=True)
    if sort != "codes":
        os._exit(0)  # errors stay in queues
    ones(3)[torch.tensor([7], device=DEVICE)]  # nobody waits for it: it is told at the end of the process


if __name__ == "__main__":
    main()
