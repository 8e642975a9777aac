"""What is said of an explanation, a code, a list of rules: as a page and as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from datetime import datetime

from torchferry.explanation.model import Explanation, FoundMessage, Frame
from torchferry.report.formats import Options, Reports
from torchferry.report.json import picked, plain
from torchferry.report.page import Cell, Column, Page, Table, lines
from torchferry.report.records import BAD, DOUBT, GOOD, QUIET, Grade
from torchferry.report.safe import in_both_languages, printable
from torchferry.text import Text
from torchferry.vendors.error_patterns import Effect, ErrorPattern

_PLACE_WORDS = re.compile(r"\{([\w|]+)\}")
_LONGEST = 300
_NO_RULE = Text("unknown message", "未知的错误信息")
_NOT_KNOWN_REMEDY = Text(
    "read the lines before it; later errors are mostly consequences",
    "查看其之前的各行；之后的错误多为后果",
)

_LOOK_BEFORE = Text(
    "the traceback contains only library code; read the lines before it; later errors in the log are "
    "mostly consequences",
    "调用栈中只有库的代码；查看其之前的各行；日志中之后的错误多为后果",
)
_LOOK_AT_LINE = Text(
    "check {file}:{line} and the values used there; later errors in the log are mostly consequences",
    "请查看 {file}:{line} 及其所用的数据；日志中之后的错误多为后果",
)


def cause_of(finding: FoundMessage) -> Text:
    """Why the message of a finding appears."""
    if finding.pattern is None:
        return _NO_RULE
    return _filled(finding.pattern.cause, finding)


def remedy_of(finding: FoundMessage) -> Text:
    """What to do about it."""
    if finding.pattern is None:
        frame = finding.frame
        if frame is None or frame.is_library:
            return _NOT_KNOWN_REMEDY if frame is None else _LOOK_BEFORE
        return _LOOK_AT_LINE.format(file=frame.file, line=frame.line)
    return _filled(finding.pattern.remedy, finding)


def _filled(text: Text, finding: FoundMessage) -> Text:
    meaning = finding.meaning or Text("", "")

    def fill(said: str, known: str) -> str:
        values = {**finding.groups, "meaning": known}
        return _PLACE_WORDS.sub(
            lambda match: next(filter(None, map(values.get, match[1].split("|"))), "…"), said
        )

    return Text(fill(text.en, meaning.en), fill(text.zh, meaning.zh))


def place_of(explanation: Explanation, finding: FoundMessage) -> str:
    """File and line of a finding, and its process."""
    name = explanation.logs[finding.source].name if explanation.logs else ""
    place = f"{name}:{finding.line}" if name else ""
    process = finding.writer or ("" if finding.rank is None else f"rank {finding.rank}")
    return " ".join(filter(None, [place, f"[{process}]" if process else ""]))


def clock(seconds: float) -> str:
    """A time of a log."""
    return datetime.fromtimestamp(seconds).isoformat(" ", "milliseconds")


def shown(text: str) -> str:
    """A line of a log, if need be only its beginning."""
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


FORMAT, VERSION = "torchferry-explanation", 1
REPORTS: Reports[Explanation] = Reports({"json": f"{__name__}:to_json"}, page=f"{__name__}:page_of")
CODES: Reports[Sequence[FoundMessage]] = Reports(
    {"json": f"{__name__}:codes_to_json"}, page=f"{__name__}:page_of_code"
)
RULES: Reports[Sequence[ErrorPattern]] = Reports(
    {"json": f"{__name__}:rules_to_json"}, page=f"{__name__}:page_of_rules"
)


def to_json(explanation: Explanation, options: Options) -> str:
    """Everything, for programs; the findings are in order, `cause` is the number of the first error or null."""
    content = {
        "format": FORMAT,
        "version": VERSION,
        "cause": None if explanation.cause is None else 0,
        "surfaced": _frame(explanation.surfaced),
        "findings": [_finding(finding) for finding in explanation.ordered],
        "failures": [
            {"log": failure.log, "rank": failure.rank, "finding": explanation.ordered.index(failure.finding)}
            for failure in explanation.failures
        ],
        "logs": [
            {
                **picked(log, "name", "rank", "lines", "bytes"),
                "findings_left_out": log.left_out,
                "lines_only_counted": log.only_counted,
                "damage": log.damage or None,
                "launcher": plain(log.launched),
            }
            for log in explanation.logs
        ],
        "unread": {printable(file): why for file, why in explanation.unread.items()},
    }
    return _written(content)


def codes_to_json(findings: Sequence[FoundMessage], options: Options) -> str:
    """What a code means, for programs."""
    return _written({"format": FORMAT, "version": VERSION, "findings": [_finding(each) for each in findings]})


def rules_to_json(patterns: Sequence[ErrorPattern], options: Options) -> str:
    """All rules as JSON."""
    wanted = ("id", "kind", "effect", "regex", "codes", "cause", "remedy", "source")
    rules = [picked(pattern, *wanted) for pattern in sorted(patterns, key=lambda pattern: pattern.id)]
    return _written({"format": FORMAT, "version": VERSION, "rules": rules})


def _written(content: object) -> str:
    return json.dumps(content, indent=2) + "\n"


def _finding(finding: FoundMessage) -> dict[str, object]:
    pattern = finding.pattern
    return {
        "rule": finding.id or None,
        "kind": None if pattern is None else pattern.kind,
        "effect": finding.effect.value,
        "certain": finding.is_certain,
        "spoken_of": finding.is_spoken_of,
        "survived": finding.is_survived,
        "cause": None if pattern is None else in_both_languages(cause_of(finding)),
        "remedy": None if pattern is None else in_both_languages(remedy_of(finding)),
        "meaning": None if finding.meaning is None else in_both_languages(finding.meaning),
        "source": None if pattern is None else pattern.source,
        "log": finding.source,
        "line": finding.line or None,
        "rank": finding.rank,
        "process": printable(finding.writer) or None,
        "time": None if finding.time is None else clock(finding.time),
        "count": finding.count,
        **picked(finding, "text", "before"),
        "frame": _frame(finding.frame),
    }


def _frame(frame: Frame | None) -> dict[str, object] | None:
    return None if frame is None else picked(frame, "file", "line", "function")


_OTHERS = 15  # findings that are listed besides the cause
TITLE = Text("Errors in the log", "日志中错误的含义")
_RULES = Text("Rules", "规则")
_NOTHING = Text(
    "no error that ended a program was found; lines read: {lines}", "未发现终止程序的错误；已读取 {lines} 行"
)
_NOT_READ = Text("no file could be read", "没有可读取的内容")
_CAUSE = Text("cause: {cause}", "原因：{cause}")
_REMEDY = Text("what to do: {remedy}", "处理方法：{remedy}")
_UNKNOWN = Text("the first error, which is unknown: {text}", "第一个错误（未知错误）：{text}")
_ONLY_CONSEQUENCES = Text(
    "only consequences of an error were found; the error itself is not in the given files (check the "
    "logs of other ranks and the host log)",
    "只发现了错误的后果；错误本身不在所读内容中（请查看其他 rank 的日志与主机日志）",
)
_WHERE = Text("where: {place}", "位置：{place}")
_FRAME = Text("in the program: {file}:{line}, in {function}", "程序位置：{file}:{line}，函数 {function}")
_LIBRARY_FRAME = Text(
    "in a library: {file}:{line}, in {function}", "库中位置：{file}:{line}，函数 {function}"
)
_SURFACED = Text(
    "surfaced at: {file}:{line}, in {function}; the error may have occurred earlier: {late} shows "
    "the true line",
    "显现于：{file}:{line}，函数 {function}；可能晚于真正出错的位置：{late} 可得到真正的位置",
)
_IF_IT_ENDED = Text(
    "if the program ended early anyway, check its exit code: 137 usually means that the host ran out "
    "of memory (see dmesg), 139 a crash in compiled code; neither writes to the program's log",
    "若程序仍提前结束，请查看其退出码：137 通常为主机内存不足（见 dmesg），139 为编译代码崩溃；"
    "二者都不会写入程序日志",
)
_FIRST = Text("rank {rank} failed first{time}", "rank {rank} 最先失败{time}")
_FIRST_LOG = Text("{log} has the first failure{time}", "{log} 中最先出现失败{time}")
_LAUNCHER = Text("the launcher saw rank {rank} end first{code}", "启动器观察到 rank {rank} 最先结束{code}")
_EXIT = Text(", exit code {code}", "，退出码 {code}")
_WENT_ON = Text(
    "{count} kinds of errors did not end the program, which continued for {lines} lines after the "
    "last of them",
    "有 {count} 种错误未终止程序：最后一个之后程序又输出了 {lines} 行",
)
_DOUBTFUL = Text(
    "{count} kinds of lines only look like errors, first: {place}: {text}",
    "有 {count} 种行只是看起来像错误，第一个在 {place}：{text}",
)
_ORDER_UNKNOWN = Text("which process failed first is unknown: {why}", "无法判断哪个进程最先失败：{why}")
_UNORDERED_LINES = Text(
    "several processes write to {log} without times, so the order of lines proves nothing",
    "多个进程写入 {log} 且没有时间，行的先后不能说明问题",
)
_NO_TIMES = Text("the lines of {log} have no times", "{log} 的行没有时间")
_ZONES = Text("some logs include the time zone, others do not", "部分日志的时间带时区，其他日志没有")
_CLOSE = Text(
    "the first two failures are {seconds} s apart: clocks of different machines may differ by more",
    "前两个失败仅相差 {seconds} 秒：不同机器的时钟误差可能更大",
)
_LINES = Text("The lines", "相关行")
_ELSE = Text("Other findings", "其他发现")
_PROCESSES = Text("Processes in the order of their failures", "各进程失败的先后")
_PROCESSES_UNORDERED = Text("Failed processes", "失败的进程")
_LINE = Column(Text("line", "行"), is_number=True)
_TEXT = Column(Text("text", "内容"))
_PLACE = Column(Text("place", "位置"), kind="code")
_TIMES = Column(Text("times", "次数"), is_number=True)
_SORT = Column(Text("kind", "类别"), is_whole=True)
_MEANING = Column(Text("meaning and remedy", "含义与处理方法"))
_TIME = Column(Text("time", "时间"), is_whole=True)
_RULE = Column(Text("rule", "规则"), is_whole=True, kind="code")
_SORTS = {
    Effect.ERROR: Grade(Text("error", "错误"), BAD),
    Effect.CONSEQUENCE: Grade(Text("consequence", "后果"), DOUBT),
    Effect.NOTICE: Grade(Text("notice", "提示"), QUIET, own_style="cyan"),
    Effect.HARMLESS: Grade(Text("harmless", "无害"), GOOD),
}
_UNREAD = Text("{file} can't be read: {why}", "无法读取 {file}：{why}")
_DAMAGED = Text(
    "{file} is damaged ({why}): only its first {lines} lines could be read",
    "{file} 已损坏（{why}）：只读到前 {lines} 行",
)
_ONLY_COUNTED = Text(
    "{count} lines with errors came after so many others that they were only counted",
    "{count} 行错误信息之前已有大量其他错误，因此只作计数",
)
_LEFT_OUT = Text("{count} more kinds of errors are not listed", "另有 {count} 种错误未保留")


def page_of(explanation: Explanation, options: Options) -> Page:
    """The cause and its remedy first, then what else was found."""
    cause = explanation.cause
    others = [finding for finding in explanation.ordered if finding is not cause]
    tables = [
        *([_processes(explanation)] if explanation.failures else []),
        _others(explanation, others, None if options.everything else _OTHERS),
    ]
    if cause is not None and cause.line:
        excerpt = [("", Cell(shown(text), "dim")) for text in cause.before]
        excerpt.append((str(cause.line), Cell(shown(cause.text), "bold")))
        tables.insert(0, Table(_LINES, (_LINE, _TEXT), excerpt))
    return Page(TITLE, tuple(_verdicts(explanation)), tuple(tables), tuple(_notes(explanation)))


def page_of_code(findings: Sequence[FoundMessage], options: Options) -> Page:
    """What a code means, by itself."""
    verdicts = [
        (line, style)
        for finding in findings
        for line, style in (
            (Text(f"{finding.text} ({finding.id}): ", f"{finding.text}（{finding.id}）："), ""),
            (_CAUSE.format(cause=_with_meaning(finding)), "red"),
            (_REMEDY.format(remedy=remedy_of(finding)), ""),
        )
    ]
    return Page(TITLE, tuple(verdicts))


def page_of_rules(patterns: Sequence[ErrorPattern], options: Options) -> Page:
    """All rules, as a table."""
    rows = tuple(
        (pattern.id, _SORTS[pattern.effect], lines((pattern.cause, pattern.remedy)))
        for pattern in sorted(patterns, key=lambda pattern: pattern.id)
    )
    return Page(TITLE, (), (Table(_RULES, (_RULE, _SORT, _MEANING), rows),))


def _with_meaning(finding: FoundMessage) -> Text:
    """The cause; for a code that its rule holds for among others, with what the code itself means."""
    cause, pattern = cause_of(finding), finding.pattern
    meaning = finding.meaning
    if meaning is None or pattern is None or len(pattern.codes) == 1 or meaning.en in cause.en:
        return cause
    return Text(f"{cause.en} ({meaning.en})", f"{cause.zh}（{meaning.zh}）")


def _verdicts(explanation: Explanation) -> Iterator[tuple[Text, str]]:
    cause = explanation.cause
    if not explanation.logs:
        yield _NOT_READ, "red"
        return
    if cause is None:
        yield _NOTHING.format(lines=f"{sum(log.lines for log in explanation.logs):,}"), "green"
        # What looks like an error, and ended nothing.
        survived = [finding for finding in explanation.ordered if finding.is_survived and finding.is_certain]
        if survived:
            lines_after = min(each.lines_after for each in survived)
            yield _WENT_ON.format(count=len(survived), lines=f"{lines_after:,}"), "yellow"
        doubtful = [each for each in explanation.ordered if not each.is_certain and not each.is_survived]
        if doubtful:
            place = place_of(explanation, doubtful[0])
            yield _DOUBTFUL.format(count=len(doubtful), text=shown(doubtful[0].text), place=place), "yellow"
        if all(log.name for log in explanation.logs):  # not for a message by itself
            yield _IF_IT_ENDED, ""
        return
    if cause.effect is Effect.CONSEQUENCE:
        yield _ONLY_CONSEQUENCES, "yellow"
    if cause.pattern is None:
        yield _UNKNOWN.format(text=shown(cause.text)), "red"
    else:
        yield _CAUSE.format(cause=_with_meaning(cause)), "red"
    yield _REMEDY.format(remedy=remedy_of(cause)), ""
    place = place_of(explanation, cause)
    if place:
        time = "" if cause.time is None else f", {clock(cause.time)}"
        yield _WHERE.format(place=place + time), ""
    frame, late = explanation.surfaced, "" if cause.pattern is None else cause.pattern.late
    if frame is not None:
        said = _SURFACED if late else _LIBRARY_FRAME if frame.is_library else _FRAME
        yield said.format(file=frame.file, line=frame.line, function=frame.function, late=late), ""
    yield from _first_process(explanation)


def _first_process(explanation: Explanation) -> Iterator[tuple[Text, str]]:
    unknown = _why_unknown(explanation)
    if unknown is not None:
        yield _ORDER_UNKNOWN.format(why=unknown), "yellow"
    elif explanation.failures:
        first = explanation.failures[0]
        time = "" if first.finding.time is None else f" ({clock(first.finding.time)})"
        if first.rank is None:
            yield _FIRST_LOG.format(log=explanation.logs[first.log].name, time=time), "bold"
        else:
            yield _FIRST.format(rank=first.rank, time=time), "bold"
    for launched in filter(None, (log.launched for log in explanation.logs)):
        code = Text("", "") if launched.exit_code is None else _EXIT.format(code=launched.exit_code)
        yield _LAUNCHER.format(rank=launched.rank, code=code), ""


def _why_unknown(explanation: Explanation) -> Text | None:
    """Why it is not known which process failed first; None if it is: only one has an error of its own, or all times
    are known."""
    found = [failure.finding for failure in explanation.failures]
    if sum(finding.effect is Effect.ERROR for finding in found) == 1 and found[0].effect is Effect.ERROR:
        return None
    is_one_log = len({finding.source for finding in found}) < 2
    for finding in found:
        if finding.time is None:
            log = explanation.logs[finding.source].name
            return _UNORDERED_LINES.format(log=log) if is_one_log else _NO_TIMES.format(log=log)
    return _ZONES if len({finding.has_zone for finding in found}) > 1 else None


def _processes(explanation: Explanation) -> Table:
    rows = []
    for failure in explanation.failures:
        finding = failure.finding
        said = Text(finding.text, finding.text) if finding.pattern is None else cause_of(finding)
        time = "" if finding.time is None else clock(finding.time)
        text = Text(shown(said.en), shown(said.zh))
        rows.append((place_of(explanation, finding), time, _SORTS[finding.effect], text))
    title = _PROCESSES if _why_unknown(explanation) is None else _PROCESSES_UNORDERED
    return Table(title, (_PLACE, _TIME, _SORT, _TEXT), rows)


def _others(explanation: Explanation, others: list[FoundMessage], most: int | None) -> Table:
    said = {explanation.cause.id} if explanation.cause is not None else set()
    rows = []
    for finding in others[:most]:
        is_said = finding.id in said  # elsewhere: its line is enough
        said.add(finding.id)
        line = shown(finding.text)
        text: str | Text = line if is_said else Text(line, line)
        if not is_said and finding.pattern is not None:
            text = lines((Text(line, line), _with_meaning(finding), remedy_of(finding)))
        place = place_of(explanation, finding)
        rows.append((place, str(finding.count), _SORTS[finding.effect], text))
    return Table(_ELSE, (_PLACE, _TIMES, _SORT, _MEANING), rows, len(others) - len(rows))


def _notes(explanation: Explanation) -> Iterator[Text]:
    for file, why in explanation.unread.items():
        yield _UNREAD.format(file=file, why=why)
    for log in explanation.logs:
        if log.damage:
            yield _DAMAGED.format(file=log.name, why=log.damage, lines=f"{log.lines:,}")
    first = [failure.finding for failure in explanation.failures[:2]]
    if len(first) == 2 and first[0].source != first[1].source and None not in (first[0].time, first[1].time):
        apart = abs((first[1].time or 0) - (first[0].time or 0))
        if apart < 1:
            yield _CLOSE.format(seconds=f"{apart:.3f}")
    only_counted = sum(log.only_counted for log in explanation.logs)
    if only_counted:
        yield _ONLY_COUNTED.format(count=f"{only_counted:,}")
    left_out = sum(log.left_out for log in explanation.logs)
    if left_out:
        yield _LEFT_OUT.format(count=left_out)
