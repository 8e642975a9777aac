"""Numbers are taken out of tensors one by one."""

from __future__ import annotations

from pathlib import Path

from tests.perf.building import TraceBuilder
from tests.perf.detect.finding import SIMULATED, found, the
from torchferry.perf.detect.element_access import DETECTOR


def training(reads: int) -> TraceBuilder:
    """Steps of 2 ms; each read takes 1 µs."""
    built = TraceBuilder()
    for number in range(3):
        start = number * 2000
        built.step(number, start, 2000)
        built.op("aten::mm", start, 1000)
        for at in range(reads):
            built.op("aten::item", start + 1000 + 2 * at, 1)
            built.op("aten::_local_scalar_dense", start + 1000 + 2 * at + 0.2, 0.5)
    return built


def test_a_loss_and_some_metrics(tmp_path: Path) -> None:
    assert not found(DETECTOR, training(20).run(tmp_path))


def test_a_loop_over_a_tensor(tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, training(400).run(tmp_path))
    assert "400 times per step" in diagnosis.summary.en and "tolist()" in diagnosis.remedies[0].en
    assert diagnosis.evidence[0].what == "aten::item" and diagnosis.evidence[0].count == 1200


def test_on_a_device_waiting_is_what_costs(tmp_path: Path) -> None:
    assert not found(DETECTOR, training(400).run(tmp_path, profile=SIMULATED))
