"""However often a program calls operators, the capture of it stays small."""

from __future__ import annotations

import torch

from torchferry.readiness.capture.folding import MOST_SIGNATURES
from torchferry.readiness.capture.mode import CapturingMode


def captured(calls: int, grow: bool) -> CapturingMode:
    mode = CapturingMode()
    with mode.switched_on():
        x = torch.ones(1)
        for number in range(calls):
            _ = (x.expand(number) if grow else x).neg()
    return mode


def test_calls_with_the_same_arguments_from_the_same_line_are_one_row() -> None:
    (use,) = [use for use in captured(3000, grow=False).uses() if use.operator == "aten::neg"]
    assert (use.operator, use.calls, use.varied) == ("aten::neg", 3000, False)


def test_calls_with_ever_other_shapes_are_so_many_rows_and_none_is_lost() -> None:
    uses = [use for use in captured(3000, grow=True).uses() if use.operator == "aten::neg"]
    assert len(uses) == MOST_SIGNATURES
    assert sum(use.calls for use in uses) == 3000
    assert [use.varied for use in uses] == [False] * (MOST_SIGNATURES - 1) + [True]
