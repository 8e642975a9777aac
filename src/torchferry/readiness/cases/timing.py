"""Measures a case: its forward and its backward pass, on the CPU, on its device, and on a GPU of this machine.

The devices take turns, round by round, so that what slows the machine down slows all; each round makes many calls, with
several copies of the inputs in turn. A real device's own events tell the time where it has them, else the clock does.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from torchferry.readiness.cases.model import TimedCall, Times
from torchferry.sim import is_active
from torchferry.traces.names import DTYPES

_ROUNDS = 15  # a call of each device after the other, so often
_FEWEST = 5  # rounds of calls that take long
_SAMPLE = 2e-3  # seconds that are measured at once: many short calls
_SECONDS = 3.0  # for all rounds of one device
_MOST_CALLS = 10_000
_WARM_UP = 3  # calls: in the first ones kernels are chosen
_COPIES, _BYTES = 8, 1 << 28  # of the inputs, at most: what a cache holds is no measure
_CPU = torch.device("cpu")
_TYPES = {dtype: name for name, dtype in reversed(DTYPES.items())}
Work = Callable[[int], object]  # does it once, with the inputs of this number


def measured(module: Any, with_backward: bool) -> Times:
    """Seconds that one call takes, in each round, by the device's type: the CPU's, the case's, and a GPU's."""
    device = module.place()
    devices = [_CPU, device]
    if device.type != "cuda" and torch.cuda.is_available():
        devices.append(torch.device("cuda", 0))
    forward = _rounds([_Timer(each, _forward(module, each)) for each in devices])
    passes = [_backward(module, each) for each in devices] if with_backward else []
    timers = [_Timer(each, work) for each, work in zip(devices, passes, strict=False) if work is not None]
    return Times(
        forward,
        _rounds(timers) if len(timers) == len(devices) else {},
        operators_of(module, with_backward),
        {each.type: _name(each) for each in devices},
        [each.type for each in devices if _event_class(each) is not None],
        simulated=is_active(),
    )


class _Timer:
    """Measures some work on a device."""

    def __init__(self, device: torch.device, work: Work) -> None:
        self.kind = device.type
        self._work = work
        self._event = _event_class(device)
        self._waits = None if device.type == "cpu" else getattr(_module(device), "synchronize", None)
        self._made = 0
        self._repeat(_WARM_UP)
        self._wait()
        self.once = min(
            self.seconds(1) for _ in range(_FEWEST)
        )  # what else runs here must not look like work
        self.count = max(1, min(_MOST_CALLS, int(_SAMPLE / max(self.once, 1e-7))))

    def seconds(self, count: int) -> float:
        """What one of so many calls takes."""
        if self._event is not None:
            first, last = self._event(enable_timing=True), self._event(enable_timing=True)
            first.record()
            self._repeat(count)
            last.record()
            self._wait()
            return float(first.elapsed_time(last)) / 1e3 / count
        start = time.perf_counter()
        self._repeat(count)
        self._wait()
        return (time.perf_counter() - start) / count

    def _repeat(self, count: int) -> None:
        for number in range(self._made, self._made + count):
            self._work(number)
        self._made += count

    def _wait(self) -> None:
        if self._waits is not None:
            self._waits()


def _rounds(timers: list[_Timer]) -> dict[str, list[float]]:
    longest = max((timer.once for timer in timers), default=0.0)
    rounds = max(_FEWEST, min(_ROUNDS, int(_SECONDS / max(longest, _SAMPLE))))
    found: dict[str, list[float]] = {timer.kind: [] for timer in timers}
    for _ in range(rounds):
        for timer in timers:
            found[timer.kind].append(timer.seconds(timer.count))
    return found


def _module(device: torch.device) -> Any:
    return getattr(torch, device.type, None)


def _event_class(device: torch.device) -> Any:
    """What marks a moment of a real device; a simulated one's tell the host's time, with the host's own work in it."""
    return None if device.type == "cpu" or is_active() else getattr(_module(device), "Event", None)


def _name(device: torch.device) -> str:
    """What the device calls itself."""
    find = getattr(_module(device), "get_device_name", None)
    return "" if device.type == "cpu" or find is None or is_active() else str(find(device))


