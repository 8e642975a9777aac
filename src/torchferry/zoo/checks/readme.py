"""Whether the README says what a reviewer needs, and nothing is left to fill in."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchferry.report.checks import CheckResult, Status
from torchferry.text import Text
from torchferry.zoo.delivery import PLACEHOLDER, READMES, Delivery

ID = "readme"
_ABSENT = Text("missing", "不存在")
_ABSENT_WHY = Text(
    "every model of the zoo has one; `ferry zoo new` creates it",
    "模型库的每个模型都有；`ferry zoo new` 会生成",
)
_LEFT = Text("not filled in: {count} places, first: {first}", "尚未填写：{count} 处，第一处：{first}")
_LEFT_WHY = Text("replace each <TODO ...> with what it asks for", "请把每个 <TODO ...> 替换为所要求的内容")
_NO_SECTION = Text("no section about it", "没有相应章节")
_EMPTY = Text("its section is empty", "相应章节为空")
_FINE = Text("all sections exist", "各章节齐全")
_HEADING = re.compile(r"^(#+)\s+(.*)$")
_FENCED = re.compile(r"(?s)```.*?```")
_COMMANDS = r"(?:^|[ \t`$])(?:python3?|bash|sh|torchrun)[ \t]+\S+"
# Words of a heading or a line, in either language; a reviewer looks for each.
_SECTIONS = {
    Text(
        "source of the code", "代码来源"
    ): r"参考实现|来源|源码|仓库|来自|论文|source|reference implementation|url\s*=",
    Text("data set", "数据集"): r"数据集|data\s?set",
    Text("environment", "环境"): r"环境|environment|requirements|docker",
    Text("command lines", "命令行"): _COMMANDS,
    Text("results", "训练结果"): r"训练结果|精度|results|accuracy",
}


def check(delivery: Delivery) -> Iterator[CheckResult]:
    """An item for each section that is missing, and one for what is left to fill in."""
    name = READMES["zh"]
    text = delivery.read(name)
    if text is None:
        yield CheckResult(ID, name, Status.RECOMMENDED, _ABSENT, _ABSENT_WHY)
        return
    missing = [(section, why) for section, pattern in _SECTIONS.items() if (why := _problem(text, pattern))]
    for section, why in missing:
        yield CheckResult(ID, f"{name}: {section.en}", Status.RECOMMENDED, why, section)
    if not missing:
        yield CheckResult(ID, name, Status.FINE, _FINE)
    for each in (name, READMES["en"]):
        lines = enumerate((delivery.read(each) or "").splitlines(), 1)
        left = [(number, line[line.index(PLACEHOLDER) :]) for number, line in lines if PLACEHOLDER in line]
        if left:
            number, first = left[0]
            found = _LEFT.format(count=len(left), first=first[:60])
            yield CheckResult(ID, each, Status.MISSING, found, _LEFT_WHY, place=f"{each}:{number}")


def _problem(text: str, pattern: str) -> Text | None:
    """Why a section does not count: it is not there, or its heading stands alone."""
    wanted = re.compile(f"(?im){pattern}")
    parts = list(_parts(text))
    headed = [body for heading, body in parts if wanted.search(heading)]
    if headed:
        return None if any(body.strip() for body in headed) else _EMPTY
    whole = parts[0][1]
    # words of a command line are no section
    said = whole if pattern == _COMMANDS else _FENCED.sub("", whole)
    return None if wanted.search(said) else _NO_SECTION


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """Each heading with what stands below it, the text of the headings below it included, these themselves not."""
    lines = text.splitlines()
    yield "", "\n".join(line for line in lines if not _HEADING.match(line))
    heads = [(number, found) for number, line in enumerate(lines) if (found := _HEADING.match(line))]
    for place, (number, found) in enumerate(heads):
        below = (at for at, other in heads[place + 1 :] if len(other[1]) <= len(found[1]))
        body = lines[number + 1 : next(below, len(lines))]
        yield found[2], "\n".join(line for line in body if not _HEADING.match(line))
