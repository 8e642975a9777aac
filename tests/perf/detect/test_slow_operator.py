"""Operators beside what a device can do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.perf.building import TraceBuilder
from tests.perf.detect.finding import found, the
from tests.perf.real_traces import FAST_LOADER, LANGUAGE_MODEL_ELSEWHERE, real_run
from torchferry.perf.detect.slow_operator import DETECTOR

SIZE = 1024
PRODUCT = {"dims": [[SIZE, SIZE], [SIZE, SIZE]], "types": ["c10::Half", "c10::Half"]}
SMALLER = {"dims": [[SIZE, SIZE // 2], [SIZE // 2, SIZE]], "types": ["c10::Half", "c10::Half"]}


def products(first: float, second: float, device: str) -> TraceBuilder:
    """A step of 1000 µs with a product of 2.1 GFLOP and one of half as much, each taking so many microseconds."""
    built = TraceBuilder(about={"deviceProperties": [{"id": 0, "name": device}]})
    built.step(0, 0, 1000)
    built.python("train.py(3): forward", 0, 1000)
    built.op("aten::mm", 0, 10, **PRODUCT)
    built.kernel("gemm", 20, first, launched=5)
    built.op("aten::mm", 20, 10, **SMALLER)
    built.kernel("gemm", 20 + first, second, launched=25)
    return built


KNOWN, UNKNOWN = "NVIDIA A100-SXM4-40GB", "Acme 9000"  # 312 TFLOPS: 6.9 µs, and 5 µs at least


@pytest.mark.parametrize(
    ("times", "device"),
    [
        pytest.param((12, 8), KNOWN, id="as fast as can be"),
        pytest.param((18, 8), UNKNOWN, id="others like it are as fast"),
        pytest.param((300, 150), UNKNOWN, id="all alike, and nothing known of the device"),
    ],
)
def test_nothing_is_slow(tmp_path: Path, times: tuple[float, float], device: str) -> None:
    assert not found(DETECTOR, products(*times, device).run(tmp_path))


def test_slow_for_a_known_device(tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, products(200, 8, KNOWN).run(tmp_path))
    (evidence,) = diagnosis.evidence
    assert evidence.what == "aten::mm"
    assert evidence.place == "train.py:3(forward)"
    assert evidence.detail == "1024×1024, 1024×1024; float16×2; 200 µs / 7 µs (3%)"
    assert diagnosis.share == pytest.approx(0.2)
    assert diagnosis.gain == pytest.approx(0.2 * (1 - 6.883 / 200 / 0.6), abs=1e-3)
    assert KNOWN in diagnosis.summary.en


def test_slow_beside_its_like_on_an_unknown_device(tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, products(400, 20, UNKNOWN).run(tmp_path))
    assert "is unknown" in diagnosis.summary.en
    assert diagnosis.evidence[0].detail.endswith("400 µs / 40 µs (10%)")
    assert diagnosis.gain == pytest.approx(0.36)


def test_times_of_a_host_are_not_judged(tmp_path: Path) -> None:
    built = TraceBuilder()
    built.op("aten::mm", 0, 900, **PRODUCT)
    missing = DETECTOR.lacks(built.run(tmp_path))
    assert missing is not None and "device" in missing.en


def test_a_real_healthy_run_has_none() -> None:
    assert not found(DETECTOR, real_run(FAST_LOADER))


def test_attention_that_reaches_a_tenth() -> None:
    diagnosis = the(DETECTOR, real_run(LANGUAGE_MODEL_ELSEWHERE))
    assert [evidence.what for evidence in diagnosis.evidence] == ["aten::_flash_attention_forward"]
