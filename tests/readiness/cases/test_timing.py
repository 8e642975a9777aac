"""`ferry case --time`: what one call takes, in turns on each device, and what is said of it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from torchferry.cli.main import main
from torchferry.errors import InputError
from torchferry.readiness.cases import comparing
from torchferry.readiness.cases.bench import elsewhere_sentences, time_sentences
from torchferry.readiness.cases.model import Times
from torchferry.readiness.cases.worker import measured
from torchferry.readiness.cases.writing import read_times


def test_every_device_is_measured_as_often() -> None:
    counts = {"cpu": 0, "meta": 0}

    def operator(tensor: torch.Tensor) -> None:
        counts[tensor.device.type] += 1

    case = SimpleNamespace(
        place=lambda: torch.device("meta"),
        operator=lambda: operator,
        inputs=lambda: ([torch.ones(3)], {}),
        placed=comparing.placed,
        moved=comparing.moved,
    )
    found = measured(case)
    assert len(found["cpu"]) == len(found["meta"]) >= 5
    assert all(seconds > 0 for each in found.values() for seconds in each)
    assert min(counts.values()) > len(found["cpu"])  # many short calls at once


def test_ratios_are_of_the_same_round_with_their_spread() -> None:
    """A machine that becomes slower in some rounds does so for both."""
    times = Times({"cpu": [1e-3, 1e-3, 5e-3, 1e-3], "npu": [2e-3, 2e-3, 10e-3, 2e-3]})
    said = [text.en for text in time_sentences(times)]
    assert said == [
        "time of one call: cpu 1.00 ms, npu 2.00 ms",
        "npu takes 2 times as long as cpu (2 to 2 in the middle half of 4 rounds)",
    ]
    (line,) = elsewhere_sentences(times, {"cpu": [1e-3], "cuda": [1e-5, 1e-5]}, "gpu.json")
    assert line.en.startswith("npu takes 200 times as long as cuda in gpu.json")


def test_a_simulated_device_is_said_to_be_one() -> None:
    said = [text.en for text in time_sentences(Times({"cpu": [1.0], "npu": [1.0]}, simulated=True))]
    assert "says nothing of the real one" in said[-1]
    assert [text.en for text in time_sentences(Times(error="no device"))] == ["not timed: no device"]


def test_files_of_times(tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    file.write_text(json.dumps({"seconds": {"cuda": [0.5, 0.25]}}))
    assert read_times(file) == {"cuda": [0.5, 0.25]}
    for wrong in ("", "[]", '{"seconds": {}}', '{"seconds": {"cuda": []}}', '{"seconds": {"cuda": [0]}}'):
        file.write_text(wrong)
        with pytest.raises(InputError, match="is no file of times"):
            read_times(file)


def test_options_that_need_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["case", "torch.mm", "--to", "ascend", "--save-times", "x.json"]) == 2
    assert "go with --time" in capsys.readouterr().err
