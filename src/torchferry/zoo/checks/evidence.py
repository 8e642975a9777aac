"""Whether the accuracy is shown, and is the original's."""

from __future__ import annotations

import math
from collections.abc import Iterator

from torchferry.errors import FerryError
from torchferry.report.checks import CheckResult, Status
from torchferry.text import Text
from torchferry.zoo.delivery import Delivery
from torchferry.zoo.evidence import FigureRow, RunEvidence, compare, read_evidence

ID = "evidence"
_ABSENT = Text("no {folder}/{name}.log", "没有 {folder}/{name}.log")
_ABSENT_WHY = Text(
    "the guide requires the original's accuracy, in any form: with a log, CSV or JSON of each run "
    "(the loss of each step, or metrics) it can be compared here; put it there, or pass it to `ferry "
    "zoo new` with {option} FILE",
    "指南要求精度达到原模型水平，但未规定形式：有两次运行的日志、CSV 或 JSON（每步 loss 或指标）"
    "即可在此比较；请放到该处，或在 `ferry zoo new` 中用 {option} FILE 给出",
)
_BOTH_WHY = _ABSENT_WHY.format(option="--original-results FILE --results")
_HOLDS = Text("{original} and {port}: {share}", "原模型 {original}，移植后 {port}：{share}")
_CURVE = Text(
    "{original} and {port} at the end; over {steps} steps on average {share} ({offset})",
    "末段原模型 {original}，移植后 {port}；{steps} 步平均 {share}（{offset}）",
)
_LENGTHS = Text(
    "; the original has {original} steps, the port {port}", "；原模型 {original} 步，移植后 {port} 步"
)
_BROKEN = Text("; no number at step {step}", "；第 {step} 步不是数值")
_WHY = Text(
    "at most {relative}, or {absolute}, by the zoo's own rule",
    "不超过 {relative} 或 {absolute}（模型库规则）",
)
_LEVEL = Text("the original's level must be reached", "须达到原模型水平")
_BETTER = Text(
    "far below the original's: were data, batch size and learning rate the same?",
    "远低于原模型：数据、批大小与学习率是否一致？",
)
_SHORT = Text(
    "only {steps} steps are compared; the zoo compares {wanted}, or the final accuracy",
    "仅比较 {steps} 步；模型库比较 {wanted} 步或最终精度",
)
_SPEED = Text("speed, for information", "速度，供参考")
_ONE_SIDED = Text("only one of the two files contains it", "只有一个文件中有")
_NO_STEP = Text("the two runs have no step in common", "两次运行没有共同的步")
_NOTHING = Text("the two files have nothing in common to compare", "两个文件没有可比较的内容")
_SIMULATED = Text("measured on a simulated device", "在模拟设备上测得")
_SIMULATED_WHY = Text("reviewers want figures from the real device", "评审需要真实设备的数据")


def check(delivery: Delivery) -> Iterator[CheckResult]:
    """An item for each file that is missing, else one for each figure."""
    options = {delivery.table.original_log: "--original-results", delivery.table.port_log: "--results"}
    absent = [name for name in options if delivery.log(name) is None]
    for name in absent:
        found = _ABSENT.format(folder=delivery.table.run_folder, name=name)
        yield CheckResult(ID, name, Status.DOUBT, found, _ABSENT_WHY.format(option=options[name]))
    if absent:
        return
    try:
        golden, mine = read_both(delivery)
    except FerryError as error:
        yield CheckResult(ID, ID, Status.MISSING, error.text, _BOTH_WHY)
        return
    yield from _rows(delivery, golden, mine)


def read_both(delivery: Delivery) -> tuple[RunEvidence, RunEvidence]:
    """Of the original and of the port; a file that is missing shows nothing."""
    original, port = delivery.log(delivery.table.original_log), delivery.log(delivery.table.port_log)
    return (
        read_evidence(original, of_original=True) if original else RunEvidence(),
        read_evidence(port) if port else RunEvidence(),
    )


def _rows(delivery: Delivery, golden: RunEvidence, mine: RunEvidence) -> Iterator[CheckResult]:
    table = delivery.table
    relative = table.relative_error if delivery.tolerance is None else delivery.tolerance
    rows = list(compare(golden, mine, relative, table.absolute_error))
    if mine.simulated:
        yield CheckResult(ID, table.port_log, Status.DOUBT, _SIMULATED, _SIMULATED_WHY)
    judged = [row for row in rows if row.holds is not None]
    if not judged:
        yield CheckResult(ID, ID, Status.MISSING, _NOTHING, _BOTH_WHY)
    longest = max((row.steps for row in judged), default=0)
    if judged and all(row.is_curve for row in judged) and longest < table.steps:
        found = _SHORT.format(steps=longest, wanted=table.steps)
        yield CheckResult(ID, "steps", Status.DOUBT, found)
    for row in rows:
        yield _item(row, relative, table.absolute_error)


def _item(row: FigureRow, relative: float, absolute: float) -> CheckResult:
    found = _found(row)
    if row.holds is None:
        both = row.original is not None and row.port is not None
        why = _SPEED if row.is_speed else _NO_STEP if both else _ONE_SIDED
        return CheckResult(ID, row.name, Status.NOTE, found, why)
    if not row.is_curve:
        return CheckResult(ID, row.name, Status.FINE if row.holds else Status.MISSING, found, _LEVEL)
    why = _WHY.format(relative=f"{relative:+.0%}", absolute=f"{absolute:+g}")
    if row.holds and row.difference < -max(relative, 0.05) and row.offset < -absolute:
        return CheckResult(ID, row.name, Status.DOUBT, found, _BETTER)
    return CheckResult(ID, row.name, Status.FINE if row.holds else Status.MISSING, found, why)


def _found(row: FigureRow) -> Text:
    share = "?" if math.isnan(row.difference) and row.holds is None else f"{row.difference:+.2%}"
    values = {"original": _shown(row.original), "port": _shown(row.port), "share": share}
    if not row.steps:
        return _HOLDS.format(**values)
    text = _CURVE.format(**values, steps=row.steps, offset=f"{row.offset:+.3g}")
    if row.lengths != (row.steps, row.steps):
        more = _LENGTHS.format(original=row.lengths[0], port=row.lengths[1])
        text = Text(text.en + more.en, text.zh + more.zh)
    if row.broken_at is not None:
        step = row.broken_at if isinstance(row.broken_at, int) else "/".join(map(str, row.broken_at))
        more = _BROKEN.format(step=step)
        text = Text(text.en + more.en, text.zh + more.zh)
    return text


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"
