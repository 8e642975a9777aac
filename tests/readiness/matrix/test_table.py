"""The published table: both pages hold every model and every vendor, and what is not ready would be shown."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tools import make_readiness_table

from tests.readiness import samples
from tests.sim.models.names import GUIDE_NAMES
from torchferry.readiness.model import OperatorSupport
from torchferry.text import Language
from torchferry.vendors.registry import vendor_names


def _table(language: Language) -> list[list[str]]:
    text = (make_readiness_table.ROOT / "docs" / language / make_readiness_table.PAGE).read_text("utf-8")
    models = text.partition("\n## ")[0]
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in models.splitlines()
        if line.startswith("| ")
    ]


@pytest.mark.parametrize("language", make_readiness_table.LANGUAGES)
def test_the_page_has_every_model_and_every_vendor_in_order(language: Language) -> None:
    head, *rows = _table(language)
    assert [name.partition(" ")[0] for name in head[3:]] == vendor_names()
    assert [row[1] for row in rows] == list(GUIDE_NAMES)
    assert all(all(row) and len(row) == len(head) for row in rows)


def test_the_pages_say_the_same() -> None:
    english, chinese = (_table(language) for language in make_readiness_table.LANGUAGES)
    assert [row[:4] for row in english[1:]] == [row[:4] for row in chinese[1:]]


@pytest.mark.parametrize("language", make_readiness_table.LANGUAGES)
def test_what_is_not_ready_is_named(language: Language) -> None:
    found = samples.sample()[0]
    row = make_readiness_table.Row("toy", 12, (found,))
    page = make_readiness_table.page([row], language)
    for support in (OperatorSupport.FALLBACK, OperatorSupport.MISSING, OperatorSupport.LIMITED):
        for operator in found.operators(support):
            assert f"`{operator}`" in make_readiness_table.cell(found, language)
            assert f"| `{operator}` | {found.vendor} |" in page.partition("\n## ")[2]
    assert found.problems


@pytest.mark.parametrize("language", make_readiness_table.LANGUAGES)
def test_that_nothing_lacks_is_said_only_where_it_is_so(language: Language) -> None:
    found = replace(samples.sample()[0], complete=True)
    ready = replace(found, judgements=tuple(each for each in found.judgements if each.support.is_ready))
    sentence = make_readiness_table.NOTHING_LACKS.format(vendors=found.vendor).in_language(language)
    said = [
        sentence in make_readiness_table.page([make_readiness_table.Row("toy", 12, (each,))], language)
        for each in (ready, found, replace(ready, complete=False))
    ]
    assert said == [True, False, False]


def test_a_model_that_can_t_be_captured_is_said() -> None:
    rows = [
        make_readiness_table.Row("toy", 12, tuple(samples.one_device())),
        make_readiness_table.Row("broken", 0),
    ]
    assert "| 2 | broken | 0 | does not train |" in make_readiness_table.table(rows, "en")
