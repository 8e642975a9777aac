"""What is missing in a delivery, as a page for people and as JSON."""

from __future__ import annotations

from torchferry.report.page import Cell, Column, Page, Table
from torchferry.report.safe import in_both_languages, printable
from torchferry.text import Language, Text
from torchferry.zoo.model import Item, Review, Status

FORMAT = "torchferry-zoo-review"
_TITLE = Text("Review for {zoo}", "{zoo} 交付检查")
_COMPLETE = Text("complete", "交付完整")
_BESIDES = Text(
    "complete by the zoo's guide; most models also have {names}",
    "已满足模型库指南的要求；多数模型还有 {names}",
)
_PARTLY = Text(
    "only the layout and the files were checked: programs for {framework} are not read yet",
    "仅检查了目录与文件：暂不支持读取 {framework} 程序",
)
_HOW = Text(
    "to hand it in: fork {address}, put the folder into your fork, commit it, and open a pull request (Fork + PullRequest)",
    "提交方式：fork {address}，把该目录放入您的 fork 并提交，然后发起 Pull Request（Fork + PullRequest 模式）",
)
_MEANING = Text(
    "required is what the zoo's guide asks for: place, plugin, device, DDP and AMP, accuracy; recommended is what most models "
    "of the zoo have besides",
    "必需项来自模型库指南：目录、插件、设备、DDP 与 AMP、精度；建议项是模型库多数模型另外具备的内容",
)
_DOUBTS = Text("complete, but a reviewer will ask about {names}", "交付完整，但评审者会询问 {names}")
_MISSING = Text("not complete, missing: {names}", "交付不完整，缺少：{names}")
_REST = Text(
    "required and missing: {missing}, doubts: {doubt}, recommended: {recommended}, notes: {note}, fine: {fine}",
    "必需但缺少 {missing} 项，存疑 {doubt} 项，建议 {recommended} 项，说明 {note} 项，正常 {fine} 项",
)
_ITEMS = Text("Checks", "检查项")
_SUBJECT = Column(Text("what", "项目"), is_whole=True)
_STATUS = Column(Text("verdict", "结论"), is_whole=True)
_FOUND = Column(Text("found, and what is asked for", "现状与要求"))
_WORDS = {
    Status.MISSING: Text("missing", "缺少"),
    Status.DOUBT: Text("doubt", "存疑"),
    Status.RECOMMENDED: Text("recommended", "建议"),
    Status.NOTE: Text("note", "说明"),
    Status.FINE: Text("fine", "正常"),
}
_STYLES = {
    Status.MISSING: "bold red",
    Status.DOUBT: "yellow",
    Status.RECOMMENDED: "cyan",
    Status.NOTE: "",
    Status.FINE: "green",
}


def page_of(found: Review, language: Language) -> Page:
    """Verdict first, then every check."""
    rows = tuple(_row(item, language) for item in found.items)
    table = Table(_ITEMS, (_SUBJECT, _STATUS, _FOUND), rows)
    counts = {status.value: found.count(status) for status in Status}
    verdicts = (_verdict(found), (_REST.format(**counts), ""))
    address = found.delivery.table.address
    notes = (_MEANING, *([_HOW.format(address=address)] if address else []))
    return Page(_TITLE.format(zoo=found.delivery.table.name), verdicts, (table,), notes)


def _verdict(found: Review) -> tuple[Text, str]:
    for status, text, style in (
        (Status.MISSING, _MISSING, "bold red"),
        (Status.DOUBT, _DOUBTS, "yellow"),
        (Status.RECOMMENDED, _BESIDES, "cyan"),
    ):
        if not found.is_whole and status is not Status.MISSING:
            return _PARTLY.format(framework=found.delivery.place.framework), "yellow"
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
        "complete": found.is_complete if found.is_whole else None,
        "counts": {status.value: found.count(status) for status in Status},
        "items": [_item(item) for item in found.items],
    }
    return json.dumps(content, indent=2) + "\n"


def _item(item: Item) -> dict[str, object]:
    return {
        "id": item.id,
        "subject": printable(item.subject),
        "status": item.status.value,
        "found": in_both_languages(item.found),
        "why": in_both_languages(item.why),
        "place": printable(item.place) or None,
    }
