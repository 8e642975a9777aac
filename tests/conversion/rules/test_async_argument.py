"""TF115: the argument async of old code."""

from __future__ import annotations

import pytest

from tests.conversion.rewriting import expression, rewritten, target
from torchferry.conversion.file import FileJob
from torchferry.conversion.project import convert_file
from torchferry.conversion.rule import RuleSet, all_rules, prepared
from torchferry.outcome import FileStatus


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("async def f():\n    async with a as b: pass", id="the keyword"),
        pytest.param("print('x.cuda(async=True)')", id="a message"),
        pytest.param("# x.copy_(y, async=True)", id="a comment"),
    ],
)
def test_noop(source: str) -> None:
    assert expression(source) == source


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("y = x.cuda(async=True)", "y = x.npu(non_blocking=True)"),
        ("y = x.cuda(0, async = True)", "y = x.npu(0, non_blocking = True)"),
        ("y.copy_(x, async=(1 == 1))", "y.copy_(x, non_blocking=(1 == 1))"),
        ("y = x.cuda(\n    async=True)", "y = x.npu(\n    non_blocking=True)"),
        (
            "def move(x, async=False):\n    return x.cuda(async=async)\nmove(y, async=True)",
            "def move(x, non_blocking=False):\n    return x.npu(non_blocking=non_blocking)\nmove(y, non_blocking=True)",
        ),
    ],
)
def test_rewrites(before: str, after: str) -> None:
    assert expression(before) == after


def test_portable() -> None:
    source = "import torch\ny = x.cuda(async=True)\n"
    assert "y = x.to(DEVICE_TYPE, non_blocking=True)" in rewritten(source, "portable")


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(b"y = x.cuda(async=True)\ndownload(url, async=True)\n", id="also of another function"),
        pytest.param(b"y = x.cuda(async=args.async)\n", id="an attribute, which may come from a parser"),
        pytest.param(b"y = x.cuda(async=True)\nprint 'done'\n", id="other old code"),
    ],
)
def test_what_else_is_no_python_is_left(source: bytes) -> None:
    rules = RuleSet(prepared((rule for rule in all_rules() if not rule.option), target("ascend")))
    outcome = convert_file("m.py", source, FileJob(target("ascend"), rules))
    assert outcome.record.status is FileStatus.FAILED
    assert outcome.findings[0].rule == "TF901"
