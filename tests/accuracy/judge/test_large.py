"""Large tensors are judged in parts: right ones are normal, and a mistake anywhere in them is found and named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional

from tests.accuracy.native.comparing import compare_arrays
from torchferry.accuracy.file.reader import Record
from torchferry.accuracy.judge import large, pieces
from torchferry.accuracy.judge.judging import Judge
from torchferry.accuracy.judge.model import CallPair, ErrorKind, Judgement, PairDifference, Verdict
from torchferry.accuracy.model import Call

from .recorded import Claimed, call_of, judge_claim, record, seeded

bf16 = torch.bfloat16


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that tensors of a few thousand elements are large."""
    monkeypatch.setattr(pieces, "LARGE", 1 << 12)
    monkeypatch.setattr(pieces, "BLOCK", 1 << 13)
    monkeypatch.setattr(pieces, "PIECE", 1 << 10)
    monkeypatch.setattr(pieces, "RESULTS", 1 << 6)


def a(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape).to(dtype)


PROGRAMS: dict[str, tuple[Callable[[], Any], str]] = {
    "mm": (lambda: a(256, 32) @ a(32, 96), "mm"),
    "mm bf16": (lambda: a(256, 32, dtype=bf16) @ a(32, 96, dtype=bf16), "mm"),
    "convolution": (lambda: functional.conv2d(a(8, 4, 18, 18), a(16, 4, 3, 3), a(16)), "convolution"),
    "layer norm": (lambda: functional.layer_norm(a(512, 64), (64,), a(64), a(64)), "native_layer_norm"),
    "softmax": (lambda: a(512, 64).softmax(-1), "_softmax"),
    "batch norm": (
        lambda: functional.batch_norm(a(8, 32, 10, 10), None, None, a(32), a(32), training=True),
        "native_batch_norm",
    ),
    "add": (lambda: a(512, 64) + a(64), "add.Tensor"),
    "tanh": (lambda: a(40_000).tanh(), "tanh"),
}


