"""What went wrong with a file: the rules under which it is reported."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

from torchferry.conversion.rule import report_rule
from torchferry.conversion.target import Target
from torchferry.conversion.texts.text_rules import look_at_lines
from torchferry.finding import Finding, Kind, Message, finding_of
from torchferry.text import Text

UNPARSED = report_rule(
    "TF901",
    "unparsed",
    Text(
        "Reports files that Python can't parse; they are copied as they are",
        "报告 Python 无法解析的文件；这些文件原样复制",
    ),
)
UNREADABLE = report_rule(
    "TF902", "unreadable", Text("Reports files that can't be read or decoded", "报告无法读取或解码的文件")
)
UNSAFE = report_rule(
    "TF903",
    "unsafe",
    Text(
        "Reports a rewrite that failed its own check; the file is left as it was",
        "报告未通过自检的改写；文件保持原样",
    ),
)
ENCODING = report_rule(
    "TF904", "encoding", Text("Reports a file whose encoding is not declared", "报告未声明编码的文件")
)
LEFT_OUT = report_rule(
    "TF905",
    "option-left-out",
    Text(
        "Reports an option whose rewrite failed its own check; the file is converted without it",
        "报告未通过自检的可选改写；该文件在不应用该选项的情况下转换",
    ),
)
FOLDER_LEFT_OUT = report_rule(
    "TF906",
    "left-out",
    Text(
        "Reports folders that were left out: environments and earlier outputs",
        "报告未检查的文件夹：Python 环境和之前的输出",
    ),
)
LINK = report_rule(
    "TF907", "link-outside", Text("Reports links that lead out of the project", "报告指向项目之外的链接")
)
UNLOADED = report_rule(
    "TF908",
    "plugin-not-loaded",
    Text(
        "Reports settings that name the target's device where no module loads its plugin",
        "报告使用了目标设备名、却没有模块加载其插件的配置",
    ),
)
_UNLOADED = Message(
    Text("No module loads the plugin {plugin}", "没有模块加载插件 {plugin}"),
    why=Text(
        "A setting names the device `{device}`. PyTorch 2.5 and later load the plugin themselves if the "
        "plugin declares it.",
        "配置使用了设备 `{device}`。PyTorch 2.5 及以上会在插件声明后自动加载。",
    ),
    do=Text(
        "On older versions, write `{line}` after `import torch` in the script that is started.",
        "对于更早的版本，请在启动脚本的 `import torch` 之后加入 `{line}`。",
    ),
)
_LEFT_OUT = Message(
    Text("Folder left out", "未检查的文件夹"),
    why=Text("{reason}. It was neither read nor copied.", "{reason}。未检查，也未复制。"),
)
_ABSOLUTE = Message(
    Text("Absolute link", "绝对链接"),
    why=Text(
        "It leads to {target} and was kept, so the copy uses what the original uses.{more}",
        "它指向 {target}，原样保留，因此副本与原项目使用同一目标。{more}",
    ),
)
_OUTSIDE = Message(
    Text("Link that leads out of the project", "指向项目之外的链接"),
    why=Text(
        "It leads to {target} and was kept; it may be broken in the copy.{more}",
        "它指向 {target}，原样保留；在副本中可能失效。{more}",
    ),
)
_MORE = Text(" There are {count} such links.", "此类链接共 {count} 个。")


def left_out_finding(path: str, reason: Text, target: Target) -> Finding:
    """A folder that was not looked at."""
    message = _LEFT_OUT.format(reason=reason)
    return finding_of(FOLDER_LEFT_OUT.id, Kind.INFO, (path, 1, 1), message, target.name)


def link_findings(links: Mapping[str, str], target: Target) -> list[Finding]:
    """One for all absolute links (path -> where it leads), one for all relative ones that leave the project."""

    def leaves(path: str, to: str) -> bool:
        place = os.path.normpath(os.path.join(os.path.dirname(path), to))
        return place.split(os.sep, 1)[0] == os.pardir

    absolute = {path: to for path, to in links.items() if os.path.isabs(to)}
    outside = {path: to for path, to in links.items() if path not in absolute and leaves(path, to)}
    found = []
    for message, some in ((_ABSOLUTE, absolute), (_OUTSIDE, outside)):
        if some:
            first = min(some)
            more = _MORE.format(count=len(some)) if len(some) > 1 else Text("", "")
            text = message.format(target=some[first], more=more)
            found.append(finding_of(LINK.id, Kind.INFO, (first, 1, 1), text, target.name))
    return found


_UNPARSED = Message(
    Text("Python can't parse the file", "Python 无法解析的文件"),
    why=Text("{reason}. The file was copied as it is.", "{reason}。该文件原样复制。"),
    do=Text(
        "Fix the file (code for Python 2 goes through 2to3 first), then convert again.",
        "请修正该文件（Python 2 代码须先经 2to3 转换），然后重新转换。",
    ),
)


def unloaded_findings(found: Iterable[Finding], contents: Iterable[bytes], target: Target) -> list[Finding]:
    """One at the first setting that names the device now, if nothing in the project loads what knows that name."""
    plugin, device = target.prelude_module, target.device.word
    if not plugin or target.prelude_name:
        return []
    is_device = re.compile(rf"""["']?{re.escape(device)}(:\d+)?["']?""")
    changed = [item for item in found if item.kind is Kind.CHANGE and is_device.fullmatch(item.after)]
    if not changed or any(plugin.encode() in content for content in contents):
        return []
    first = min(changed, key=lambda item: (item.path, item.line))
    message = _UNLOADED.format(device=device, plugin=plugin, line=target.prelude)
    place = (first.path, first.line, first.col)
    return [
        finding_of(
            UNLOADED.id, Kind.RISK, place, message, target.name, before=first.before, after=first.after
        )
    ]


def unparsed_findings(path: str, reason: str, line: int, text: str, target: Target) -> list[Finding]:
    """A module that is no Python for us: the reason, and what a lexical look sees in it."""
    message = _UNPARSED.format(reason=reason.rstrip(".?!"))
    first = finding_of(UNPARSED.id, Kind.TODO, (path, line, 1), message, target.name)
    return [first, *look_at_lines(path, text, target, UNPARSED)]
