"""TF710: a training program for one card becomes one for many; its pieces have their tests in ../distributed."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.convert.distributed.programs import MAIN, script
from tests.convert.rewriting import VENDORS, run, target
from torchferry.convert.file import FileJob, convert_text
from torchferry.convert.rule import all_rules
from torchferry.convert.ruleset import RuleSet
from torchferry.convert.settings import Distributed, Settings
from torchferry.finding import Kind
from torchferry.source.decode import decode

EXAMPLES = Path(__file__).parents[3] / "examples" / "single_gpu"


def converted(source: str, to: str) -> str:
    """A script after the pass and all rules that are always on."""
    rules = RuleSet(rule for rule in all_rules() if rule.option in ("", "distributed"))
    job = FileJob(target(to), rules, settings=Settings(Distributed(MAIN)))
    conversion = convert_text(decode(source.encode()), MAIN, job)
    assert not conversion.failure
    return conversion.new_text or source


def test_noop_without_a_main_script() -> None:
    conversion = run(script(), "ascend", "distributed")
    assert not any(finding.rule == "TF710" for finding in conversion.findings)


def test_noop_in_a_module_that_the_script_does_not_import() -> None:
    job = FileJob(target("ascend"), RuleSet(all_rules()), settings=Settings(Distributed("other.py")))
    conversion = convert_text(decode(script().encode()), MAIN, job)
    assert not any(finding.rule == "TF710" for finding in conversion.findings)


@pytest.mark.parametrize("to", [*VENDORS, "portable"])
def test_every_target_gets_its_own_words(to: str) -> None:
    text = converted(script(), to)
    ast.parse(text)
    assert "cuda" not in text
    assert "nccl" not in text
    backend = target(to).backend
    assert (f'"{backend.word}"' if backend.word else backend.expression) in text
    if not target(to).is_portable:
        assert f"{target(to).vendor.torch_module}.set_device(local_rank)" in text


@pytest.mark.parametrize("to", [*VENDORS, "portable"])
def test_the_result_is_found_again(to: str) -> None:
    once = converted(script(), to)
    assert converted(once, to) == once


def test_a_line_can_be_silenced() -> None:
    source = script(end='torch.save({}, "x.pt")  # ferry: ignore[TF710]')
    assert '\ntorch.save({}, "x.pt")' in converted(source, "ascend")


def test_the_reason_is_one_finding() -> None:
    rules = RuleSet(rule for rule in all_rules() if rule.option in ("", "distributed"))
    job = FileJob(target("ascend"), rules, settings=Settings(Distributed(MAIN)))
    conversion = convert_text(decode(script(loader="loader = batches()").encode()), MAIN, job)
    (finding,) = [finding for finding in conversion.findings if finding.rule == "TF710"]
    assert finding.kind is Kind.TODO
