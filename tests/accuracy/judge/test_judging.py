"""What is said of a result: right ones are normal, wrong ones have a name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional

from torchferry.accuracy.judge.judging import Judge
from torchferry.accuracy.judge.model import CallPair, ErrorKind, Verdict

from .recorded import call_of, judge_claim, record, seeded

bf16 = torch.bfloat16


def a(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    with seeded():
        return torch.randn(shape).to(dtype)


PROGRAMS: dict[str, tuple[Callable[[], Any], str]] = {
    "mm": (lambda: a(40, 64) @ a(64, 40), "mm"),
    "mm bf16": (lambda: a(40, 64, dtype=bf16) @ a(64, 40, dtype=bf16), "mm"),
    "add": (lambda: a(40, 40) + a(1, 40), "add.Tensor"),
    "softmax": (lambda: a(40, 40).softmax(1), "_softmax"),
    "layer norm bf16": (lambda: functional.layer_norm(a(40, 40, dtype=bf16), (40,)), "native_layer_norm"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_the_cpu_gives_is_normal(name: str, tmp_path: Path) -> None:
    program, operator = PROGRAMS[name]
    with record(tmp_path / "a.h5", program) as recorded:
        call = call_of(recorded, operator)
        assert Judge(recorded, None).judge(CallPair(call, None)).verdict is Verdict.NORMAL


def spoiled_at(place: int, value: float) -> Callable[[torch.Tensor], torch.Tensor]:
    def spoil(result: torch.Tensor) -> torch.Tensor:
        result.view(-1)[place] = value
        return result

    return spoil


def without_tail(result: torch.Tensor) -> torch.Tensor:
    result.view(-1)[-9:] = 0
    return result


def one_channel(result: torch.Tensor) -> torch.Tensor:
    result[:, 7] *= 1.01
    return result


def striped(result: torch.Tensor) -> torch.Tensor:
    result.view(-1)[::13] *= 1.05
    return result


MISTAKES: dict[ErrorKind, Callable[[torch.Tensor], torch.Tensor]] = {
    ErrorKind.NAN: spoiled_at(17, float("nan")),
    ErrorKind.INFINITE: spoiled_at(17, float("inf")),
    ErrorKind.POINTS: spoiled_at(17, 5.0),
    ErrorKind.ZERO: torch.zeros_like,
    ErrorKind.TAIL: without_tail,
    ErrorKind.CHANNEL: one_channel,
    ErrorKind.STRIPE: striped,
    ErrorKind.SIGN: torch.neg,
    ErrorKind.SCALE: lambda result: result * 1.01,
    ErrorKind.BIAS: lambda result: result + 0.25,
    ErrorKind.TRANSPOSED: lambda result: result.t().contiguous(),
    ErrorKind.SHIFTED: lambda result: result.roll(1, 1),
    ErrorKind.VALUES: lambda result: result.flip(0),
}


@pytest.mark.parametrize("dtype", [torch.float32, bf16], ids=str)
@pytest.mark.parametrize("sort", MISTAKES, ids=lambda sort: sort.value)
def test_a_mistake_has_a_name(sort: ErrorKind, dtype: torch.dtype, tmp_path: Path) -> None:
    with record(tmp_path / "a.h5", lambda: a(40, 64, dtype=dtype) @ a(64, 40, dtype=dtype)) as recorded:
        call = call_of(recorded, "mm")
        result = MISTAKES[sort](recorded.tensor(call.outputs[0]).clone())
        judgement = judge_claim(recorded, call, result.contiguous())
    assert (judgement.verdict, judgement.sort) == (Verdict.FAULT, sort)
    assert judgement.why is not None and judgement.output == "output/output_0"
    assert judgement.own_error is not None and judgement.limit is not None


def test_a_bias_that_was_not_added(tmp_path: Path) -> None:
    bias = a(40)
    with record(tmp_path / "a.h5", lambda: torch.addmm(bias, a(40, 64), a(64, 40))) as recorded:
        call = call_of(recorded, "addmm")
        result = recorded.tensor(call.outputs[0])
        missing, twice = (judge_claim(recorded, call, each) for each in (result - bias, result + bias))
    assert missing.sort is twice.sort is ErrorKind.ACCUMULATE
    assert missing.why is not None and "input/self was not added" in missing.why.en
    assert twice.why is not None and "twice" in twice.why.en


def test_an_argument_that_was_not_written_to(tmp_path: Path) -> None:
    state = a(40)
    before = state.clone()
    with record(tmp_path / "a.h5", lambda: state.mul_(0.9)) as recorded:
        judgement = judge_claim(recorded, call_of(recorded, "mul_.Tensor"), before)
    assert (judgement.verdict, judgement.sort, judgement.output) == (
        Verdict.FAULT,
        ErrorKind.UNWRITTEN,
        "output/self",
    )


def test_a_result_of_the_call_before(tmp_path: Path) -> None:
    with record(tmp_path / "a.h5", lambda: [a(40, 40).exp(), (a(40, 40) * 0.5).exp()]) as recorded:
        first, last = (call for call in recorded.calls if call.operator == "aten::exp")
        judge = Judge(recorded, None)
        judge.judge(CallPair(first, None))
        from dataclasses import replace

        stale = replace(last, outputs=(replace(first.outputs[0], content=0),))
        assert judge.judge(CallPair(stale, None)).sort is ErrorKind.STALE


def test_running_statistics_are_judged(tmp_path: Path) -> None:
    mean, variance = torch.zeros(5), torch.ones(5)
    with record(
        tmp_path / "a.h5", lambda: functional.batch_norm(a(6, 5, 4, 4), mean, variance, training=True)
    ) as recorded:
        call = call_of(recorded, "native_batch_norm")
        names = [tensor.name for tensor in call.outputs]
        place = names.index("output/running_var")
        right = recorded.tensor(call.outputs[place])
        wrong = judge_claim(recorded, call, 0.9 + (right - 0.9) * 95 / 96, place)
    assert (wrong.verdict, wrong.output) == (Verdict.FAULT, "output/running_var")


def truncated(exact: torch.Tensor) -> torch.Tensor:
    """To bfloat16, towards zero."""
    return (exact.float().view(torch.int32) & -65536).view(torch.float32).to(bf16)


def test_rounding_towards_zero_in_bfloat16(tmp_path: Path) -> None:
    """No element is more than one unit off: only all of them together tell."""
    one, other = a(60, 60, dtype=bf16), a(60, dtype=bf16)
    with record(tmp_path / "a.h5", lambda: one * other) as recorded:
        call = call_of(recorded, "mul.Tensor")
        wrong = judge_claim(recorded, call, truncated(one.double() * other.double()))
        right = judge_claim(recorded, call, (one.double() * other.double()).to(bf16))
    assert (wrong.verdict, wrong.sort) == (Verdict.FAULT, ErrorKind.PRECISION)
    assert right.verdict is Verdict.NORMAL


def test_fewer_digits_are_no_fault_in_products_alone(tmp_path: Path) -> None:
    def to_tf32(tensor: torch.Tensor) -> torch.Tensor:
        return ((tensor.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)

    one, other = a(40, 64), a(64, 40)
    with record(tmp_path / "a.h5", lambda: [one @ other, one * other.t()]) as recorded:
        product, elements = call_of(recorded, "mm"), call_of(recorded, "mul.Tensor")
        of_product = judge_claim(recorded, product, to_tf32(one) @ to_tf32(other))
        of_elements = judge_claim(recorded, elements, to_tf32(one) * to_tf32(other.t().contiguous()))
        scaled = judge_claim(recorded, product, (one @ other) * 1.0003)
    assert of_product.verdict is Verdict.REDUCED
    assert of_elements.verdict is Verdict.FAULT
    assert (scaled.verdict, scaled.sort) == (Verdict.FAULT, ErrorKind.SCALE)


def test_cancellation_is_no_fault(tmp_path: Path) -> None:
    """Sums that are nearly zero have few right digits, whoever computes them."""
    one = torch.cat([a(30, 50), -a(30, 50)], 1)
    other = torch.ones(100, 8) + 1e-6 * a(100, 8)
    with record(tmp_path / "a.h5", lambda: one @ other) as recorded:
        call = call_of(recorded, "mm")
        backwards = sum(one[:, k : k + 1] * other[k] for k in reversed(range(100)))
        assert isinstance(backwards, torch.Tensor)
        assert judge_claim(recorded, call, backwards).verdict is Verdict.NORMAL
        assert judge_claim(recorded, call, backwards + 1e-4).verdict is Verdict.FAULT


def test_among_equal_values_every_index_is_right(tmp_path: Path) -> None:
    source = torch.tensor([[1.0, 3.0, 3.0, 2.0]])
    with record(tmp_path / "a.h5", lambda: source.max(1)) as recorded:
        call = call_of(recorded, "max.dim")
        assert judge_claim(recorded, call, torch.tensor([2]), 1).verdict is Verdict.NORMAL
        assert judge_claim(recorded, call, torch.tensor([3]), 1).verdict is Verdict.FAULT


def test_dropout_is_held_against_its_mask(tmp_path: Path) -> None:
    source = a(50, 50)
    with (
        seeded(),
        record(tmp_path / "a.h5", lambda: torch.ops.aten.native_dropout(source, 0.2, True)) as recorded,
    ):
        call = call_of(recorded, "native_dropout")
        result = recorded.tensor(call.outputs[0])
        assert Judge(recorded, None).judge(CallPair(call, None)).verdict is Verdict.NORMAL
        assert judge_claim(recorded, call, result * 0.8).sort is ErrorKind.RANDOM


def test_random_numbers_are_held_against_their_distribution(tmp_path: Path) -> None:
    with seeded(), record(tmp_path / "a.h5", lambda: torch.empty(4000).normal_(2.0, 0.5)) as recorded:
        call = call_of(recorded, "normal_")
        assert Judge(recorded, None).judge(CallPair(call, None)).verdict is Verdict.NORMAL
        for wrong in (a(4000), torch.full((4000,), 2.0), 2.0 + a(4000)):
            assert judge_claim(recorded, call, wrong).sort is ErrorKind.RANDOM


def test_complex_random_numbers_have_two_parts(tmp_path: Path) -> None:
    def program() -> None:
        torch.empty(4000, dtype=torch.complex64).normal_(2.0, 0.5)
        torch.empty(4000, dtype=torch.complex64).uniform_(-1.0, 1.0)

    with seeded(), record(tmp_path / "a.h5", program) as recorded:
        for operator in ("normal_", "uniform_"):
            call = call_of(recorded, operator)
            assert Judge(recorded, None).judge(CallPair(call, None)).verdict is Verdict.NORMAL
            wrong = recorded.tensor(call.outputs[0]) * 1.5
            assert judge_claim(recorded, call, wrong).sort is ErrorKind.RANDOM


def test_a_call_that_cannot_be_made_again_is_unknown(tmp_path: Path) -> None:
    with record(tmp_path / "a.h5", lambda: a(3, 3) + 1) as recorded:
        from dataclasses import replace

        call = replace(call_of(recorded, "add.Tensor"), operator="vendor::add")
        judgement = Judge(recorded, None).judge(CallPair(call, None))
    assert judgement.verdict is Verdict.UNKNOWN
    assert judgement.why is not None and "vendor::add" in judgement.why.en


def test_a_shape_that_is_wrong(tmp_path: Path) -> None:
    with record(tmp_path / "a.h5", lambda: a(4, 6).sum(1)) as recorded:
        judgement = judge_claim(recorded, call_of(recorded, "sum.dim_IntList"), torch.zeros(6))
    assert (judgement.verdict, judgement.sort) == (Verdict.FAULT, ErrorKind.SHAPE)


def test_calls_that_differ_in_which_argument_is_missing(tmp_path: Path) -> None:
    """A weight without a bias, and a bias without a weight: each is judged by its own arguments."""
    source, other = a(6, 8), a(8)
    with record(
        tmp_path / "a.h5",
        lambda: [
            torch.native_layer_norm(source, (8,), other, None, 0.5),
            torch.native_layer_norm(source, (8,), None, other, 0.5),
        ],
    ) as recorded:
        judge = Judge(recorded, None)
        calls = [call for call in recorded.calls if call.operator == "aten::native_layer_norm"]
        assert [dict(call.arguments)["weight"] is None for call in calls] == [False, True]
        assert {judge.judge(CallPair(call, None)).verdict for call in calls} == {Verdict.NORMAL}


def test_a_gradient_computed_in_steps_is_normal_one_with_fewer_digits_is_not(tmp_path: Path) -> None:
    """CUDA's kernel rounds after each operation of a * (1 - b) * b; results near 0.5 hide what an error of b does."""
    with seeded():
        result = (0.3 * torch.randn(96, 512)).sigmoid().to(bf16)
    gradient = a(96, 512, dtype=bf16)
    with record(tmp_path / "a.h5", lambda: torch.ops.aten.sigmoid_backward(gradient, result)) as recorded:
        call = call_of(recorded, "sigmoid_backward")
        in_steps = gradient * (1 - result) * result
        right = judge_claim(recorded, call, in_steps)
        wrong = judge_claim(recorded, call, (in_steps.float() * 16).to(torch.float8_e4m3fn).to(bf16) / 16)
    assert right.verdict is Verdict.NORMAL
    assert wrong.verdict in (Verdict.SUSPICIOUS, Verdict.FAULT)


