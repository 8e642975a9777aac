"""TF708 (opt-in): copies that wait."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import expression


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("x = x.to(d, non_blocking=False)", id="it waits already"),
        pytest.param("x = x.to(d, non_blocking=flag)", id="the program decides"),
        pytest.param("x = x.to(d, True)", id="not by name"),
    ],
)
def test_noop(source: str) -> None:
    assert expression(source, "ascend", "blocking_copies") == source


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = x.cuda(non_blocking=True)", "x = x.npu(non_blocking=False)"),
        ("x = x.to(d, non_blocking=True)", "x = x.to(d, non_blocking=False)"),
        ("x = x.to(d, non_blocking=flag)", "x = x.to(d, non_blocking=flag)"),
    ],
)
def test_copies_wait(before: str, after: str) -> None:
    assert expression(before, "ascend", "blocking_copies") == after
