"""A new report: a record and a page of it, in every format, as the architecture page shows it."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import openpyxl
import pytest

from torchferry.cli.grammar import Parser
from torchferry.report.formats import FORMATS, Options, Reports
from torchferry.report.page import Cell, Column, Page, Table
from torchferry.text import Language, Text

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLE = re.compile(r"```python (?:report|command)\n(.*?)```", re.DOTALL)
PACKAGES = (
    "torchferry.report.findings",
    "torchferry.accuracy.report",
    "torchferry.readiness.report",
    "torchferry.perf.report",
    "torchferry.proof.report",
)


@pytest.fixture(params=["en", "zh"])
def example(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module that the page of this language shows."""
    page = (DOCS / request.param / "how-it-works/architecture.md").read_text("utf-8")
    code = "".join(EXAMPLE.findall(page))  # a report, and a command that makes it
    assert len(code.splitlines()) <= 60
    module = ModuleType("a_report_of_the_docs")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(code, vars(module))
    yield module


def survey(example: Any) -> Any:
    return example.Survey((example.Model("=small|<b>", 1.5), example.Model("large", 640.0)))


def render(example: Any, name: str, language: Language = "en") -> bytes:
    found: bytes = example.REPORTS.render(survey(example), name, Options(language))
    return found


def test_it_has_all_formats(example: Any) -> None:
    assert example.REPORTS.names == ("text", "json", "md", "csv", "xlsx", "html")


def test_text(example: Any) -> None:
    text = render(example, "text").decode()
    assert text.startswith("too large\n\nModels\n")
    assert " ".join(text.splitlines()[-1].split()) == "large 640.0 GB too large"
    assert "放得下" in render(example, "text", "zh").decode()


def test_markdown(example: Any) -> None:
    lines = render(example, "md").decode().splitlines()
    assert lines[0] == "# Memory of models"
    assert lines[-1] == "| `large` | 640.0 GB | too large |"
    assert lines[-2] == "| `=small\\|<b>` | 1.5 GB | fits |"


def test_csv(example: Any) -> None:
    rows = list(csv.reader(io.StringIO(render(example, "csv").decode("utf-8-sig"))))
    assert rows == [
        ["model", "memory", "verdict"],
        ["'=small|<b>", "1.5", "fits"],
        ["large", "640.0", "too large"],
    ]


def test_workbook(example: Any) -> None:
    book = openpyxl.load_workbook(io.BytesIO(render(example, "xlsx")))
    assert book.sheetnames == ["Verdict", "Models"]
    assert [[cell.value for cell in row] for row in book["Models"].iter_rows()][1:] == [
        ["=small|<b>", 1.5, "fits"],
        ["large", 640, "too large"],
    ]
    assert render(example, "xlsx") == render(example, "xlsx")


def test_page(example: Any) -> None:
    page = render(example, "html").decode()
    assert '<h2 lang="en">too large</h2><h2 lang="zh-CN">太大</h2>' in page
    assert "=small|&lt;b&gt;" in page and "<b>" not in page


def test_json(example: Any) -> None:
    content = json.loads(render(example, "json"))
    assert (content["format"], content["version"]) == ("torchferry-survey", 1)
    assert content["models"] == [
        {"name": "=small|<b>", "gigabytes": 1.5},
        {"name": "large", "gigabytes": 640.0},
    ]


def test_a_command_has_them_all(
    example: Any, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    parser = Parser("ferry survey", Text("", ""), example.ABOUT)
    example.add_arguments(parser)
    paths = [tmp_path / f"survey{FORMATS[name].suffix}" for name in example.REPORTS.names]
    files = [word for path in paths for word in ("-o", str(path))]
    words = ["--model", "=small|<b>", "--model", "large", "--format", "md", "--lang", "en"]
    assert example.run(parser.parse([*words, *files])) == 0
    assert capsysbinary.readouterr().out == (tmp_path / "survey.md").read_bytes()
    assert all(path.stat().st_size for path in paths)


def test_files_are_written_by_their_names(example: Any, tmp_path: Path) -> None:
    for name in example.REPORTS.names:
        path = tmp_path / f"survey{FORMATS[name].suffix}"
        example.REPORTS.write(survey(example), path)
        assert path.read_bytes() == render(example, name)


def test_several_tables_stand_below_each_other_in_csv() -> None:
    columns = (Column(Text("name", "名称")),)
    tables = tuple(Table(Text(title, title), columns, ((Cell("x"),),)) for title in ("One: 1", "Two" * 20))
    page = Page(Text("T", "T"), (), tables)
    renderers = {name: f"torchferry.report.page:to_{name}" for name in ("csv", "xlsx")}
    reports: Reports[Page] = Reports(renderers)
    rows = list(csv.reader(io.StringIO(reports.render(page, "csv").decode("utf-8-sig"))))
    assert rows == [["One: 1"], ["name"], ["x"], [], ["Two" * 20], ["name"], ["x"]]
    book = openpyxl.load_workbook(io.BytesIO(reports.render(page, "xlsx")))
    assert book.sheetnames == ["Verdict", "One  1", "Two" * 9 + " 2"]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_renderer_is_there(package: str) -> None:
    """They are named as text, so that they are imported when they are asked for."""
    reports: Reports[Any] = import_module(package).REPORTS
    for name, renderer in reports.renderers.items():
        module, _, function = renderer.partition(":")
        assert name in FORMATS and callable(getattr(import_module(module), function))
