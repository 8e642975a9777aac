"""Pairs that were kept as rows of numbers come back as they were."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from torchferry.accuracy.compare.model import Outline, PairRows, packed
from torchferry.accuracy.judge.model import CallPair, ErrorKind, Judgement, PairDifference, Verdict
from torchferry.accuracy.model import Call, Metrics, Statistics, TensorRecord
from torchferry.text import Text

METRICS = Metrics(
    8, 5, 0.1, math.inf, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, -0.9, 1.0, 1.1, 1.2, 1.3, 2, 3, 4, 5, 6, 7, -1
)  # fmt: skip
EQUAL = replace(METRICS, equal=8)
TENSOR = TensorRecord("input/self", "float32", (2, 4), (4, 1), "npu:0", "parameter")
SEEN = replace(
    TENSOR, name="output/output_0", statistics=Statistics(8, 0, 1, 2, -1.5, 2.5, 0.1, 0.2, 2**64 - 1)
)
CALL = Call(7, "aten::relu", 3, "forward", "Net", "layer.1", "net.py:3", "ReluBackward0")
WHY = Text("why", "为何")
PAIRS = [
    CallPair(CALL, CALL, "same", judgement=Judgement(Verdict.EQUAL)),
    CallPair(
        CALL,
        replace(CALL, number=9, operator="npu::relu"),
        "equivalent",
        (PairDifference(TENSOR, TENSOR, EQUAL, "...."), PairDifference(TENSOR, SEEN, EQUAL, "....")),
        (PairDifference(SEEN, SEEN, METRICS, "..#."), PairDifference(TENSOR, TENSOR, None, reason="shape")),
        Judgement(Verdict.FAULT, ErrorKind.TAIL, "output/output_0", 0.5, None, 1e-7, "float64", WHY),
    ),
    CallPair(None, CALL, "", judgement=Judgement(Verdict.UNKNOWN, why=WHY)),
    CallPair(
        replace(CALL, outputs=(TENSOR, SEEN)), None, "", judgement=Judgement(Verdict.NORMAL, own_error=0.0)
    ),
]


def test_they_come_back() -> None:
    rows = packed(PAIRS)
    assert list(rows) == PAIRS and rows == PAIRS
    assert rows[-1] == PAIRS[-1] and rows[1:3] == PAIRS[1:3]
    assert rows != PAIRS[:3] and rows != PAIRS[::-1]
    with pytest.raises(IndexError):
        rows[4]


def test_something_else_can_be_said_of_a_pair_later() -> None:
    rows = packed(PAIRS)
    said = Judgement(Verdict.PROGRAM, ErrorKind.ONE_SIDED, why=WHY)
    rows.rejudge(2, said)
    assert list(rows) == [*PAIRS[:2], replace(PAIRS[2], judgement=said), PAIRS[3]]


def test_outlines_say_the_same_as_whole_pairs() -> None:
    assert list(packed(PAIRS).outlines()) == [
        Outline(True, True, "same", Verdict.EQUAL, None, 7, 3, "aten::relu", "net.py:3"),
        Outline(True, True, "equivalent", Verdict.FAULT, 0.5, 7, 3, "aten::relu", "net.py:3"),
        Outline(False, True, "", Verdict.UNKNOWN, None, 7, 3, "aten::relu", "net.py:3"),
        Outline(True, False, "", Verdict.NORMAL, 0.0, 7, 3, "aten::relu", "net.py:3"),
    ]


def test_a_thousand_more_steps_take_a_few_bytes_each() -> None:
    """What differs from step to step is numbers alone."""
    import tracemalloc

    rows = PairRows()
    rows.append(PAIRS[1])
    tracemalloc.start()
    for step in range(1000):
        call = replace(CALL, number=step, step=step)
        rows.append(
            replace(
                PAIRS[1], mine=call, golden=call, judgement=replace(PAIRS[1].judgement, own_error=step / 7)
            )
        )
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size / 1000 < 1000  # of objects, one such pair is more than 3000
    assert rows[1000].judgement.own_error == 999 / 7
