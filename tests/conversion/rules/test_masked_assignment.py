"""TF731: assignments through a mask, as masked_fill_."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import VENDORS, expression

TARGETS = [*VENDORS, "portable"]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("x[x > 0] = 0", id="may be an array of NumPy"),
        pytest.param("x[torch.isnan(y)] = 0", id="a mask of something else may have another shape"),
        pytest.param("x[torch.isnan(x)] = y", id="values that are no number"),
        pytest.param("x[torch.isnan(x)] = True", id="a truth value"),
        pytest.param("x[torch.isnan(x), 0] = 0", id="more than the mask"),
        pytest.param("x[torch.isnan(x)] += 1", id="not an assignment"),
        pytest.param("y = x[torch.isnan(x)] = 0", id="two targets"),
        pytest.param("f(x)[torch.isnan(f(x))] = 0", id="evaluated twice"),
        pytest.param("x[(torch.isnan(x))] = 0", id="parentheses"),
        pytest.param("x[  # all\n  torch.isnan(x)] = 0", id="a comment"),
        pytest.param("x[torch.isnan(x, out=y)] = 0", id="another argument"),
        pytest.param("x.masked_fill_(torch.isnan(x), 0)", id="done already"),
    ],
)
def test_noop(line: str) -> None:
    assert expression(line, "ascend", "similar") == line


def test_not_without_the_option() -> None:
    assert expression("x[torch.isnan(x)] = 0", "ascend") == "x[torch.isnan(x)] = 0"


LINES = [
    ("x[torch.isnan(x)] = 0", "x.masked_fill_(torch.isnan(x), 0)"),
    ("x[ ~torch.isfinite(x) ] = -1.5", "x.masked_fill_(~torch.isfinite(x), -1.5)"),
    ("x[torch.isnan(x) | torch.isinf(x)] = 1e4", "x.masked_fill_(torch.isnan(x) | torch.isinf(x), 1e4)"),
    ("self.x[torch.isinf(self.x)] = 2", "self.x.masked_fill_(torch.isinf(self.x), 2)"),
]


@pytest.mark.parametrize(("before", "after"), LINES)
@pytest.mark.parametrize("to", TARGETS)
def test_filled(to: str, before: str, after: str) -> None:
    assert expression(before, to, "similar") == after


@pytest.mark.parametrize(("before", "after"), LINES[:3])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_both_forms_compute_the_same(before: str, after: str, dtype: str) -> None:
    import torch

    outcomes = []
    for line in (before, after):
        leaf = torch.tensor(
            [[1.0, torch.nan, -2.0], [torch.inf, 5.0, -torch.inf]], dtype=getattr(torch, dtype)
        )
        leaf.requires_grad_()
        x = leaf * 2
        exec(line, {"torch": torch, "x": x})
        x.nan_to_num().square().sum().backward()
        outcomes.append((x.detach(), leaf.grad))
    for one, other in zip(*outcomes, strict=True):
        assert torch.equal(one.nan_to_num(7), other.nan_to_num(7))
