"""What the doctor says: as a page for people, as JSON, and as commands to look at and to run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from torchferry.doctor.host.examine import OPTION, VARIABLE, Examination
from torchferry.doctor.model import Command, Reach, Result, Status
from torchferry.report.page import Cell, Column, Page, Table
from torchferry.report.safe import in_both_languages, one_line
from torchferry.text import Language, Text

# How subjects that are no names are called in Chinese; variables, files and packages are called what
# they are.

_CHINESE = {
    "devices": "设备",
    "control files": "控制文件",
    "firmware": "固件",
    "libraries": "库",
    "two toolkits": "两个工具包",
    "Python packages": "Python 软件包",
    "processes": "进程",
    "host name": "主机名",
    "port": "端口",
    "ports": "通信端口",
    "work folder": "工作目录",
    "home": "主目录",
    "temporary files": "临时目录",
    "trial": "试运行",
    "emulated device": "仿真设备",
    "C++ compiler": "C++ 编译器",
    "CPU governor": "CPU 调速器",
    "BIOS Power Policy": "BIOS 电源策略",
    "CPU instructions": "CPU 指令集",
    "processors": "处理器",
    "loader workers": "数据加载进程",
    "memory": "内存",
    "transparent huge pages": "透明大页",
    "debug flags": "调试变量",
}
_ENDINGS = {" operators": " 算子包", " driver": " 驱动"}


def called(subject: str, language: Language) -> str:
    """The subject for readers of a language; programs are told the English one."""
    if language != "zh":
        return subject
    for ending, chinese in _ENDINGS.items():
        if subject.endswith(ending):
            return subject.removesuffix(ending) + chinese
    return _CHINESE.get(subject, subject)


TITLE = Text("What this host costs", "主机检查")
_COSTS = Text("{count} things cost speed: {names}", "{count} 项降低速度：{names}")
_NOTHING_SURE = Text(
    "no setting of the host is known to cost speed; {could} may be faster with another value",
    "没有已知会降低速度的主机设置；{could} 项换一种设置可能更快",
)
_NOTHING = Text("nothing that was looked at costs speed", "所检查的各项均未降低速度")
_REST = Text(
    "{could} may be faster with another setting, {fine} are fine, {unseen} can't be seen from here, {info} are facts",
    "{could} 项换一种设置可能更快，{fine} 项正常，{unseen} 项无法从此处看到，{info} 项仅供了解",
)
_NO_VENDOR = Text(
    "no vendor's variables were looked at: name one with --to", "未检查任何厂商的变量：请用 --to 指定"
)
_GUESSED = Text(
    "the variables are those of {vendor}, whose plugin is installed here",
    "变量为 {vendor} 的：本机安装了它的插件",
)
_FIX = Text("--fix prints the commands", "--fix 打印命令")
ALL = Text("--all explains the others too", "--all 同时解释其余各项")

_HOST = Text("Host", "主机")
_VARIABLES = Text("Variables of {vendor}", "{vendor} 的变量")
_OPTIONS = Text("Options of {vendor}, which a program sets", "{vendor} 的选项，由程序设置")
_SUBJECT = Column(Text("what", "项目"), is_whole=True)
_STATUS = Column(Text("verdict", "结论"), is_whole=True)
_FOUND = Column(Text("found, and what it does", "现状与作用"))
_URGENT = (Status.BLOCKS, Status.DOUBT)
_DO = Text("do: {line}", "执行：{line}")
_EXPLAINED = (Status.BLOCKS, Status.DOUBT, Status.COSTS, Status.COULD)

STATUS_WORDS = {
    Status.BLOCKS: Text("in the way", "阻碍使用"),
    Status.DOUBT: Text("may fail", "可能失败"),
    Status.COSTS: Text("costs speed", "降低速度"),
    Status.COULD: Text("worth a try", "值得一试"),
    Status.UNSEEN: Text("not visible", "看不到"),
    Status.INFO: Text("for information", "供了解"),
    Status.FINE: Text("fine", "正常"),
}
_STYLES = {
    Status.BLOCKS: "bold red",
    Status.DOUBT: "yellow",
    Status.COSTS: "red",
    Status.COULD: "yellow",
    Status.UNSEEN: "magenta",
    Status.INFO: "",
    Status.FINE: "green",
}
_REMARKS = {
    Reach.SHELL: Text("in this shell, before the program starts", "在启动程序的 shell 中执行"),
    Reach.INSTALL: Text(
        "changes packages or how a program is started: run it yourself",
        "会更改软件包或程序的启动方式：请自行执行",
    ),
    Reach.PROCESSES: Text(
        "ends other processes: run it yourself, if they are yours to end",
        "会结束其他进程：确认可以结束后请自行执行",
    ),
    Reach.ROOT: Text("changes the machine, needs root: run it yourself", "会更改机器，需要 root：请自行执行"),
}
_NO_COMMANDS = Text("nothing to fix by a command", "没有可用命令修复的项目")


def page_of(examination: Examination, language: Language, *, everything: bool) -> Page:
    """Verdict first, then the tables; without `everything` only what can be better is explained."""
    notes = [*host_notes(examination), *([] if everything else [ALL])]
    tables = host_tables(examination, language, everything=everything)
    return Page(TITLE, host_verdicts(examination), tables, tuple(notes))


def host_tables(examination: Examination, language: Language, *, everything: bool) -> tuple[Table, ...]:
    """The host, and the vendor's variables and options."""
    vendor = Text(examination.vendor, examination.vendor)
    by_id = {VARIABLE: _VARIABLES.format(vendor=vendor), OPTION: _OPTIONS.format(vendor=vendor)}
    groups: dict[Text, list[Result]] = {_HOST: [], **{title: [] for title in by_id.values()}}
    for result in examination.results:
        groups[by_id.get(result.id, _HOST)].append(result)
    return tuple(
        result_table(title, results, language, everything=everything) for title, results in groups.items()
    )


