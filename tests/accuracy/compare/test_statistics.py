"""Where two runs part, from statistics alone."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tests.accuracy.compare.calls import tensor
from torchferry.accuracy.compare.comparing import AS_THEY_COME, find_culprit
from torchferry.accuracy.compare.model import packed
from torchferry.accuracy.compare.statistics import distance, growth, judge_statistics
from torchferry.accuracy.judge.model import CallPair, ErrorKind, PairDifference, Verdict
from torchferry.accuracy.model import Call, Statistics

NORMAL = 1e-6  # what single precision explains


def statistics(size: float = 1.0, **changes: float) -> Statistics:
    """Of a thousand numbers of this size; the checksum is other for each size."""
    plain = Statistics(1000, 0, 0, 0, -3 * size, 3 * size, 0.01 * size, size, int(size * 2**40) & (2**63 - 1))
    return replace(plain, **changes)  # type: ignore[arg-type]


def pair(
    operator: str = "aten::mm",
    given: float | None = 0.0,
    out: float = 0.0,
    *,
    step: int = 1,
    module: str = "layer",
    dtype: str = "float32",
    mine: Statistics | None = None,
    golden: Statistics | None = None,
) -> CallPair:
    """Two calls whose inputs and outputs differ by these parts of their size; None: nothing is known of inputs."""

    def difference(
        name: str, amount: float, ours: Statistics | None, theirs: Statistics | None
    ) -> PairDifference:
        return PairDifference(
            tensor(name, dtype=dtype, statistics=ours or statistics(1.0 + amount)),
            tensor(name, dtype=dtype, statistics=theirs or statistics()),
            None,
        )

    inputs = () if given is None else (difference("input/self", given, None, None),)
    outputs = (difference("output/output_0", out, mine, golden),)
    made = Call(1, operator, step, "forward", "Net", module, outputs=tuple(each.golden for each in outputs))
    return CallPair(made, made, "same", inputs, outputs)


def verdicts(*pairs: CallPair) -> list[str]:
    return [each.judgement.verdict.value for each in judge_statistics(pairs)]


def test_distance() -> None:
    assert distance(statistics(), statistics()) == 0
    assert distance(statistics(1.001), statistics()) == pytest.approx(1e-3)
    assert distance(statistics(mean=0.51, checksum=1), statistics()) == pytest.approx(
        0.5
    )  # against the size, not the mean
    assert distance(statistics(nans=1, checksum=1), statistics()) == math.inf
    assert distance(statistics(), statistics(0.0)) == math.inf


def test_equal_bits_are_equal_whatever_else() -> None:
    assert verdicts(pair()) == ["equal"]


@pytest.mark.parametrize(
    ("dtype", "amount", "expected"),
    [
        ("float32", 1e-6, "normal"),
        ("float32", 1e-2, "suspicious"),
        ("bfloat16", 1e-2, "normal"),
        ("bfloat16", 0.2, "suspicious"),
        ("float16", 1e-3, "normal"),
        ("float16", 0.1, "suspicious"),
    ],
)
def test_what_a_dtype_explains(dtype: str, amount: float, expected: str) -> None:
    assert verdicts(pair("aten::gelu", 0.0, amount, dtype=dtype)) == [expected]


def test_products_of_matrices_may_take_fewer_digits() -> None:
    assert verdicts(pair("aten::mm", 0.0, 1e-3)) == ["reduced"]
    assert verdicts(pair("aten::gelu", 0.0, 1e-3)) == ["suspicious"]


def test_what_comes_in_is_not_held_against_an_operator() -> None:
    assert verdicts(pair("aten::gelu", 1e-2, 2e-2)) == ["inherited"]


def test_only_the_first_of_those_that_part_is_named() -> None:
    """Behind it all differs; a later one whose inputs look alike by chance is not blamed."""
    run = [pair("aten::mm", NORMAL, NORMAL), pair("aten::gelu", NORMAL, 0.2), pair("aten::mm", 0.2, 0.3)]
    run.append(pair("aten::native_layer_norm", NORMAL, 0.4))
    judged = list(judge_statistics(run))
    assert [each.judgement.verdict.value for each in judged] == [
        "normal",
        "suspicious",
        "inherited",
        "inherited",
    ]
    assert find_culprit(packed(judged), AS_THEY_COME) == 1


def test_a_second_fault_with_equal_inputs_is_seen() -> None:
    assert verdicts(pair("aten::gelu", 0.0, 0.2), pair("aten::sin", 0.0, 0.2)) == ["suspicious", "suspicious"]


def test_nan_of_its_own_and_nan_that_came_in() -> None:
    bad = statistics(nans=3, checksum=9)
    own = pair("aten::log", 0.0, mine=bad)
    came_in = pair("aten::mul.Tensor", mine=bad)
    came_in = replace(came_in, inputs=own.outputs)
    judged = list(judge_statistics([own, came_in]))
    assert [each.judgement.verdict for each in judged] == [Verdict.FAULT, Verdict.INHERITED]
    assert judged[0].judgement.sort is ErrorKind.NAN


def test_all_zero_is_a_fault() -> None:
    zero = Statistics(1000, 0, 0, 1000, 0.0, 0.0, 0.0, 0.0, 5)
    (judged,) = judge_statistics([pair("aten::gelu", 0.0, mine=zero)])
    assert (judged.judgement.verdict, judged.judgement.sort) == (Verdict.FAULT, ErrorKind.ZERO)


def test_random_numbers_are_not_drawn_alike() -> None:
    assert verdicts(pair("aten::native_dropout", 0.0, 0.05)) == ["normal"]


def test_growth_over_the_steps() -> None:
    steps = [pair("aten::mm", None, 1e-7, step=1), pair("aten::mm", None, 1e-4, step=2), pair(step=2)]
    assert [
        (step, pytest.approx(distance, rel=1e-3))
        for step, distance in growth(packed(judge_statistics(steps)).outlines())
    ] == [
        (1, 1e-7),
        (2, 1e-4),
    ]


class TestWatched:
    """Rows of `ferry watch`, of which no inputs are known."""

    def test_differences_that_grow_slowly_do_not_part(self) -> None:
        rows = [pair("module", None, 1e-6 * 2**step, step=step) for step in range(12)]
        assert set(verdicts(*rows)) <= {"normal", "inherited"}

    def test_a_jump_does(self) -> None:
        rows = [pair("module", None, 1e-6, step=step, module=name) for step in (1, 2) for name in "ab"]
        rows[3] = pair("module", None, 0.1, step=2, module="b")
        judged = list(judge_statistics(rows))
        assert find_culprit(packed(judged), AS_THEY_COME) == 3

    def test_a_gradient_that_is_rounding_alone_says_nothing(self) -> None:
        """As that of a bias before a batch norm; nor do the steps that Adam makes of it."""
        faint, other = statistics(1e-9), statistics(-2e-9)
        rows = [
            pair("gradient", None, 1e-6, module="fc"),
            pair("gradient", None, module="conv", mine=other, golden=faint),
            pair("parameter", None, 1e-2, module="conv"),
        ]
        assert verdicts(*rows) == ["normal", "normal", "normal"]
        assert verdicts(rows[0], pair("gradient", None, 0.5, module="conv"))[1] == "suspicious"

    def test_a_difference_that_the_next_module_takes_out_has_no_effect(self) -> None:
        """As a bias before a batch norm; but not if loss or gradients differ, too, or statistics are far off."""
        fine = [pair("loss", None, 1e-7, module=""), pair("gradient_norm", None, 1e-6, module="")]
        bias, statistics_of_norm = pair("module", None, 0.01), pair("buffer", None, 0.01)
        assert verdicts(bias, *fine, statistics_of_norm) == ["normal"] * 4
        assert verdicts(bias, pair("loss", None, 0.1), fine[1])[0] == "suspicious"
        assert verdicts(*fine, pair("buffer", None, 0.1))[-1] == "suspicious"


def test_memory_that_is_only_handed_on_says_nothing() -> None:
    """The kernels of recurrent layers leave parts of it as they were."""
    scratch = PairDifference(
        tensor("output/output_3", dtype="uint8", statistics=statistics(1.2)),
        tensor("output/output_3", dtype="uint8", statistics=statistics()),
        None,
    )
    forward = pair("aten::mkldnn_rnn_layer")
    given = replace(scratch, mine=replace(scratch.mine, name="input/workspace"))
    wrong = pair("aten::mkldnn_rnn_layer_backward", 0.0, 0.01)
    assert verdicts(
        replace(forward, outputs=(*forward.outputs, scratch)),
        replace(wrong, inputs=(*wrong.inputs, given)),
    ) == ["equal", "suspicious"]
    of_bytes = replace(scratch, mine=replace(scratch.mine, name="output/output_0"))
    assert verdicts(replace(forward, outputs=(of_bytes,))) == ["suspicious"]


def test_a_copy_that_one_side_makes_more_is_no_riddle() -> None:
    made = pair("aten::clone").mine
    assert verdicts(CallPair(made, None, "extra"), CallPair(made, None, "")) == ["normal", "unknown"]


def test_a_wrong_sign_shows() -> None:
    lopsided = {"minimum": -3.0, "maximum": 0.5, "mean": 1e-9}
    turned = {"minimum": -0.5, "maximum": 3.0, "mean": -1e-9, "checksum": 1}
    wrong = pair("aten::_log_softmax_backward_data", mine=statistics(**turned), golden=statistics(**lopsided))
    assert verdicts(wrong) == ["suspicious"]
