"""Whether files lie in the folder that do not belong into a repository of code."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

from torchferry.report.checks import CheckResult, Status
from torchferry.text import Text
from torchferry.zoo.delivery import Delivery, MisfitReason, leads_out, sort_of

ID = "files"
_SHOWN = 5
_WHY = Text("remove it, and say in the README where to get it", "请移除，并在 README 中说明其来源")
_CACHES_WHY = Text("remove it", "请移除")
_SORTS = {
    MisfitReason.LARGE: (Text("larger than 10 MiB: {names}", "大于 10 MiB：{names}"), _WHY),
    MisfitReason.WEIGHTS: (Text("weights: {names}", "权重：{names}"), _WHY),
    MisfitReason.DATA: (Text("data: {names}", "数据：{names}"), _WHY),
    MisfitReason.CACHE: (Text("created by runs: {names}", "运行产生的文件：{names}"), _CACHES_WHY),
}
_LINKS = Text("links that lead out of the folder: {names}", "指向文件夹之外的链接：{names}")
_LINKS_WHY = Text("others do not have the files that they point to", "他人没有其指向的内容")
_FINE = Text("{count} files, all of which belong here", "{count} 个文件，没有不应提交的文件")


def check(delivery: Delivery) -> Iterator[CheckResult]:
    """An item for each sort of file that is there."""
    found: dict[MisfitReason, list[str]] = {}
    logs = {delivery.log(delivery.table.original_log), delivery.log(delivery.table.port_log)}
    for name in delivery.files:
        size = 0
        with suppress(OSError):
            size = os.lstat(delivery.root / name).st_size
        sort = sort_of(name, size)
        if sort is not None and (delivery.root / name not in logs or sort is MisfitReason.LARGE):
            found.setdefault(sort, []).append(name)
    out = [link for link in delivery.links if leads_out(delivery.root, link)]
    for sort, names in found.items():
        text, why = _SORTS[sort]
        yield CheckResult(ID, "files", Status.DOUBT, text.format(names=_listed(names)), why)
    if out:
        yield CheckResult(ID, "links", Status.MISSING, _LINKS.format(names=_listed(out)), _LINKS_WHY)
    if not found and not out:
        yield CheckResult(ID, "files", Status.FINE, _FINE.format(count=len(delivery.files)))


def _listed(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
