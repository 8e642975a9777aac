"""What all cases have in common: calling on a device and comparing. Its text becomes part of every case's file."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import importlib
import math
import unittest
from typing import Any

import torch
from torch import Tensor

# Each line stays within 88 characters: the text goes into users' projects. The two names are set by each case.
IN_PLACE = False
VALUES = "close"
# --- the part that goes into a case begins here

# How far results may be apart, (relative, absolute), by dtype: as torch.testing does.
# Integers and booleans have to be equal.
TOLERANCES = {
    torch.float64: (1e-7, 1e-7),
    torch.float32: (1.3e-6, 1e-5),
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.complex128: (1e-7, 1e-7),
    torch.complex64: (1.3e-6, 1e-5),
    torch.complex32: (1e-3, 1e-5),
    torch.float8_e4m3fn: (0.125, 1e-5),  # one unit of three bits
    torch.float8_e4m3fnuz: (0.125, 1e-5),
    torch.float8_e5m2: (0.25, 1e-5),  # one unit of two bits
    torch.float8_e5m2fnuz: (0.25, 1e-5),
}
# A narrow dtype's own rounding is measured by a reference in the wide one: a device
# may be off by this many times the CPU's typical error, whatever the tolerance says.
ERRORS_OF_THE_CPU = 4.0
WIDER = {
    torch.float32: torch.float64,
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.complex64: torch.complex128,
}
COMPARE_STRIDES = True  # whether results must lie in memory as on the CPU
# Random numbers differ between devices; their distributions may differ by what chance
# brings about once in a million (Kolmogorov and Smirnov).
CHANCE = 1e-6
FEWEST_TO_COMPARE = 32
CPU = torch.device("cpu")


class ResultMismatchError(AssertionError):
    """The device's result is not that of the CPU."""


def find_device(
    vendor: str,
    plugin: str,
    device_type: str,
    modules: tuple[str, ...] = (),
    vendor_paths: tuple[str, ...] = (),
) -> torch.device:
    """The vendor's device: the real one if its plugin is here, else a simulated one."""
    try:
        if plugin:
            importlib.import_module(plugin)
    except ImportError:
        simulate(vendor, plugin, vendor_paths)
    module = getattr(torch, device_type, None)
    if module is None or not module.is_available():
        raise unittest.SkipTest(f"PyTorch sees no device of type {device_type} here")
    for name in modules:
        importlib.import_module(name)
    return torch.device(device_type, 0)


def simulate(vendor: str, plugin: str, vendor_paths: tuple[str, ...]) -> None:
    """Let TorchFerry simulate the device."""
    try:
        from torchferry import sim
    except ImportError:
        reason = f"install {plugin}, or torchferry, which simulates the device"
        raise unittest.SkipTest(reason) from None
    sim.activate(vendor, vendor_paths=vendor_paths)


def mapped(change: Any, value: Any) -> Any:
    """The value with every item changed, those of lists and dictionaries as well."""
    if isinstance(value, (list, tuple)):
        return [mapped(change, item) for item in value]
    if isinstance(value, dict):
        return {name: mapped(change, item) for name, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return mapped(change, vars(value))
    return change(value)


def moved(value: Any, device: torch.device, wide: bool = False) -> Any:
    """A copy of arguments on a device; with `wide` in the dtypes of the reference."""

    def move(item: Any) -> Any:
        if isinstance(item, torch.device):
            return device
        if isinstance(item, torch.dtype):
            return WIDER.get(item, item) if wide else item
        if not isinstance(item, Tensor):
            return item
        size = item.untyped_storage().nbytes() // item.element_size()
        memory = item.detach().as_strided((size,), (1,), 0)
        dtype = WIDER.get(item.dtype, item.dtype) if wide else item.dtype
        memory = memory.to(device, dtype, copy=True)
        # with the strides that it had, also where `to` would make it contiguous
        return memory.as_strided(item.shape, item.stride(), item.storage_offset())

    return mapped(move, value)


def placed(operator: Any, device: torch.device, wide: bool = False) -> Any:
    """The operator itself; a module with its parameters on the device."""
    if not isinstance(operator, torch.nn.Module):
        return operator
    module = copy.deepcopy(operator).to(device)
    return module.double() if wide else module


def named(value: Any, name: str) -> dict[str, Tensor]:
    """Every tensor of a value with a name."""
    if isinstance(value, Tensor):
        return {name: value}
    items: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, (list, tuple)):
        items = list(enumerate(value))
    found: dict[str, Tensor] = {}
    for key, item in items:
        found.update(named(item, f"{name} {key}"))
    return found


