"""`ferry case --time`: what one call takes, in turns on each device, and what is said of it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.accuracy.kernels.test_kernels import addmm, kernel
from tests.readiness.trace.making import Events, op, write
from torchferry.accuracy.kernels import kernel_report
from torchferry.cli.case import _least_seconds
from torchferry.cli.main import main
from torchferry.errors import InputError
from torchferry.readiness.cases import comparing
from torchferry.readiness.cases.model import Times
from torchferry.readiness.cases.times import (
    OtherTimes,
    other_sentences,
    read_other,
    read_times,
    roofline_sentences,
    time_sentences,
)
from torchferry.readiness.cases.timing import measured, operators_of


def a_case(operator: Any, *inputs: torch.Tensor, device: str = "cpu") -> Any:
    """What the file of a case holds, as far as it is measured."""
    library = {name: getattr(comparing, name) for name in dir(comparing) if not name.startswith("_")}
    own = {
        "place": lambda: torch.device(device),
        "operator": lambda: operator,
        "inputs": lambda: (list(inputs), {}),
    }
    return SimpleNamespace(**{**library, **own})


def test_every_device_is_measured_as_often() -> None:
    counts = {"cpu": 0, "meta": 0}

    def operator(tensor: torch.Tensor) -> None:
        counts[tensor.device.type] += 1

    found = measured(a_case(operator, torch.ones(3), device="meta"), with_backward=False).seconds
    assert len(found["cpu"]) == len(found["meta"]) >= 5
    assert all(seconds > 0 for each in found.values() for seconds in each)
    assert min(counts.values()) > len(found["cpu"])  # many short calls at once


def test_the_backward_pass_is_measured_alone() -> None:
    calls = {"forward": 0, "backward": 0}

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, tensor: torch.Tensor) -> torch.Tensor:
            calls["forward"] += 1
            return tensor * 2

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            calls["backward"] += 1
            return gradient * 2

    case = a_case(Twice.apply, torch.ones(3), device="meta")
    made = measured(case, with_backward=True)
    assert len(made.backward["cpu"]) == len(made.backward["meta"]) >= 5
    before = dict(calls)
    assert measured(case, with_backward=False).backward == {}
    assert calls["backward"] == before["backward"] and calls["forward"] > before["forward"]
    assert measured(a_case(torch.argmax, torch.ones(3), device="meta"), with_backward=True).backward == {}


def test_several_copies_of_the_inputs_take_turns() -> None:
    seen: dict[int, int] = {}

    def operator(tensor: torch.Tensor) -> None:
        seen[tensor.data_ptr()] = seen.get(tensor.data_ptr(), 0) + 1

    measured(a_case(operator, torch.ones(1000)), with_backward=False)
    assert len(seen) >= 8


def test_ratios_are_of_the_same_round_with_their_spread() -> None:
    """A machine that becomes slower in some rounds does so for both."""
    times = Times(
        {"cpu": [1e-3, 1e-3, 5e-3, 1e-3], "npu": [2e-3, 2e-3, 10e-3, 2e-3]}, {"cpu": [1e-3], "npu": [3e-3]}
    )
    said = [text.en for text in time_sentences(times)]
    assert said == [
        "time of one call, forward: cpu 1.00 ms (1.00 ms to 2.00 ms), npu 2.00 ms (2.00 ms to 4.00 ms)",
        "forward: npu takes 2 times as long as cpu (2 to 2 in the middle half of 4 rounds)",
        "time of one call, backward: cpu 1.00 ms (1.00 ms to 1.00 ms), npu 3.00 ms (3.00 ms to 3.00 ms)",
        "backward: npu takes 3 times as long as cpu (3 to 3 in the middle half of 1 rounds)",
    ]
    (line,) = other_sentences(
        times, OtherTimes({"forward": {"cpu": [1e-3], "cuda": [1e-5, 1e-5]}}), "gpu.json"
    )
    assert line.en.startswith("forward: npu takes 200 times as long as cuda in gpu.json")
    assert "（" in line.zh


def test_a_simulated_device_is_said_to_be_one() -> None:
    said = [text.en for text in time_sentences(Times({"cpu": [1.0], "npu": [1.0]}, simulated=True))]
    assert "its time is the CPU's and tells nothing about the real device" in said[-1]
    assert [text.en for text in time_sentences(Times(error="no device"))] == ["not timed: no device"]


def test_files_of_times(tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    file.write_text(json.dumps({"seconds": {"cuda": [0.5, 0.25]}}))
    assert read_times(file) == {"forward": {"cuda": [0.5, 0.25]}}
    file.write_text(
        json.dumps({"format": "torchferry-times", "seconds": {"cuda": [0.5]}, "backward": {"cuda": [0.1]}})
    )
    assert read_other(file).saved == {"forward": {"cuda": [0.5]}, "backward": {"cuda": [0.1]}}
    for wrong in ("", "[]", '{"seconds": {}}', '{"seconds": {"cuda": []}}', '{"seconds": {"cuda": [0]}}'):
        file.write_text(wrong)
        with pytest.raises(InputError, match="not a file of times"):
            read_times(file)


# Against the kernels of a trace.


def gpu_trace(folder: Path) -> Path:
    """Two calls of addmm with 2 rows, of 5 and 9 µs of kernels, one with 3 rows, and a view without kernels."""
    events: Events = [addmm(0, 1, 2), kernel("gemm", 20, 1), addmm(100, 2, 2), kernel("gemm", 120, 2)]
    events += [addmm(200, 3, 3), kernel("gemm", 220, 3), op("aten::t", 300, 4)]
    for event, microseconds in ((events[1], 5), (events[3], 9), (events[5], 70)):
        event["dur"] = microseconds
    return write(folder, events)


def addmm_times(rows: int = 2) -> Times:
    case = a_case(torch.addmm, torch.ones(4), torch.ones(rows, 8), torch.ones(8, 4))
    seconds = {"cpu": [1e-3], "npu": [28e-6] * 4}
    return Times(seconds, operators=operators_of(case, with_backward=False), names={"npu": "Ascend910B3"})


def test_against_the_kernels_of_a_trace(tmp_path: Path) -> None:
    (line,) = other_sentences(addmm_times(), read_other(gpu_trace(tmp_path)), "trace.json")
    assert line.en == (
        "forward: npu takes 4.4 times as long as the kernels of cuda in trace.json, 7.00 µs in 2 calls of aten::addmm "
        "(3.1 to 5.6)"
    )


def test_against_what_record_kernels_made_of_the_trace(tmp_path: Path) -> None:
    listed = tmp_path / "kernels.json"
    listed.write_text(kernel_report(gpu_trace(tmp_path), "", "json", "en"))
    (line,) = other_sentences(addmm_times(), read_other(listed), "kernels.json")
    assert "4 times as long as the kernels of the GPU in kernels.json, 7.00 µs in 2 calls" in line.en


def test_other_shapes_are_not_taken_for_the_same(tmp_path: Path) -> None:
    (line,) = other_sentences(addmm_times(rows=5), read_other(gpu_trace(tmp_path)), "trace.json")
    assert line.en == (
        "forward: trace.json has no aten::addmm on tensors of these shapes and dtypes; it has "
        "aten::addmm(4 2x8 8x4 float32), aten::addmm(4 3x8 8x4 float32)"
    )


def test_a_function_is_found_by_the_operators_that_it_calls(tmp_path: Path) -> None:
    """linear is t and addmm; t launches nothing."""
    case = a_case(torch.nn.functional.linear, torch.ones(2, 8), torch.ones(4, 8), torch.ones(4))
    times = Times({"cpu": [14e-6]}, operators=operators_of(case, with_backward=False))
    assert [call.operator for call in times.operators] == ["aten::t", "aten::addmm"]
    (line,) = other_sentences(times, read_other(gpu_trace(tmp_path)), "trace.json")
    assert "cpu takes 2.2 times as long" in line.en and "2 calls of aten::addmm" in line.en


def test_what_is_no_time_of_a_gpu(tmp_path: Path) -> None:
    without_kernels = write(tmp_path, [addmm(0, 1, 2)], "cpu.json")
    without_shapes = write(
        tmp_path, [op("aten::addmm", 0, 5, External_id=1), kernel("gemm", 20, 1)], "bare.json"
    )
    text = tmp_path / "x.txt"
    text.write_text("hello")
    for file, said in (
        (without_kernels, "no operator launched a kernel"),
        (without_shapes, "has no shapes; record the trace with record_shapes=True"),
        (text, "not a file of times"),
        (tmp_path / "none.json", "can't be read"),
    ):
        with pytest.raises(InputError, match=said):
            read_other(file)


def test_the_roofline_of_a_known_device() -> None:
    big = a_case(torch.mm, torch.ones(512, 1024), torch.ones(1024, 256))
    calls = operators_of(big, with_backward=False)
    times = Times({"cpu": [1.0], "cuda": [1e-3]}, operators=calls, names={"cpu": "", "cuda": "NVIDIA H200"})
    (line,) = roofline_sentences(times, _least_seconds)
    flops, nbytes = 2 * 512 * 1024 * 256, 4 * (512 * 1024 + 1024 * 256 + 512 * 256)
    least = max(flops / 67e12, nbytes / 4800e9, 5e-6)
    assert (
        line.en
        == f"forward: NVIDIA H200 needs at least {least * 1e6:.2f} µs; it reaches {least / 1e-3:.1%} of that speed"
    )
    unknown = Times({"cpu": [1.0], "npu": [1.0]}, operators=calls, names={"npu": "Nobody's"})
    assert list(roofline_sentences(unknown, _least_seconds)) == []


def test_options_that_need_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["case", "torch.mm", "--to", "ascend", "--save-times", "x.json"]) == 2
    assert "--save-times and --times-of need --time" in capsys.readouterr().err