def host_verdicts(examination: Examination) -> tuple[tuple[Text, str], ...]:
    """What costs speed, and how much else was looked at."""
    return tuple(_verdicts(examination))


def _verdicts(examination: Examination) -> Iterator[tuple[Text, str]]:
    costly = [result.subject for result in examination.results if result.status is Status.COSTS]
    if costly:
        yield _COSTS.format(count=len(costly), names=names_of(costly)), "red"
    elif examination.count(Status.COULD):
        yield _NOTHING_SURE.format(could=examination.count(Status.COULD)), "green"
    else:
        yield _NOTHING, "green"
    counts = {status.value: examination.count(status) for status in Status}
    yield _REST.format(**counts), ""


def names_of(subjects: Iterable[str]) -> Text:
    """A list of them, each once."""
    once = list(dict.fromkeys(subjects))
    return Text(", ".join(once), "、".join(called(each, "zh") for each in once))


def host_notes(examination: Examination) -> Iterator[Text]:
    """Whose variables were looked at, and what to ask for."""
    if not examination.vendor:
        yield _NO_VENDOR
    elif examination.is_guess:
        yield _GUESSED.format(vendor=examination.vendor)
    if any(result.commands for result in examination.results):
        yield _FIX


def result_table(
    title: Text, results: Iterable[Result], language: Language, *, everything: bool, commands: bool = False
) -> Table:
    """What checks say; without `everything` only what can be better is explained."""
    rows = []
    for result in results:
        lines = [one_line(result.found.in_language(language))]
        if everything or result.status in _EXPLAINED:
            lines.append(one_line(result.why.in_language(language)))
        if commands and result.status in _URGENT:
            lines += [
                _DO.format(line=_runnable(command)).in_language(language) for command in result.commands
            ]
        rows.append(
            (
                Cell(called(result.subject, language), is_code=True),
                Cell(STATUS_WORDS[result.status].in_language(language), _STYLES[result.status]),
                Cell("\n".join(lines)),
            )
        )
    return Table(title, (_SUBJECT, _STATUS, _FOUND), tuple(rows))


def to_json(examination: Examination) -> str:
    """Everything, for programs."""
    import json

    return json.dumps(host_content(examination), indent=2) + "\n"


def host_content(examination: Examination) -> dict[str, object]:
    """What JSON says of the host."""
    return {
        "format": "torchferry-host",
        "version": 1,
        "vendor": examination.vendor or None,
        "counts": {status.value: examination.count(status) for status in Status},
        "results": [result_content(result) for result in examination.results],
    }


def result_content(result: Result) -> dict[str, object]:
    """What JSON says of one result."""
    return {
        "id": result.id,
        "subject": result.subject,
        "status": result.status.value,
        "found": in_both_languages(result.found),
        "why": in_both_languages(result.why),
        "commands": [{"line": command.line, "reach": command.reach.value} for command in result.commands],
        "source": result.source or None,
    }


def _runnable(command: Command) -> str:
    return f"sudo {command.line}" if command.reach is Reach.ROOT else command.line


def to_script(results: Iterable[Result], language: Language) -> str:
    """The commands. Those that reach beyond the shell are comments: whoever runs this text runs none of them."""
    lines: list[str] = []
    for result in results:
        for command in result.commands:
            if one_line(command.line) != command.line:
                continue  # a line break in a path would end the comment that keeps a command from being run
            verdict = STATUS_WORDS[result.status].in_language(language)
            remark = _REMARKS[command.reach].in_language(language)
            said = one_line(f"{called(result.subject, language)} ({verdict}): {remark}")
            line = ("" if command.reach is Reach.SHELL else "#   ") + _runnable(command)
            if line not in lines:
                lines += [f"# {said}", line]
    return "\n".join(lines or [f"# {_NO_COMMANDS.in_language(language)}"]) + "\n"


# What a page that is made for strangers does not say: the host's name, addresses, and whose home it
# is.

# Elsewhere four numbers with dots between are a version.
_WITH_ADDRESSES = ("network", VARIABLE)
_ADDRESS = re.compile(
    r"\b(?!127\.|0\.0\.0\.0)(?:\d{1,3}\.){3}\d{1,3}\b|(?<![\w:])(?=[0-9a-fA-F]*:[0-9a-fA-F]*:)[0-9a-fA-F:]{4,}"
)


def without_names(
    results: Iterable[Result], environment: Mapping[str, str], hostname: str = ""
) -> tuple[Result, ...]:
    """The same results, to be shown to strangers."""
    home = environment.get("HOME", "").rstrip("/")

    def hidden(text: str, *, addresses: bool) -> str:
        if len(home) > 1:
            text = re.sub(rf"{re.escape(home)}(?![\w.-])", "~", text)
        if addresses and hostname:
            text = re.sub(rf"(?<![\w.-]){re.escape(hostname)}(?![\w-])", "HOST", text)
        return _ADDRESS.sub("ADDRESS", text) if addresses else text

    return tuple(_hidden(result, hidden) for result in results)


def _hidden(result: Result, hidden: Callable[..., str]) -> Result:
    addresses = result.id in _WITH_ADDRESSES

    def both(text: Text) -> Text:
        return Text(*(hidden(each, addresses=addresses) for each in text))

    commands = [
        command._replace(line=hidden(command.line, addresses=addresses)) for command in result.commands
    ]
    return replace(result, found=both(result.found), why=both(result.why), commands=tuple(commands))
