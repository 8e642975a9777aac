"""A pass makes another CUDA program of a module; the rules convert that; findings keep the user's line numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from torchferry.conversion.file import Conversion, FileJob, convert_text
from torchferry.conversion.rule import Proposal, Rule, RuleSet, all_rules
from torchferry.conversion.site import FileContext
from torchferry.finding import Kind
from torchferry.source.decode import decode
from torchferry.source.edits import Edit
from torchferry.text import Text

from .rewriting import target

BEFORE = """\
import torch
model = Net().cuda()
loss = step(model)
print(torch.cuda.memory_allocated())
"""


def _pass(text: str) -> Rule:
    """Puts a statement, whatever its effect, in front of the one that takes a step."""

    def restructure(context: FileContext) -> Iterator[Proposal]:
        if b"manual_seed_all" in context.module.data:
            return
        node = next(item for item in context.module.tree.body if item.lineno == 3)
        start = context.module.start(node)
        edit = Edit(start, start, text)
        yield context.propose(Kind.CHANGE, node, Text("seeded", "设种子"), edit)

    summary = Text("a pass for this test", "测试用")
    return Rule(id="TF799", name="test", summary=summary, triggers=("step",), restructure=restructure)


def _convert(rule: Rule, to: str = "ascend") -> Conversion:
    rules = tuple(item for item in all_rules() if not item.option)
    return convert_text(decode(BEFORE.encode()), "module.py", FileJob(target(to), RuleSet((*rules, rule))))


def test_the_rules_convert_what_a_pass_writes() -> None:
    conversion = _convert(_pass("torch.cuda.manual_seed_all(0)\n"))
    assert conversion.new_text == (
        "import torch\nimport torch_npu\nmodel = Net().npu()\ntorch.npu.manual_seed_all(0)\n"
        "loss = step(model)\nprint(torch.npu.memory_allocated())\n"
    )


def test_findings_are_at_the_users_lines() -> None:
    """What the rules make of the line that the pass has put in is no place of the user's program."""
    conversion = _convert(_pass("torch.cuda.manual_seed_all(0)\n"))
    assert [(item.line, item.col, item.before) for item in conversion.findings] == [
        (3, 1, "loss = step(model)"),
        (1, 1, ""),
        (2, 9, "Net().cuda()"),
        (4, 7, "torch.cuda.memory_allocated"),
    ]


def test_statements_may_move_into_a_new_block() -> None:
    conversion = _convert(_pass("if torch.cuda.manual_seed_all(0) is None:\n    "))
    assert conversion.new_text is not None
    assert "if torch.npu.manual_seed_all(0) is None:\n    loss = step(model)\n" in conversion.new_text
    ast.parse(conversion.new_text)


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        pytest.param("torch.cuda.manual_seed_all(\n", "", id="no Python"),
        pytest.param("torch.cuda.manual_seed_all(0); '''", "", id="swallows what follows"),
        pytest.param(
            "print(0)\n", "a second conversion would change line", id="does not know its own result"
        ),
    ],
)
def test_a_pass_that_goes_wrong_changes_nothing(written: str, reason: str) -> None:
    conversion = _convert(_pass(written))
    assert conversion.new_text is None and conversion.failure
    assert reason in conversion.failure
    assert all(item.kind is not Kind.CHANGE for item in conversion.findings)


def _waiting_pass(for_what: bytes) -> Rule:
    """Acts only where a text stands; says so where it does not."""

    def restructure(context: FileContext) -> Iterator[Proposal]:
        data, node = context.module.data, context.module.tree.body[0]
        if b"late = " in data:
            return
        if for_what not in data:
            yield context.propose(Kind.TODO, node, Text("can't", "不能"))
            return
        yield context.propose(
            Kind.CHANGE,
            node,
            Text("done", "完成"),
            Edit(len(data), len(data), "late = torch.cuda.memory_allocated()\n"),
        )

    summary = Text("a pass for this test", "测试用")
    return Rule(id="TF798", name="waits", summary=summary, triggers=("step",), restructure=restructure)


def test_a_pass_that_can_act_only_once_another_one_has() -> None:
    """Its turn comes before the other's, so it would act in a second conversion, and what it said would be false."""
    rules = [item for item in all_rules() if not item.option]
    rules += [_waiting_pass(b"manual_seed_all"), _pass("torch.cuda.manual_seed_all(0)\n")]
    job = FileJob(target("ascend"), RuleSet(rules))
    conversion = convert_text(decode(BEFORE.encode()), "module.py", job)
    assert conversion.new_text is not None
    assert conversion.new_text.endswith(
        "print(torch.npu.memory_allocated())\nlate = torch.npu.memory_allocated()\n"
    )
    assert [item.message.en for item in conversion.findings if item.rule == "TF798"] == ["done"]
    assert convert_text(decode(conversion.new_text.encode()), "module.py", job).new_text is None
