"""What a capture holds of a training step is what others see of it: another dispatch mode, and PyTorch's profiler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

from tests.processor import trains_bfloat16_lstm
from torchferry.readiness.capture.mode import CapturingMode

Step = Callable[[], None]


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.2)
        )
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.head(self.body(x))
        return y


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)

    def forward(self, ids: Tensor) -> Tensor:
        y: Tensor = self.layer(self.embed(ids))
        return y


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.recurrent = nn.LSTM(8, 16, 2, dropout=0.1)
        self.head = nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.head(self.recurrent(x)[0])
        return y


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Tensor]]] = {
    "convolutions": (Convolutions, lambda: torch.randn(2, 3, 12, 12)),
    "attention": (Attention, lambda: torch.randint(0, 20, (2, 5))),
    "recurrent": (Recurrent, lambda: torch.randn(5, 2, 8)),
}
EVERY_STEP = [
    pytest.param(model, optimizer, amp, id=f"{model}-{optimizer}{'-amp' if amp else ''}")
    for model in MODELS
    for optimizer in ("SGD", "AdamW")
    for amp in (False, True)
]


def training_step(model: str, optimizer: str, amp: bool) -> Step:
    torch.manual_seed(0)
    make, draw = MODELS[model]
    made, x = make(), draw()
    stepping = getattr(torch.optim, optimizer)(made.parameters(), lr=0.01, foreach=True)

    def step() -> None:
        with torch.autocast("cpu", torch.bfloat16) if amp else nullcontext():
            loss = made(x).float().pow(2).mean()
        loss.backward()
        stepping.step()

    return step


def captured(step: Step) -> Counter[str]:
    mode = CapturingMode()
    with mode.switched_on():
        step()
    calls: Counter[str] = Counter()
    for use in mode.uses():
        if not use.site.inside:
            calls[use.operator] += use.calls
    return calls


class Counting(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace != "profiler":  # the marks that optimizers leave for the profiler compute nothing
            self.calls[func.name()] += 1
        return func(*args, **(kwargs or {}))


def counted(step: Step) -> Counter[str]:
    with Counting() as mode:
        step()
    return mode.calls


def profiled(step: Step) -> Counter[str]:
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        step()
    events = profiler.events()
    assert events is not None
    return Counter(below_autograd(event for event in events if event.cpu_parent is None))


def below_autograd(events: Iterable[Any]) -> Iterable[str]:
    """The outermost operators that are not made of others before autograd sees them."""
    for event in events:
        inner = [child.name for child in event.cpu_children]
        casts_first = event.name in inner  # autocast calls the same operator again
        if event.name.startswith("aten::") and not is_composite(event.name) and not casts_first:
            yield event.name
        else:
            yield from below_autograd(event.cpu_children)


@cache
def is_composite(name: str) -> bool:
    """Whether all overloads are made of other operators; those that write to a given result are seldom called."""
    overloads = [
        each
        for each in torch._C._dispatch_get_all_op_names()
        if each.partition(".")[0] == name and not each.endswith((".out", "_out"))
    ]
    implicit = "CompositeImplicitAutograd"
    return all(torch._C._dispatch_has_kernel_for_dispatch_key(each, implicit) for each in overloads)


def without_overloads(calls: Counter[str]) -> Counter[str]:
    """As the profiler names them, and by one name where PyTorch chooses between two by whether a mode looks on."""
    sums: Counter[str] = Counter()
    for name, number in calls.items():
        short = name.partition(".")[0]
        sums[{"aten::add_": "aten::add", "aten::_reshape_alias": "aten::view"}.get(short, short)] += number
    return sums


def without_what_modes_change(calls: Counter[str], numbers: int) -> Counter[str]:
    """Autograd detaches by an operator only where a mode looks on; and what `torch.tensor` makes a tensor of a number
    with is hidden from modes."""
    views = Counter({name: calls[name] for name in ("aten::detach", "aten::detach_")})
    return without_overloads(calls) - views - Counter({"aten::empty": numbers})


@pytest.mark.parametrize(("model", "optimizer", "amp"), EVERY_STEP)
def test_a_captured_step_is_what_another_mode_and_the_profiler_see(
    model: str, optimizer: str, amp: bool
) -> None:
    if model == "recurrent" and amp and not trains_bfloat16_lstm():
        pytest.skip("PyTorch has no bfloat16 LSTM for training on this CPU")
    ours = captured(training_step(model, optimizer, amp))
    of_mode = counted(training_step(model, optimizer, amp))
    of_profiler = profiled(training_step(model, optimizer, amp))
    assert ours == of_mode
    numbers = ours["aten::lift_fresh"]
    assert without_what_modes_change(ours, 0) == without_what_modes_change(of_profiler, numbers)


def test_a_call_that_is_not_captured_is_found() -> None:
    ours = captured(training_step("convolutions", "SGD", False))
    step = training_step("convolutions", "SGD", False)

    def more() -> None:
        step()
        torch.ones(3).cumsum(0)

    of_mode = counted(more)
    assert of_mode - ours == Counter({"aten::ones": 1, "aten::cumsum": 1})
