"""Programs that differ are told from operators that are wrong: other arguments, calls of one side, what is not known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional

from tests.accuracy.judge.recorded import record
from torchferry.accuracy.compare.comparing import compare_records
from torchferry.accuracy.compare.matching import EXTRA, NOTHING
from torchferry.accuracy.compare.model import RankComparison
from torchferry.accuracy.compare.programs import Programs, different_arguments
from torchferry.accuracy.judge.model import CallPair, ErrorKind, Judgement, Verdict
from torchferry.accuracy.model import Call, Kept, RecordHeader, TensorRecord, TensorRef
from torchferry.accuracy.report import sentences
from torchferry.cli.compare import exit_code
from torchferry.readiness.model import Special
from torchferry.text import Text


def a(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(3))


def compared(folder: Path, mine: Callable[[], Any], golden: Callable[[], Any]) -> RankComparison:
    with record(folder / "mine.h5", mine) as ours, record(folder / "golden.h5", golden) as theirs:
        return compare_records(ours, theirs)


def said(comparison: RankComparison) -> str:
    return sentences.headline(comparison).en


def norm(eps: float) -> Callable[[], Any]:
    return lambda: functional.layer_norm(a(8, 16), (16,), eps=eps).relu()


def test_another_epsilon_is_the_programs(tmp_path: Path) -> None:
    comparison = compared(tmp_path, norm(1e-3), norm(1e-5))
    assert said(comparison) == (
        "the programs differ here: aten::native_layer_norm has different arguments: eps=0.001 here, "
        "1e-05 in golden"
    )
    assert "test_programs.py:" in sentences.details(comparison)[0][1].en
    assert exit_code([comparison], check=False) == 1


def test_the_same_epsilon_is_not(tmp_path: Path) -> None:
    assert said(compared(tmp_path, norm(1e-5), norm(1e-5))).startswith("all ")


def test_a_number_of_groups_that_gives_other_shapes_is_not_normal(tmp_path: Path) -> None:
    def groups(count: int) -> Callable[[], Any]:
        return lambda: functional.group_norm(a(4, 8, 5), count)

    comparison = compared(tmp_path, groups(2), groups(4))
    assert "group=2 here, 4 in golden" in said(comparison)


def test_other_arguments_that_change_nothing_are_no_news(tmp_path: Path) -> None:
    """The leaky part of numbers that are all positive."""

    def leaky(slope: float) -> Callable[[], Any]:
        return lambda: functional.leaky_relu(a(8).abs() + 1, slope)

    assert said(compared(tmp_path, leaky(0.1), leaky(0.2))).startswith("all ")


def scaled(noise: float, by: float | None = None) -> Callable[[], Any]:
    """Divides by a number that was read from a tensor, or by one of the program's own."""

    data = a(64) * (1 + noise)

    def program() -> None:
        read = data.square().sum().item()
        data / (read if by is None else by)

    return program


def test_a_number_that_was_read_from_what_differs_is_inherited(tmp_path: Path) -> None:
    comparison = compared(tmp_path, scaled(1e-6), scaled(0.0))
    assert comparison.culprit is None and exit_code([comparison], check=False) == 0


def test_a_number_that_differs_by_more_than_what_was_read_is_the_programs(tmp_path: Path) -> None:
    comparison = compared(tmp_path, scaled(1e-6, 2.0), scaled(0.0, 3.0))
    assert said(comparison).startswith(
        "the programs differ here: aten::div.Tensor"
    ) and "other=2 here" in said(comparison)


def test_a_number_that_may_have_been_read_is_unexplained(tmp_path: Path) -> None:
    comparison = compared(tmp_path, scaled(0.5), scaled(0.0))
    assert "whether the programs differ" in said(comparison)
    assert exit_code([comparison], check=False) == 3


def clipped(is_clipped: bool, factor: float = 0.25) -> Callable[[], Any]:
    def program() -> None:
        data = a(32).exp()
        if is_clipped:
            data = data.mul(factor)
        data.sin()

    return program


@pytest.mark.parametrize(("mine", "side"), [(True, "mine"), (False, "golden")])
def test_a_call_of_one_side_that_changes_what_follows(mine: bool, side: str, tmp_path: Path) -> None:
    comparison = compared(tmp_path, clipped(mine), clipped(not mine))
    assert said(comparison) == f"the programs differ here: only {side} calls aten::mul.Tensor"
    assert any(f"calls only in {side}: aten::mul.Tensor (" in note.en for note in comparison.notes)
    assert exit_code([comparison], check=False) == 1


def test_a_call_of_one_side_that_changes_nothing_is_only_named(tmp_path: Path) -> None:
    comparison = compared(tmp_path, clipped(True, 1.0), clipped(False))
    assert comparison.culprit is None and exit_code([comparison], check=False) == 0
    assert any("calls only in mine: aten::mul.Tensor" in note.en for note in comparison.notes)


