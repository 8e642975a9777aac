"""What is missing in a delivery, as a page for people and as JSON."""

from __future__ import annotations

from torchferry.report.page import Cell, Column, Page, Table
from torchferry.report.safe import printable
from torchferry.text import Language, Text
from torchferry.zoo.examine import Review
from torchferry.zoo.model import Item, Status

FORMAT = "torchferry-zoo-review"
_TITLE = Text("Review for {zoo}", "{zoo} 交付检查")
_COMPLETE = Text("complete", "交付完整")
_DOUBTS = Text("complete, but a reviewer will ask about {names}", "交付完整，但评审者会询问 {names}")
_MISSING = Text("not complete, missing: {names}", "交付不完整，缺少：{names}")
_REST = Text(
    "doubts: {doubt}, notes: {note}, fine: {fine}", "存疑 {doubt} 项，说明 {note} 项，正常 {fine} 项"
)
_ITEMS = Text("Checks", "检查项")
_SUBJECT = Column(Text("what", "项目"), is_whole=True)
_STATUS = Column(Text("verdict", "结论"), is_whole=True)
_FOUND = Column(Text("found, and what is asked for", "现状与要求"))
_WORDS = {
    Status.MISSING: Text("missing", "缺少"),
    Status.DOUBT: Text("doubt", "存疑"),
    Status.NOTE: Text("note", "说明"),
    Status.FINE: Text("fine", "正常"),
}
_STYLES = {Status.MISSING: "bold red", Status.DOUBT: "yellow", Status.NOTE: "", Status.FINE: "green"}


def page_of(found: Review, language: Language) -> Page:
    """Verdict first, then every check."""
    rows = tuple(_row(item, language) for item in found.items)
    table = Table(_ITEMS, (_SUBJECT, _STATUS, _FOUND), rows)
    counts = {status.value: found.count(status) for status in Status}
    verdicts = (_verdict(found), (_REST.format(**counts), ""))
    return Page(_TITLE.format(zoo=found.delivery.table.name), verdicts, (table,))


def _verdict(found: Review) -> tuple[Text, str]:
    for status, text, style in (
        (Status.MISSING, _MISSING, "bold red"),
        (Status.DOUBT, _DOUBTS, "yellow"),
    ):
        items = [item for item in found.items if item.status is status]
        if items:
            names = ", ".join(dict.fromkeys(item.subject for item in items))
            return text.format(names=names), style
    return _COMPLETE, "green"


def _row(item: Item, language: Language) -> tuple[Cell, ...]:
    lines = [item.found.in_language(language)]
    lines[0] += f" ({item.place})" if item.place else ""
    if item.why.en:
        lines.append(item.why.in_language(language))
    return (
        Cell(item.subject, is_code=True),
        Cell(_WORDS[item.status].in_language(language), _STYLES[item.status]),
        Cell("\n".join(lines)),
    )


def to_json(found: Review) -> str:
    """Everything, for programs."""
    import json

    place = found.delivery.place
    content = {
        "format": FORMAT,
        "version": 1,
        "zoo": found.delivery.table.name,
        "vendor": found.delivery.vendor.name,
        "framework": printable(place.framework),
        "domain": printable(place.domain),
        "model": printable(place.model),
        "complete": found.is_complete,
        "counts": {status.value: found.count(status) for status in Status},
        "items": [_item(item) for item in found.items],
    }
    return json.dumps(content, indent=2) + "\n"


def _item(item: Item) -> dict[str, object]:
    return {
        "id": item.id,
        "subject": printable(item.subject),
        "status": item.status.value,
        "found": {"en": printable(item.found.en), "zh": printable(item.found.zh)},
        "why": {"en": printable(item.why.en), "zh": printable(item.why.zh)},
        "place": printable(item.place) or None,
    }
