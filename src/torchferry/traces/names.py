"""What all profilers since 2021 call things: categories, processes, operators, devices, modules and frames."""

from __future__ import annotations

import re
import sys
from functools import cache

from torchferry.operators.native_functions import schemas
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
def launching_device(category: str) -> str:
    """cuda of cuda_runtime; "" if the category does not say."""
    named = other_launching_device(category)
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


_WITHOUT_WORK = (
    "gpu_user_annotation", "mtia_user_annotation", "xpu_user_annotation", "overhead", "Overhead", "cpu_instant_event",
    "cuda_sync", "cuda_profiler_range", "Trace", "fwdbwd", "ac2g", "collective_comm",
)  # fmt: skip
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
    "": EventKind.UNSORTED,
    # What the profiler works out itself, what only links events, and what is no work of anybody's.
    **dict.fromkeys(_WITHOUT_WORK, EventKind.SKIPPED),
}
# Categories of devices that have no name of their own here: mtia_ccp_events, hpu_op, xpu_kernel, device_op ...
_DEVICE_CATEGORY = re.compile(
    r"kernel|_ccp|(?:hpu|npu|xpu|mlu|musa|sdaa|gcu|device|hardware)_(?:op|task|activity)", re.IGNORECASE
)
_COPY_CATEGORY = re.compile(r"mem_?cpy", re.IGNORECASE)
_FILL_CATEGORY = re.compile(r"mem_?set", re.IGNORECASE)
# The profilers of 2021 called annotations operators.
_ANNOTATION = re.compile(r"ProfilerStep|Optimizer\.(?:step|zero_grad)#|enumerate\(DataLoader\)|torchferry::")
_QUALIFIED = re.compile(r"\w+::\w")
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
# A stream does nothing until another one has come so far.
_WAIT = re.compile(r"(?:event|notify)_?wait", re.IGNORECASE)
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
    if _LAUNCH.match(category):  # the host calls the library of a device: cuda_runtime, cuda_driver, Runtime
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
    """Whether neither side of a copy is the host."""
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
    """The kind of an event without category, by its process's name and label (CPU, NPU ...)."""
    if _DERIVED.search(process):
        return EventKind.SKIPPED
    if _COMMUNICATION_PROCESS.match(process):
        return EventKind.COMMUNICATION
    if label and _DEVICE_LABEL.match(label):
        return device_kind(name)
    if _QUALIFIED.match(name):
        return EventKind.OPERATOR
    return EventKind.RUNTIME if _CALLS_LIBRARY.search(process) else EventKind.SKIPPED


_OPERATOR = re.compile(r"(\w+)::([A-Za-z_][\w.]*)$")
_NOT_OPERATORS = ("autograd", "torch", "c10", "at")
_EVALUATED = "autograd::engine::evaluate_function: "
_BACKWARD_STEP = re.compile(r"(?:torch::autograd::)?(\w*Backward\d*|AccumulateGrad|CopySlices|GraphRoot)$")
_STEP = "Optimizer.step#"
_PROFILER_STEP = "ProfilerStep"
_COMPILED = ("Torch-Compiled Region", "## Call CompiledFxGraph", "CompiledFunction", "triton_")
_SCRIPTED = ("torch::jit::", "TorchScript", "<forward op>")
# What C++ calls a dtype.
DTYPES = {
    "float": "float32", "double": "float64", "long int": "int64", "long": "int64", "long long": "int64",
    "int": "int32", "short int": "int16", "short": "int16", "signed char": "int8", "unsigned char": "uint8",
    "bool": "bool", "unsigned short": "uint16", "short unsigned int": "uint16", "unsigned int": "uint32",
    "unsigned long": "uint64", "long unsigned int": "uint64", "c10::Half": "float16", "c10::BFloat16": "bfloat16",
    "c10::complex<float>": "complex64", "c10::complex<double>": "complex128", "c10::complex<c10::Half>": "complex32",
    "c10::Float8_e4m3fn": "float8_e4m3fn", "c10::Float8_e5m2": "float8_e5m2", "c10::quint8": "quint8",
    "c10::qint8": "qint8", "c10::qint32": "qint32",
}  # fmt: skip
_MODULE = re.compile(r"nn\.Module: (\w+)$")
_FRAME = re.compile(r"(.+)\((\d+)\): ")
_LIBRARIES = ("torch/", "torchferry/", "<")
_INSTALLED = re.compile(r"(?:site|dist)-packages/(.*)")
_STANDARD = re.compile(r".*/lib/python3\.\d+/(.*)")


def operator_of(name: str, of_old_profiler: bool = False) -> str:
    """aten::add of an event's name; "" if it is no operator. The oldest profilers left `aten::` out."""
    found = _OPERATOR.match(name)
    if found:
        return "" if found[1] in _NOT_OPERATORS else name
    return f"aten::{name}" if of_old_profiler and name in schemas() else ""


def backward_step_of(name: str) -> str:
    """ConvolutionBackward0, of an event's name; "" if it is no step of the backward pass."""
    found = _BACKWARD_STEP.match(name.removeprefix(_EVALUATED))
    if found:
        return found[1]
    return name.removeprefix(_EVALUATED).split("::")[-1] if name.startswith(_EVALUATED) else ""


def is_optimizer_step(name: str) -> bool:
    """Whether this is the mark of an optimizer's step."""
    return name.startswith(_STEP)


def is_profiler_step(name: str) -> bool:
    """Whether this is the mark of one turn of the program's loop."""
    return name.startswith(_PROFILER_STEP)


def note_of(name: str) -> str:
    """The key of a note that the mere existence of an event calls for; "" if there is none."""
    if name.startswith(_COMPILED):
        return "compiled"
    return "scripted" if name.startswith(_SCRIPTED) else ""


def module_of(name: str) -> str:
    """Conv2d_0, of a Python event; "" if it is no module's call."""
    found = _MODULE.match(name)
    return found[1] if found else ""


def place_of(frame: str) -> str:
    """model.py:12, of a frame such as `model.py(12): forward`; "" if it is PyTorch's or Python's own."""
    found = _FRAME.match(frame)
    if found is None:
        return ""
    file = found[1].replace("\\", "/")
    installed = _INSTALLED.search(file)
    standard = None if installed else _STANDARD.match(file)
    seen_by_python = installed[1] if installed else standard[1] if standard else file
    top = seen_by_python.split("/")[0].removesuffix(".py")
    if seen_by_python.startswith(_LIBRARIES) or (not installed and top in sys.stdlib_module_names):
        return ""
    return f"{found[1]}:{found[2]}"


def place_in_stack(stack: str) -> str:
    """The innermost line of a stack that is not PyTorch's."""
    places = (place_of(frame.strip()) for frame in stack.split(";"))
    return next((place for place in places if place), "")
