"""Whether the folder lies where the zoo wants it."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.report.checks import CheckResult, Status
from torchferry.text import Text
from torchferry.zoo.delivery import Delivery, closest

ID = "layout"
_WRONG_WHY = Text("{zoo} requires {layout}", "{zoo} 要求 {layout}")
_FRAMEWORK = Text(
    "'{name}' is not a framework of {zoo}; known: {known}", "{zoo} 没有框架“{name}”；已知的有 {known}"
)
_CLOSE = Text("not a domain of the zoo; did you mean {close}?", "模型库没有该领域；是否要输入 {close}？")
_NEW = Text("an unlisted domain; listed are {known}", "未列出的领域；已列出：{known}")


def check(delivery: Delivery) -> Iterator[CheckResult]:
    """What is wrong with the folder's path, or what it names."""
    place, table = delivery.place, delivery.table
    if not place.fixed:
        path = str(delivery.root.resolve())
        why = _WRONG_WHY.format(zoo=table.name, layout=table.layout)
        yield CheckResult(ID, "folder", Status.MISSING, Text(path, path), why)
        return
    if place.framework not in table.frameworks:
        known = ", ".join(table.frameworks)
        found = _FRAMEWORK.format(name=place.framework, zoo=table.name, known=known)
        yield CheckResult(ID, "framework", Status.MISSING, found)
    elif place.domain not in table.domains:
        close = closest(place.domain, table.domains)
        if close:
            yield CheckResult(ID, f"domain {place.domain}", Status.MISSING, _CLOSE.format(close=close))
            return
        found = _NEW.format(known=", ".join(table.domains))
        yield CheckResult(ID, f"domain {place.domain}", Status.NOTE, found, table.new_domain)
    else:
        parts = (place.framework, place.domain, place.model)
        yield CheckResult(ID, "folder", Status.FINE, Text(", ".join(parts), "，".join(parts)))
