"""findings.json, the canonical form of a report: written without timestamps, read back exactly."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import MISSING, fields
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, NoReturn, TypeVar, cast, get_args, get_origin, get_type_hints

from torchferry import __version__
from torchferry.errors import ReportError
from torchferry.finding import Severity
from torchferry.outcome import Report
from torchferry.report.findings.summary import summarize
from torchferry.report.findings.work_list import work_list
from torchferry.report.formats import Options
from torchferry.report.json import picked
from torchferry.text import Text

FORMAT = "torchferry-findings"
VERSION = 2
TAGS = (" ", "~", "+", "-")

_T = TypeVar("_T")


def render(report: Report, options: Options) -> bytes:
    """The report as findings.json; the same in every language."""
    return dump(report)


def dump(report: Report) -> bytes:
    """The report as findings.json, with one file and one finding a line so that versions can be compared."""
    summary, work = summarize(report), work_list(report)
    counts = ("sites", "automatic", "automatic_percent", "todo", "unsupported", "unknown", "findings")
    head = {
        "format": FORMAT,
        "version": VERSION,
        "tool": f"torchferry {__version__}",
        "command": report.command,
        "vendor": report.vendor,
        "project": report.project,
        "files_seen": report.files_seen,
        "summary": {
            **picked(summary, *counts, "files_changed", "files_failed", "by_kind"),
            "by_severity": {**work.places, Severity.DONE: work.done},
            "files_with_work": work.files,
            "minutes": work.minutes,
            "by_rule": {rule.rule: rule.total for rule in summary.by_rule},
        },
    }
    parts = [f'  "{key}": {_compact(value)}' for key, value in head.items()]
    files = [{**vars(record), "hunks": list(map(vars, record.hunks))} for record in report.files]
    parts.append(_array("files", files))
    findings: list[dict[str, Any]] = []
    for finding in report.findings:
        findings.append({})
        for name, value in vars(finding).items():
            findings[-1] |= (
                {name: value.en, f"{name}_zh": value.zh} if isinstance(value, Text) else {name: value}
            )
    parts.append(_array("findings", findings))
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
    root = _Node(tree, "", name)
    version = root.number("version")
    if version > VERSION:
        _fail(
            name,
            Text(
                "written by a newer TorchFerry (format {version}, this one reads up to {known}); upgrade torchferry",
                "由更新版本的 TorchFerry 生成（格式 {version}，当前最高支持 {known}）；请升级 torchferry",
            ).format(version=version, known=VERSION),
        )
    if version == 1:
        _bring_up(tree)
    return root.record(Report)


def _bring_up(tree: dict[str, Any]) -> None:
    """Version 1 had one sentence for all that is said about a place."""
    for finding in tree.get("findings") or ():
        if isinstance(finding, dict):
            for old, new in (("message", "title"), ("message_zh", "title_zh")):
                if old in finding:
                    finding.setdefault(new, finding.pop(old))


def _compact(value: object) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)


def _array(key: str, items: list[dict[str, Any]]) -> str:
    if not items:
        return f'  "{key}": []'
    return f'  "{key}": [\n' + ",\n".join("    " + _compact(item) for item in items) + "\n  ]"


class _Node:
    """A value of the tree that knows its place, so that an error can name it."""

    def __init__(self, value: object, place: str, name: str) -> None:
        self.value = value
        self.place = place
        self.name = name

    def record(self, kind: type[_T]) -> _T:
        """The record that an object holds, each field by its type."""
        types = _types(cast(Hashable, kind)).items()
        return kind(
            **{
                name: self._field(name, of)
                for name, of in types
                if self._holds(name) or name not in _defaults(cast(Hashable, kind))
            }
        )

    def _holds(self, key: str) -> bool:
        return isinstance(self.value, dict) and key in self.value

    def _field(self, key: str, kind: Any) -> Any:
        if kind is Text:
            return Text(self._text(key), self._text(f"{key}_zh"))
        if kind is int:
            return self.number(key)
        if get_origin(kind) is tuple:
            (inner, _) = get_args(kind)
            values = self._typed(key, list, Text("a list", "列表"))
            nodes = (_Node(each, f"{self._inside(key)}[{at}]", self.name) for at, each in enumerate(values))
            return tuple(node.diff_line() if get_origin(inner) else node.record(inner) for node in nodes)
        return self._choice(key, kind) if issubclass(kind, Enum) else self._text(key)

    def number(self, key: str) -> int:
        return self._typed(key, int, Text("a whole number", "整数"))

    def _text(self, key: str) -> str:
        return self._typed(key, str, Text("a string", "字符串"))

    def _choice(self, key: str, choices: type[Enum]) -> Enum:
        value = self._text(key)
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
                    " [tag, old, new]，标记为 ' '、'~'、'+'、'-' 之一",
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


@cache
def _defaults(record: Any) -> frozenset[str]:
    """The fields that a file may leave out: older ones do."""
    return frozenset(each.name for each in fields(record) if each.default is not MISSING)


@cache
def _types(record: Any) -> Mapping[str, Any]:
    return get_type_hints(record)


def _fail(name: object, problem: Text) -> NoReturn:
    raise ReportError(
        Text("{name}: {problem}", "{name}：{problem}").format(name=name, problem=problem)
    ) from None
