"""Pages: one self-contained file in both languages, made whole here; what comes from outside is escaped.

A page holds every sentence twice, and its style sheet shows one of the two. Scripts and styles are files in assets/ folders;
the page's content policy allows these and nothing else.
"""

from __future__ import annotations

import html
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import count
from typing import TypeVar

from torchferry.report.page import Cell, Column, Field, Table, html_cell
from torchferry.report.records import Grade
from torchferry.report.safe import both_on_one_line, one_line, visible, with_code
from torchferry.text import Language, Text

ARROW = ' <span class="arrow">→</span> '
# Assets of this package: elements that scripts make, tables and trees, tables of many rows, charts.
ELEMENTS, CONTROLS, TABLES, CHARTS, CHARTS_STYLE = (
    "elements.js",
    "controls.js",
    "tables.js",
    "plots.js",
    "charts.css",
)
TICKS, FOLDERS = "ticks.js", "folders.js"  # boxes to tick off, trees of folders
_FRAMES_OF_ITSELF = "; frame-src 'self' file:"
_EXPAND, _COLLAPSE = Text("Expand all", "全部展开"), Text("Collapse all", "全部折叠")
_CLEAR = Text("Clear", "清除")
_SHOWN = Text("% of {count} shown", "显示 {count} 个中的 % 个")
_REST = Text("The first {count}; the script shows all.", "前 {count} 个；启用脚本可查看全部。")
_WITHOUT_SCRIPT = 50  # rows of a long table
_PREVIOUS, _FOLLOWING = Text("Previous", "上一页"), Text("Next", "下一页")
Choice = TypeVar("Choice")

# The page.


def head(title: str, style: str, script: str, language: Language, shows_itself: bool = False) -> str:
    """The beginning of a page up to its body; the title is HTML already."""
    style, theme = palette() + style, asset("theme.js")
    scripts = " ".join(f"'{_digest(each)}'" for each in (theme, script))
    parts = {
        "LANGUAGE": "zh-CN" if language == "zh" else "en",
        "TITLE": title,
        # nothing is fetched, and no script but ours runs
        "POLICY": f"default-src 'none'; style-src '{_digest(style)}'; script-src {scripts}; img-src data:"
        + (_FRAMES_OF_ITSELF if shows_itself else ""),
        "STYLE": style,
        "THEME": theme,
    }
    return fill(asset("head.html"), parts)


def palette() -> str:
    """The colours of both themes: the system's, unless the reader has chosen one."""
    light, dark = asset("light.css"), asset("dark.css")
    return (
        f":root {{\n  color-scheme: light;\n{light}}}\n"
        f"@media screen and (prefers-color-scheme: dark) {{\n"
        f':root:not([data-theme="light"]) {{\n  color-scheme: dark;\n{dark}}}\n}}\n'
        f'@media screen {{\n:root[data-theme="dark"] {{\n  color-scheme: dark;\n{dark}}}\n}}\n'
    )


def fill(template: str, parts: dict[str, str]) -> str:
    """The template with a part in the place of each %%NAME%%."""
    pieces = template.split("%%")  # text and names take turns
    pieces[1::2] = [parts[name] for name in pieces[1::2]]
    return "".join(pieces)


def enclosed(*scripts: str) -> str:
    """Scripts that see each other's names, and whose names nothing else sees."""
    return '(function () {\n"use strict";\n' + "\n".join(scripts) + "})();\n"


def _digest(text: str) -> str:
    import base64
    import hashlib

    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def asset(name: str, package: str = "torchferry.report") -> str:
    """A file of a package's assets/."""
    from importlib.resources import files

    return (files(package) / "assets" / name).read_text(encoding="utf-8")


# Data for scripts.


def embed(data: object) -> str:
    """JSON that can stand inside a script element: nothing in it can end the element."""
    import json

    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def data_for_script(data: object, name: str = "") -> str:
    """Data that a script of the page finds by this id."""
    which = f' id="{name}"' if name else ""
    return f'<script type="application/json"{which}>{embed(data)}</script>'


# Text.


def escaped(text: str) -> str:
    """Text that is text, wherever it came from."""
    return html.escape(visible(text))


