"""The files that Ascend's ms_fmk_transplt leaves: the log, and the lists.

They carry no time: two runs over the same project write the same bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from torchferry import __version__
from torchferry.finding import Kind
from torchferry.outcome import FileStatus, Report
from torchferry.report import words
from torchferry.report.lists import make_lists
from torchferry.report.safe import one_line
from torchferry.report.summary import WORST_FIRST, in_order, summarize
from torchferry.text import Language, Text

LOG = "msFmkTranspltlog.txt"

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


def make_files(report: Report, source: str, options: list[str], language: Language) -> dict[str, bytes]:
    """The log and the lists, by name."""
    return {LOG: _log(report, source, options, language), **make_lists(report, language)}


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
