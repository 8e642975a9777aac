"""What a report shows below its heading, apart from the file around it: a page of its own, or a part of a page of several.

A body is text through and through, so it can be kept as JSON field by field. Its script is a function of the report's
element and finds everything below that; its ids get a prefix, and its style a class, where it stands beside others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from torchferry.report.html import (
    CHARTS,
    CHARTS_STYLE,
    CONTROLS,
    ELEMENTS,
    FOLDERS,
    TABLES,
    TICKS,
    asset,
    both,
    enclosed,
    escaped,
    fill,
    head,
)
from torchferry.report.private import without_private
from torchferry.report.provenance import COMMAND, Provenance, this_run
from torchferry.text import Language, Text

# Scripts of this package, in the order in which they need each other; a body names those that it needs.
SHARED = (ELEMENTS, CONTROLS, TABLES, CHARTS, TICKS, FOLDERS)
SHARED_STYLES = (CHARTS_STYLE,)
_FEWEST_CONTENTS = 4  # sections: fewer are seen at a glance
_SKIP = Text("Skip to the content", "跳到正文")
_LANGUAGE, _THEME = Text("Language", "语言"), Text("Theme", "主题")
_HELP, _CONTENTS = Text("Keyboard shortcuts", "快捷键"), Text("Contents", "目录")
_SWITCHES = {
    "SYSTEM": Text("System theme", "跟随系统"),
    "LIGHT": Text("Light theme", "浅色主题"),
    "DARK": Text("Dark theme", "深色主题"),
    "HELP": _HELP,
}
_KEYS = (
    ("j, k", Text("Next and previous item", "下一项、上一项")),
    ("/", Text("Search", "搜索")),
    ("← →", Text("Along a chart, once it is chosen", "选中图表后沿曲线移动")),
    ("?", Text("Show or hide this list", "显示或隐藏此列表")),
    ("Esc", Text("Close", "关闭")),
)
_HOW_MADE = Text("How this report was made", "此报告的生成方式")


@dataclass(frozen=True)
class PageBody:
    """One report as HTML. All parts but the title are HTML already."""

    kind: str  # the name of its script's function and, as `report-KIND`, of its class
    title: str
    heading: str = ""  # the title, if it says no more than that
    overview: str = ""
    sections: tuple[str, ...] = ()
    package: str = "torchferry.report"  # whose assets/ has the styles and scripts that are not shared
    styles: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()
    made: Provenance = field(default_factory=this_run)


def whole_page(
    body: PageBody,
    language: Language,
    *,
    inside: Sequence[PageBody] = (),
    shows_itself: bool = False,
) -> str:
    """The page, which opens in this language. `inside` are bodies that stand in its sections (see `nested`); their styles and
    scripts are added. A page that shows itself may open its own file again in a frame, to see what is new in it."""
    every = [body, *inside]
    style, script = _style(every), _script(every)
    title = without_private(escaped(f"{body.title} · TorchFerry"))
    parts = {
        "HEAD": head(title, style, script, language, shows_itself),
        "SKIP": both(_SKIP),
        "LANGUAGE_LABEL": escaped(_LANGUAGE.in_language(language)),
        "THEME_LABEL": escaped(_THEME.in_language(language)),
        **{name: both(text) for name, text in _SWITCHES.items()},
        **{f"{name}_TITLE": escaped("|".join(text)) for name, text in _SWITCHES.items()},
        "HEADING": without_private(body.heading or escaped(body.title)),
        "MADE": _made_line(body.made),
        "BODY": without_private(nested(body)),
        "FOOTER": without_private(made_block(body.made)),
        "KEYS": _keys(),
        "SCRIPT": script,
    }
    return fill(asset("frame.html"), parts)


def nested(body: PageBody, prefix: str = "") -> str:
    """The report's element. In a page of several, all its ids and the links to them begin with the prefix: `proof-2-`."""
    overview = f'<section class="overview">{body.overview}</section>' if body.overview else ""
    content = f"{overview}{_contents(body.sections)}{''.join(body.sections)}"
    content = _prefixed(content, prefix) if prefix else content
    named = f' data-prefix="{prefix}"' if prefix else ""
    return f'<div class="report report-{body.kind}" data-report="{body.kind}"{named}>{content}</div>'