def both(text: Text, element: str = "span") -> str:
    """The text in both languages; the style sheet shows the page's. `element` may have attributes."""
    name = element.split()[0]
    if text.en == text.zh:
        return f"<{element}>{escaped(text.en)}</{name}>"
    return (
        f'<{element} lang="en">{escaped(text.en)}</{name}><{element} lang="zh-CN">{escaped(text.zh)}</{name}>'
    )


def prose(text: Text, element: str = "span") -> str:
    """Sentences of which the pieces between backticks are code."""
    if "`" not in text.en:
        return both(text, element)
    return "".join(
        f'<{element} lang="{language}">{with_code(one_line(said), escaped, code)}</{element.split()[0]}>'
        for language, said in (("en", text.en), ("zh-CN", text.zh))
    )


def quiet(text: Text) -> str:
    """A paragraph that stays in the background."""
    return both(text, 'p class="quiet"')


def code(text: str) -> str:
    """A text as code, on one line; one that is too long for its place is broken between its parts."""
    return f"<code>{with_breaks(escaped(one_line(text)))}</code>"


_UNBROKEN = 20  # characters
_PARTS = re.compile(r"(::|[/._,(=])(?=[^/._,(=:])")


def with_breaks(escaped_text: str) -> str:
    """Where the parts of a long path or name meet, it may be broken."""
    return _PARTS.sub(r"\1<wbr>", escaped_text) if len(escaped_text) > _UNBROKEN else escaped_text


# Verdicts.


def badge(grade: Grade, shown: str = "") -> str:
    """A verdict in words, with a sign that does not need the colour."""
    sign = f'<i aria-hidden="true">{grade.sign}</i>' if grade.sign else ""
    return f'<span class="badge {grade.kind}">{sign}{shown or both(grade.name)}</span>'


def chips(grades: Iterable[tuple[str, Grade]], data: str) -> str:
    """Buttons that a script makes filters of: each verdict by its value, as the attribute data-..."""
    return "".join(
        f'<button type="button" class="chip {grade.kind}" data-{data}="{value}" aria-pressed="false">{both(grade.name)}</button>'
        for value, grade in grades
    )


# Sections and tables.


def section(title: Text, content: str, name: str = "", *, count: int | None = None, kind: str = "") -> str:
    """A part of the page under its heading, with the number of what it holds."""
    number = "" if count is None else f'<span class="count">{count:,}</span>'
    which = f' class="{kind}"' if kind else ""
    which += f' id="{name}"' if name else ""
    return f"<section{which}><h2>{both(title)}{number}</h2>{content}</section>"


def row(cells: Iterable[str], cell: str = "td", kind: str = "", numbers: Container[int] = ()) -> str:
    """A row of a table; the cells are HTML already, `numbers` the positions of those that stand on the right."""
    start = f'<tr class="{kind}">' if kind else "<tr>"
    tags = (f'{cell} class="number"' if at in numbers else cell for at in count())
    return (
        start + "".join(f"<{tag}>{each}</{cell}>" for tag, each in zip(tags, cells, strict=False)) + "</tr>"
    )


def table(
    heads: Iterable[Text], rows: Iterable[str], kind: str = "rules", numbers: Container[int] = ()
) -> str:
    """A table in the look of all reports."""
    head = row(map(both, heads), "th", numbers=numbers)
    return scrolled(f"<thead>{head}</thead><tbody>{''.join(rows)}</tbody>", kind)


def facts(rows: Iterable[Iterable[str]], kind: str = "rules facts") -> str:
    """A table without a head: names and what they stand for, as HTML."""
    return scrolled(f"<tbody>{''.join(map(row, rows))}</tbody>", kind)


def scrolled(content: str, kind: str) -> str:
    """A table that may be wider than the page."""
    return f'<div class="scroll"><table class="{kind}">{content}</table></div>'


def sortable_head(heads: Iterable[tuple[Text, str]]) -> str:
    """The head of a table that a script sorts: by text, by number, or by what the script knows of."""
    cells = "".join(f'<th scope="col" data-sort="{kind}">{both(text)}</th>' for text, kind in heads)
    return f"<thead><tr>{cells}</tr></thead>"


