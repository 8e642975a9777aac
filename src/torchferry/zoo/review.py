"""The review of a delivery: every check of it, what is missing as a page for people, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from torchferry.report.checks import (
    CheckResult,
    Examination,
    Status,
    result_content,
    result_table,
    run_checks,
    worst_first,
)
from torchferry.report.formats import Options, Reports
from torchferry.report.page import Page
from torchferry.report.records import BAD, DOUBT, GOOD, QUIET, UNCLEAR, Grade
from torchferry.report.safe import printable
from torchferry.text import Text
from torchferry.zoo import checks
from torchferry.zoo.delivery import Delivery

FORMAT = "torchferry-zoo-review"
_OF_ANY_FRAMEWORK = ("files", "layout", "licence", "readme")
_NOT_READ = Text("its programs were not read", "未读取其程序")
_NOT_READ_WHY = Text(
    "the rules for code, scripts and results are PyTorch's; whether the program uses the device, several processes and mixed "
    "precision is for you to check",
    "代码、脚本与结果的检查规则是针对 PyTorch 的；请自行检查程序是否使用了设备、多进程与混合精度",
)


@dataclass(frozen=True)
class Review(Examination):
    """What all checks say of a delivery."""

    delivery: Delivery

    @property
    def is_complete(self) -> bool:
        return not self.count(Status.MISSING)

    @property
    def is_whole(self) -> bool:
        """Whether the program was looked at, too."""
        return self.delivery.is_read


def review(delivery: Delivery, more: tuple[CheckResult, ...] = ()) -> Review:
    """All checks in turn, and results that were found otherwise."""
    results = [
        *more,
        *run_checks(checks, delivery, lambda name: delivery.is_read or name in _OF_ANY_FRAMEWORK),
    ]
    if not delivery.is_read:
        results.append(CheckResult("code", delivery.place.framework, Status.NOTE, _NOT_READ, _NOT_READ_WHY))
    return Review(worst_first(results), delivery)


REPORTS: Reports[Review] = Reports({"json": f"{__name__}:to_json"}, page=f"{__name__}:page_of")
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
_CHECKS = Text("Checks", "检查项")
_FOUND = Text("found, and what is asked for", "现状与要求")
_COUNTED = {
    Status.MISSING: Grade(Text("missing", "缺少"), BAD, own_style="bold red"),
    Status.DOUBT: Grade(Text("doubt", "存疑"), DOUBT),
    Status.RECOMMENDED: Grade(Text("recommended", "建议"), QUIET, own_style="cyan"),
    Status.NOTE: Grade(Text("note", "说明"), QUIET),
    Status.FINE: Grade(Text("fine", "正常"), GOOD),
}
GRADES = {
    **_COUNTED,
    Status.UNSEEN: Grade(Text("not visible", "看不到"), UNCLEAR),
}  # the system did not let it look


def page_of(found: Review, options: Options) -> Page:
    """Verdict first, then every check."""
    table = found.delivery.table
    verdicts = (_verdict(found), (_REST.format(**found.counts(_COUNTED)), ""))
    notes = (_MEANING, *([_HOW.format(address=table.address)] if table.address else []))
    checked = result_table(_CHECKS, _FOUND, found.results, GRADES, _said)
    return Page(_TITLE.format(zoo=table.name), verdicts, (checked,), notes)


def _verdict(found: Review) -> tuple[Text, str]:
    for status, text in ((Status.MISSING, _MISSING), (Status.DOUBT, _DOUBTS), (Status.RECOMMENDED, _BESIDES)):
        if not found.is_whole and status is not Status.MISSING:
            return _PARTLY.format(framework=found.delivery.place.framework), "yellow"
        if results := found.of(status):
            names = ", ".join(dict.fromkeys(result.subject for result in results))
            return text.format(names=names), GRADES[status].style
    return _COMPLETE, "green"


def _said(result: CheckResult) -> Iterator[Text]:
    place = f" ({result.place})" if result.place else ""
    yield Text(result.found.en + place, result.found.zh + place)
    if result.why.en:
        yield result.why


def to_json(found: Review, options: Options) -> str:
    """Everything, for programs."""
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
        "counts": found.counts(_COUNTED),
        "items": [
            {**result_content(result), "place": printable(result.place) or None} for result in found.results
        ],
    }
    return json.dumps(content, indent=2) + "\n"
