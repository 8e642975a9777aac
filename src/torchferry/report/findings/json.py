"""findings.json, the canonical form of a report: written without timestamps, read back exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn, TypeVar, cast

from torchferry import __version__
from torchferry.errors import ReportError
from torchferry.finding import Finding, Kind
from torchferry.outcome import FileRecord, FileStatus, Hunk, Report
from torchferry.report.findings.summary import FindingsSummary, summarize
from torchferry.report.formats import Options
from torchferry.text import Text, user_language

FORMAT = "torchferry-findings"
VERSION = 1
TAGS = (" ", "~", "+", "-")

_T = TypeVar("_T")
_Choice = TypeVar("_Choice", Kind, FileStatus)


def render(report: Report, options: Options) -> bytes:
    """The report as findings.json; the same in every language."""
    return dump(report)


def dump(report: Report) -> bytes:
    """The report as findings.json, with one file and one finding a line so that versions can be compared."""
    head = {
        "format": FORMAT,
        "version": VERSION,
        "tool": f"torchferry {__version__}",
        "command": report.command,
        "vendor": report.vendor,
        "project": report.project,
        "files_seen": report.files_seen,
        "summary": _summary(summarize(report)),
    }
    parts = [f'  "{key}": {_compact(value)}' for key, value in head.items()]
    parts.append(_array("files", [_file(record) for record in report.files]))
    parts.append(_array("findings", [_finding(finding) for finding in report.findings]))
    text = "{\n" + ",\n".join(parts) + "\n}\n"
    # A surrogate stands for a byte of a file name that is no UTF-8; its escape \udcff is what JSON writes too.
    return text.encode("utf-8", "backslashreplace")


def read_findings(path: Path) -> Report:
    """Read a findings.json, or say in one line what is wrong with it."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        _fail(
            path,
            Text(
                "no such file; 'ferry scan PROJECT --to VENDOR --format json -o findings.json' makes one",
                "文件不存在；可用 'ferry scan PROJECT --to VENDOR --format json -o findings.json' 生成",
            ),
        )
    except IsADirectoryError:
        _fail(path, Text("a folder; name the findings.json in it", "这是文件夹；请指定其中的 findings.json"))
    except OSError as error:
        reason = error.strerror or "unreadable"
        _fail(path, Text("can't be read ({reason})", "无法读取（{reason}）").format(reason=reason))
    return load(data, str(path))


def load(data: bytes, name: str = "findings.json") -> Report:
    """Read the bytes of a findings.json; the name is for error messages."""
    import json

    try:
        tree = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        _fail(
            name,
            Text(
                "not JSON; give the findings.json of a scan or convert",
                "不是 JSON；请提供 scan 或 convert 生成的 findings.json",
            ),
        )
    if not isinstance(tree, dict) or tree.get("format") != FORMAT:
        _fail(
            name,
            Text(
                "not a TorchFerry findings file; give the findings.json of a scan or convert",
                "不是 TorchFerry 的 findings 文件；请提供 scan 或 convert 生成的 findings.json",
            ),
        )
    return _read_report(_Node(tree, "", name))


def _compact(value: object) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)


def _array(key: str, items: list[dict[str, Any]]) -> str:
    if not items:
        return f'  "{key}": []'
    return f'  "{key}": [\n' + ",\n".join("    " + _compact(item) for item in items) + "\n  ]"


def _summary(summary: FindingsSummary) -> dict[str, Any]:
    return {
        "sites": summary.sites,
        "automatic": summary.automatic,
        "automatic_percent": summary.automatic_percent,
        "todo": summary.todo,
        "unsupported": summary.unsupported,
        "unknown": summary.unknown,
        "findings": summary.findings,
        "files_changed": summary.files_changed,
        "files_failed": summary.files_failed,
        "by_kind": {kind.value: count for kind, count in summary.by_kind.items()},
        "by_rule": {rule.rule: rule.total for rule in summary.by_rule},
    }


def _file(record: FileRecord) -> dict[str, Any]:
    return {
        "path": record.path,
        "status": record.status.value,
        "reason": record.reason,
        "hunks": [
            {"old_start": hunk.old_start, "new_start": hunk.new_start, "lines": hunk.lines}
            for hunk in record.hunks
        ],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "kind": finding.kind.value,
        "path": finding.path,
        "line": finding.line,
        "col": finding.col,
        "before": finding.before,
        "after": finding.after,
        "message": finding.message.en,
        "message_zh": finding.message.zh,
        "vendor": finding.vendor,
        "url": finding.url,
    }


