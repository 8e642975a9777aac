"""Whether the licence of the original is there."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.report.checks import CheckResult, Status
from torchferry.text import Text
from torchferry.zoo.delivery import Delivery, licence_files, licence_name

ID = "licence"
_ABSENT = Text("no LICENSE file", "没有 LICENSE 文件")
_ABSENT_WHY = Text(
    "code without a license must not be distributed; copy it from the original, or ask its authors",
    "没有许可证的代码不得分发；请从原仓库取得，或询问作者",
)
_UNKNOWN = Text("an unknown license", "无法识别的许可证")
_COPYLEFT = Text("check whether the zoo may accept it", "请确认模型库能否接收")


def check(delivery: Delivery) -> Iterator[CheckResult]:
    """Whether there is a licence, and whether it is one that may be passed on."""
    names = licence_files(delivery.files)
    if not names:
        yield CheckResult(ID, "LICENSE", Status.DOUBT, _ABSENT, _ABSENT_WHY)
        return
    name = licence_name(delivery.read(names[0]) or "")
    if not name:
        yield CheckResult(ID, names[0], Status.NOTE, _UNKNOWN, _COPYLEFT)
    elif "GPL" in name or "NC" in name:
        yield CheckResult(ID, names[0], Status.DOUBT, Text(name, name), _COPYLEFT)
    else:
        yield CheckResult(ID, names[0], Status.FINE, Text(name, name))
