"""An option that fails on a file costs only itself: the file is converted without it, and that is said."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.conversion.rewriting import target
from torchferry.conversion.file import FileJob
from torchferry.conversion.project import FileOutcome, convert_file
from torchferry.conversion.rule import Proposal, Rule, RuleSet, all_rules, prepared
from torchferry.conversion.site import FileContext, Site
from torchferry.finding import Kind
from torchferry.outcome import FileStatus
from torchferry.source.edits import Edit
from torchferry.text import Text

_TEXT = Text("", "")


def _raises(site: Site[ast.Call]) -> Iterator[Proposal]:
    raise KeyError("oops")
    yield


def _writes(text: str) -> Rule:
    def restructure(context: FileContext) -> Iterator[Proposal]:
        yield Proposal(Kind.CHANGE, 0, 0, _TEXT, (Edit(0, 0, text),))

    return Rule("TF798", "writes", _TEXT, triggers=("torch",), option="amp", restructure=restructure)


_RAISES = Rule(
    "TF799", "raises", _TEXT, triggers=("cuda",), option="drop_last", nodes=(ast.Call,), check=_raises
)


def _converted(*more: Rule) -> FileOutcome:
    plain = prepared((rule for rule in all_rules() if not rule.option), target("ascend"))
    return convert_file(
        "m.py", b"import torch\nx.cuda()\n", FileJob(target("ascend"), RuleSet([*plain, *more]))
    )


@pytest.mark.parametrize(
    ("rules", "options"),
    [
        pytest.param((_writes("(\n"),), ["--amp"], id="writes what does not parse"),
        pytest.param((_writes("y = 0\n"),), ["--amp"], id="writes again and again"),
        pytest.param((_RAISES,), ["--drop-last"], id="has a mistake"),
        pytest.param((_RAISES, _writes("(\n")), ["--amp", "--drop-last"], id="two that fail"),
    ],
)
def test_the_file_is_converted_without_the_option(rules: tuple[Rule, ...], options: list[str]) -> None:
    outcome = _converted(*rules)
    assert outcome.record.status is FileStatus.CHANGED
    assert outcome.new_data == b"import torch\nimport torch_npu\nx.npu()\n"
    told = [item for item in outcome.findings if item.rule == "TF905"]
    assert [item.kind for item in told] == [Kind.TODO] * len(options)
    assert [item.title.en for item in told] == [f"File converted without `{name}`" for name in options]


def test_a_mistake_in_an_option_is_told_to_the_user_as_one() -> None:
    (told,) = [item for item in _converted(_RAISES).findings if item.rule == "TF905"]
    assert "KeyError: 'oops' (please report this file)" in told.message.en
