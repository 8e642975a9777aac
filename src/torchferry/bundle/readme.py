"""The README of an archive: what happens, how to reproduce it in one command, what was expected and what came. No torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from torchferry.bundle.model import LOG, MACHINE, MANIFEST, README, RECORD, STATISTICS, IssueCase, LogExcerpt
from torchferry.readiness.cases.bench import outcome_sentence
from torchferry.report.anonymous import KIND_NAMES, PrivateKind
from torchferry.report.markdown import code, escape, prose, table
from torchferry.text import Language, Text

_Say = Callable[[Text], str]

_TITLE = Text("{operator} on {vendor}", "{vendor} 上的 {operator}")
_TITLE_OF_LOG = Text("a program fails on {vendor}", "程序在 {vendor} 上失败")
_HAPPENS = Text("Problem", "现象")
_IN_QUESTION = Text(
    "{operator} may behave incorrectly on {vendor}'s device", "{operator} 在 {vendor} 设备上的行为存疑"
)
_REPRODUCE = Text("How to reproduce it", "复现方法")
_NEEDED = Text(
    "It needs only PyTorch and {plugin}; unpack the archive and run this in its folder:",
    "只需要 PyTorch 与 {plugin}；解压后在其文件夹中执行：",
)
_ELSEWHERE = Text(
    "On another vendor's device, put `TORCHFERRY_CASE_TO=NAME` before the command.",
    "在其他厂商的设备上：在命令前加 `TORCHFERRY_CASE_TO=NAME`。",
)
_DRAWN = Text(
    "The recorded inputs were too large for the archive, so the test generates others with the same "
    "shape, layout, dtype and range from a fixed seed. `{file}` has the statistics of the recorded "
    "inputs.",
    "记录的输入过大，未放入归档：测试以固定种子生成形状、布局、数据类型与取值范围相同的输入。"
    "`{file}` 是所记录输入的统计值。",
)
_EXPECTED = Text("Expected", "预期结果")
_SAME = Text(
    "The device returns what the CPU returns, within the tolerances in the file.",
    "设备的结果与 CPU 一致（误差在文件所列容差之内）。",
)
_ACTUAL = Text("Actual", "实际结果")
_RUN_HERE = Text(
    "The test, on the machine that created this archive: {outcome}",
    "在制作本归档的机器上运行该测试：{outcome}",
)
_NOT_RUN = Text(
    "The test was not run on the machine that created this archive.", "制作本归档时未运行该测试。"
)
_RECORDED = Text("The results recorded in the run:", "运行时记录的结果：")
_CALLED = Text("Called as", "调用方式")
_OF_RUN = Text("Where it was called", "调用位置")
_VERSIONS = Text("Versions", "版本")
_VERSIONS_HERE = Text(
    "Versions on the machine that created this archive; `{file}` has the results of its machine check.",
    "制作本归档的机器的版本；`{file}` 是对该机器的检查结果。",
)
_WHAT, _VERSION = Text("what", "项目"), Text("version", "版本")
_LOG = Text("Log", "日志")
_LOG_HERE = Text(
    "`{file}` has the lines around the error that ended the run.", "`{file}` 是导致运行结束处的日志。"
)
_FILES = Text("Files", "文件")
_FILE = Text("file", "文件名")
_HOLDS = Text("content", "内容")
_TAKEN_OUT = Text("Removed", "已去除的内容")
_PLACEHOLDERS = Text(
    "Private information was replaced with placeholders, always the same one for the same thing: {counts}.",
    "私有内容已替换为占位符，同一内容始终用同一占位符：{counts}。",
)
_NOTHING = Text("No private information was found.", "未发现私有内容。")
HOLDS = {
    RECORD: Text(
        "the call with its inputs and results, an HDF5 recording", "该调用及其输入与结果（HDF5 记录）"
    ),
    STATISTICS: Text("statistics of the recorded inputs", "所记录输入的统计值"),
    LOG: Text("the decisive lines of the logs", "日志的关键行"),
    MACHINE: Text("results of the machine check", "对机器的检查结果"),
    README: Text("this page", "本说明"),
    MANIFEST: Text("size and SHA-256 of each file", "每个文件的大小与 SHA-256"),
}
_TEST = Text("the test, without other dependencies", "可独立运行的测试")
_TENSORS = Text("the tensors of the test", "测试所用张量")
_OTHER = Text("versions, for programs", "供程序读取的版本信息")


def holds(name: str) -> Text:
    """What a file of the archive is."""
    by_suffix = {".py": _TEST, ".pt": _TENSORS}
    return HOLDS.get(name) or by_suffix.get(name[name.rfind(".") :], _OTHER)


@dataclass(frozen=True)
class ReadmeFacts:
    """What the README tells."""

    vendor: str
    plugin: str
    case: IssueCase | None
    log: LogExcerpt | None
    versions: Mapping[str, str]
    files: tuple[str, ...]
    replaced: Mapping[str, int]  # kind -> how many different things


def readme_of(facts: ReadmeFacts, language: Language) -> str:
    """The whole text."""
    return "\n".join(_lines(facts, lambda text: text.in_language(language), language)) + "\n"


def _lines(facts: ReadmeFacts, say: _Say, language: Language) -> Iterator[str]:
    case = facts.case
    title = _TITLE.format(operator=case.operator, vendor=facts.vendor) if case else _TITLE_OF_LOG
    yield f"# {escape(say(title.format(vendor=facts.vendor)))}"
    yield from _section(_HAPPENS, say, _happens(facts, say))
    if case is not None:
        yield from _section(_REPRODUCE, say, _reproduce(facts, case, say))
        yield from _section(_EXPECTED, say, [say(_SAME)])
        yield from _section(_ACTUAL, say, _actual(facts, case, say))
        if case.run:
            yield from _section(_OF_RUN, say, [f"- {say(name)}: {code(value)}" for name, value in case.run])
    if facts.log is not None:
        yield from _section(_LOG, say, [prose(say(_LOG_HERE.format(file=LOG)))])
    rows = [[escape(name), code(value)] for name, value in facts.versions.items()]
    here = prose(say(_VERSIONS_HERE.format(file=MACHINE)))
    yield from _section(_VERSIONS, say, [here, "", *table([say(_WHAT), say(_VERSION)], rows)])
    files = [[code(name), escape(say(holds(name)))] for name in facts.files]
    yield from _section(_FILES, say, table([say(_FILE), say(_HOLDS)], files))
    yield from _section(_TAKEN_OUT, say, [escape(_replaced(facts.replaced, language))])


def _section(title: Text, say: _Say, lines: Iterable[str]) -> Iterator[str]:
    yield from ("", f"## {say(title)}", "", *lines)


def _happens(facts: ReadmeFacts, say: _Say) -> Iterator[str]:
    case, log = facts.case, facts.log
    if case is not None:
        outcome = case.outcome
        if outcome is None and not case.is_recorded_wrong:
            yield f"- {escape(say(_IN_QUESTION.format(operator=case.operator, vendor=facts.vendor)))}"
        if case.is_recorded_wrong:
            yield f"- {escape(say(case.recorded[0][1]))}"
        if outcome is not None and (outcome.kind.is_failure or not case.is_recorded_wrong):
            yield f"- {escape(say(outcome_sentence(outcome, facts.vendor)))}"
    if log is not None:
        yield from (f"- {escape(say(each))}" for each in log.cause)
    if log is not None and case is None and not log.cause:
        yield prose(say(_LOG_HERE.format(file=LOG)))


def _reproduce(facts: ReadmeFacts, case: IssueCase, say: _Say) -> Iterator[str]:
    yield escape(say(_NEEDED.format(plugin=facts.plugin or "a device")))
    yield from ("", "```sh", case.command, "```", "", prose(say(_ELSEWHERE)))
    if case.called:
        yield from ("", f"{escape(say(_CALLED))} {code(case.called)}")
    if case.is_drawn:
        yield from ("", prose(say(_DRAWN.format(file=STATISTICS))))


def _actual(facts: ReadmeFacts, case: IssueCase, say: _Say) -> Iterator[str]:
    outcome = case.outcome
    told = _NOT_RUN if outcome is None else _RUN_HERE.format(outcome=outcome_sentence(outcome, facts.vendor))
    yield escape(say(told))
    if case.recorded:
        yield from ("", escape(say(_RECORDED)), "")
        yield from (f"- {escape(say(name))}: {escape(say(text))}" for name, text in case.recorded)


def _replaced(counts: Mapping[str, int], language: Language) -> str:
    if not counts:
        return _NOTHING.in_language(language)
    named = (
        f"{KIND_NAMES[PrivateKind(kind)].in_language(language)} {count}" for kind, count in counts.items()
    )
    return _PLACEHOLDERS.format(counts=", ".join(named)).in_language(language)