def one_element(result: torch.Tensor) -> torch.Tensor:
    result.view(-1)[result.numel() // 3] += 2.0
    return result


def without_tail(result: torch.Tensor) -> torch.Tensor:
    result.view(-1)[-9:] = 0
    return result


def one_channel(result: torch.Tensor) -> torch.Tensor:
    result.select(min(1, result.dim() - 1), 7).mul_(1.05)
    return result


MISTAKES: dict[ErrorKind, Callable[[torch.Tensor], torch.Tensor]] = {
    ErrorKind.POINTS: one_element,
    ErrorKind.TAIL: without_tail,
    ErrorKind.CHANNEL: one_channel,
    ErrorKind.SCALE: lambda result: result * 1.05,
    ErrorKind.ZERO: torch.zeros_like,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_the_cpu_gives_is_normal(name: str, tmp_path: Path) -> None:
    program, operator = PROGRAMS[name]
    with seeded(), record(tmp_path / "a.h5", program) as recorded:
        call = call_of(recorded, operator)
        judgement = Judge(recorded, None).judge(CallPair(call, None))
        last_place = recorded.tensor(call.outputs[0])
        last_place.view(-1)[::2] = torch.nextafter(last_place, last_place * 2).view(-1)[::2]
        is_exact = (
            operator == "add.Tensor" or last_place.dtype == bf16
        )  # a unit of the last place is too much
        rounded = judgement if is_exact else judge_claim(recorded, call, last_place)
    assert judgement.verdict is rounded.verdict is Verdict.NORMAL
    assert (
        judgement.basis in ("bits", "float32", "float64") and judgement.why is None
    )  # all parts were looked at


@pytest.mark.parametrize("sort", MISTAKES, ids=lambda sort: sort.value)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_mistake_in_a_large_tensor_is_found(name: str, sort: ErrorKind, tmp_path: Path) -> None:
    program, operator = PROGRAMS[name]
    with seeded(), record(tmp_path / "a.h5", program) as recorded:
        call = call_of(recorded, operator)
        if sort is ErrorKind.CHANNEL and len(call.outputs[0].shape) == 1:
            pytest.skip("it has no channels")
        judgement = judge_claim(recorded, call, MISTAKES[sort](recorded.tensor(call.outputs[0])))
    assert (judgement.verdict, judgement.sort) == (Verdict.FAULT, sort)
    assert judgement.output == "output/output_0" and judgement.why is not None
    if sort is ErrorKind.TAIL:
        assert f"the last 9 of {call.outputs[0].elements} elements are wrong" in judgement.why.en


def against_golden(recorded: Record, call: Call, result: torch.Tensor, moved: float) -> Judgement:
    """As if golden had given what was recorded, from inputs that differ by `moved` from mine."""
    first = recorded.tensor(call.inputs[0])
    claims = {(1, "out"): result, (1, "in"): first * (1 + moved)}
    mine = replace(
        call,
        inputs=(replace(call.inputs[0], offset=-2, content=0), *call.inputs[1:]),
        outputs=(replace(call.outputs[0], offset=-1, content=0), *call.outputs[1:]),
    )
    apart = [
        compare_arrays(one.numpy().reshape(-1), other.numpy().reshape(-1), "float32", "float32")
        for one, other in ((claims[1, "in"], first), (result, recorded.tensor(call.outputs[0])))
    ]
    same = [
        compare_arrays(values, values, "float32", "float32")
        for values in (recorded.tensor(each).numpy().reshape(-1) for each in call.inputs[1:])
    ]
    inputs = [
        PairDifference(one, other, metrics)
        for one, other, metrics in zip(mine.inputs, call.inputs, [apart[0], *same], strict=True)
    ]
    outputs = [PairDifference(mine.outputs[0], call.outputs[0], apart[1])]
    return Judge(Claimed(recorded, claims), recorded).judge(CallPair(mine, call, "", inputs, outputs))


@pytest.mark.parametrize("moved", [0.0, 1e-3], ids=["same inputs", "other inputs"])
def test_one_wrong_element_is_found_beside_golden(moved: float, tmp_path: Path) -> None:
    """Whether all results differ, because the inputs do, or only some by their rounding."""
    with seeded(), record(tmp_path / "a.h5", lambda: a(256, 32) @ a(32, 96)) as recorded:
        call = call_of(recorded, "mm")
        one, other = (recorded.tensor(each) for each in call.inputs)
        result = ((one * (1 + moved)).double() @ other.double()).float()
        right = against_golden(recorded, call, result, moved)
        wrong = against_golden(recorded, call, one_element(result), moved)
    assert right.verdict is (Verdict.INHERITED if moved else Verdict.NORMAL)
    assert (wrong.verdict, wrong.sort) == (Verdict.FAULT, ErrorKind.POINTS)


def test_where_all_would_be_read_too_often_a_sample_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large, "_OFTEN", 0.5)
    with seeded(), record(tmp_path / "a.h5", lambda: a(256, 32) @ a(32, 96)) as recorded:
        call = call_of(recorded, "mm")
        judgement = Judge(recorded, None).judge(CallPair(call, None))
        wrong = judge_claim(recorded, call, recorded.tensor(call.outputs[0]) * 1.05)
    assert judgement.why is not None and "the others were not checked" in judgement.why.en
    assert wrong.verdict is Verdict.FAULT
    assert wrong.why is not None and "in part [" in wrong.why.en


def test_what_has_no_parts_is_judged_as_far_as_memory_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with seeded(), record(tmp_path / "a.h5", lambda: a(200, 50).tril()) as recorded:
        call = call_of(recorded, "tril")
        assert Judge(recorded, None).judge(CallPair(call, None)).verdict is Verdict.NORMAL
        assert judge_claim(recorded, call, torch.ones(200, 50)).verdict is Verdict.FAULT
        monkeypatch.setattr(pieces, "MOST_BYTES", 1 << 10)
        judgement = Judge(recorded, None).judge(CallPair(call, None))
    assert judgement.verdict is Verdict.UNKNOWN
    assert judgement.why is not None and "too large" in judgement.why.en


def test_an_output_that_has_no_parts_is_named_and_not_called_normal(tmp_path: Path) -> None:
    def program() -> None:
        source, weight = a(16, 4, 12, 12).requires_grad_(), a(8, 2, 3, 3).requires_grad_()
        functional.conv2d(source, weight, groups=2).sum().backward()

    with seeded(), record(tmp_path / "a.h5", program) as recorded:
        judgement = Judge(recorded, None).judge(CallPair(call_of(recorded, "convolution_backward"), None))
    assert judgement.verdict is Verdict.UNKNOWN
    assert judgement.why is not None and "output/output_1: too large to be judged" in judgement.why.en


def test_a_wrong_item_of_a_list_is_found(tmp_path: Path) -> None:
    with seeded():
        lists = [[a(20, 50), a(6000), a(300)] for _ in range(2)]
    with record(tmp_path / "a.h5", lambda: torch._foreach_add_(*lists)) as recorded:
        call = call_of(recorded, "_foreach_add_.List")
        assert Judge(recorded, None).judge(CallPair(call, None)).verdict is Verdict.NORMAL
        for item in range(3):
            result = without_tail(recorded.tensor(call.outputs[item]))
            judgement = judge_claim(recorded, call, result, item)
            assert (judgement.verdict, judgement.sort) == (Verdict.FAULT, ErrorKind.TAIL)


def test_one_wrong_element_of_a_dropout_is_found(tmp_path: Path) -> None:
    source = a(100, 200)
    with (
        seeded(),
        record(tmp_path / "a.h5", lambda: torch.ops.aten.native_dropout(source, 0.2, True)) as recorded,
    ):
        call = call_of(recorded, "native_dropout")
        assert Judge(recorded, None).judge(CallPair(call, None)).verdict is Verdict.NORMAL
        wrong = judge_claim(recorded, call, one_element(recorded.tensor(call.outputs[0])))
    assert (wrong.verdict, wrong.sort) == (Verdict.FAULT, ErrorKind.RANDOM)


def test_small_tensors_are_judged_as_a_whole(tmp_path: Path) -> None:
    with seeded(), record(tmp_path / "a.h5", lambda: a(30, 30) @ a(30, 30)) as recorded:
        judgement = Judge(recorded, None).judge(CallPair(call_of(recorded, "mm"), None))
    assert judgement.verdict is Verdict.NORMAL and judgement.why is None


@pytest.mark.parametrize(
    ("program", "operator"),
    [
        (lambda: a(90, 60).t() * 2, "t"),
        (lambda: a(60, 90).view(90, 60) * 2, "view"),
        (lambda: [part * 2 for part in a(90, 60).split(30)], "split.Tensor"),
        (lambda: torch.ops.aten._unsafe_view(a(60, 90), [90, 60]) * 2, "_unsafe_view"),
        (lambda: a(90, 60).t(), "t"),  # nobody reads it
    ],
)
def test_views_of_large_tensors_are_known(program: Callable[[], Any], operator: str, tmp_path: Path) -> None:
    with seeded(), record(tmp_path / "a.h5", program) as recorded:
        call = call_of(recorded, operator)
        right = Judge(recorded, None).judge(CallPair(call, None))
        bent = replace(
            call, outputs=tuple(replace(each, shape=(5, 7), stride=(7, 1)) for each in call.outputs)
        )
        wrong = Judge(recorded, None).judge(CallPair(bent, None))
    assert right.verdict is Verdict.NORMAL
    assert (wrong.verdict, wrong.sort) == (Verdict.FAULT, ErrorKind.SHAPE)