def outputs_of(value: Any) -> dict[str, Tensor]:
    """What an operator returned; numbers become tensors."""

    def as_tensor(item: Any) -> Any:
        is_number = isinstance(item, (bool, int, float, complex))
        return torch.tensor(item) if is_number else item

    found = named(mapped(as_tensor, value), "output")
    if not found and not isinstance(value, (type(None), list, tuple, dict)):
        said = f"it returns a {type(value).__name__}, in which nothing can be compared"
        raise TypeError(said)
    return found


def forward(
    operator: Any,
    arguments: Any,
    device: torch.device,
    wide: bool = False,
    seed: int = 0,
) -> dict[str, Tensor]:
    """Calls the operator on a device: its results, and what its arguments are then."""
    operator = placed(operator, device, wide)
    args, kwargs = moved(arguments, device, wide)
    torch.manual_seed(seed)
    with torch.no_grad():
        results = outputs_of(operator(*args, **kwargs))
    results.update(named(args, "argument"))
    results.update(named(kwargs, "argument"))
    if isinstance(operator, torch.nn.Module):
        results.update(named(dict(operator.named_buffers()), "buffer"))
    return results


def backward(
    operator: Any,
    arguments: Any,
    device: torch.device,
    wide: bool = False,
) -> dict[str, Tensor]:
    """Calls the operator on a device, then autograd: the gradients of its inputs."""
    operator = placed(operator, device, wide)
    args, kwargs = moved(arguments, device, wide)
    given = {**named(args, "argument"), **named(kwargs, "argument")}
    leaves = {name: leaf for name, leaf in given.items() if has_gradient(leaf)}
    for leaf in leaves.values():
        leaf.requires_grad_(True)
    if isinstance(operator, torch.nn.Module):
        leaves.update(operator.named_parameters())
    args, kwargs = mapped(unchanged, [args, kwargs])
    torch.manual_seed(0)
    outputs = outputs_of(operator(*args, **kwargs))
    tracked = {name: each for name, each in outputs.items() if each.requires_grad}
    weights = [weights_for(output) for output in tracked.values()]
    inputs, results = list(leaves.values()), list(tracked.values())
    found = torch.autograd.grad(results, inputs, weights, allow_unused=True)
    compared = {name: each.detach() for name, each in outputs.items()}
    for name, gradient in zip(leaves, found):  # noqa: B905
        if gradient is not None:
            compared[f"gradient of {name}"] = gradient
    return compared


def has_gradient(tensor: Tensor) -> bool:
    """Whether autograd can follow it."""
    return tensor.is_floating_point() or tensor.is_complex()


def unchanged(item: Any) -> Any:
    """What an operator may write to: autograd forbids it for the tensor itself."""
    if isinstance(item, Tensor) and item.requires_grad and IN_PLACE:
        return item.clone()
    return item


def weights_for(output: Tensor) -> Tensor:
    """What the gradients begin with: quarters, the same numbers in every dtype."""
    generator = torch.Generator().manual_seed(output.numel())
    numbers = torch.randint(-4, 5, output.shape, generator=generator) / 4
    return numbers.to(output.dtype).to(output.device)


def check(run: Any, operator: Any, inputs: Any, device: torch.device) -> None:
    """Compares what a device computes with what the CPU computes."""
    expected = run(operator(), inputs(), CPU)
    actual = run(operator(), inputs(), device)
    compare_all(actual, expected, reference_of(run, operator, inputs))


def reference_of(run: Any, operator: Any, inputs: Any) -> dict[str, Tensor]:
    """The results in a wider dtype; empty where the operator does not know it."""
    found: dict[str, Tensor] = {}
    with contextlib.suppress(Exception):
        found = run(operator(), inputs(), CPU, wide=True)
    return found


def compare_all(
    actual: dict[str, Tensor],
    expected: dict[str, Tensor],
    reference: dict[str, Tensor],
) -> None:
    """Compares result by result, as far as VALUES says that they can be compared."""
    if list(actual) != list(expected):
        said = f"device {', '.join(actual)}; CPU {', '.join(expected)}"
        raise ResultMismatchError(f"results: the number differs: {said}")
    sizes = [tensor.numel() for tensor in expected.values()]
    for name, tensor in expected.items():
        compare_form(name, actual[name], tensor)
        if VALUES == "close":
            terms = terms_of(tensor.numel(), sizes)
            compare(name, actual[name].cpu(), tensor, reference.get(name), terms)
        elif VALUES == "distribution" and tensor.numel() >= FEWEST_TO_COMPARE:
            compare_distribution(name, actual[name].cpu(), tensor)


