"""Short reports: what they show is what they were given, whatever stands in it."""

from __future__ import annotations

import io

from torchferry.report.formats import Options, Reports
from torchferry.report.page import Cell, Column, Page, Table, to_markdown, to_text
from torchferry.text import Text

NAME = Text("name", "名称")


def page(*rows: tuple[Cell, ...], left_out: int = 0) -> Page:
    table = Table(
        Text("Things", "事物"), (Column(NAME), Column(Text("calls", "调用"), is_number=True)), rows, left_out
    )
    return Page(
        Text("Title", "标题"), ((Text("a verdict", "结论"), "red"),), (table,), (Text("so it is", "如此"),)
    )


def test_an_empty_table_is_left_out() -> None:
    assert to_text(page(), Options("en")) == "a verdict\nnote: so it is\n"
    assert to_markdown(page(), Options("zh")) == "# 标题\n\n- 结论\n\n- 说明：如此\n"


def test_brackets_are_no_markup_and_escapes_are_shown() -> None:
    text = to_text(page((Cell("[red]x[/red]\x1b[31m\n\udcff"), Cell("1"))), Options("en"))
    assert "[red]x[/red]\\x1b[31m" in text
    assert "\\xff" in text


def test_rows_beyond_the_last_are_counted() -> None:
    assert "... and 7 more" in to_text(page((Cell("x"), Cell("1")), left_out=7), Options("en"))
    assert "……另有 7 条" in to_markdown(page((Cell("x"), Cell("1")), left_out=7), Options("zh"))


def test_cells_of_markdown() -> None:
    lines = to_markdown(page((Cell("a|b", is_code=True), Cell("1\n2"))), Options("en")).splitlines()
    assert lines[-3] == "| `a\\|b` | 1<br>2 |"
    assert "|---|---:|" in lines


def test_a_stream_that_has_no_chinese_gets_english() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, "ascii")
    reports: Reports[Page] = Reports({"text": "torchferry.report.page:to_text"})
    reports.show(page(), "text", Options("zh"), stream)
    assert raw.getvalue().startswith(b"a verdict")
