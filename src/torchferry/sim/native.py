"""The compiled half of the simulated device, as typed Python functions. The library speaks in plain torch
operators (`torch.ops.torchferry_sim`), so that one file serves every Python version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import torch

from torchferry.runtime.device_parts import MemoryUse

_NAMESPACE = "torchferry_sim"
# C++ has other names for dtypes than Python
_DTYPE_NAMES = {
    "Double": "float64",
    "Float": "float32",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "ComplexDouble": "complex128",
    "ComplexFloat": "complex64",
    "Long": "int64",
    "Int": "int32",
    "Short": "int16",
    "Char": "int8",
    "Byte": "uint8",
    "Bool": "bool",
    "QInt8": "qint8",
    "QUInt8": "quint8",
    "QInt32": "qint32",
}


class OperatorVerdict(IntEnum):
    """What the vendor's table says about an operator, and so what the device does with it."""

    UNKNOWN = 0  # not gated
    KERNEL = 1
    FALLS_BACK = 2  # runs on the CPU, with one warning
    RAISES = 3


class NarrowingCode(IntEnum):
    """What the vendor does with a dtype it has no full support for."""

    NATIVE = 0
    CAST_AS = 1  # a cast to it on the device gives the narrower one, with one warning
    COMPUTED_AS = 2  # kept as it is, computed in the narrower one
    REFUSED = 3


class AllowedDevices(IntEnum):
    """Where the tensors of one call may lie."""

    SAME = 0
    HOST_SCALARS = 1  # all on one device, but for host tensors without dimensions
    ANY = 2
    HOST_TENSORS = 3  # all on one device, but for host tensors of any shape


@dataclass(frozen=True)
class OperatorRule:
    """How the device treats one operator."""

    name: str  # aten::add.Tensor
    reported_as: str  # the name in messages: that of the overload which does the work
    verdict: OperatorVerdict
    devices: AllowedDevices
    moves_data: bool  # computes nothing: dtypes that the vendor computes narrower stay whole


@dataclass(frozen=True)
class Messages:
    """What the device says, with {placeholders}, in the order in which the library takes it."""

    missing_operator: str  # {operator}
    operator_falls_back: str  # {operator}
    out_of_memory: str  # {device} {wanted} {total} {allocated} {reserved} {free}
    cast_dtype: str  # {dtype} {becomes}
    refused_dtype: str  # {dtype}


@dataclass(frozen=True)
class OperatorUse:
    """How often an operator ran on the simulated device, and what the vendor's table says of it."""

    name: str  # aten::add.Tensor
    calls: int
    verdict: OperatorVerdict


def load(library: Path) -> None:
    """Load the compiled library into this process; loading it twice does nothing."""
    torch.ops.load_library(str(library))  # type: ignore[no-untyped-call]


def _native() -> Any:
    return getattr(torch.ops, _NAMESPACE)


def configure(devices: int, memory: int, visible_variable: str, shared_randomness: bool) -> None:
    """Say what the machine is like: its devices, the bytes of each, the variable that limits which are visible.

    With `shared_randomness` the devices draw from the CPU's default generator. Before the first use of a device.
    """
    _native().configure(devices, memory, visible_variable, shared_randomness)


def device_count() -> int:
    """How many devices this process sees; until the first use of one, the environment may still change it."""
    return int(_native().device_count())


def begin_use() -> None:
    """Let the number of visible devices stay what it is now."""
    _native().begin_use()


def current_device() -> int:
    """This thread's current device."""
    return int(_native().current_device())


def set_device(index: int) -> None:
    """Make a device this thread's current one; an index that does not exist raises RuntimeError."""
    _native().set_device(index)


def memory_use(device: int) -> MemoryUse:
    """What a device holds now and held at most."""
    return MemoryUse(*_native().memory_use(device))


def reset_peak_memory(device: int) -> None:
    """Let the peaks begin again at what is held now."""
    _native().reset_peak_memory(device)


def reset_accumulated_memory(device: int) -> None:
    """Let the counts of allocations, frees and failures begin again at zero."""
    _native().reset_accumulated_memory(device)


def empty_cache() -> None:
    """Give back what is reserved and not allocated, on every device."""
    _native().empty_cache()


def set_memory_limit(device: int, limit: int) -> None:
    """Change how many bytes a device has."""
    _native().set_memory_limit(device, limit)


def forbid_memory(reason: str) -> None:
    """Let every further allocation of this process raise."""
    _native().forbid_memory(reason)


def host_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of a device tensor's storage as a host tensor; what is written to one is in the other."""
    host: torch.Tensor = _native().host_bytes(tensor)
    return host


