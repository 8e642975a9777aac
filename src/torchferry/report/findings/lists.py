"""Lists for people who know Ascend's ms_fmk_transplt: its files, its columns.

They carry no time: two runs over the same project write the same bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchferry.finding import Finding, Kind
from torchferry.outcome import Report
from torchferry.report.csv import csv_lines
from torchferry.report.findings.summary import in_order
from torchferry.report.xlsx import Sheet, workbook
from torchferry.text import Language

CHANGES = "change_list.csv"
UNSUPPORTED_SHEET = "unsupported_op.xlsx"
NATIVE_OPS = "cuda_op_list.csv"
_CHANGE_COLUMNS = ("File", "Start Line", "End Line", "Operation Type", "Message")
ADVICE_COLUMNS = ("File", "Start Line", "End Line", "OP", "Tips")
_NATIVE_COLUMNS = ("File", "Api")
_PRECISION_RULES = frozenset({"TF303", "TF706"})  # other risks are about speed
_UNSUPPORTED_RULES = frozenset({"TF204"})
_NATIVE_RULE = "TF803"
_WIDTHS = (40, 10, 10, 40, 90)

Cell = str | int
Row = tuple[Cell, ...]


def make_lists(report: Report, language: Language) -> dict[str, bytes]:
    """All lists by file name; one without entries is left out, except those that the guide promises."""
    findings = in_order(report.findings)
    unsupported = _advice(findings, language, Kind.UNSUPPORTED)
    # What the device can't do and only the user can decide about is unsupported to readers of this list.
    undecided = [item for item in findings if item.rule in _UNSUPPORTED_RULES and item.kind is Kind.TODO]
    unknown = _advice(findings, language, Kind.UNKNOWN)
    risks = [finding for finding in findings if finding.kind is Kind.RISK]
    precision = [finding for finding in risks if finding.rule in _PRECISION_RULES]
    performance = [finding for finding in risks if finding.rule not in _PRECISION_RULES]
    native = [(finding.path, finding.before) for finding in findings if finding.rule == _NATIVE_RULE]
    lists = {
        "unsupported_api.csv": unsupported,
        "unknown_api.csv": unknown,
        "api_precision_advice.csv": _advice(precision, language, Kind.RISK),
        "api_performance_advice.csv": _advice(performance, language, Kind.RISK),
    }
    columns = list(zip(ADVICE_COLUMNS, _WIDTHS, strict=True))
    rows = [*unsupported, *_advice(undecided, language, Kind.TODO), *unknown]
    return {
        CHANGES: _csv(_CHANGE_COLUMNS, _change_rows(findings, language)),
        UNSUPPORTED_SHEET: workbook([Sheet("unsupported_op", columns, rows)]),
        **{name: _csv(ADVICE_COLUMNS, rows) for name, rows in lists.items() if rows},
        **({NATIVE_OPS: _csv(_NATIVE_COLUMNS, native)} if native else {}),
    }


def _change_rows(findings: list[Finding], language: Language) -> Iterator[Row]:
    for finding in findings:
        if finding.kind is not Kind.CHANGE:
            continue
        if not finding.before:
            operation, rewrite = "INSERT", f'add "{finding.after.strip()}"'
        elif finding.after:
            operation, rewrite = "MODIFY", f'change "{finding.before}" to "{finding.after}"'
        else:
            operation, rewrite = "DELETE", f'delete "{finding.before}"'
        message = f"{rewrite}: {finding.message.in_language(language)}"
        yield finding.path, finding.line, _last_line(finding), operation, message


def _advice(findings: list[Finding], language: Language, kind: Kind) -> list[Row]:
    return [
        (
            finding.path,
            finding.line,
            _last_line(finding),
            finding.before,
            finding.message.in_language(language),
        )
        for finding in findings
        if finding.kind is kind
    ]


def _last_line(finding: Finding) -> int:
    return finding.line + finding.before.count("\n")


def _csv(columns: tuple[str, ...], rows: Iterable[Row]) -> bytes:
    return "".join(csv_lines([columns, *rows])).encode("utf-8")
