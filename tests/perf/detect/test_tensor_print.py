"""Printing of tensors."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.perf.building import TraceBuilder
from tests.perf.detect.finding import SIMULATED, found, the
from torchferry.perf.detect import synchronization
from torchferry.perf.detect.tensor_print import DETECTOR


def loop(printing: float) -> TraceBuilder:
    built = TraceBuilder()
    for start in (0, 1000):
        built.step(start // 1000, start, 1000)
        built.python("train.py(7): train", start, 1000)
        built.op("aten::mm", start, 500)
        if printing:
            built.python("torch/_tensor.py(570): __repr__", start + 500, printing)
            built.python("torch/_tensor_str.py(708): _str", start + 501, printing - 1)
            built.python("torch/_tensor_str.py(600): _str_intern", start + 502, printing - 2)
            built.op("aten::item", start + 503, printing - 4)
            built.op("aten::_local_scalar_dense", start + 503, printing - 5)
    return built


def test_a_loop_that_prints_nothing(tmp_path: Path) -> None:
    assert not found(DETECTOR, loop(0).run(tmp_path))


def test_a_loop_that_prints(tmp_path: Path) -> None:
    diagnosis = the(DETECTOR, loop(101).run(tmp_path))
    assert diagnosis.gain == pytest.approx(0.1)
    (evidence,) = diagnosis.evidence
    assert (evidence.place, evidence.count) == ("train.py:7(train)", 2)  # the frames in each other are one


def test_what_costs_little_on_the_host_costs_more_on_a_device(tmp_path: Path) -> None:
    assert not found(DETECTOR, loop(8).run(tmp_path))
    run = loop(8).run(tmp_path, profile=SIMULATED)
    assert the(DETECTOR, run).evidence[0].count == 2
    assert not found(synchronization.DETECTOR, run)  # said once


def test_without_frames_nothing_can_be_said(tmp_path: Path) -> None:
    built = TraceBuilder()
    built.op("aten::mm", 0, 10)
    lacking = DETECTOR.lacks(built.run(tmp_path))
    assert lacking is not None and "with_stack" in lacking.en