def follow_host_bytes(tensor: torch.Tensor) -> None:
    """Let a device tensor's storage take note that its host bytes have been moved."""
    _native().follow_host_bytes(tensor)


def device_bytes(host: torch.Tensor, device: int) -> torch.Tensor:
    """A device tensor over a host tensor's bytes, which this process is not charged for."""
    made: torch.Tensor = _native().device_bytes(host, device)
    return made


def default_generator(device: int) -> torch.Generator:
    """The generator that random operators of a device draw from."""
    generator: torch.Generator = _native().default_generator(device)
    return generator


def use_cuda_autocast_policies() -> None:
    """Let torch.autocast("cpu") cast the operators that CUDA casts, and only those, from here on."""
    _native().use_cuda_autocast_policies()


def compute_half_in_single() -> None:
    """Let the CPU compute products and convolutions in half precision as the device does, from here on."""
    _native().compute_half_in_single()


def add_sync_batch_norm() -> None:
    """Give the CPU the operators of SyncBatchNorm, from here on."""
    _native().add_sync_batch_norm()


def watch_places(on: bool) -> None:
    """Keep account of what would be in the memory of a CUDA device, from here on or no longer."""
    _native().watch_places(on)


def set_current_place(index: int) -> None:
    """The device that "cuda" without a number means in this thread."""
    _native().set_current_place(index)


def set_operator_facts(facts: Sequence[OperatorRule]) -> None:
    """Hand over what the vendor's table and PyTorch's own list say of each operator."""
    _native().set_operator_facts(
        [rule.name for rule in facts],
        [rule.reported_as for rule in facts],
        [int(rule.verdict) for rule in facts],
        [int(rule.devices) for rule in facts],
        [int(rule.moves_data) for rule in facts],
    )


def route_to_host(names: Sequence[str]) -> None:
    """Send these operators (without `aten::`) to the CPU's kernels though they have a composite one as well."""
    _native().route_to_host(list(names))


def set_narrowing(dtype: torch.dtype, becomes: torch.dtype, narrowing: NarrowingCode) -> None:
    """Say what the device does with a dtype; `becomes` is ignored for NATIVE and REFUSED."""
    _native().set_narrowing(dtype, becomes, int(narrowing))


def set_unlisted_in_double(names: Sequence[str], wording: str) -> None:
    """Warn once of each of these operators (without `aten::` and overload) when it computes in double precision.

    The wording has {operator}.
    """
    _native().set_unlisted_in_double([f"aten::{name}" for name in names], wording)


def set_sparse_support(
    missing: OperatorVerdict, raises: str, falls_back: str, kernels: Sequence[str]
) -> None:
    """Say what the device does with operators on sparse tensors: those of `kernels` run, the others raise or fall back.

    The words have {operator}; the names come without `aten::`.
    """
    _native().set_sparse_support(int(missing), raises, falls_back, [f"aten::{name}" for name in kernels])


def route_composed() -> None:
    """Let sparse and nested tensors be computed by the CPU's kernels for them."""
    _native().route_composed()


def set_saturation(dtype: torch.dtype) -> None:
    """Let results in a dtype that are infinite become its largest number, and those that are no number 0."""
    _native().set_saturation(dtype)


def set_block_padding(padding: int) -> None:
    """Let each block of memory take so many bytes more than is asked for."""
    _native().set_block_padding(padding)


def set_messages(messages: Messages) -> None:
    """Hand over the vendor's wording."""
    _native().set_messages(*astuple(messages))


def operator_uses() -> list[OperatorUse]:
    """Every operator that ran on the device, most called first."""
    names, calls, verdicts = _native().operator_uses()
    uses = [OperatorUse(*use) for use in zip(names, calls, map(OperatorVerdict, verdicts), strict=True)]
    return sorted(uses, key=lambda use: (-use.calls, use.name))


def narrowed_dtypes() -> dict[str, int]:
    """How many tensors or operators met a dtype that the vendor narrows or refuses, by dtype name."""
    names, counts = _native().narrowed_dtypes()
    return {_DTYPE_NAMES.get(name, name): count for name, count in zip(names, counts, strict=True)}


@contextmanager
def limits(on: bool) -> Iterator[None]:
    """In this thread, turn what the vendor's device lacks on or off."""
    before = set_limits(on)
    try:
        yield
    finally:
        set_limits(before)


def set_limits(on: bool) -> bool:
    """The same until it is said otherwise; answers what it was."""
    return bool(_native().set_gate(on))
