"""The architecture page says how a rule is added: its example, put among the rules as it stands there, is one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from torchferry.conversion.rule import all_rules

_DOCS = Path(__file__).parents[2] / "docs"
_HEADINGS = {"en": "How to add a rule", "zh": "如何添加规则"}
_PROGRAM = "import torch\n\ntorch.cuda.example(1)\ntorch.cpu.example(1)\n"
_CONVERT = """
import json, sys
from pathlib import Path
import torchferry.conversion.rules
torchferry.conversion.rules.__path__.append(sys.argv[1])
from torchferry.conversion.project import Plan, examine_project
from torchferry.conversion.target import vendor_target
from torchferry.vendors.registry import get_vendor
outcome = examine_project(Path(sys.argv[2]), Plan(vendor_target(get_vendor("ascend")), select=("TF499",)))
print(json.dumps([
    (item.rule, item.kind.value, item.path, item.line, item.before, *item.message)
    for item in outcome.report("scan").findings
]))
"""


def _section(language: str) -> str:
    page = (_DOCS / language / "how-it-works/architecture.md").read_text(encoding="utf-8")
    return page.partition(f"\n## {_HEADINGS[language]}\n")[2].partition("\n## ")[0]


def _findings(tmp_path: Path, rule: str) -> list[Any]:
    """What a fresh process says of a program once the rule lies beside the others."""
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules/example.py").write_text(rule, encoding="utf-8")
    (tmp_path / "project").mkdir()
    (tmp_path / "project/train.py").write_text(_PROGRAM, encoding="utf-8")
    command = [sys.executable, "-c", _CONVERT, str(tmp_path / "rules"), str(tmp_path / "project")]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(found.stdout)  # type: ignore[no-any-return]


@pytest.mark.parametrize("language", _HEADINGS)
def test_the_example_of_the_page_finds_what_it_looks_for(tmp_path: Path, language: str) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", _section(language), re.DOTALL)
    assert _findings(tmp_path, example) == [
        [
            "TF499",
            "todo",
            "train.py",
            3,
            "torch.cuda.example(1)",
            "why this matters, and what to do",
            "为什么重要，以及如何处理",
        ]
    ]


@pytest.mark.parametrize("language", _HEADINGS)
def test_the_page_says_what_each_hundred_of_ids_is_about(language: str) -> None:
    listed = set(re.findall(r"^\| (TF\d)xx \|", _section(language), re.MULTILINE))
    assert {rule.id[:3] for rule in all_rules()} == listed
