"""Traces of the real profiler: what a training step called, where, and with what."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import DataLoader, TensorDataset

from tests.readiness.trace.making import calls, profile, the
from torchferry.readiness.model import Argument, Capture, Phase, Special, TensorSpec
from torchferry.readiness.trace import read_trace


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))
        self.head = nn.Linear(8 * 9, 5)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(images).flatten(1))  # type: ignore[no-any-return]


class Trainer:
    """Steps of a classifier."""

    def __init__(self, steps: int = 2) -> None:
        torch.manual_seed(1)
        self.model = Net()
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.1, momentum=0.9)
        data = TensorDataset(torch.randn(4 * steps, 3, 8, 8), torch.randint(0, 5, (4 * steps,)))
        self.data = DataLoader(data, batch_size=4)

    def train(self) -> None:
        for images, labels in self.data:
            self.step(images, labels)

    def step(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(images), labels)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    trainer = Trainer()
    path = tmp_path_factory.mktemp("trace") / "full.json"
    return profile(path, trainer.train, record_shapes=True, with_stack=True, with_modules=True)


@pytest.fixture(scope="module")
def capture(trace: Path) -> Capture:
    return read_trace(trace)


class _Counting(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls[func.name()] += 1
        return func(*args, **(kwargs or {}))


# While a mode watches, autograd hands gradients on by detaching them, adds them up in new tensors, and reshape leaves
# the view to view.
_OTHERWISE_CALLED = {
    "aten::add_.Tensor": "aten::add.Tensor",
    "aten::add_": "aten::add",
    "aten::_reshape_alias": "aten::view",
}
_NOT_COMPARED = ("aten::detach", "profiler::_record_function_enter_new", "profiler::_record_function_exit")


def _comparable(counted: Counter[str], overloads: bool) -> Counter[str]:
    found: Counter[str] = Counter()
    for name, count in counted.items():
        base = name.partition(".")[0]
        if base not in _NOT_COMPARED:
            shown = name if overloads else base
            found[_OTHERWISE_CALLED.get(shown, shown)] += count
    return found


def _attention() -> Callable[[], None]:
    layer = nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
    optimizer = torch.optim.Adam(layer.parameters(), fused=True)
    batch = torch.randn(2, 3, 8)

    def step() -> None:
        layer(batch, batch)[..., :2].pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def _mixed_precision() -> Callable[[], None]:
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(16, 4), nn.Softmax(-1)
    )
    images = torch.randn(2, 3, 4, 4)

    def step() -> None:
        with torch.autocast("cpu", torch.bfloat16):
            result = model(images)
            loss = nn.functional.mse_loss(result, torch.zeros_like(result))
        loss.backward()  # type: ignore[no-untyped-call]

    return step


def _recurrent() -> Callable[[], None]:
    layer = nn.LSTM(4, 4, 2, bidirectional=True)
    batch = torch.randn(3, 2, 4)
    return lambda: layer(batch)[0].sum().backward()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "make",
    [lambda: Trainer().train, _attention, _mixed_precision, _recurrent],
    ids=["cnn", "attention", "amp", "lstm"],
)
@pytest.mark.parametrize("shapes", [True, False], ids=["shapes", "no_shapes"])
def test_operators_are_those_that_a_dispatch_mode_sees(
    make: Callable[[], Callable[[], None]], shapes: bool, tmp_path: Path
) -> None:
    step = make()
    step()
    torch.manual_seed(0)
    with _Counting() as counting:
        step()
    torch.manual_seed(0)
    read = read_trace(profile(tmp_path / "trace.json", step, record_shapes=shapes))
    seen = _comparable(counting.calls, overloads=shapes)
    found = (
        _comparable(calls(read), overloads=shapes) if shapes else _comparable(calls(read), overloads=False)
    )
    # reshape makes the view itself unless a mode watches
    found["aten::view"] += found.pop("aten::_reshape_alias", 0)
    seen["aten::view"] += seen.pop("aten::_reshape_alias", 0)
    assert found == seen
    assert sum(seen.values()) > 10


def test_formulas_are_listed_with_what_they_call(capture: Capture) -> None:
    outer, inner = the(capture, "aten::convolution"), the(capture, "aten::_convolution")
    assert outer.expanded
    assert not inner.expanded
    assert inner.site.inside == "aten::convolution"
    assert "aten::mkldnn_convolution" not in calls(capture, inside=True)


def test_arguments_have_shapes_and_values(capture: Capture) -> None:
    pool = the(capture, "aten::max_pool2d_with_indices").signature
    given = {argument.name: argument.value for argument in pool.arguments}
    assert given["self"] == TensorSpec("float32", (4, 8, 6, 6), (288, 36, 6, 1))
    assert given["kernel_size"] == (2, 2)
    assert given["ceil_mode"] is False


def test_a_number_is_no_tensor_of_double_precision(capture: Capture) -> None:
    """The momentum, which PyTorch wraps in a tensor."""
    momentum = [use for use in capture.uses if use.operator == "aten::mul_.Tensor"]
    assert any(Argument("other", Special("number", "")) in use.signature.arguments for use in momentum)
    assert {dtype for use in momentum for dtype in use.signature.dtypes} == {"float32"}


def test_phases(capture: Capture) -> None:
    assert the(capture, "aten::relu").site.phase is Phase.FORWARD
    assert the(capture, "aten::threshold_backward").site.phase is Phase.BACKWARD
    phases = {use.site.phase for use in capture.uses if use.operator == "aten::select.int"}
    assert phases == {Phase.DATA}
    clipping = {use.site.phase for use in capture.uses if use.operator.startswith("aten::clamp")}
    assert clipping == {Phase.OPTIMIZER}
    assert capture.steps == 2


def test_the_backward_pass_has_the_place_of_the_forward_call(capture: Capture) -> None:
    forward = the(capture, "aten::relu").site
    backward = the(capture, "aten::threshold_backward").site
    assert forward.module == backward.module == "Net_0.Sequential_0.ReLU_0"
    assert forward.place == backward.place
    assert Path(forward.place.rpartition(":")[0]).name == "test_profiler.py"
    assert backward.node == "ReluBackward0"
    assert ("Net_0.Linear_0", "Linear") in {(module.path, module.type) for module in capture.modules}


def test_time_adds_up(capture: Capture) -> None:
    assert capture.device == "cpu"
    assert 0 < sum(use.seconds for use in capture.uses) < capture.seconds
    assert "no_shapes" not in capture.notes
    assert {"function_lines", "module_types"} <= set(capture.notes)


def test_a_packed_trace_is_the_same(trace: Path, capture: Capture, tmp_path: Path) -> None:
    packed = tmp_path / "named_as_it_likes"
    packed.write_bytes(gzip.compress(trace.read_bytes()))
    assert read_trace(packed).uses == capture.uses


def test_without_shapes_names_and_calls_remain(capture: Capture, tmp_path: Path) -> None:
    bare = read_trace(profile(tmp_path / "bare.json", Trainer().train))
    assert {"no_shapes", "no_places", "no_overloads"} <= set(bare.notes)
    assert the(bare, "aten::relu").calls == the(capture, "aten::relu").calls
    assert not the(bare, "aten::relu").signature.arguments


def test_threads_of_the_program_are_counted(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def work() -> None:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda _: torch.ones(3).cosh(), range(6)))
        torch.ones(3).cosh()

    from torch.profiler import ProfilerActivity, _ExperimentalConfig
    from torch.profiler import profile as profiler

    path = tmp_path / "trace.json"
    everywhere = _ExperimentalConfig(profile_all_threads=True)  # type: ignore[call-arg]
    with profiler(activities=[ProfilerActivity.CPU], experimental_config=everywhere) as recorded:
        work()
    recorded.export_chrome_trace(str(path))
    assert calls(read_trace(path))["aten::cosh"] == 7