def terms_of(size: int, sizes: list[int]) -> float:
    """About how many numbers one element of a result is the sum of."""
    most, second = sorted([1, 1, *sizes])[:-3:-1]
    return max(most / max(size, 1), math.sqrt(most * second / max(size, 1)))


def compare_form(name: str, actual: Tensor, expected: Tensor) -> None:
    """Dtype, shape and strides."""
    if actual.dtype != expected.dtype:
        said = f"device {actual.dtype}, CPU {expected.dtype}"
        raise ResultMismatchError(f"{name}: the dtype differs: {said}")
    if actual.shape != expected.shape:
        said = f"device {list(actual.shape)}, CPU {list(expected.shape)}"
        raise ResultMismatchError(f"{name}: the shape differs: {said}")
    steps = [step_of(tensor) for tensor in (actual, expected)]
    if COMPARE_STRIDES and steps[0] != steps[1]:
        said = f"device {list(actual.stride())}, CPU {list(expected.stride())}"
        raise ResultMismatchError(f"{name}: the strides differ: {said}")


def step_of(tensor: Tensor) -> list[int]:
    """The strides that matter: not those of dimensions with one element."""
    if tensor.layout != torch.strided or tensor.numel() == 0:
        return []
    sizes = zip(tensor.shape, tensor.stride())  # noqa: B905
    return [step for size, step in sizes if size > 1]


def compare(
    name: str,
    actual: Tensor,
    expected: Tensor,
    reference: Tensor | None,
    terms: float,
) -> None:
    """The elements. Errors of sums in another order grow like the root of the terms."""
    if expected.dtype not in TOLERANCES:
        wrong = actual != expected
        actual, expected = actual.to(torch.float64), expected.to(torch.float64)
    else:
        relative, absolute = TOLERANCES[expected.dtype]
        wide = torch.complex128 if expected.is_complex() else torch.float64
        actual, expected = actual.to(wide), expected.to(wide)
        growth = max(1.0, math.sqrt(terms))
        limit = growth * (absolute + relative * expected.abs())
        wrong = ~is_near(actual, expected, limit)
        if reference is not None and reference.shape == expected.shape:
            reference = reference.to(wide)
            limit = limit + ERRORS_OF_THE_CPU * typical(expected - reference)
            # where the CPU is no number, the device has to be none as well
            wrong &= ~(is_near(actual, reference, limit) & expected.isfinite())
    if wrong.any():
        said = described(actual, expected, wrong)
        raise ResultMismatchError(f"{name}: the values differ: {said}")


def is_near(actual: Tensor, expected: Tensor, limit: Tensor) -> Tensor:
    """Which elements are near enough; infinities are equal, so is what is no number."""
    same = (actual == expected) | (actual.isnan() & expected.isnan())
    return same | (((actual - expected).abs() <= limit) & expected.isfinite())


def typical(errors: Tensor) -> float:
    """The root of the mean square of errors that are finite."""
    finite = errors.abs()[errors.isfinite()]
    return float(finite.square().mean().sqrt()) if finite.numel() else 0.0


def described(actual: Tensor, expected: Tensor, wrong: Tensor) -> str:
    """How many elements are wrong, by how much, and where most."""
    errors = (actual - expected).abs().nan_to_num(math.inf, math.inf)
    errors = torch.where(wrong, errors, torch.zeros_like(errors))
    relative = (errors / expected.abs()).nan_to_num(math.inf, math.inf)
    worst = int(errors.argmax())
    place: list[int] = []
    for size in reversed(expected.shape):
        place.insert(0, worst % size)
        worst //= size
    device, cpu = actual[tuple(place)].item(), expected[tuple(place)].item()
    count = f"{int(wrong.sum())} of {wrong.numel()} elements"
    largest = f"max abs error {errors.max():.3g}"
    ratio = f"max rel error {relative[wrong].max():.3g}"
    return f"{count}, {largest}, {ratio}, worst at {place}: device {device}, CPU {cpu}"


def compare_distribution(name: str, actual: Tensor, expected: Tensor) -> None:
    """Random numbers: the largest distance between the two cumulative distributions."""
    if expected.is_complex():
        actual, expected = torch.view_as_real(actual), torch.view_as_real(expected)
    samples = [tensor.flatten().double().sort().values for tensor in (actual, expected)]
    points = torch.cat(samples)
    below = [torch.searchsorted(sample, points, right=True) for sample in samples]
    distance = float((below[0] - below[1]).abs().max()) / expected.numel()
    allowed = math.sqrt(-math.log(CHANCE / 2) / expected.numel())
    if not distance <= allowed:
        said = f"their distribution: distance {distance:.3g}, by chance {allowed:.3g}"
        raise ResultMismatchError(f"{name}: the values differ in {said}")
