"""Optimizers that go through the parameters one by one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.perf.building import TraceBuilder
from tests.perf.detect.finding import SIMULATED, found, the
from tests.perf.real_traces import FAST_LOADER, VENDORS_TIMELINE, real_run
from torchferry.perf.detect.unfused_optimizer import DETECTOR
from torchferry.vendors.registry import get_vendor

PARAMETERS = 20
ACCUMULATE = "torch::autograd::AccumulateGrad"


def single(built: TraceBuilder, start: float, on_device: bool) -> None:
    for number in range(PARAMETERS):
        for at, name in enumerate(("aten::mul_", "aten::add_")):
            called = start + 10 * number + 5 * at
            built.op(name, called, 4)
            if on_device:
                built.kernel("elementwise", called + 2, 1, launched=called + 1)


def whole(built: TraceBuilder, start: float, on_device: bool) -> None:
    """On the CPU, foreach is a loop over the parameters too."""
    built.op("aten::_foreach_mul_", start, 200)
    for number in range(PARAMETERS):
        built.op("aten::mul_", start + 5 * number, 4)
    if on_device:
        built.kernel("multi_tensor_apply_kernel", start + 2, 150, launched=start + 1)


def training(kind: str, on_device: bool = True, length: float = 1000) -> TraceBuilder:
    """Two steps, of which the optimizer takes 200 µs."""
    built = TraceBuilder()
    for number in range(2):
        start = number * length
        built.step(number, start, length)
        built.python("train.py(7): train", start, length)
        built.op("aten::mm", start, length - 300)
        if on_device:
            built.kernel("gemm", start, length - 300, launched=start + 1)
        for _ in range(PARAMETERS):
            built.op(ACCUMULATE, start + length - 290, 1)
        built.annotation("Optimizer.step#SGD.step", start + length - 250, 202)
        (single if kind == "single" else whole)(built, start + length - 249, on_device)
    return built


@pytest.mark.parametrize("on_device", [True, False])
def test_one_call_for_all_parameters(tmp_path: Path, on_device: bool) -> None:
    assert not found(DETECTOR, training("whole", on_device).run(tmp_path, profile=SIMULATED))


def test_what_a_closure_computes_is_not_the_optimizers(tmp_path: Path) -> None:
    """Lightning gives every optimizer a closure; LBFGS calls it many times."""
    built = TraceBuilder()
    for number in range(2):
        start = number * 1000
        built.step(number, start, 1000)
        built.annotation("Optimizer.step#LBFGS.step", start, 990)
        single(built, start + 10, on_device=False)
        built.op(ACCUMULATE, start + 950, 5)
        built.op("aten::add_", start + 970, 5)
    assert not found(DETECTOR, built.run(tmp_path))
    after = training("single", on_device=False)
    for number in range(2):
        after.annotation("Optimizer.step#Adam.step", number * 1000, 960)
    assert the(DETECTOR, after.run(tmp_path, profile=SIMULATED)).share < 0.3


def test_calls_for_each_parameter(tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, training("single").run(tmp_path))
    assert "SGD calls 40 operators per step for about 20 parameters" in diagnosis.summary.en
    assert diagnosis.share == pytest.approx(0.202)
    # 200 µs less 40 kernels of 1 µs: the device waits; one of two passes over the parameters: 20 µs
    assert diagnosis.gain == pytest.approx(0.162 + 0.02, abs=0.003)
    assert {each.what for each in diagnosis.evidence} == {"aten::mul_", "aten::add_"}
    assert diagnosis.evidence[0].place == "train.py:7(train)"


def test_gradients_that_are_accumulated(tmp_path: Path) -> None:
    built = training("single")
    for _ in range(8 * PARAMETERS):
        built.op("torch::autograd::AccumulateGrad", 711, 1)
    assert "for about 20 parameters" in the(DETECTOR, built.run(tmp_path)).summary.en


def test_a_host_that_is_ahead_anyway(tmp_path: Path) -> None:
    built = training("single", length=10_000)
    for start in (0, 10_000):
        built.kernel("gemm", start + 9700, 300, launched=start + 2)
    assert not found(DETECTOR, built.run(tmp_path))


def test_on_the_simulated_device_however_little_it_takes(tmp_path: Path) -> None:
    run = training("single", on_device=False, length=100_000).run(
        tmp_path, profile=SIMULATED, vendor=get_vendor("ascend")
    )
    diagnosis = the(DETECTOR, run)
    assert diagnosis.gain is None
    assert any("NpuFusedSGD" in remedy.en for remedy in diagnosis.remedies)
    assert any("affinity.fused_optimizer" in remedy.en for remedy in diagnosis.remedies)


def test_on_the_cpu_by_its_share(tmp_path: Path) -> None:
    assert not found(DETECTOR, training("single", on_device=False, length=100_000).run(tmp_path))
    diagnosis = the(DETECTOR, training("single", on_device=False).run(tmp_path))
    assert [remedy.en for remedy in diagnosis.remedies] == [
        "Set fused=True for SGD (torch 2.4 or later on the CPU): one pass over all parameters."
    ]


def test_real_runs() -> None:
    for name, said in (
        (FAST_LOADER, "SGD calls 483 operators per step for about 161 parameters"),
        (VENDORS_TIMELINE, "Adam calls 80 operators per step for about 10 parameters"),
    ):
        assert said in the(DETECTOR, real_run(name)).summary.en
