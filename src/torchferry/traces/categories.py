"""What the categories, processes and names of all profilers since 2021 stand for."""

from __future__ import annotations

import re
from functools import cache

from torchferry.traces.columns import EventKind
from torchferry.vendors.registry import get_vendor, vendor_names

# Which device a category speaks of.

CUDA = "cuda"  # also what PyTorch calls AMD's devices
_FLOW = re.compile(r"(?:cpu_to|async)_(\w+)$")
_LAUNCH = re.compile(r"(?:(\w+)_)?(?:runtime|driver)$", re.IGNORECASE)


@cache
def flow_device(category: str) -> str:
    """The type of the device that a flow of events leads to: npu of async_npu; "" if it leads elsewhere."""
    found = _FLOW.match(category)
    return found[1] if found and _is_device_type(found[1]) else ""


@cache
def is_launch(category: str) -> bool:
    """Whether the host calls the library of a device: cuda_runtime, cuda_driver, Runtime."""
    return _LAUNCH.match(category) is not None


@cache
def launching_device(category: str) -> str:
    """cuda of cuda_runtime; "" if the category does not say."""
    found = _LAUNCH.match(category)
    named = (found[1] or "").lower() if found else ""
    return named if _is_device_type(named) else ""


@cache
def other_launching_device(category: str) -> str:
    """mtia of mtia_runtime: what a category calls a device, whether or not a vendor of it is known."""
    found = _LAUNCH.match(category)
    return (found[1] or "").lower() if found else ""


def _is_device_type(name: str) -> bool:
    """Vendors' data are read only for a name that is neither empty nor CUDA's: that takes a while."""
    return bool(name) and (name == CUDA or name in _device_types())


@cache
def _device_types() -> frozenset[str]:
    return frozenset({CUDA, *(get_vendor(name).device_type for name in vendor_names())})


_BY_CATEGORY = {
    "cpu_op": EventKind.OPERATOR,
    "Operator": EventKind.OPERATOR,
    "user_annotation": EventKind.ANNOTATION,
    "python_function": EventKind.PYTHON,
    "kernel": EventKind.COMPUTE,
    "Kernel": EventKind.COMPUTE,
    "gpu_memcpy": EventKind.COPY,
    "Memcpy": EventKind.COPY,
    "gpu_memset": EventKind.FILL,
    "Memset": EventKind.FILL,
    "enqueue": EventKind.RUNTIME,
    "dequeue": EventKind.SKIPPED,  # a second thread hands on what was put into the queue
    # What the profiler works out itself, what only links events, and what is no work of anybody's.
    **dict.fromkeys(
        (
            *("gpu_user_annotation", "mtia_user_annotation", "xpu_user_annotation", "overhead", "Overhead"),
            *(
                "cpu_instant_event",
                "cuda_sync",
                "cuda_profiler_range",
                "Trace",
                "fwdbwd",
                "ac2g",
                "collective_comm",
            ),
        ),
        EventKind.SKIPPED,
    ),
    "": EventKind.UNSORTED,
}
# Categories of devices that have no name of their own here: mtia_ccp_events, hpu_op, xpu_kernel, device_op ...
_DEVICE_CATEGORY = re.compile(
    r"kernel|_ccp|(?:hpu|npu|xpu|mlu|musa|sdaa|gcu|device|hardware)_(?:op|task|activity)", re.IGNORECASE
)
_COPY_CATEGORY = re.compile(r"mem_?cpy", re.IGNORECASE)
_FILL_CATEGORY = re.compile(r"mem_?set", re.IGNORECASE)
# The profilers of 2021 called annotations operators.
_ANNOTATION = re.compile(r"ProfilerStep|Optimizer\.(?:step|zero_grad)#|enumerate\(DataLoader\)|torchferry::")
_OPERATOR = re.compile(r"\w+::\w")
_COMMUNICATION = re.compile(
    r"nccl|\b[hcmtx]ccl|hcom_|[hcmtx]ccl_|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|broadcast_kernel|"
    r"sendrecv|sendreceive",
    re.IGNORECASE,
)
_COPY = re.compile(r"mem_?cpy|memory2|sdma", re.IGNORECASE)
_MOVE = re.compile(
    r"DtoD|D2D|PtoP|P2P|Device ?(?:->|to) ?Device|DeviceToDevice|device_to_device", re.IGNORECASE
)
_FILL = re.compile(r"mem_?set(?:_async)?$|memset\b|event_|notify", re.IGNORECASE)
_WAIT = re.compile(
    r"(?:event|notify)_?wait", re.IGNORECASE
)  # a stream does nothing until another one has come so far
_DERIVED = re.compile(r"overlap analysis|communication group|^traces$|^spans$", re.IGNORECASE)
_CALLS_LIBRARY = re.compile(r"cann|runtime|driver|acl", re.IGNORECASE)
_DEVICE_LABEL = re.compile(r"^(?!cpu)\w+", re.IGNORECASE)
_COMMUNICATION_PROCESS = re.compile(r"^[hcmtx]ccl$|^communication$", re.IGNORECASE)


@cache
def kind_of_category(category: str) -> EventKind:
    """Before names and processes are looked at."""
    kind = _BY_CATEGORY.get(category)
    if kind is not None:
        return kind
    if is_launch(category):
        return EventKind.RUNTIME
    if _COPY_CATEGORY.search(category):
        return EventKind.COPY
    if _FILL_CATEGORY.search(category):
        return EventKind.FILL
    return EventKind.COMPUTE if _DEVICE_CATEGORY.search(category) else EventKind.UNSORTED


@cache
def is_known_category(category: str) -> bool:
    """Whether it alone says what its events are."""
    return not category or kind_of_category(category) is not EventKind.UNSORTED


@cache
def is_of_simulator(name: str) -> bool:
    """Whether the simulated device does this for itself: no operator of the program's."""
    return name.startswith("torchferry_sim::")


@cache
def moves_within_device(name: str) -> bool:
    """Of a copy: whether neither side of it is the host."""
    return _MOVE.search(name) is not None


@cache
def is_annotation(name: str) -> bool:
    """Whether an event that calls itself an operator is a mark."""
    return _ANNOTATION.match(name) is not None


@cache
def device_kind(name: str) -> EventKind:
    """What a device does under this name."""
    if _COMMUNICATION.search(name):
        return EventKind.COMMUNICATION
    if _COPY.search(name):
        return EventKind.MOVE if moves_within_device(name) else EventKind.COPY
    if _WAIT.search(name):
        return EventKind.SKIPPED
    return EventKind.FILL if _FILL.search(name) else EventKind.COMPUTE


@cache
def kind_by_process(process: str, label: str, name: str) -> EventKind:
    """Of an event without category, by its process's name and label (CPU, NPU ...)."""
    if _DERIVED.search(process):
        return EventKind.SKIPPED
    if _COMMUNICATION_PROCESS.match(process):
        return EventKind.COMMUNICATION
    if label and _DEVICE_LABEL.match(label):
        return device_kind(name)
    if _OPERATOR.match(name):
        return EventKind.OPERATOR
    return EventKind.RUNTIME if _CALLS_LIBRARY.search(process) else EventKind.SKIPPED
