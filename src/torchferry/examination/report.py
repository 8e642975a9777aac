"""What the doctor says: ready or not and why, the machine, what the host costs; as a page, as JSON, as commands to run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from torchferry.examination.device.checks.trial import ID as TRIAL
from torchferry.examination.examine import (
    OPTION,
    VARIABLE,
    DeviceExamination,
    HostExamination,
    MachineReport,
)
from torchferry.report import checks
from torchferry.report.anonymous import Anonymiser, PrivateFacts, PrivateKind
from torchferry.report.checks import CheckResult, Command, Reach, Status, result_table
from torchferry.report.formats import Options, Reports
from torchferry.report.page import Page, Table
from torchferry.report.records import BAD, DOUBT, GOOD, QUIET, UNCLEAR, Grade
from torchferry.report.safe import one_line
from torchferry.text import Language, Text

HOST_REPORTS: Reports[HostExamination] = Reports(
    {"json": f"{__name__}:host_to_json"}, page=f"{__name__}:host_page"
)
REPORTS: Reports[MachineReport] = Reports({"json": f"{__name__}:to_json"}, page=f"{__name__}:page_of")

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


def called(subject: str) -> Text:
    """The subject for readers; programs are told the English one."""
    for ending, chinese in _ENDINGS.items():
        if subject.endswith(ending):
            return Text(subject, subject.removesuffix(ending) + chinese)
    return Text(subject, _CHINESE.get(subject, subject))


_HOST_TITLE = Text("Host settings that affect speed", "主机设置对速度的影响")
_COSTS = Text("settings that reduce speed ({count}): {names}", "{count} 项设置降低速度：{names}")
_NOTHING_SURE = Text(
    "no host setting is known to reduce speed; {could} may be faster with another value",
    "没有已知会降低速度的主机设置；{could} 项换一种设置可能更快",
)
_NOTHING = Text("none of the checked settings reduces speed", "所检查的各项均未降低速度")
_REST = Text(
    "{could} may be faster with another setting, {fine} are fine, {unseen} are not visible from "
    "here, {info} are for information",
    "{could} 项换一种设置可能更快，{fine} 项正常，{unseen} 项无法从此处看到，{info} 项仅供了解",
)
_NO_VENDOR = Text(
    "no vendor's variables were checked; name a vendor with --to", "未检查任何厂商的变量；请用 --to 指定"
)
_GUESSED = Text(
    "the variables are those of {vendor}, whose plugin is installed here",
    "变量为 {vendor} 的变量：本机安装了它的插件",
)
_FIX = Text("--fix prints the commands", "--fix 打印命令")
_ALL = Text("--verbose explains the others too", "--verbose 同时解释其余各项")

_HOST = Text("Host", "主机")
_VARIABLES = Text("Variables of {vendor}", "{vendor} 的变量")
_OPTIONS = Text("Options of {vendor}, which a program sets", "{vendor} 的选项，由程序设置")
_FOUND = Text("current state and effect", "现状与作用")
_DO = Text("run: {line}", "执行：{line}")
_URGENT = (Status.BLOCKS, Status.DOUBT)
_EXPLAINED = (Status.BLOCKS, Status.DOUBT, Status.COSTS, Status.COULD)
GRADES = {
    Status.BLOCKS: Grade(Text("blocking", "阻塞"), BAD, own_style="bold red"),
    Status.DOUBT: Grade(Text("may fail", "可能失败"), DOUBT),
    Status.COSTS: Grade(Text("reduces speed", "降低速度"), BAD),
    Status.COULD: Grade(Text("worth a try", "值得一试"), DOUBT),
    Status.UNSEEN: Grade(Text("not visible", "看不到"), UNCLEAR),
    Status.INFO: Grade(Text("for information", "供了解"), QUIET),
    Status.FINE: Grade(Text("fine", "正常"), GOOD),
}
_REMARKS = {
    Reach.SHELL: Text("in this shell, before the program starts", "在启动程序的 shell 中执行"),
    Reach.INSTALL: Text(
        "changes packages or the way a program starts; run it yourself",
        "会更改软件包或程序的启动方式；请自行执行",
    ),
    Reach.PROCESSES: Text(
        "ends other processes; run it yourself if they are yours",
        "会结束其他进程；确认可以结束后请自行执行",
    ),
    Reach.ROOT: Text(
        "changes the machine and needs root; run it yourself", "会更改机器，需要 root；请自行执行"
    ),
}
_NO_COMMANDS = Text("nothing that a command could fix", "没有可用命令修复的项目")


def host_page(found: HostExamination, options: Options) -> Page:
    """Verdict first, then the tables; only what can be better is explained, if not everything is asked for."""
    notes = [*_host_notes(found), *([] if options.everything else [_ALL])]
    return Page(
        _HOST_TITLE, tuple(_host_verdicts(found)), _host_tables(found, options.everything), tuple(notes)
    )


def _host_tables(found: HostExamination, everything: bool) -> tuple[Table, ...]:
    by_id = {VARIABLE: _VARIABLES.format(vendor=found.vendor), OPTION: _OPTIONS.format(vendor=found.vendor)}
    groups: dict[Text, list[CheckResult]] = {_HOST: [], **{title: [] for title in by_id.values()}}
    for result in found.results:
        groups[by_id.get(result.id, _HOST)].append(result)
    return tuple(_table(title, results, everything) for title, results in groups.items())


def _table(title: Text, results: Iterable[CheckResult], everything: bool, commands: bool = False) -> Table:
    def said(result: CheckResult) -> Iterator[Text]:
        yield result.found
        if everything or result.status in _EXPLAINED:
            yield result.why
        if commands and result.status in _URGENT:
            yield from (_DO.format(line=_runnable(command)) for command in result.commands)

    return result_table(title, _FOUND, results, GRADES, said, called)


def _host_verdicts(found: HostExamination) -> Iterator[tuple[Text, str]]:
    """What costs speed, and how much else was looked at."""
    if costly := found.of(Status.COSTS):
        yield _COSTS.format(count=len(costly), names=_names(costly)), "red"
    elif found.count(Status.COULD):
        yield _NOTHING_SURE.format(could=found.count(Status.COULD)), "green"
    else:
        yield _NOTHING, "green"
    yield _REST.format(**found.counts(GRADES)), ""


def _names(results: Iterable[CheckResult]) -> Text:
    """Their subjects, each once."""
    once = [called(subject) for subject in dict.fromkeys(result.subject for result in results)]
    return Text(", ".join(each.en for each in once), "、".join(each.zh for each in once))


def _host_notes(found: HostExamination) -> Iterator[Text]:
    """Whose variables were looked at, and what to ask for."""
    if not found.vendor:
        yield _NO_VENDOR
    elif found.is_guess:
        yield _GUESSED.format(vendor=found.vendor)
    if any(result.commands for result in found.results):
        yield _FIX


def host_to_json(found: HostExamination, options: Options) -> str:
    """The report as JSON."""
    return json.dumps(_host_content(found), indent=2) + "\n"


def _host_content(found: HostExamination) -> dict[str, Any]:
    return {
        "format": "torchferry-host",
        "version": 1,
        "vendor": found.vendor or None,
        "counts": found.counts(GRADES),
        "results": [_result_content(result) for result in found.results],
    }


def _result_content(result: CheckResult) -> dict[str, Any]:
    return {
        **checks.result_content(result),
        "commands": [{"line": command.line, "reach": command.reach.value} for command in result.commands],
        "source": result.source or None,
    }


_TITLE = Text("Machine check", "本机检查")
_READY = Text("ready for {vendor}", "可以使用 {vendor}")
_ALMOST = Text("ready for {vendor}, but these may fail: {names}", "可以使用 {vendor}，但可能失败：{names}")
_NOT_READY = Text("not ready for {vendor}, blocked by: {names}", "尚不能使用 {vendor}，阻塞项：{names}")
_NO_DEVICE = Text(
    "not ready: found no plugin, toolkit or device of a known vendor; --to VENDOR says what it needs",
    "尚未就绪：本机没有已知厂商的插件、工具包或设备；--to VENDOR 说明需要什么",
)
_SEVERAL = Text(
    "found components of several vendors: {names}; choose one with --to",
    "本机有多个厂商的组件：{names}；请用 --to 选择",
)
_NO_DATA = Text(
    "the requirements of {vendor} are unknown: its data has no machine.toml",
    "{vendor} 对机器的要求未知：其数据没有 machine.toml",
)
_GUESSED_DEVICE = Text(
    "{vendor}: no other vendor's components were found", "{vendor}：本机没有其他厂商的组件"
)
_FINE_ONES = Text(
    "{count} checks found nothing wrong; --verbose shows them", "{count} 项检查正常；--verbose 显示它们"
)
_TRY = Text(
    "nothing was run on the device; --try computes on each",
    "未在设备上运行任何程序；--try 会在每个设备上计算",
)
_SIMULATED = Text(
    "programs also run here without the device, on a simulated one: ferry run --sim --to {vendor} SCRIPT",
    "没有设备也可在本机的模拟设备上运行程序：ferry run --sim --to {vendor} SCRIPT",
)
_COULD = Text(
    "ferry doctor host shows {count} host settings worth trying",
    "ferry doctor host 显示值得尝试的 {count} 项主机设置",
)
_VERSIONS = Text(
    "Python {python} on {architecture}, torch {torch}, plugin {plugin}, toolkit {toolkit}, driver {driver}",
    "Python {python}（{architecture}），torch {torch}，插件 {plugin}，工具包 {toolkit}，驱动 {driver}",
)
_MACHINE = Text("Machine for {vendor}", "{vendor} 所需环境")


def verdict(found: DeviceExamination) -> tuple[Text, str]:
    """One sentence, and its style."""
    name = found.vendor.name
    if not found.is_ready:
        return _NOT_READY.format(vendor=name, names=_names(found.of(Status.BLOCKS))), "bold red"
    if doubts := found.of(Status.DOUBT):
        return _ALMOST.format(vendor=name, names=_names(doubts)), "yellow"
    return _READY.format(vendor=name), "green"


def page_of(found: MachineReport, options: Options) -> Page:
    """Verdict first, then what a machine needs, then what the host costs."""
    host_verdicts = tuple(_host_verdicts(found.host))
    # Beside whether a machine can be used at all, what makes it slow; the rest is for those who ask.
    costly = replace(found.host, results=found.host.of(Status.COSTS))
    shown_host = found.host if found.with_whole_host else costly
    verdicts, tables = _of_device(found, options.everything)
    if found.versions:
        versions = {name: version or "-" for name, version in found.versions.items()}
        verdicts.append((_VERSIONS.format(**versions), ""))
    return Page(
        _TITLE,
        (*verdicts, *(host_verdicts if found.with_whole_host else host_verdicts[:1])),
        (*tables, *_host_tables(shown_host, found.with_whole_host)),
        tuple(_notes(found, options.everything)),
    )


def _of_device(found: MachineReport, everything: bool) -> tuple[list[tuple[Text, str]], list[Table]]:
    device = found.device
    if device is None:
        said = _SEVERAL.format(names=", ".join(found.others)) if found.others else _NO_DEVICE
        return [(said, "bold red")], []
    results = (result for result in device.results if everything or result.status is not Status.FINE)
    table = _table(_MACHINE.format(vendor=device.vendor.name), results, everything, commands=True)
    if not found.is_known:
        return [(_NO_DATA.format(vendor=device.vendor.name), "magenta")], [table]
    return [verdict(device)], [table]


def _notes(found: MachineReport, everything: bool) -> Iterator[Text]:
    device, host = found.device, found.host
    if device is not None and host.is_guess:
        yield _GUESSED_DEVICE.format(vendor=device.vendor.name)
    yield from (note for note in _host_notes(host) if not (device and host.is_guess))
    if device is not None:
        if not everything:
            yield _FINE_ONES.format(count=device.count(Status.FINE))
        if device.is_ready and not any(result.id == TRIAL for result in device.results):
            yield _TRY
    if host.count(Status.COULD) and not everything:
        yield _COULD.format(count=host.count(Status.COULD))
    if not (device and (device.is_ready or not device.vendor.plugin)):
        yield _SIMULATED.format(vendor=device.vendor.name if device else "VENDOR")


def to_json(found: MachineReport, options: Options) -> str:
    """The report as JSON."""
    device = found.device
    content = {
        "format": "torchferry-doctor",
        "version": 1,
        "vendor": device.vendor.name if device else None,
        "ready": (device.is_ready if found.is_known else None) if device else False,
        "versions": dict(found.versions),
        "counts": device.counts(GRADES) if device else dict.fromkeys((each.value for each in GRADES), 0),
        "results": [_result_content(result) for result in device.results] if device else [],
        "host": _host_content(found.host),
    }
    return json.dumps(content, indent=2) + "\n"


def _runnable(command: Command) -> str:
    return f"sudo {command.line}" if command.reach is Reach.ROOT else command.line


def to_script(results: Iterable[CheckResult], language: Language) -> str:
    """The commands. Those that reach beyond the shell are comments: whoever runs this text runs none of them."""
    lines: list[str] = []
    for result in results:
        for command in result.commands:
            if one_line(command.line) != command.line:
                continue  # a line break in a path would end the comment that keeps a command from being run
            verdict = GRADES[result.status].name.in_language(language)
            remark = _REMARKS[command.reach].in_language(language)
            said = one_line(f"{called(result.subject).in_language(language)} ({verdict}): {remark}")
            line = ("" if command.reach is Reach.SHELL else "#   ") + _runnable(command)
            if line not in lines:
                lines += [f"# {said}", line]
    return "\n".join(lines or [f"# {_NO_COMMANDS.in_language(language)}"]) + "\n"


# What a page that is made for strangers does not say: the host's name, addresses, and whose home it
# is.

# Elsewhere four numbers with dots between are a version.
_WITH_ADDRESSES = ("network", VARIABLE)
_OF_MACHINES = frozenset({PrivateKind.ADDRESS, PrivateKind.HOST})


def for_strangers(
    found: MachineReport,
    environment: Mapping[str, str],
    hostname: str,
    kinds: frozenset[PrivateKind] = _OF_MACHINES,
    anonymiser: Anonymiser | None = None,
) -> MachineReport:
    """The same without the names of this machine and its user, and without what else is private."""
    hide = anonymiser or Anonymiser(PrivateFacts(hosts=(hostname,)))

    def hidden(results: Iterable[CheckResult]) -> tuple[CheckResult, ...]:
        return without_names(results, environment, hide, kinds)

    device, host = found.device, found.host
    if device is not None:
        device = replace(device, results=hidden(device.results))
    return replace(found, device=device, host=replace(host, results=hidden(host.results)))


def without_names(
    results: Iterable[CheckResult],
    environment: Mapping[str, str],
    anonymiser: Anonymiser,
    kinds: frozenset[PrivateKind] = _OF_MACHINES,
) -> tuple[CheckResult, ...]:
    """The same results, to be shown to strangers."""
    home = environment.get("HOME", "").rstrip("/")

    def hidden(text: str, *, kinds: frozenset[PrivateKind]) -> str:
        if len(home) > 1:
            text = re.sub(rf"{re.escape(home)}(?![\w.-])", "~", text)
        return anonymiser(text, kinds)

    said = []
    for result in results:
        hide = partial(hidden, kinds=kinds if result.id in _WITH_ADDRESSES else kinds - {PrivateKind.ADDRESS})
        commands = tuple(command._replace(line=hide(command.line)) for command in result.commands)
        found, why = (Text(*map(hide, text)) for text in (result.found, result.why))
        said.append(replace(result, found=found, why=why, commands=commands))
    return tuple(said)
