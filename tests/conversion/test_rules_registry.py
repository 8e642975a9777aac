"""What must hold for every rule."""

from __future__ import annotations

import importlib
import pkgutil
import re
import string
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import torchferry.conversion
from torchferry.conversion.rule import Rule, all_rules, register
from torchferry.conversion.target import Target
from torchferry.text import Text

_RULES = Path(torchferry.conversion.__file__).parent / "rules"
_TESTS = Path(__file__).parent / "rules"
_DOCS = Path(__file__).parents[2] / "docs"


def _modules() -> list[ModuleType]:
    found = pkgutil.walk_packages(torchferry.conversion.__path__, "torchferry.conversion.")
    return [importlib.import_module(module.name) for module in found]


def _texts() -> list[tuple[str, Text]]:
    """All module-level texts, also inside dictionaries and tuples."""
    found: list[tuple[str, Text]] = []

    def collect(place: str, value: object) -> None:
        if isinstance(value, Text):
            found.append((place, value))
        elif isinstance(value, dict):
            for key, item in value.items():
                collect(f"{place}[{key!r}]", item)
        elif isinstance(value, (tuple, list)):
            for index, item in enumerate(value):
                collect(f"{place}[{index}]", item)

    for module in _modules():
        for name, value in vars(module).items():
            collect(f"{module.__name__}.{name}", value)
    return found


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("text", [pytest.param(text, id=place) for place, text in _texts()])
def test_texts_have_the_same_placeholders_in_both_languages(text: Text) -> None:
    assert bool(text.en) is bool(text.zh)
    assert placeholders(text.en) == placeholders(text.zh)


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.id)
def test_every_rule_says_who_it_is(rule: Rule) -> None:
    assert re.fullmatch(r"TF\d{3}", rule.id)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.name)
    assert rule.summary.en
    assert rule.summary.zh
    assert placeholders(rule.summary.en) == placeholders(rule.summary.zh) == set()
    assert (rule.check is None) == (not rule.nodes)


def test_ids_and_names_are_unique_and_sorted() -> None:
    ids = [rule.id for rule in all_rules()]
    names = [rule.name for rule in all_rules()]
    assert ids == sorted(set(ids))
    assert len(set(names)) == len(names)


def test_an_id_can_not_be_taken_twice() -> None:
    with pytest.raises(ValueError, match=all_rules()[0].id):
        register(all_rules()[0])


@pytest.mark.parametrize("module", sorted(path.stem for path in _RULES.glob("[a-z]*.py")))
def test_every_rule_module_has_one_rule_its_documentation_and_its_tests(module: str) -> None:
    loaded = importlib.import_module(f"torchferry.conversion.rules.{module}")
    assert isinstance(loaded.RULE, Rule)
    assert loaded.__doc__ is not None
    assert loaded.__doc__.startswith(f"{loaded.RULE.id}")
    tests = _TESTS / f"test_{module}.py"
    assert tests.is_file(), f"{tests} is missing"
    text = tests.read_text("utf-8")
    assert text.startswith(f'"""{loaded.RULE.id}')
    assert "def test_noop" in text


def test_no_rule_names_a_vendor() -> None:
    from torchferry.vendors.registry import vendor_names

    words = re.compile(rf"[\"'](?:{'|'.join(vendor_names())})[\"']")
    for path in _RULES.parent.rglob("*.py"):
        assert not words.search(path.read_text("utf-8")), path


def test_targets_are_frozen() -> None:
    assert Target.__dataclass_params__.frozen  # type: ignore[attr-defined]


def test_a_run_knows_every_rule_that_the_page_lists() -> None:
    """In a process that has imported no more than a run does: those of texts are registered outside of `rules`."""
    listed = re.findall(
        r"^\| `(TF\d{3})`", (_DOCS / "en" / "rules/index.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    code = (
        "import torchferry.conversion.project, torchferry.conversion.rule as rule\n"
        "print(*(item.id for item in rule.all_rules()))"
    )
    known = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert listed
    assert sorted(known) == sorted(listed)