# Attributes of our own elements: what comes from outside has no plain quotation marks, in text as in JSON.
_ID = re.compile(r' (id|for|aria-labelledby|aria-describedby|href)="(#?)([^"]*)"')


def _prefixed(content: str, prefix: str) -> str:
    def named(match: re.Match[str]) -> str:
        name, mark, value = match.groups()
        if name == "href" and not mark:
            return match[0]
        return f' {name}="{mark}{prefix}{value}"'

    return _ID.sub(named, content)


_SECTION = re.compile(r'<section[^>]*? id="([^"]+)"[^>]*><h2>(.*?)</h2>', re.DOTALL)


def _contents(sections: Iterable[str]) -> str:
    """Links to the sections that have a name, if there are several."""
    found = [match.groups() for each in sections for match in _SECTION.finditer(each)]
    if len(found) < _FEWEST_CONTENTS:
        return ""
    links = "".join(f'<a href="#{name}">{title}</a>' for name, title in found)
    return f'<nav class="contents"><span class="hush">{both(_CONTENTS)}</span>{links}</nav>'


def made_block(made: Provenance) -> str:
    """The command, the versions, the commit and the date, for the foot of a page."""
    rows = "".join(
        f"<div><dt>{both(name)}</dt><dd>"
        + (f'<code class="command">{escaped(value)}</code>' if name is COMMAND else escaped(value))
        + "</dd></div>"
        for name, value in made.rows
    )
    return f'<h2 class="hush">{both(_HOW_MADE)}</h2><dl class="made">{rows}</dl>'


def _made_line(made: Provenance) -> str:
    return " · ".join(
        escaped(each) for each in (made.date, made.versions, made.commit and made.commit[:12]) if each
    )


def _keys() -> str:
    rows = "".join(f"<div><dt><kbd>{key}</kbd></dt><dd>{both(said)}</dd></div>" for key, said in _KEYS)
    close = f'<form method="dialog"><button class="plain">{both(Text("Close", "关闭"))}</button></form>'
    return f"<h2>{both(_HELP)}</h2><dl>{rows}</dl>{close}"


def _style(bodies: Sequence[PageBody]) -> str:
    shared = [name for name in SHARED_STYLES if any(name in body.styles for body in bodies)]
    own = {
        (body.kind, name): scoped(asset(name, body.package), f".report-{body.kind}")
        for body in bodies
        for name in body.styles
        if name not in SHARED_STYLES
    }
    return "".join([asset("page.css"), asset("report.css"), *map(asset, shared), *own.values()])


_BEFORE_BRACE = re.compile(r"([^{}]+)\{")
_COMMA = re.compile(r",(?![^(]*\))")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


def scoped(style: str, scope: str) -> str:
    """A style sheet that concerns only what is below the scope, as browsers of any age read it."""

    def narrowed(match: re.Match[str]) -> str:
        if match[1].lstrip().startswith("@"):
            return match[0]
        return ", ".join(f"{scope} {each.strip()}" for each in _COMMA.split(match[1])) + " {"

    return _BEFORE_BRACE.sub(narrowed, _COMMENT.sub("", style))


def _script(bodies: Sequence[PageBody]) -> str:
    shared = [asset(name) for name in SHARED if any(name in body.scripts for body in bodies)]
    own = {body.kind: _own_script(body) for body in bodies}
    return enclosed(asset("page.js"), *shared, *filter(None, own.values()), "startPage();\n")


def _own_script(body: PageBody) -> str:
    own = [asset(name, body.package) for name in body.scripts if name not in SHARED]
    return f'reports["{body.kind}"] = (root) => {{\n{"".join(own)}}};\n' if own else ""
