"""Long tables of the page: the rows as data that the script sorts, filters and divides into pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from torchferry import units
from torchferry.perf.model import Analysis
from torchferry.perf.report import sentences, words
from torchferry.perf.report.html_parts import quiet
from torchferry.report.html import embed
from torchferry.report.markup import both, escaped, row
from torchferry.report.safe import one_line
from torchferry.text import Text

_WITHOUT_SCRIPT = 50  # rows
Cell = str | int | float | Text | None


class Column(NamedTuple):
    """kind: code, text, both (a Text), count, time (seconds), more (seconds, signed), share, ratio."""

    head: Text
    kind: str


def long_table(anchor: str, columns: Sequence[Column], rows: Sequence[Sequence[Cell]], sorted_by: int) -> str:
    """The table; `sorted_by`: the column that the rows are in the order of, the greatest first."""
    head = "".join(
        f'<th scope="col" data-kind="{column.kind}"{" aria-sort=descending" if at == sorted_by else ""}>'
        f"{both(column.head)}</th>"
        for at, column in enumerate(columns)
    )
    first = [
        row([_static(column.kind, cell) for column, cell in zip(columns, cells, strict=True)])
        for cells in rows[:_WITHOUT_SCRIPT]
    ]
    data = [[_packed(cell) for cell in cells] for cells in rows]
    left = (
        f"<noscript>{quiet(words.SORTED_TABLE_LEFT.format(count=_WITHOUT_SCRIPT))}</noscript>"
        if len(rows) > _WITHOUT_SCRIPT
        else ""
    )
    return (
        f'<div class="long" id="{anchor}">{_tools(anchor, len(rows))}<div class="scroll"><table class="rules sorted"><thead><tr>'
        f"{head}</tr></thead><tbody>{''.join(first)}</tbody></table></div>{_pager()}{left}"
        f'<script type="application/json">{embed(data)}</script></div>'
    )


def _tools(anchor: str, count: int) -> str:
    shown = both(words.SHOWN.format(count=f"{count:,}"))
    return (
        f'<form class="filters" hidden><label class="hush" for="{anchor}-query">{both(words.SEARCH)}</label>'
        f'<input type="search" id="{anchor}-query" autocomplete="off" data-placeholder="{escaped(words.SEARCH.en)}|'
        f'{escaped(words.SEARCH.zh)}"><span class="quiet shown">{shown}</span></form>'
    )


def _pager() -> str:
    return (
        f'<p class="pager" hidden><button type="button" class="plain previous">{both(words.PREVIOUS)}</button>'
        f'<span class="page"></span><button type="button" class="plain following">{both(words.FOLLOWING)}</button></p>'
    )


def _packed(cell: Cell) -> Any:
    if isinstance(cell, Text):
        return [one_line(cell.en), one_line(cell.zh)]
    return one_line(cell) if isinstance(cell, str) else cell


def _static(kind: str, cell: Cell) -> str:
    """As the script writes it."""
    if isinstance(cell, Text):
        return both(cell)
    if cell is None or cell == "":
        return ""
    if isinstance(cell, str):
        return f"<code>{escaped(one_line(cell))}</code>" if kind == "code" else escaped(one_line(cell))
    return escaped(_figure(kind, cell))


def _figure(kind: str, value: float) -> str:
    if kind == "time":
        return units.duration(value)
    if kind == "more":
        return units.signed_duration(value)
    if kind == "share":
        return units.percent(value)
    return f"{value:.2f}" if kind == "ratio" else f"{value:,g}"


def operators_section(analysis: Analysis) -> str:
    """Operators by name, shapes and types."""
    if not analysis.operators:
        return ""
    total = analysis.seconds or 1.0
    has_roofline = any(each.roofline is not None for each in analysis.operators)
    columns = [
        Column(words.OPERATOR, "code"), Column(words.SHAPES, "text"), Column(words.DTYPES, "text"),
        Column(words.PLACE, "code"), Column(words.CALLS, "count"), Column(words.HOST_TIME, "time"),
    ]  # fmt: skip
    columns += [] if analysis.is_host_only else [Column(words.DEVICE_TIME, "time")]
    columns += [Column(words.SHARE, "share"), *([Column(words.ROOFLINE, "share")] if has_roofline else [])]
    rows: list[list[Cell]] = [
        [
            each.operator, each.shapes, each.dtypes, sentences.place(each.place), each.calls, each.host_seconds,
            *([] if analysis.is_host_only else [each.device_seconds]), each.device_seconds / total,
            *([each.roofline] if has_roofline else []),
        ]
        for each in analysis.operators
    ]  # fmt: skip
    drawn = long_table("operator-table", columns, rows, 6 if analysis.is_host_only else 7)
    return f'<section id="operators"><h2>{both(words.OPERATORS)}</h2>{drawn}</section>'


def kernels_section(analysis: Analysis) -> str:
    """What the device did, by name."""
    if not analysis.kernels:
        return ""
    columns = [
        Column(words.KERNEL, "code"), Column(words.KIND, "both"), Column(words.LAUNCHED_BY, "code"),
        Column(words.CALLS, "count"), Column(words.TIME, "time"),
    ]  # fmt: skip
    rows: list[list[Cell]] = [
        [each.name, words.SPAN_KIND[each.kind], each.operator, each.calls, each.seconds]
        for each in analysis.kernels
    ]
    return f'<section id="kernels"><h2>{both(words.KERNELS)}</h2>{long_table("kernel-table", columns, rows, 4)}</section>'
