"""What went wrong with a file: the rules under which it is reported."""

from __future__ import annotations

from torchferry.convert.rule import Rule, register
from torchferry.convert.target import Target
from torchferry.convert.texts.glance import look_at_lines
from torchferry.finding import Finding, Kind
from torchferry.text import Text

UNPARSED = register(
    Rule(
        id="TF901",
        name="unparsed",
        summary=Text("a module that Python can't parse: copied as it is", "Python 无法解析的模块：原样复制"),
        triggers=(),
    )
)
UNREADABLE = register(
    Rule(
        id="TF902",
        name="unreadable",
        summary=Text("a file that can't be read or decoded", "无法读取或解码的文件"),
        triggers=(),
    )
)
UNSAFE = register(
    Rule(
        id="TF903",
        name="unsafe",
        summary=Text(
            "a rewrite that failed its own check: the file was left as it was", "改写未通过自检：文件保持原样"
        ),
        triggers=(),
    )
)
ENCODING = register(
    Rule(
        id="TF904",
        name="encoding",
        summary=Text("a module in an encoding that it does not declare", "未声明编码的模块"),
        triggers=(),
    )
)
LEFT_OUT = register(
    Rule(
        id="TF905",
        name="option-left-out",
        summary=Text(
            "an opt-in option whose rewrite failed its own check: the file was converted without it",
            "某个可选项的改写未通过自检：该文件在不应用该选项的情况下转换",
        ),
        triggers=(),
    )
)


def unparsed_findings(path: str, reason: str, line: int, text: str, target: Target) -> list[Finding]:
    """A module that is no Python for us: the reason, and what a lexical look sees in it."""
    message = Text(f"not parsed: {reason}", f"无法解析：{reason}")
    first = Finding(UNPARSED.id, Kind.TODO, path, line, 1, "", "", message, target.name)
    return [first, *look_at_lines(path, text, target, UNPARSED)]