class _Node:
    """A value of the tree that knows its place, so that an error can name it."""

    def __init__(self, value: object, place: str, name: str) -> None:
        self.value = value
        self.place = place
        self.name = name

    def text(self, key: str) -> str:
        return self._typed(key, str, Text("a string", "字符串"))

    def number(self, key: str) -> int:
        return self._typed(key, int, Text("a whole number", "整数"))

    def items(self, key: str) -> list[_Node]:
        values = self._typed(key, list, Text("a list", "列表"))
        return [
            _Node(value, f"{self._inside(key)}[{index}]", self.name) for index, value in enumerate(values)
        ]

    def choice(self, key: str, choices: type[_Choice]) -> _Choice:
        value = self.text(key)
        try:
            return choices(value)
        except ValueError:
            values = [choice.value for choice in choices]
            words = Text("one of " + ", ".join(values), "以下之一：" + "、".join(values))
            self._must_be(self._inside(key), words)

    def diff_line(self) -> tuple[str, str, str]:
        value = self.value
        is_line = isinstance(value, list) and len(value) == 3 and all(isinstance(part, str) for part in value)
        if not is_line or cast("list[str]", value)[0] not in TAGS:
            self._must_be(
                self.place,
                Text(
                    "[tag, old, new] with a tag out of ' ', '~', '+', '-'",
                    " [标记, 旧行, 新行]，标记为 ' '、'~'、'+'、'-' 之一",
                ),
            )
        tag, old, new = cast("list[str]", value)
        return tag, old, new

    def _typed(self, key: str, kind: type[_T], words: Text) -> _T:
        if not isinstance(self.value, dict):
            self._must_be(self.place, Text("an object", "对象"))
        if key not in self.value:
            missing = Text("{place} is missing; make the file again", "缺少 {place}；请重新生成该文件")
            _fail(self.name, missing.format(place=self._inside(key)))
        value = self.value[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            self._must_be(self._inside(key), words)
        return value

    def _must_be(self, place: str, words: Text) -> NoReturn:
        english = f"{place} must be {words.en}; make the file again"
        _fail(self.name, Text(english, f"{place} 应为{words.zh}；请重新生成该文件"))

    def _inside(self, key: str) -> str:
        return f"{self.place}.{key}" if self.place else key


def _read_report(root: _Node) -> Report:
    version = root.number("version")
    if version > VERSION:
        _fail(
            root.name,
            Text(
                "written by a newer TorchFerry (format {version}, this one reads up to {known}); upgrade torchferry",
                "由更新版本的 TorchFerry 生成（格式 {version}，当前最高支持 {known}）；请升级 torchferry",
            ).format(version=version, known=VERSION),
        )
    return Report(
        command=root.text("command"),
        vendor=root.text("vendor"),
        project=root.text("project"),
        files_seen=root.number("files_seen"),
        files=tuple(_read_file(node) for node in root.items("files")),
        findings=tuple(_read_finding(node) for node in root.items("findings")),
    )


def _read_file(node: _Node) -> FileRecord:
    return FileRecord(
        path=node.text("path"),
        status=node.choice("status", FileStatus),
        reason=node.text("reason"),
        hunks=tuple(_read_hunk(hunk) for hunk in node.items("hunks")),
    )


def _read_hunk(node: _Node) -> Hunk:
    return Hunk(
        old_start=node.number("old_start"),
        new_start=node.number("new_start"),
        lines=tuple(line.diff_line() for line in node.items("lines")),
    )


def _read_finding(node: _Node) -> Finding:
    return Finding(
        rule=node.text("rule"),
        kind=node.choice("kind", Kind),
        path=node.text("path"),
        line=node.number("line"),
        col=node.number("col"),
        before=node.text("before"),
        after=node.text("after"),
        message=Text(node.text("message"), node.text("message_zh")),
        vendor=node.text("vendor"),
        url=node.text("url"),
    )


def _fail(name: object, problem: Text) -> NoReturn:
    raise ReportError(f"{name}: {problem.in_language(user_language())}") from None
