"""Which of the nested operators count, and where they belong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.readiness.trace.making import calls, op, the, write
from torchferry.operators.names import CHOOSE_BY_DEVICE
from torchferry.readiness.model import Phase
from torchferry.readiness.trace import read_trace
from torchferry.readiness.trace.events import MOST_SIGNATURES

FLOATS = ["float"]


def python(name: str, start: int, duration: int) -> dict[str, object]:
    return op(name, start, duration, category="python_function")


def test_what_a_kernel_calls_does_not_count(tmp_path: Path) -> None:
    events = [op("aten::native_batch_norm", 0, 100), op("aten::empty_like", 10, 20), op("aten::empty", 12, 5)]
    capture = read_trace(write(tmp_path, events))
    assert calls(capture, inside=True) == {"aten::native_batch_norm": 1}
    assert the(capture, "aten::native_batch_norm").seconds == pytest.approx(100e-6)


def test_a_formula_counts_without_what_it_calls(tmp_path: Path) -> None:
    events = [op("aten::embedding", 0, 100), op("aten::index_select", 10, 70)]
    capture = read_trace(write(tmp_path, events))
    outer, inner = the(capture, "aten::embedding"), the(capture, "aten::index_select")
    assert (outer.expanded, inner.expanded) == (True, False)
    assert (outer.seconds, inner.seconds) == (pytest.approx(30e-6), pytest.approx(70e-6))
    assert inner.site.inside == "aten::embedding"


def test_a_view_is_not_taken_apart(tmp_path: Path) -> None:
    events = [op("aten::t", 0, 30), op("aten::transpose", 5, 20), op("aten::as_strided", 10, 5)]
    assert calls(read_trace(write(tmp_path, events)), inside=True) == {"aten::t": 1}


def test_what_computes_nothing_itself_does_not_count(tmp_path: Path) -> None:
    """`to` and `contiguous` that had nothing to do."""
    events = [op("aten::contiguous", 0, 3), op("aten::to", 5, 3), op("aten::relu", 10, 3)]
    assert calls(read_trace(write(tmp_path, events))) == {"aten::relu": 1}


def test_autocast_calls_the_operator_again(tmp_path: Path) -> None:
    events = [
        op(
            "aten::addmm",
            0,
            100,
            Input_Dims=[[2], [2, 2], [2, 2], [], []],
            Input_type=[*FLOATS * 3, "Scalar", "Scalar"],
        ),
        op("aten::to", 5, 40),
        op("aten::_to_copy", 6, 38),
        op("aten::empty_strided", 7, 5),
        op("aten::copy_", 15, 20),
        op(
            "aten::addmm",
            50,
            40,
            Input_Dims=[[2], [2, 2], [2, 2], [], []],
            Input_type=[*["c10::Half"] * 3, "Scalar", "Scalar"],
        ),
    ]
    capture = read_trace(write(tmp_path, events))
    assert calls(capture) == {"aten::_to_copy": 1, "aten::addmm": 1}
    assert the(capture, "aten::addmm").signature.dtypes == ["float16"]


def test_another_overload_is_no_autocast(tmp_path: Path) -> None:
    events = [
        op("aten::sum", 0, 50, Input_Dims=[[2], []], Input_type=["float", ""]),
        op(
            "aten::sum", 5, 40, Input_Dims=[[2], [], [], []], Input_type=["float", "ScalarList", "Scalar", ""]
        ),
    ]
    capture = read_trace(write(tmp_path, events))
    assert the(capture, "aten::sum").expanded
    assert the(capture, "aten::sum.dim_IntList").site.inside == "aten::sum"


def test_threads_do_not_mix(tmp_path: Path) -> None:
    events = [
        op("aten::embedding", 0, 100, thread=1),
        op("aten::relu", 10, 5, thread=2),
        op("aten::relu", 20, 5, thread="1"),
    ]
    capture = read_trace(write(tmp_path, events))
    assert {use.site.inside for use in capture.uses if use.operator == "aten::relu"} == {
        "",
        "aten::embedding",
    }


def test_callers_come_first_though_they_begin_and_end_together(tmp_path: Path) -> None:
    """Whole microseconds: the profiler's numbers tell who called whom, whatever the order in the file."""
    events = [op("aten::index_select", 10, 5, External_id=12), op("aten::embedding", 10, 5, External_id=11)]
    capture = read_trace(write(tmp_path, events))
    assert the(capture, "aten::index_select").site.inside == "aten::embedding"


def test_deep_nesting(tmp_path: Path) -> None:
    depth = 20_000
    events = [op("aten::linear", i, 2 * (depth - i)) for i in range(depth)]
    capture = read_trace(write(tmp_path, [*events, op("aten::relu", depth, 1)]))
    assert calls(capture) == {"aten::relu": 1}


