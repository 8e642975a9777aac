"""The formats that are lines of text: terminal, GitHub, Markdown, CSV."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest

from torchferry.finding import Kind
from torchferry.outcome import FileStatus, Report
from torchferry.report.findings import REPORTS
from torchferry.report.findings.text import MAX_LINES
from torchferry.report.findings.work_list import OPEN
from torchferry.report.formats import Options
from torchferry.report.streams import WIDEST, Styles
from torchferry.text import Text

from .samples import empty_report, hostile_report, large_report, one_finding, sample_report


def shown(report: Report, format_name: str, options: Options | None = None) -> str:
    return REPORTS.render(report, format_name, options).decode("utf-8-sig")


def test_text_says_the_numbers_and_the_places() -> None:
    text = shown(sample_report(), "text")
    assert "resnet-trainer → ascend" in text
    assert text.splitlines()[-1] == ("4 blockers, 3 decisions, 6 to check once in 7 files; 46 places done")
    assert "eval.py:8" in text
    assert "\x1b" not in text


@pytest.mark.parametrize("width", [60, 80, 200])
def test_text_fits_its_width_and_a_screen(width: int) -> None:
    from rich.cells import cell_len

    for report in (sample_report(), large_report(2000), hostile_report()):
        for language in ("en", "zh"):
            lines = shown(report, "text", Options(language, width=width)).splitlines()
            assert all(cell_len(line) <= min(width, WIDEST) for line in lines)
            assert len(lines) <= MAX_LINES


def test_text_in_chinese() -> None:
    text = shown(sample_report(), "text", Options("zh"))
    assert "阻塞项" in text
    assert "目标平台没有对应功能" in text


def test_verbose_text_has_every_place_with_its_line_and_what_to_do() -> None:
    report = sample_report()
    text = shown(report, "text", Options(everything=True))
    assert "--verbose" not in text
    for finding in report.findings:
        assert f"{finding.path}:{finding.line}:{finding.col}" in text
    said = one_finding(
        kind=Kind.TODO,
        after="",
        why=Text("It is slow.", ""),
        do=Text("Remove it.", ""),
        source="x = model.cuda()",
    )
    text = shown(said, "text", Options(everything=True))
    assert "Why: It is slow." in text
    assert "What to do: Remove it." in text
    assert "train.py:12:13  x = model.cuda()" in text


def test_text_groups_places_by_cause_with_the_recipe() -> None:
    report = one_finding(
        kind=Kind.TODO, do=Text("Start one process per card. Then wait.", ""), effort=90, effort_each=10
    )
    (finding,) = report.findings
    many = replace(report, findings=tuple(replace(finding, line=line) for line in (3, 8, 21)))
    assert shown(many, "text").splitlines()[2:5] == [
        "Decisions",
        f"   3 × {'The device is npu.':<75}  TF120  ~ 2 hours",
        "      train.py:3, train.py:8 and 1 more → Start one process per card",
    ]
    assert "1 file; 0 places done; about 2 hours" in shown(many, "text")


def test_text_has_colours_on_a_terminal_only() -> None:
    assert "\x1b[" in shown(sample_report(), "text", Options(width=80, terminal=True, styles=Styles.COLORS))


def test_text_of_hostile_code_is_shown_not_obeyed() -> None:
    text = shown(hostile_report(), "text", Options(width=200))
    assert "message [bold red]x[/bold red][/]" in text
    assert "a\\nb\\r\\nc\\td\\x1b[31m\\x00\\u2028\\u202e" in text
    assert not set(text) & set("\x1b\x00\r\u2028\u202e")


def test_text_of_nothing() -> None:
    assert "No code in this project uses CUDA." in shown(empty_report(), "text")
    assert "Nothing to decide; 1 place done" in shown(one_finding(), "text")


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"kind": Kind.UNSUPPORTED, "do": Text("Remove it.", "")},
            "::error file=train.py,line=12,col=13,title=TF120 The device is npu.::Remove it.",
        ),
        (
            {"kind": Kind.RISK, "path": "a,b:c%.py", "title": Text("50%\ndone\r", "")},
            "::notice file=a%2Cb%3Ac%25.py,line=12,col=13,title=TF120 50%25%0Adone%0D::50%25%0Adone%0D",
        ),
        ({}, "::notice title=TorchFerry::Nothing to decide; 1 place done"),
    ],
    ids=["unsupported", "escaping", "change"],
)
def test_github(changes: dict[str, object], line: str) -> None:
    assert shown(one_finding(**changes), "github").splitlines()[0] == line


def test_github_puts_the_worst_first_and_one_command_a_line() -> None:
    lines = shown(sample_report(), "github").splitlines()
    commands = [line.split(" ")[0] for line in lines]
    assert commands == sorted(commands, key=["::error", "::warning", "::notice"].index)
    hostile = hostile_report()
    failed = sum(record.status is FileStatus.FAILED for record in hostile.files)
    wanted = sum(finding.severity in OPEN for finding in hostile.findings)
    assert failed and shown(hostile, "github").count("\n") == wanted + failed + 1
    assert shown(empty_report(), "github") == ""


def test_markdown_tables_hold_together() -> None:
    for report in (sample_report(), hostile_report(), empty_report()):
        for language in ("en", "zh"):
            columns = 0
            for line in shown(report, "md", Options(language)).split("\n"):
                cells = line.replace("\\\\", "").replace("\\|", "").count("|")
                assert not line.startswith("|") or not columns or cells == columns
                columns = cells if line.startswith("|") else 0


@pytest.mark.parametrize(
    ("before", "cell"),
    [
        ("x = 1", "| `x = 1` |"),
        ("a | b", "| `a \\| b` |"),
        ("`q`", "| `` `q` `` |"),
        ("f(\n)", "| `f(\\n)` |"),
        ("", "|  |"),
    ],
)
def test_markdown_code(before: str, cell: str) -> None:
    row = next(
        line
        for line in shown(one_finding(before=before), "md").split("\n")
        if line.startswith("| `train.py:12:13`")
    )
    assert cell in row


def test_markdown_messages_are_text_and_links_are_web_addresses() -> None:
    message = Text("use <b>npu</b> [here](x)", "")
    text = shown(one_finding(title=message, url="https://example.com/a"), "md")
    assert "### use \\<b\\>npu\\</b\\> \\[here\\](x) (TF120 × 1)" in text
    assert "[Link](<https://example.com/a>)" in text
    assert "javascript" not in shown(hostile_report(), "md")


def csv_rows(report: Report, options: Options | None = None) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(shown(report, "csv", options), newline="")))


def test_csv_has_one_row_a_finding() -> None:
    report = sample_report()
    rows = csv_rows(report, Options("zh"))
    assert len(rows) == len(report.findings)
    assert rows[0]["title"] == report.findings[0].title.zh
    assert (rows[0]["path"], rows[0]["line"], rows[0]["kind"]) == ("train.py", "5", "change")
    assert csv_rows(empty_report()) == []
    assert REPORTS.render(report, "csv").startswith(b"\xef\xbb\xbf")


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t"])
def test_csv_holds_no_formulas(start: str) -> None:
    (row,) = csv_rows(one_finding(before=start + "SUM(A1)", path=start + ".py"))
    assert row["before"] == "'" + start + "SUM(A1)"
    assert row["path"] == "'" + start + ".py"


def test_csv_of_hostile_text() -> None:
    rows = csv_rows(hostile_report())
    assert len(rows) == len(hostile_report().findings)
    assert not any(value.startswith(("=", "+", "-", "@")) for row in rows for value in row.values())
