"""`ferry rules`: the list, and the explanation of one rule."""

from __future__ import annotations

import pytest

from torchferry.cli.main import main
from torchferry.conversion.rule import all_rules


def test_the_list_names_every_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        rule.id for rule in all_rules()
    ]


def test_one_rule_is_explained_with_code_for_each_target(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "tf105"]) == 0
    printed = capsys.readouterr().out
    for said in (
        "A string is changed where it stands for a device",
        'device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")',
        'done: "cuda:0" → "npu:0"',
        'done: "cuda:0" → "mlu:0"',
        'decision: "cuda" (String that may name a device)',
        "decision: 5 min for the cause, 1 min for each place",
        "# ferry: ignore[TF105]",
    ):
        assert said in printed


def test_in_chinese(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "TF204", "--lang", "zh"]) == 0
    printed = capsys.readouterr().out
    assert "处理方法" in printed and "DistributedDataParallel" in printed
    assert "估计的工作量" in printed


def test_an_unknown_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "TF1"]) == 2
    assert "no rule TF1" in capsys.readouterr().err