MISREAD: dict[str, tuple[Callable[[], Any], str, Callable[[], torch.Tensor], str]] = {
    "epsilon": (
        lambda: functional.layer_norm(a(40, 40), (40,)),
        "native_layer_norm",
        lambda: functional.layer_norm(a(40, 40), (40,), eps=1e-3),
        "as if eps were 0.001, not 1e-05",
    ),
    "form": (
        lambda: functional.gelu(a(40, 40)),
        "gelu",
        lambda: functional.gelu(a(40, 40), approximate="tanh"),
        "as if approximate were tanh, not none",
    ),
    "count": (
        lambda: a(40, 40).std(1),
        "std.correction",
        lambda: a(40, 40).std(1, correction=0),
        "as if correction were 0, not 1",
    ),
}


@pytest.mark.parametrize("name", MISREAD)
def test_a_kernel_that_takes_an_argument_for_another_value(name: str, tmp_path: Path) -> None:
    program, operator, wrong, words = MISREAD[name]
    with record(tmp_path / "a.h5", program) as recorded:
        judged = judge_claim(recorded, call_of(recorded, operator), wrong())
    assert (judged.verdict, judged.sort) == (Verdict.FAULT, ErrorKind.MISREAD)
    assert judged.why is not None and words in judged.why.en


@pytest.mark.parametrize(
    ("dtype", "count", "factor", "verdict"),
    [
        (torch.float32, 512, 1.0, Verdict.NORMAL),
        (torch.float32, 512, 0.97, Verdict.SUSPICIOUS),  # the chance of that is 2e-7
        (torch.float32, 4096, 0.97, Verdict.FAULT),
        (torch.float32, 64, 0.97, Verdict.NORMAL),  # too few to tell
        (bf16, 40_000, 1.0, Verdict.NORMAL),  # the largest that there is below 1 comes before it
        (bf16, 4096, 0.97, Verdict.FAULT),
    ],
)
def test_random_numbers_that_end_before_their_range(
    dtype: torch.dtype, count: int, factor: float, verdict: Verdict, tmp_path: Path
) -> None:
    with seeded(), record(tmp_path / "a.h5", lambda: torch.empty(count, dtype=dtype).uniform_()) as recorded:
        call = call_of(recorded, "uniform_")
        claimed = recorded.tensor(call.outputs[0]) * factor
        assert judge_claim(recorded, call, claimed).verdict is verdict


def _linear(x: torch.Tensor) -> torch.Tensor:
    return torch.addmm(a(40), x, a(64, 40))


@pytest.mark.parametrize(("first", "is_late"), [(13, True), (0, True), (40, False)])
def test_an_input_that_was_not_there_yet(first: int, is_late: bool, tmp_path: Path) -> None:
    with record(tmp_path / "a.h5", lambda: _linear(a(40, 64))) as recorded:
        x = a(40, 64)
        x[first:] = 0
        judged = judge_claim(recorded, call_of(recorded, "addmm"), _linear(x))
    if not is_late:
        assert judged.verdict is Verdict.NORMAL
        return
    assert (judged.verdict, judged.sort) == (Verdict.FAULT, ErrorKind.LATE)
    assert judged.why is not None
    assert f"as if input/mat1 were 0 from index {first} of its first dimension on" in judged.why.en


def test_rows_that_may_as_well_not_have_been_written(tmp_path: Path) -> None:
    with record(tmp_path / "a.h5", lambda: a(40, 64) @ a(64, 40)) as recorded:
        result = a(40, 64) @ a(64, 40)
        result[13:] = 0
        assert judge_claim(recorded, call_of(recorded, "mm"), result).sort is ErrorKind.TAIL
