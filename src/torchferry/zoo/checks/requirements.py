"""Whether requirements are listed, each with its version, and none brings CUDA back."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.report.checks import CheckResult, Status
from torchferry.text import Text
from torchferry.zoo.delivery import REQUIREMENTS, Delivery, is_unwanted, packages

ID = "requirements"
_ABSENT = Text("missing", "不存在")
_ABSENT_WHY = Text("list the packages that the program imports, with versions", "列出程序导入的软件包及版本")
_LOOSE = Text("without a version: {names}", "未固定版本：{names}")
_LOOSE_WHY = Text(
    "write name==version, so that the result can be reproduced", "请写成 name==version，以便复现"
)
_CUDA = Text("provided by the vendor, or only for CUDA: {names}", "由厂商提供或仅用于 CUDA：{names}")
_CUDA_WHY = Text(
    "installing them pulls in CUDA, or replaces the vendor's torch", "安装它们会引入 CUDA 或替换厂商的 torch"
)
_FINE = Text("{count} packages, all with a version", "{count} 个软件包，均固定版本")


def check(delivery: Delivery) -> Iterator[CheckResult]:
    """Items for what is loose and what is CUDA's."""
    text = delivery.read(REQUIREMENTS)
    if text is None:
        yield CheckResult(ID, REQUIREMENTS, Status.RECOMMENDED, _ABSENT, _ABSENT_WHY)
        return
    listed = dict(packages(text))
    loose = [name for name, version in listed.items() if not version]
    cuda = [name for name in listed if is_unwanted(name)]
    if loose:
        yield CheckResult(ID, REQUIREMENTS, Status.DOUBT, _LOOSE.format(names=", ".join(loose)), _LOOSE_WHY)
    if cuda:
        yield CheckResult(ID, REQUIREMENTS, Status.DOUBT, _CUDA.format(names=", ".join(cuda)), _CUDA_WHY)
    if not loose and not cuda:
        yield CheckResult(ID, REQUIREMENTS, Status.FINE, _FINE.format(count=len(listed)))
