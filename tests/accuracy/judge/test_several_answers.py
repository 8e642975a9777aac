"""Where more than one result is right, each is called so; and what is none of them is not."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional

from torchferry.accuracy.file.reader import Record
from torchferry.accuracy.judge.judging import Judge
from torchferry.accuracy.judge.model import CallPair, ErrorKind, Judgement, Verdict

from .recorded import call_of, judge_claim, record, seeded
from .samples import Claims

FOUND = (Verdict.FAULT, Verdict.SUSPICIOUS)


def a(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    with seeded():
        return torch.randn(shape).to(dtype)


def recorded_one(path: Path, program: Callable[[], Any]) -> Record:
    return record(path / "a.h5", program)


def verdict(recorded: Record, operator: str) -> Judgement:
    return Judge(recorded, None).judge(CallPair(call_of(recorded, operator), None))


def test_signs_of_singular_vectors_are_free_but_not_each_for_itself(tmp_path: Path) -> None:
    with recorded_one(tmp_path, lambda: torch.linalg.svd(a(6, 6))) as recorded:
        call = call_of(recorded, "_linalg_svd")
        left, right = (recorded.tensor(call.outputs[number]) for number in (0, 2))
        signs = torch.tensor([1.0, -1.0, 1.0, -1.0, -1.0, 1.0])
        claims = Claims(recorded, [left * signs, signs[:, None] * right])
        outputs = [*call.outputs]
        for place, number in enumerate((0, 2)):
            outputs[number] = replace(outputs[number], offset=-1 - place, content=0, stride=(6, 1))
        both = Judge(claims, None).judge(CallPair(replace(call, outputs=tuple(outputs)), None))
        one = judge_claim(recorded, call, (left * signs).contiguous(), 0)
        longer = judge_claim(recorded, call, (left * 1.001).contiguous(), 0)
    assert both.verdict is Verdict.NORMAL
    assert one.verdict is Verdict.FAULT and one.why is not None and "is not the matrix" in one.why.en
    assert longer.verdict is Verdict.FAULT


DECOMPOSED: dict[str, tuple[Callable[[torch.Tensor], Any], str]] = {
    "eigh": (lambda matrix: torch.linalg.eigh(matrix + matrix.mT), "_linalg_eigh"),
    "eig": (torch.linalg.eig, "linalg_eig"),
    "qr": (torch.linalg.qr, "linalg_qr"),
    "geqrf": (torch.geqrf, "geqrf"),
    "lu": (torch.linalg.lu, "linalg_lu"),
    "lu_factor": (torch.linalg.lu_factor_ex, "linalg_lu_factor_ex"),
    "det": (torch.linalg.det, "_linalg_det"),
    "solve": (lambda matrix: torch.linalg.solve(matrix, torch.ones(6)), "_linalg_solve_ex"),
}


@pytest.mark.parametrize("name", DECOMPOSED)
@pytest.mark.parametrize("kind", ["usual", "singular", "equal values"])
def test_decompositions_are_right_as_a_whole(name: str, kind: str, tmp_path: Path) -> None:
    matrix = {"usual": a(6, 6), "singular": torch.ones(6, 6), "equal values": torch.eye(6)}[kind]
    if name == "solve" and kind == "singular":
        return
    program, operator = DECOMPOSED[name]
    with recorded_one(tmp_path, lambda: program(matrix)) as recorded:
        call = call_of(recorded, operator)
        assert verdict(recorded, operator).verdict is Verdict.NORMAL
        for number, output in enumerate(call.outputs):
            right = recorded.tensor(output).contiguous()
            if right.is_floating_point() and bool(right.any()):
                assert judge_claim(recorded, call, right * 1.01, number).verdict in FOUND, output.name


def test_results_that_nobody_wants_in_order(tmp_path: Path) -> None:
    source = a(50)
    with recorded_one(tmp_path, lambda: source.topk(5, sorted=False)) as recorded:
        call = call_of(recorded, "topk")
        values = recorded.tensor(call.outputs[0])
        assert verdict(recorded, "topk").verdict is Verdict.NORMAL
        assert judge_claim(recorded, call, values * 1.01).verdict is Verdict.FAULT


def test_values_are_no_positions(tmp_path: Path) -> None:
    """The largest whole numbers are not places where equal numbers lie."""
    source = torch.tensor([[True, False], [True, True]])
    with recorded_one(tmp_path, lambda: source.max(1)) as recorded:
        call = call_of(recorded, "max.dim")
        assert judge_claim(recorded, call, torch.tensor([False, True])).verdict is Verdict.FAULT
        assert judge_claim(recorded, call, torch.tensor([0, 1]), 1).verdict is Verdict.NORMAL


def test_every_place_of_the_largest_is_right_over_all_elements(tmp_path: Path) -> None:
    source = torch.tensor([[1.0, 3.0], [3.0, 2.0]])
    with recorded_one(tmp_path, source.argmax) as recorded:
        call = call_of(recorded, "argmax")
        verdicts = [judge_claim(recorded, call, torch.tensor(place)).verdict for place in (1, 2, 3, 4)]
    assert verdicts == [Verdict.NORMAL, Verdict.NORMAL, Verdict.FAULT, Verdict.FAULT]


def test_all_bits_of_whole_numbers_count(tmp_path: Path) -> None:
    large = torch.tensor([2**53, 2**62])
    with recorded_one(tmp_path, lambda: large + 1) as recorded:
        call = call_of(recorded, "add.Tensor")
        assert verdict(recorded, "add.Tensor").verdict is Verdict.NORMAL
        assert judge_claim(recorded, call, large).verdict is Verdict.FAULT


def test_numbers_next_to_each_other_are_those_of_the_dtype(tmp_path: Path) -> None:
    with recorded_one(
        tmp_path, lambda: torch.nextafter(a(30, dtype=torch.bfloat16), a(30, dtype=torch.bfloat16) + 1)
    ) as recorded:
        call = call_of(recorded, "nextafter")
        source = recorded.tensor(call.inputs[0])
        assert verdict(recorded, "nextafter").verdict is Verdict.NORMAL
        assert judge_claim(recorded, call, source).verdict is Verdict.FAULT


def test_the_largest_number_of_the_dtype_stands_for_infinity(tmp_path: Path) -> None:
    source = torch.tensor([math.inf, 1.0, math.nan])
    with recorded_one(tmp_path, lambda: torch.nan_to_num(source)) as recorded:
        call = call_of(recorded, "nan_to_num")
        assert verdict(recorded, "nan_to_num").verdict is Verdict.NORMAL
        assert judge_claim(recorded, call, torch.tensor([1e30, 1.0, 0.0])).verdict is Verdict.FAULT


def test_a_product_with_a_factor_is_a_product(tmp_path: Path) -> None:
    """Its errors are those of a sum; and it may be computed with fewer digits."""
    added, one, other = a(40, 40), a(40, 64), a(64, 40)
    with recorded_one(tmp_path, lambda: torch.addmm(added, one, other, beta=0.2, alpha=0.6)) as recorded:
        call = call_of(recorded, "addmm")
        backwards = sum(one[:, k : k + 1] * other[k] for k in reversed(range(64)))
        assert judge_claim(recorded, call, 0.2 * added + 0.6 * backwards).verdict is Verdict.NORMAL


def test_few_errors_are_not_taken_for_fewer_digits(tmp_path: Path) -> None:
    one, other = a(64), a(2, 64)[1]
    with recorded_one(tmp_path, lambda: one.dot(other)) as recorded:
        call = call_of(recorded, "dot")
        right = recorded.tensor(call.outputs[0])
        wrong = [judge_claim(recorded, call, right * factor).verdict for factor in (1.001, 0.999, 1.0005)]
    assert Verdict.FAULT in wrong and Verdict.NORMAL not in wrong


def test_complex_products_err_in_shares_of_the_whole(tmp_path: Path) -> None:
    """Where the real part is a small difference of two products, it has few right digits."""
    one = torch.complex(a(50), a(50) * 0.9)
    other = torch.complex(one.imag, one.real * (1 + 1e-4))
    with recorded_one(tmp_path, lambda: one * other) as recorded:
        call = call_of(recorded, "mul.Tensor")
        separately = torch.complex(
            one.real * other.real - one.imag * other.imag, one.real * other.imag + one.imag * other.real
        )
        assert judge_claim(recorded, call, separately).verdict is Verdict.NORMAL
        assert judge_claim(recorded, call, separately * 1.00001).verdict in FOUND


def test_a_number_that_is_nearly_too_large_may_become_infinite(tmp_path: Path) -> None:
    """Its last bits decide, and they come from rounding."""
    source = torch.full((1000,), 65519.99 / 1000)
    with recorded_one(tmp_path, lambda: torch.ops.aten.sum(source, dtype=torch.float16)) as recorded:
        call = call_of(recorded, "sum")
        verdicts = [
            judge_claim(recorded, call, torch.tensor(each).half()).verdict
            for each in (math.inf, 65504.0, -math.inf)
        ]
    assert verdicts == [Verdict.NORMAL, Verdict.NORMAL, Verdict.FAULT]


def test_numbers_too_small_for_the_dtype_may_be_zero(tmp_path: Path) -> None:
    source = a(50) * 1e-38
    with recorded_one(tmp_path, lambda: source * 0.5) as recorded:
        call = call_of(recorded, "mul.Tensor")
        result = recorded.tensor(call.outputs[0])
        flushed = torch.where(result.abs() < torch.finfo(torch.float32).tiny, 0.0, result)
        assert bool((flushed != result).any())
        assert judge_claim(recorded, call, flushed).verdict is Verdict.NORMAL


@pytest.mark.parametrize("operator", ["sqrt", "log", "reciprocal"])
def test_inputs_too_small_for_the_dtype_may_be_taken_for_zero(operator: str, tmp_path: Path) -> None:
    """As second moments of Adam: their roots are far from zero."""
    source = torch.cat([a(50).abs() * 1e-40, a(50).abs()])
    flushed = torch.where(source < torch.finfo(torch.float32).tiny, 0.0, source)
    function = getattr(torch, operator)
    with recorded_one(tmp_path, lambda: function(source)) as recorded:
        call = call_of(recorded, operator)
        assert judge_claim(recorded, call, function(flushed)).verdict is Verdict.NORMAL
        assert judge_claim(recorded, call, function(flushed) * 1.001).verdict is Verdict.FAULT


@pytest.mark.parametrize("high", [1, 2, 3, 10])
def test_few_different_whole_numbers_are_even(high: int, tmp_path: Path) -> None:
    with seeded(), recorded_one(tmp_path, lambda: torch.randint(0, high, (5000,))) as recorded:
        operator = recorded.calls[0].operator.removeprefix("aten::")
        assert verdict(recorded, operator).verdict is Verdict.NORMAL


DRAWN: dict[str, tuple[Callable[[], Any], torch.Tensor]] = {
    "cauchy_": (lambda: torch.empty(4000).cauchy_(1.0, 2.0), a(4000)),
    "log_normal_": (lambda: torch.empty(4000).log_normal_(0.5, 0.3), a(4000).exp()),
    "geometric_": (lambda: torch.empty(4000).geometric_(0.3), torch.full((4000,), 2.0)),
    "poisson": (lambda: torch.poisson(torch.full((4000,), 3.0)), torch.full((4000,), 2.0)),
    "rrelu_with_noise": (lambda: functional.rrelu(a(4000), training=True), a(4000)),
    "normal_": (lambda: torch.empty(4000).normal_(2.0, 0.0), a(4000)),
}


@pytest.mark.parametrize("operator", DRAWN)
def test_distributions(operator: str, tmp_path: Path) -> None:
    program, wrong = DRAWN[operator]
    with seeded(), recorded_one(tmp_path, program) as recorded:
        assert verdict(recorded, operator).verdict is Verdict.NORMAL
        assert judge_claim(recorded, call_of(recorded, operator), wrong).sort is ErrorKind.RANDOM


def test_a_dropout_that_overflows(tmp_path: Path) -> None:
    source = a(500).half() * 4e4
    with (
        seeded(),
        recorded_one(tmp_path, lambda: torch.ops.aten.native_dropout(source, 0.5, True)) as recorded,
    ):
        call = call_of(recorded, "native_dropout")
        assert bool(recorded.tensor(call.outputs[0]).isinf().any())
        assert verdict(recorded, "native_dropout").verdict is Verdict.NORMAL


def test_a_number_is_held_in_the_digits_of_the_result(tmp_path: Path) -> None:
    """0.1 in double precision is not 0.1 in single precision; a default is a number, too."""
    wide = torch.full((3,), 0.1, dtype=torch.float64)
    with recorded_one(tmp_path, lambda: torch.full((3,), 0.1, dtype=torch.float64)) as recorded:
        call = call_of(recorded, "full")
        assert judge_claim(recorded, call, wide).verdict is Verdict.NORMAL
        assert judge_claim(recorded, call, wide.float().double()).verdict in FOUND
    with recorded_one(tmp_path, lambda: functional.leaky_relu(a(400))) as recorded:
        call = call_of(recorded, "leaky_relu")
        assert Judge(recorded, None).judge(CallPair(call, None)).verdict is Verdict.NORMAL


def test_a_comparison_with_a_number_that_the_dtype_does_not_have(tmp_path: Path) -> None:
    """Devices round the number to the dtype, or do not."""
    source = torch.tensor([0.1, 0.3], dtype=torch.bfloat16)
    with recorded_one(tmp_path, lambda: source == 0.1) as recorded:
        call = call_of(recorded, "eq.Scalar")
        verdicts = [
            judge_claim(recorded, call, torch.tensor(each)).verdict
            for each in ([True, False], [False, False], [True, True])
        ]
    assert verdicts[:2] == [Verdict.NORMAL, Verdict.NORMAL]


def test_casts_of_numbers_that_do_not_fit(tmp_path: Path) -> None:
    """A device may take the largest number, or any other."""
    source = torch.tensor([1e10, math.nan, -3.7, 5.0])
    with recorded_one(tmp_path, lambda: source.to(torch.int32)) as recorded:
        call = call_of(recorded, "_to_copy")
        verdicts = [
            judge_claim(recorded, call, torch.tensor(each, dtype=torch.int32)).verdict
            for each in ([2**31 - 1, 0, -3, 5], [2**31 - 1, 0, -4, 5])
        ]
    assert verdicts == [Verdict.NORMAL, Verdict.FAULT]
