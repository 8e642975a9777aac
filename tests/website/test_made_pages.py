"""The pages that are made while the site is built: one for each command, rule, vendor, and the schemas."""

from __future__ import annotations

import pytest
from tools.website import command_pages, rule_pages, schema_pages, vendor_pages

from torchferry.cli.commands import COMMANDS
from torchferry.conversion.examples import RuleExample, rule_examples
from torchferry.conversion.rule import all_rules
from torchferry.text import Language, Text
from torchferry.vendors.registry import vendor_names

LANGUAGES: list[Language] = ["en", "zh"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_command_has_a_page_with_its_options(language: Language) -> None:
    pages = command_pages.pages(language)
    assert set(pages) == {"commands/index.md", *(f"commands/{name}.md" for name in COMMANDS)}
    assert "--distributed" in pages["commands/convert.md"]
    guide = {"en": "Convert a project", "zh": "转换项目"}[language]
    assert f"[{guide}](../how-to/convert.md)" in pages["commands/convert.md"]
    assert "fix" in pages["commands/checkpoint.md"]


@pytest.mark.parametrize(("language", "kind"), [("en", "Example"), ("zh", "示例")])
def test_a_rules_page_shows_what_the_rule_does_for_each_target(language: Language, kind: str) -> None:
    rule = next(rule for rule in all_rules() if rule.id == "TF201")
    page = rule_pages.page(rule, rule_examples()["TF201"], language)
    assert page.startswith("# TF201 ") and f"\n## {kind}\n" in page
    for backend in ("hccl", "cncl", "tccl", "mccl", "xccl"):
        assert f'`"nccl"` → `"{backend}"`' in page
    assert "`# ferry: ignore[TF201]`" in page and "`--ignore TF201`" in page


def test_a_rule_behind_an_option_names_it() -> None:
    rule = next(rule for rule in all_rules() if rule.id == "TF720")
    assert "`--amp`" in rule_pages.page(rule, RuleExample(Text("Why.", "原因。")), "en")


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_vendor_has_a_page_with_its_releases_and_sources(language: Language) -> None:
    pages = vendor_pages.pages(language)
    assert set(pages) == {f"vendors/{name}.md" for name in vendor_names()}
    assert (
        "| 2.7.1.post11 | 2.7.1 | CANN 9.2.0 | 3.9, 3.10, 3.11, 3.12, 3.13 | x86_64, aarch64 |"
        in pages["vendors/ascend.md"]
    )
    unknown = {"en": "unknown", "zh": "未知"}[language]
    assert f"| 3.3 | 2.12 | {unknown} | {unknown} | {unknown} |" in pages["vendors/tecorigin.md"]
    assert all("MooreThreads/torch_musa" in page for name, page in pages.items() if "moore" in name)


def test_schemas_are_shown_with_all_their_fields() -> None:
    page = schema_pages.pages("en")["formats/schemas.md"]
    assert "## torchferry-findings\n" in page
    assert "| `findings[].line` | integer |" in page
    assert "| `results[].run.processes[].steps[].gradient_norm` | number \\| string \\| null |" in page
