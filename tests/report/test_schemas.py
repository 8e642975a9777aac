"""The published schemas: they are those of the tool, and refuse what is none of ours.

That reports fit them is checked wherever a test makes one: see tests/schemas.py and conftest.py.
"""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tools import make_schemas

from tests import schemas
from tests.report.samples import sample_report
from torchferry.report.findings import REPORTS

DOCS = Path(__file__).parents[2] / "docs"


def test_the_files_are_those_of_the_tool() -> None:
    files = {path.stem: path.read_text("utf-8") for path in schemas.FOLDER.iterdir()}
    assert files == {name: make_schemas.written(name) for name in make_schemas.FORMATS}, "run `make docs`"


@pytest.mark.parametrize("name", make_schemas.FORMATS)
def test_each_is_a_schema(name: str) -> None:
    Draft202012Validator.check_schema(json.loads((schemas.FOLDER / f"{name}.json").read_text("utf-8")))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_of_reports_lists_them(language: str) -> None:
    page = (DOCS / language / "formats/reports.md").read_text("utf-8")
    assert set(re.findall(r"\.\./schemas/([\w-]+)\.json", page)) == set(make_schemas.FORMATS)


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(REPORTS.render(sample_report(), "json"))
    return found


def test_a_report_fits(document: dict[str, Any]) -> None:
    assert schemas.wrong("torchferry-findings", document) == []


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("findings", [{}], "'rule' is a required property"),
        ("files_seen", "many", "'many' is not of type 'integer'"),
        ("command", "guess", "'guess' is not one of ['scan', 'convert']"),
        ("mood", "good", "Additional properties are not allowed"),
    ],
)
def test_what_does_not_fit(document: dict[str, Any], key: str, value: Any, problem: str) -> None:
    changed = {**copy.deepcopy(document), key: value}
    assert any(problem in found for found in schemas.wrong("torchferry-findings", changed))


def test_readers_allow_what_later_versions_add(document: dict[str, Any]) -> None:
    Draft202012Validator(make_schemas.schema("torchferry-findings")).validate({**document, "mood": "good"})
