"""Whether the README says what a reviewer needs, and nothing is left to fill in."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchferry.text import Text
from torchferry.zoo.delivery import PLACEHOLDER, READMES, Delivery
from torchferry.zoo.model import Item, Status

ID = "readme"
_ABSENT = Text("not there", "不存在")
_ABSENT_WHY = Text("`ferry zoo new` makes one", "`ferry zoo new` 会生成")
_LEFT = Text("not filled in: {count}, the first: {first}", "尚未填写：{count} 处，第一处：{first}")
_LEFT_WHY = Text("replace each <TODO ...> by what it asks for", "请把每个 <TODO ...> 替换为所要求的内容")
_NO_SECTION = Text("no section on it", "没有相应章节")
_FINE = Text("all sections are there", "各章节齐全")
# Words of a heading or a line, in either language; a reviewer looks for each.
_SECTIONS = {
    Text("source of the code", "代码来源"): r"参考实现|代码来源|source|reference implementation|url\s*=",
    Text("data set", "数据集"): r"数据集|data\s?set",
    Text("environment", "环境"): r"环境|environment|requirements|docker",
    Text("command lines", "命令行"): r"(启动训练|训练|training|run)[\s\S]*(python|bash|sh|torchrun)\b",
    Text("results", "训练结果"): r"训练结果|精度|results|accuracy",
    Text("licence", "许可证"): r"许可|licen[cs]e",
}


def check(delivery: Delivery) -> Iterator[Item]:
    """An item for each section that is missing, and one for what is left to fill in."""
    name = READMES["zh"]
    text = delivery.read(name)
    if text is None:
        yield Item(ID, name, Status.MISSING, _ABSENT, _ABSENT_WHY)
        return
    missing = [section for section, pattern in _SECTIONS.items() if not re.search(f"(?i){pattern}", text)]
    for section in missing:
        yield Item(ID, f"{name}: {section.en}", Status.MISSING, _NO_SECTION, section)
    if not missing:
        yield Item(ID, name, Status.FINE, _FINE)
    for each in (name, READMES["en"]):
        yield from _left(each, delivery.read(each) or "")


def _left(name: str, text: str) -> Iterator[Item]:
    places = [(number, line) for number, line in enumerate(text.splitlines(), 1) if PLACEHOLDER in line]
    if places:
        number, line = places[0]
        start = line.index(PLACEHOLDER)
        found = _LEFT.format(count=len(places), first=line[start : start + 60])
        yield Item(ID, name, Status.MISSING, found, _LEFT_WHY, f"{name}:{number}")
