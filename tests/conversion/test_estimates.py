"""Severity and effort: decided by the rules and by data, not by reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conversion.rewriting import target
from torchferry.conversion.estimates import estimates, minutes_for
from torchferry.conversion.examples import rule_examples
from torchferry.conversion.project import Plan, examine_project
from torchferry.conversion.rule import all_rules
from torchferry.finding import Finding, Severity

SEVERITIES = {Severity.BLOCKER.value, Severity.DECISION.value, Severity.CHECK.value}


def found(folder: Path, to: str = "ascend", **files: str) -> list[Finding]:
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return list(examine_project(folder, Plan(target(to))).report("scan").findings)


def test_the_table_names_rules_and_severities_that_exist() -> None:
    known = {rule.id for rule in all_rules()} | {"default"}
    assert set(estimates()) <= known
    assert all(set(table) <= SEVERITIES for table in estimates().values())
    assert set(estimates()["default"]) == SEVERITIES


def test_what_is_done_or_only_noted_costs_nothing() -> None:
    assert minutes_for("TF103", Severity.DONE) == minutes_for("TF204", Severity.NOTE) == (0, 0)
    assert minutes_for("USER1", Severity.DECISION) == minutes_for("default", Severity.DECISION)


@pytest.mark.parametrize(
    ("name", "text", "rule", "severity"),
    [
        ("kernel__cu", "__global__ void f() {}\n", "TF801", Severity.BLOCKER),
        ("a__py", "from torch.utils.cpp_extension import CUDAExtension\n", "TF601", Severity.BLOCKER),
        ("a__py", "import cupy\n", "TF602", Severity.BLOCKER),
        ("a__py", "import flash_attn\n", "TF602", Severity.DECISION),
        ("a__py", "import torch\ntorch.cuda.get_arch_list()\n", "TF102", Severity.BLOCKER),
        ("a__py", "import torch\ntorch.nn.DataParallel(x)\n", "TF204", Severity.DECISION),
        ("requirements__txt", "cupy-cuda12x\n", "TF812", Severity.DECISION),
        ("a__py", "import torch\nx.cuda()\ntorch.ones(1).double()\n", "TF303", Severity.CHECK),
        ("a__yaml", "# cuda is unstable here\nkind: x\n", "TF802", Severity.NOTE),
        ("a__py", "import torch\nx = torch.ones(1).cuda()\n", "TF103", Severity.DONE),
    ],
)
def test_severity(tmp_path: Path, name: str, text: str, rule: str, severity: Severity) -> None:
    (finding,) = [item for item in found(tmp_path, **{name: text}) if item.rule == rule]
    assert finding.severity is severity
    assert (finding.effort, finding.effort_each) == minutes_for(rule, severity)


def test_a_kernel_that_triton_covers_is_a_decision_where_the_vendor_has_triton(tmp_path: Path) -> None:
    (finding,) = [item for item in found(tmp_path, a__py="import triton\n") if item.rule == "TF602"]
    assert finding.severity is Severity.DECISION


def test_what_a_rule_reports_has_a_title_that_starts_like_a_sentence_and_does_not_end_like_one() -> None:
    for rule in all_rules():
        for finding in rule_examples()[rule.id].findings(rule, target("ascend")):
            for title in finding.title:
                assert title and not title.endswith((".", "。")), (rule.id, title)
            for text in (finding.why, finding.do):
                assert not text.en or text.en.endswith((".", "!", "?")), (rule.id, text)
                assert not text.zh or text.zh.endswith(("。", "！", "？")), (rule.id, text)
            if finding.severity in (Severity.BLOCKER, Severity.DECISION) and rule.id != "TF904":
                assert finding.do.en, (rule.id, finding.title.en)