def test_programs_come_before_operators(tmp_path: Path) -> None:
    """All that differs is listed, the programs first."""

    def program(eps: float, approximate: str) -> Callable[[], Any]:
        def run() -> None:
            functional.gelu(functional.layer_norm(a(8, 16), (16,), eps=eps), approximate=approximate)

        return run

    comparison = compared(tmp_path, program(1e-3, "tanh"), program(1e-5, "none"))
    assert comparison.culprit is not None
    first = comparison.pairs[comparison.culprit].judgement
    assert (first.verdict, first.sort) == (Verdict.PROGRAM, ErrorKind.ARGUMENTS)
    assert any(
        "approximate=tanh here" in text.en
        for name, text in sentences.details(comparison)
        if name.en == "also"
    )


def moved(number: int, operator: str, given: TensorRecord, made: TensorRecord) -> Call:
    return Call(number, operator, 1, "forward", place="train.py:9", inputs=(given,), outputs=(made,))


def test_a_wrong_tail_of_what_was_just_copied_hints_at_the_copy() -> None:
    """And only there: a sum of nonsense has another cause."""
    host, there = (TensorRecord("input/self", "float32", (4,), (1,), device) for device in ("cpu", "npu:0"))
    copied = replace(there, content=7)
    tail = Judgement(Verdict.FAULT, ErrorKind.TAIL, why=Text("the last 2 are wrong", "最后 2 个错误"))
    pairs = [
        CallPair(moved(1, "aten::_to_copy", host, copied), None, EXTRA),
        CallPair(moved(2, "aten::relu", copied, replace(there, content=8)), None, NOTHING, judgement=tail),
        CallPair(
            moved(3, "aten::relu", copied, replace(there, content=9)),
            None,
            NOTHING,
            judgement=replace(tail, sort=ErrorKind.SCALE),
        ),
    ]
    header = RecordHeader(Kept.TENSORS, "train.py", "npu", "2.7.0")
    _, one, other = Programs(header, header).look(pairs)
    assert one.judgement.why is not None and other.judgement.why is not None
    assert "input/self was copied from the host earlier (call 1, train.py:9)" in one.judgement.why.en
    assert other.judgement.why == tail.why


def test_a_copy_that_was_late_is_to_blame_and_not_who_read_it() -> None:
    host, there = (TensorRecord("input/self", "float32", (4,), (1,), device) for device in ("cpu", "npu:0"))
    copied = replace(there, content=7)
    why = Text("output/output_0: as if input/self were 0 from index 2 of its first dimension on", "同上")
    late = Judgement(Verdict.FAULT, ErrorKind.LATE, why=why)
    pairs = [
        CallPair(moved(1, "aten::_to_copy", host, copied), None, EXTRA),
        CallPair(moved(2, "aten::exp", copied, replace(there, content=8)), None, NOTHING, judgement=late),
        CallPair(moved(3, "aten::exp", replace(there, content=5), there), None, NOTHING, judgement=late),
    ]
    header = RecordHeader(Kept.TENSORS, "train.py", "npu", "2.7.0")
    programs = Programs(header, header)
    _, one, other = programs.look(pairs)
    assert one.judgement.verdict is Verdict.INHERITED and one.judgement.why is not None
    assert "its input was not ready: call 1, train.py:9" in one.judgement.why.en
    assert other.judgement == late  # nothing was copied for it
    ((position, blamed),) = programs.later.items()
    assert (position, blamed.verdict, blamed.sort) == (0, Verdict.FAULT, ErrorKind.LATE)
    assert blamed.why is not None and "aten::exp (call 2) read input/self" in blamed.why.en


def call(**arguments: Any) -> Call:
    return Call(1, "aten::_softmax", 1, "forward", arguments=tuple(arguments.items()))


def test_what_says_only_how_a_kernel_works_does_not_count() -> None:
    mine = call(
        self=TensorRef(0), dim=1, half_to_float=True, device=Special("device", "npu:0"), allow_tf32=True
    )
    golden = call(self=TensorRef(0), dim=1, half_to_float=False, device=Special("device", "cuda:0"))
    assert different_arguments(mine, golden, is_complete=True) == []


def test_what_a_file_of_another_tool_leaves_out_is_not_known() -> None:
    mine, golden = call(self=TensorRef(0), dim=1), call(self=TensorRef(0))
    assert different_arguments(mine, golden, is_complete=False) == []
    (found,) = different_arguments(mine, golden, is_complete=True)
    assert str(found) == "dim=1 here, not given in golden"


def test_lists_are_told_item_by_item() -> None:
    (found,) = different_arguments(call(scalars=(0.1, 0.2)), call(scalars=(0.1, 0.3)), is_complete=True)
    assert str(found) == "scalars[1]=0.2 here, 0.3 in golden" and found.share == pytest.approx(1 / 3)