def test_operators_of_other_libraries_count_as_they_are(tmp_path: Path) -> None:
    events = [
        op("torchvision::nms", 0, 9),
        op("aten::sort", 1, 5),
        op("c10::thing", 20, 1),
        op("my function", 22, 1),
    ]
    assert calls(read_trace(write(tmp_path, events)), inside=True) == {"torchvision::nms": 1}


def test_very_many_shapes_are_folded(tmp_path: Path) -> None:
    many = MOST_SIGNATURES + 30
    events = [op("aten::relu", 10 * i, 5, Input_Dims=[[i]], Input_type=FLOATS) for i in range(many)]
    capture = read_trace(write(tmp_path, events))
    assert len(capture.uses) == MOST_SIGNATURES
    assert calls(capture) == {"aten::relu": many}
    assert capture.uses[-1].varied
    assert "varied" in capture.notes


def test_setting_up_ends_with_the_first_module(tmp_path: Path) -> None:
    events = [
        op("aten::uniform_", 0, 5),
        python("nn.Module: Net_0", 10, 50),
        op("aten::relu", 20, 5),
        op("aten::neg", 70, 5),
    ]
    capture = read_trace(write(tmp_path, events))
    phases = {use.operator: use.site.phase for use in capture.uses}
    assert phases == {"aten::uniform_": Phase.SETUP, "aten::relu": Phase.FORWARD, "aten::neg": Phase.FORWARD}


def test_only_what_follows_the_last_backward_pass_belongs_to_the_step(tmp_path: Path) -> None:
    """Gradients of two batches are added up: the second forward pass lies between a backward pass and the step."""
    events = [
        op("aten::relu", 0, 5),
        op("autograd::engine::evaluate_function: ReluBackward0", 10, 9),
        op("aten::cos", 20, 5),
        op("autograd::engine::evaluate_function: CosBackward0", 30, 9),
        op("aten::clamp", 40, 5),
        op("Optimizer.step#SGD.step", 50, 20, category="user_annotation"),
        op("aten::add_", 55, 5),
        op("aten::sin", 80, 5),
    ]
    phases = {use.operator.split(".")[0]: use.site.phase for use in read_trace(write(tmp_path, events)).uses}
    assert phases == {
        "aten::relu": Phase.FORWARD,
        "aten::cos": Phase.FORWARD,
        "aten::clamp": Phase.OPTIMIZER,
        "aten::add_": Phase.OPTIMIZER,
        "aten::sin": Phase.FORWARD,
    }


def test_backward_steps_find_their_forward_call(tmp_path: Path) -> None:
    """Numbers begin anew in each thread, and later calls may have the same: the last call before counts."""
    stack = "torch/nn/functional.py(9): relu;/usr/lib/python3.10/contextlib.py(2): inner;net.py({}): forward;main.py(1): <module>"
    events = [
        op("aten::relu", 0, 5, Sequence_number=3, Fwd_thread_id=0, Call_stack=stack.format(10)),
        op("ReluBackward1", 10, 9, thread=9, Sequence_number=3, Fwd_thread_id=1),
        op("aten::threshold_backward", 12, 5, thread=9),
        op("aten::relu", 30, 5, Sequence_number=3, Fwd_thread_id=0, Call_stack=stack.format(20)),
    ]
    site = the(read_trace(write(tmp_path, events)), "aten::threshold_backward").site
    assert (site.phase, site.place, site.node) == (Phase.BACKWARD, "net.py:10", "ReluBackward1")


@pytest.mark.parametrize(
    ("frame", "place"),
    [
        ("net.py(12): forward", "net.py:12"),
        (
            "/home/me/lib/python3.9/site-packages/timm/layers.py(4): forward",
            "/home/me/lib/python3.9/site-packages/timm/layers.py:4",
        ),
        ("C:\\work\\net.py(12): forward", "C:\\work\\net.py:12"),
        ("torch/nn/modules/linear.py(130): forward", ""),
        ("/x/site-packages/torch/nn/modules/linear.py(130): forward", ""),
        ("/usr/lib/python3.9/threading.py(9): run", ""),
        ("threading.py(1032): _bootstrap", ""),
        ("<built-in function linear>", ""),
        ("<string>(1): <module>", ""),
    ],
)
def test_lines_of_the_user(frame: str, place: str, tmp_path: Path) -> None:
    events = [python("train.py(1): <module>", 0, 90), python(frame, 1, 80), op("aten::relu", 5, 5)]
    assert the(read_trace(write(tmp_path, events)), "aten::relu").site.place == (place or "train.py:1")


def test_a_running_program_is_captured_at_the_same_level() -> None:
    import torch

    from torchferry.readiness.capture.mode import formula_of

    names = [name.removeprefix("aten::") for name in CHOOSE_BY_DEVICE]
    assert names and all(formula_of(getattr(torch.ops.aten, name).default) is None for name in names)
