"""What Python does within a step is named for what it is: checkpoints, garbage, sleep, preparing data."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.perf.building import TraceBuilder
from tests.perf.detect.finding import found, the
from torchferry.perf.detect import checkpoint_writing, garbage_collection, host_bound


def training(frame: str, time: float, mark: str = "") -> TraceBuilder:
    """Steps of 1 ms; 400 µs are operators, and a function is at work for a time."""
    built = TraceBuilder()
    built.python("train.py(3): main", 0, 4000)
    for number in range(4):
        start = number * 1000
        built.step(number, start, 1000)
        built.op("aten::mm", start, 400)
        if frame:
            built.python("train.py(9): extra", start + 400, time + 5)
            built.python(frame, start + 402, time)
        if mark:
            built.annotation(mark, start + 402, time)
        built.op("aten::mm", start + 402 + time + 5, 1000 - 410 - time)
    return built


SAVE = "torch/serialization.py(944): save"


def test_no_checkpoint(tmp_path: Path) -> None:
    assert not found(checkpoint_writing.DETECTOR, training("train.py(12): load", 500).run(tmp_path))


@pytest.mark.parametrize(
    "frame", [SAVE, "train.py(12): save_checkpoint", "safetensors/torch.py(270): save_file"]
)
def test_a_checkpoint_in_every_step(frame: str, tmp_path: Path) -> None:
    run = training(frame, 550).run(tmp_path)
    diagnosis = the(checkpoint_writing.DETECTOR, run)
    assert diagnosis.share == pytest.approx(0.55, abs=0.01) and diagnosis.is_bottleneck
    assert "1.0 " in diagnosis.summary.en and diagnosis.evidence[0].place
    assert not found(host_bound.DETECTOR, run)  # the same time is not told twice


def test_a_checkpoint_by_the_programs_own_mark(tmp_path: Path) -> None:
    built = training("", 550, "save_checkpoint")
    built.events = [event for event in built.events if event.get("cat") != "python_function"]
    assert the(checkpoint_writing.DETECTOR, built.run(tmp_path)).evidence[0].what == "save_checkpoint"


def test_a_collection_that_the_program_asks_for(tmp_path: Path) -> None:
    run = training("<built-in function collect>", 550).run(tmp_path)
    diagnosis = the(garbage_collection.DETECTOR, run)
    assert diagnosis.evidence[0].what == "gc.collect()" and diagnosis.evidence[0].place.startswith(
        "train.py:9"
    )
    assert "out of the step" in diagnosis.remedies[0].en
    assert not found(host_bound.DETECTOR, run)


@pytest.mark.parametrize(
    ("frame", "title", "remedy"),
    [
        ("<built-in function sleep>", "sleeps", "time.sleep()"),
        (
            "<built-in method normal of numpy.random.mtrand.RandomState object at 0x7f>",
            "Data is prepared",
            "num_workers",
        ),
        ("PIL/Image.py(2200): resize", "Data is prepared", "num_workers"),
        ("train.py(20): words", "Python takes", "loops over elements"),
    ],
)
def test_the_remedy_fits_what_python_does(frame: str, title: str, remedy: str, tmp_path: Path) -> None:
    diagnosis = the(host_bound.DETECTOR, training(frame, 550).run(tmp_path))
    assert title in diagnosis.title.en and remedy in diagnosis.remedies[0].en
    assert diagnosis.share == pytest.approx(0.55, abs=0.02)


def test_data_prepared_while_a_device_waits(tmp_path: Path) -> None:
    built = TraceBuilder()
    for number in range(4):
        start = number * 1000
        built.step(number, start, 1000)
        built.python("train.py(3): main", start, 1000)
        built.op("aten::mm", start, 20)
        built.kernel("gemm", start + 10, 300, start + 5)
        built.python("numpy/lib/function_base.py(5): sort", start + 320, 650)
    diagnosis = the(host_bound.DETECTOR, built.run(tmp_path))
    assert [text.en for text in diagnosis.remedies] and "num_workers" in diagnosis.remedies[0].en