def _copies(inputs: Any) -> int:
    args, kwargs = inputs
    nbytes = sum(tensor.untyped_storage().nbytes() for tensor in _tensors((args, kwargs)))
    return max(1, min(_COPIES, _BYTES // max(nbytes, 1)))


def _tensors(value: Any) -> Iterable[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _tensors(each)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


def _forward(module: Any, device: torch.device) -> Work:
    operator = module.placed(module.operator(), device)
    inputs = module.inputs()
    given = [module.moved(inputs, device) for _ in range(_copies(inputs))]

    def work(number: int) -> object:
        args, kwargs = given[number % len(given)]
        with torch.no_grad():
            return operator(*args, **kwargs)

    return work


def _backward(module: Any, device: torch.device) -> Work | None:
    """The backward pass alone, of graphs that were made before; None where there is none."""
    inputs = module.inputs()
    try:
        graphs = [_graph(module, inputs, device) for _ in range(_copies(inputs))]
    except Exception:  # it can't be done there: the test says why
        return None
    if not all(graph.outputs for graph in graphs):
        return None

    def work(number: int) -> object:
        graph = graphs[number % len(graphs)]
        return torch.autograd.grad(
            graph.outputs, graph.leaves, graph.weights, retain_graph=True, allow_unused=True
        )

    try:
        work(0)
    except Exception:
        return None
    return work


@dataclass(frozen=True)
class _Graph:
    outputs: list[torch.Tensor]
    leaves: list[torch.Tensor]
    weights: list[torch.Tensor]


def _graph(module: Any, inputs: Any, device: torch.device) -> _Graph:
    operator = module.placed(module.operator(), device)
    args, kwargs = module.moved(inputs, device)
    leaves = [each for each in _tensors((args, kwargs)) if module.has_gradient(each)]
    for leaf in leaves:
        leaf.requires_grad_(True)
    if isinstance(operator, torch.nn.Module):
        leaves += list(operator.parameters())
    args, kwargs = module.mapped(module.unchanged, [args, kwargs])
    outputs = [each for each in module.outputs_of(operator(*args, **kwargs)).values() if each.requires_grad]
    return _Graph(outputs, leaves, [module.weights_for(output) for output in outputs])


# Which operators a case comes down to, to be found again in a profiler's trace.


def operators_of(module: Any, with_backward: bool) -> list[TimedCall]:
    """The operators that are dispatched, with what each is given."""
    calls: list[TimedCall] = []
    inputs = module.inputs()
    args, kwargs = module.moved(inputs, _CPU)
    operator = module.placed(module.operator(), _CPU)
    with torch.no_grad(), _Noting(calls, is_backward=False):
        operator(*args, **kwargs)
    work = _backward(module, _CPU) if with_backward else None
    if work is not None:
        with _Noting(calls, is_backward=True):
            work(0)
    return calls


class _Noting(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self, calls: list[TimedCall], *, is_backward: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._calls, self._is_backward = calls, is_backward

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = dict(kwargs or {})
        names = [argument.name for argument in func._schema.arguments]
        values = [*args, *(given.get(name) for name in names[len(args) :])]
        columns = zip(*map(_described, values), strict=True) if values else ((), (), (), ())
        dims, kinds, strides, concrete = map(list, columns)
        name = func._schema.name
        self._calls.append(TimedCall(name, self._is_backward, dims, kinds, strides, concrete))
        return func(*args, **(kwargs or {}))


def _described(value: Any) -> tuple[list[Any], str, list[Any], str]:
    """Shape, type, strides and text of an argument, as a trace has them."""
    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        return list(value.shape), _TYPES.get(dtype, dtype), list(value.stride()), ""
    tensors = list(_tensors(value))
    if tensors:
        return (
            [list(each.shape) for each in tensors],
            "TensorList",
            [list(each.stride()) for each in tensors],
            "",
        )
    try:
        text = "" if value is None else json.dumps(value)
    except TypeError:
        text = ""
    return [], "" if value is None else "Scalar", [], text
