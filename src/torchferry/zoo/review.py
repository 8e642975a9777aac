"""The review of a delivery: every check of it, its short training, what is missing as a page for people, and as JSON."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from torchferry.errors import FerryError
from torchferry.launch.environment import environment_at
from torchferry.launch.place import DeviceKind, Place, build_for
from torchferry.launch.plugin import is_to_be_simulated
from torchferry.launch.supervise import run_supervised, stop_if_told
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
_NOT_READ = Text("its programs were not checked", "未读取其程序")
_NOT_READ_WHY = Text(
    "the rules for code, scripts and results are for PyTorch; check yourself whether the program "
    "uses the device, several processes and mixed precision",
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
    checked = run_checks(checks, delivery, lambda name: delivery.is_read or name in _OF_ANY_FRAMEWORK)
    results = [*more, *checked]
    if not delivery.is_read:
        results.append(CheckResult("code", delivery.place.framework, Status.NOTE, _NOT_READ, _NOT_READ_WHY))
    return Review(worst_first(results), delivery)


_RUN = "run"  # stands for a check among the results
_SECONDS = 900
_LAST_LINES = 3
_RAN = Text("ran to completion on {where}", "在{where}上运行完毕")
_FAILED = Text("ended with exit code {code} on {where}: {lines}", "在{where}上以退出码 {code} 结束：{lines}")
_TOO_LONG = Text("did not end within {seconds} s", "{seconds} 秒内没有结束")
_SHORT = Text("a short training should take a few minutes at most", "短训练最多只应几分钟")
_WHERE = {  # by the kind of the device
    "real": Text("the device", "设备"),
    "simulated": Text("a simulated device", "模拟设备"),
    "emulated": Text("the vendor's own plugin, emulated", "仿真运行的厂商官方插件"),
}
_CANT = Text("could not be run: {problem}", "无法运行：{problem}")


def run_short_training(
    delivery: Delivery, vendor_paths: tuple[str, ...], emulate: bool = False
) -> CheckResult:
    """Run the test script, its output aside; the item says how it ended."""
    name = delivery.table.test
    script = delivery.root / name
    if not script.is_file():
        return CheckResult(_RUN, name, Status.MISSING, _CANT.format(problem=f"no {name}"))
    kind = DeviceKind.SIMULATED if is_to_be_simulated(delivery.vendor) else DeviceKind.REAL
    place = Place(DeviceKind.EMULATED if emulate else kind, delivery.vendor, vendor_paths, converted=True)
    folders = [str(Path(sys.executable).parent), *filter(None, [os.environ.get("PATH")])]
    ours = {**os.environ, "PYTHON": sys.executable, "PATH": os.pathsep.join(folders)}
    try:
        build_for(place)
        environment = environment_at(place, ours=ours)
    except FerryError as error:
        return CheckResult(_RUN, name, Status.DOUBT, _CANT.format(problem=error.text))
    where = _WHERE[place.kind.value]
    # a training writes checkpoints and caches: they do not belong into a delivery
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as output:
        copy = Path(folder) / "delivery"
        shutil.copytree(delivery.root, copy, symlinks=True)
        command = ["bash", str(copy / name)]
        ending = run_supervised(command, environment, output, output, seconds=float(_SECONDS))
        stop_if_told(ending)
        output.seek(0)
        printed = output.read().decode("utf-8", "replace")
    if ending.out_of_time:
        return CheckResult(_RUN, name, Status.MISSING, _TOO_LONG.format(seconds=_SECONDS), _SHORT)
    if ending.exit_code:
        lines = " | ".join(line.strip() for line in printed.strip().splitlines()[-_LAST_LINES:])
        found = _FAILED.format(code=ending.exit_code, where=where, lines=lines)
        return CheckResult(_RUN, name, Status.MISSING, found)
    return CheckResult(_RUN, name, Status.FINE, _RAN.format(where=where))


REPORTS: Reports[Review] = Reports({"json": f"{__name__}:to_json"}, page=f"{__name__}:page_of")
_TITLE = Text("Review for {zoo}", "{zoo} 交付检查")
_COMPLETE = Text("complete", "交付完整")
_BESIDES = Text(
    "complete according to the zoo's guide; most models also have {names}",
    "已满足模型库指南的要求；多数模型还有 {names}",
)
_PARTLY = Text(
    "only layout and files were checked: programs for {framework} are not supported yet",
    "仅检查了目录与文件：暂不支持读取 {framework} 程序",
)
_HOW = Text(
    "to submit it: fork {address}, put the folder into your fork, commit it, and open a pull request",
    "提交方式：fork {address}，把该文件夹放入您的 fork 并提交，然后发起 Pull Request（Fork + "
    "PullRequest 模式）",
)
_MEANING = Text(
    "required by the zoo's guide: path, plugin, device, DDP and AMP, accuracy; recommended: what "
    "most models of the zoo also have",
    "必需项来自模型库指南：目录、插件、设备、DDP 与 AMP、精度；建议项是模型库多数模型另外具备的内容",
)
_DOUBTS = Text("complete, but reviewers will ask about {names}", "交付完整，但评审者会询问 {names}")
_MISSING = Text("not complete, missing: {names}", "交付不完整，缺少：{names}")
_REST = Text(
    "required and missing: {missing}, doubts: {doubt}, recommended: {recommended}, notes: {note}, fine: {fine}",
    "必需但缺少 {missing} 项，存疑 {doubt} 项，建议 {recommended} 项，说明 {note} 项，正常 {fine} 项",
)
_CHECKS = Text("Checks", "检查项")
_FOUND = Text("current state and requirement", "现状与要求")
_COUNTED = {
    Status.MISSING: Grade(Text("missing", "缺少"), BAD, own_style="bold red"),
    Status.DOUBT: Grade(Text("doubt", "存疑"), DOUBT),
    Status.RECOMMENDED: Grade(Text("recommended", "建议"), QUIET, own_style="cyan"),
    Status.NOTE: Grade(Text("note", "说明"), QUIET),
    Status.FINE: Grade(Text("fine", "正常"), GOOD),
}
# UNSEEN: the system did not let a check look.
GRADES = {**_COUNTED, Status.UNSEEN: Grade(Text("not visible", "看不到"), UNCLEAR)}


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
    """The whole review, for programs."""
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