def tree_tools() -> str:
    """Buttons that open and close a tree; for the script, hidden without it."""
    return (
        f'<p class="tools" hidden><button type="button" class="plain" data-open="true">{both(_EXPAND)}</button> '
        f'<button type="button" class="plain" data-open="false">{both(_COLLAPSE)}</button></p>'
    )


def filters(search: Text, chosen: str, shown: Text) -> str:
    """A search and what else limits a table; for the script, hidden without it."""
    return (
        f'<form class="filters" role="search" hidden><label class="quiet" for="query">{both(search)}</label>'
        f'<input type="search" id="query" autocomplete="off" spellcheck="false">{chosen}'
        f'<button type="button" class="plain clear" id="clear">{both(_CLEAR)}</button>'
        f'<span class="quiet" id="shown" role="status">{both(shown)}</span></form>'
    )


def pager() -> str:
    """The way through a table of many rows; for the script, hidden without it."""
    return (
        f'<p class="pager" hidden><button type="button" class="plain previous">{both(_PREVIOUS)}</button> '
        '<span class="page quiet"></span> '
        f'<button type="button" class="plain following">{both(_FOLLOWING)}</button></p>'
    )


def long_table(name: str, found: Table, search: Text, sorted_by: int) -> str:
    """A table as data that a script sorts, filters and divides into pages; without it, its beginning. `sorted_by` is the
    column that the rows are in the order of, the greatest first."""
    columns = zip(*found.rows, strict=True) if found.rows else ((),) * len(found.columns)
    kinds = [_kind_of(column, fields) for column, fields in zip(found.columns, columns, strict=True)]
    head = "".join(
        f'<th scope="col" data-kind="{kind}"{" aria-sort=descending" if at == sorted_by else ""}>{both(column.head)}</th>'
        for at, (kind, column) in enumerate(zip(kinds, found.columns, strict=True))
    )
    total = len(found.rows)
    rows = (row(map(html_cell, cells)) for cells in found.first(_WITHOUT_SCRIPT).cells)
    left = (
        f"<noscript>{quiet(_REST.format(count=_WITHOUT_SCRIPT))}</noscript>"
        if total > _WITHOUT_SCRIPT
        else ""
    )
    shown = both(_SHOWN.format(count=f"{total:,}"))
    tools = (
        f'<form class="filters" hidden><label class="hush" for="{name}-query">{both(search)}</label>'
        f'<input type="search" id="{name}-query" autocomplete="off" data-placeholder="{escaped("|".join(search))}">'
        f'<span class="quiet shown">{shown}</span></form>'
    )
    content = scrolled(f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>", "rules sorted")
    packed = [
        [_packed(field, kind) for field, kind in zip(fields, kinds, strict=True)] for fields in found.rows
    ]
    data = data_for_script(packed)
    return f'<div class="long" id="{name}">{tools}{content}{pager()}{left}{data}</div>'


def _kind_of(column: Column, fields: Sequence[Field]) -> str:
    """How the script shows and sorts a column."""
    if column.kind:
        return column.kind
    if any(isinstance(field, Grade) for field in fields):
        return "grade"
    if column.is_right:
        return "figure"
    cells = [field for field in fields if isinstance(field, Cell)]
    if cells and all(cell.is_code for cell in cells):
        return "code"
    texts = [field.text if isinstance(field, Cell) else field for field in fields]
    return "both" if any(isinstance(text, Text) for text in texts) else "text"


def _packed(field: Field, kind: str) -> object:
    """A field as the script takes it."""
    if isinstance(field, Grade):
        return [field.kind, *both_on_one_line(field.name)]
    if kind == "figure":
        shown = field.say("en") if isinstance(field, Cell) else str(field)
        return [shown, field.value if isinstance(field, Cell) else field]
    text = field.text if isinstance(field, Cell) else field
    if isinstance(text, Text):
        return text.en if kind == "code" else [visible(text.en), visible(text.zh)]
    return visible(text) if isinstance(text, str) else text


def in_table_order(found: Iterable[Choice], grades: Mapping[Choice, Grade]) -> list[tuple[Choice, Grade]]:
    """The verdicts that are there, each once, in the order of their table."""
    present = set(found)
    return [(value, grade) for value, grade in grades.items() if value in present]
