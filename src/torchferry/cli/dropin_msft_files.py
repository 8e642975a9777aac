"""The files that Ascend's ms_fmk_transplt leaves: log, change list, lists of what is unsupported or risky.

They carry no time: two runs over the same project write the same bytes."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Iterator

from torchferry import __version__
from torchferry.finding import Finding, Kind
from torchferry.outcome import FileStatus, Report
from torchferry.report import words
from torchferry.report.safe import looks_like_formula, one_line, xml_text
from torchferry.report.summary import WORST_FIRST, in_order, summarize
from torchferry.text import Language, Text

LOG = "msFmkTranspltlog.txt"
CHANGES = "change_list.csv"
UNSUPPORTED_SHEET = "unsupported_op.xlsx"
_CHANGE_COLUMNS = ("File", "Start Line", "End Line", "Operation Type", "Message")
_ADVICE_COLUMNS = ("File", "Start Line", "End Line", "OP", "Tips")
_PRECISION_RULES = frozenset({"TF303"})  # other risks are about speed
_MAX_CELL = 32_767
_WIDTHS = (40, 10, 10, 40, 90)

_STARTED = Text(
    "TorchFerry {version} reads {source} for {vendor}", "TorchFerry {version} 读取 {source}，目标 {vendor}"
)
_OPTIONS = Text("options: {options}", "选项：{options}")
_NO_OPTIONS = Text("none", "无")
_FILE = Text("{path}: {status}; {counts}", "{path}：{status}；{counts}")
_FAILED = Text("{path}: {status}: {reason}", "{path}：{status}：{reason}")
_DONE = Text(
    "done: {seen} files seen, {changed} changed, {failed} not processed; {automatic} of {sites} places converted",
    "完成：扫描 {seen} 个文件，修改 {changed} 个，未处理 {failed} 个；{sites} 处中自动转换 {automatic} 处",
)
_LEVELS = {Kind.UNSUPPORTED: "ERROR", Kind.TODO: "WARNING", Kind.UNKNOWN: "WARNING", Kind.RISK: "WARNING"}

Row = tuple[str, int, int, str, str]


def make_files(report: Report, source: str, options: list[str], language: Language) -> dict[str, bytes]:
    """All files by name; lists of a sort that has no findings are left out, except those the guide promises."""
    findings = in_order(report.findings)
    unsupported = _advice(findings, language, Kind.UNSUPPORTED)
    unknown = _advice(findings, language, Kind.UNKNOWN)
    risks = [finding for finding in findings if finding.kind is Kind.RISK]
    precision = [finding for finding in risks if finding.rule in _PRECISION_RULES]
    performance = [finding for finding in risks if finding.rule not in _PRECISION_RULES]
    lists = {
        "unsupported_api.csv": unsupported,
        "unknown_api.csv": unknown,
        "api_precision_advice.csv": _advice(precision, language, Kind.RISK),
        "api_performance_advice.csv": _advice(performance, language, Kind.RISK),
    }
    return {
        LOG: _log(report, source, options, language),
        CHANGES: _csv(_CHANGE_COLUMNS, _change_rows(findings, language)),
        UNSUPPORTED_SHEET: _sheet([*unsupported, *unknown]),
        **{name: _csv(_ADVICE_COLUMNS, rows) for name, rows in lists.items() if rows},
    }


def _change_rows(findings: list[Finding], language: Language) -> Iterator[Row]:
    for finding in findings:
        if finding.kind is Kind.CHANGE:
            message = f"{_rewrite(finding)}: {finding.message.in_language(language)}"
            yield finding.path, finding.line, _last_line(finding), _operation(finding), message


def _operation(finding: Finding) -> str:
    if not finding.before:
        return "INSERT"
    return "MODIFY" if finding.after else "DELETE"


def _rewrite(finding: Finding) -> str:
    if not finding.before:
        return f'add "{finding.after.strip()}"'
    return (
        f'change "{finding.before}" to "{finding.after}"' if finding.after else f'delete "{finding.before}"'
    )


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
    """Rows in UTF-8 with the mark by which Excel knows it; no cell is a formula."""
    import csv

    output = io.StringIO()
    writer = csv.writer(output)
    writer.writerow(columns)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return output.getvalue().encode("utf-8-sig")


def _cell(value: str | int) -> str | int:
    if isinstance(value, int):
        return value
    text = xml_text(value)
    return "'" + text if looks_like_formula(text) else text


def _sheet(rows: list[Row]) -> bytes:
    from openpyxl import Workbook
    from openpyxl.utils import get_column_letter

    book = Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = "unsupported_op"
    sheet.append(list(_ADVICE_COLUMNS))
    for row in rows:
        sheet.append([value if isinstance(value, int) else xml_text(value)[:_MAX_CELL] for value in row])
    for cells in sheet.iter_rows(min_row=2):
        for cell in cells:
            if isinstance(cell.value, str):
                cell.data_type = "s"  # '=x' is code, not a formula
    for position, width in enumerate(_WIDTHS, start=1):
        sheet.column_dimensions[get_column_letter(position)].width = width
    sheet.freeze_panes = "A2"
    output = io.BytesIO()
    book.save(output)
    return _without_times(output.getvalue())


def _without_times(workbook: bytes) -> bytes:
    """The same workbook with the earliest time that a zip archive knows, so that equal content is equal bytes."""
    import re
    import zipfile

    output = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(workbook)) as old, zipfile.ZipFile(output, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "docProps/core.xml":
                data = re.sub(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", b"1980-01-01T00:00:00Z", data)
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o600 << 16
            new.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return output.getvalue()


def _log(report: Report, source: str, options: list[str], language: Language) -> bytes:
    lines = [one_line(line) for line in _log_lines(report, source, options, language)]
    return ("\n".join(lines) + "\n").encode("utf-8")


def _log_lines(report: Report, source: str, options: list[str], language: Language) -> Iterator[str]:
    def info(text: Text, **values: object) -> str:
        return f"[INFO] {text.format(**values).in_language(language)}"

    yield info(_STARTED, version=__version__, source=source, vendor=report.vendor)
    yield info(_OPTIONS, options=" ".join(options) or _NO_OPTIONS.in_language(language))
    counts = {file.path: file.counts for file in summarize(report).by_file}
    for record in report.files:
        status = words.STATUS[record.status].in_language(language)
        if record.status is FileStatus.FAILED:
            failed = _FAILED.format(path=record.path, status=status, reason=record.reason)
            yield f"[ERROR] {failed.in_language(language)}"
        else:
            said = _counts(Counter(counts.get(record.path, {})), language)
            yield info(_FILE, path=record.path, status=status, counts=said)
    for finding in in_order(report.findings):
        if finding.kind in _LEVELS:
            kind = words.KIND[finding.kind].in_language(language)
            message = finding.message.in_language(language)
            yield f"[{_LEVELS[finding.kind]}] {finding.path}:{finding.line}: {kind}: {finding.before}: {message}"
    summary = summarize(report)
    yield info(
        _DONE,
        seen=summary.files_seen,
        changed=summary.files_changed,
        failed=summary.files_failed,
        automatic=summary.automatic,
        sites=summary.sites,
    )


def _counts(counts: Counter[Kind], language: Language) -> str:
    return ", ".join(
        f"{words.KIND[kind].in_language(language)} {counts[kind]}" for kind in WORST_FIRST if counts[kind]
    )
