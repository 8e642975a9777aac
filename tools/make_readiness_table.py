"""Writes docs/en/evidence/readiness.md and docs/zh/evidence/readiness.md: what every vendor's adapter does with the operators of each
model of the guide's table.

    python tools/make_readiness_table.py

The operators of a training step of each model are captured here and now, on the CPU. It takes a few minutes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

from torchferry.operators.names import TAKEN_WHOLE
from torchferry.readiness import capture_json
from torchferry.readiness.judge import device_uses, judge
from torchferry.readiness.model import Capture, OperatorSupport, Readiness, UseJudgement
from torchferry.readiness.report.words import ready_percent
from torchferry.text import Language, Text
from torchferry.vendors.registry import get_vendor, vendor_names

ROOT = Path(__file__).resolve().parent.parent
PAGE = "evidence/readiness.md"
LANGUAGES: tuple[Language, ...] = ("en", "zh")
_RUNNER = "tests.readiness.matrix.runner"

TITLE = Text("Operator readiness of the guide's models", "指南所列模型的算子就绪情况")
INTRO = Text(
    "The guide to migrating PyTorch training lists {total} models. One training step of each (forward, backward, "
    "optimizer, in every turn of models that train several parts) was captured on the CPU, and each operator was "
    "looked up in the table of each vendor's adapter, as `ferry ops` does. The share is that of the operator time, "
    "measured on the CPU, whose operators the device itself computes.",
    "PyTorch 训练迁移指南列出了 {total} 个模型。对每个模型在 CPU 上捕获一个训练步（前向、反向、优化器；轮流训练多个"
    "部分的模型包括每一轮），并像 `ferry ops` 那样在各厂商插件的算子表中查找每个算子。百分比是设备自身能计算的"
    "算子所占的算子时间（在 CPU 上测得）。",
)
NOTHING_LACKS = Text(
    "The tables of {vendors} list all operators of the adapter, and none of them lacks or limits one that these models "
    "call: by the tables, nothing of a step falls back to the CPU. That says that there is a kernel, not that it is "
    "fast or exact.",
    "{vendors} 的算子表列出了插件的全部算子；这些模型调用的算子在表中没有缺失，也没有限制：按表判断，训练步中没有"
    "算子回退到 CPU。这只说明有 kernel，不说明它的速度和精度。",
)
PROOF = Text(
    "How far such a prediction can be trusted, tables that do lack operators show. `tests/readiness/matrix` trains the same "
    "step of every model on simulated devices: with the own table of each vendor whose table is complete, with one "
    "from which operators that most models call were taken, and with an empty one, where all that needs a kernel falls "
    "back. The operators that fall back there, and how often, must be those that were predicted from the CPU; one name "
    "or one call of difference fails the test.",
    "这种预测是否可信，要靠确实缺少算子的表来检验。`tests/readiness/matrix` 在模拟设备上训练每个模型的同一步：分别使用每个完整的"
    "厂商算子表、去掉了多数模型都会调用的算子的表，以及空表（凡需要 kernel 的算子全部回退）。在那里回退的算子及其次数必须与"
    "根据 CPU 捕获所作的预测相同；名称或次数有一处不同，测试即失败。",
)
INCOMPLETE = Text(
    "The tables of {vendors} do not list all operators: what they do not list is unknown, not missing. Their columns "
    "say of how many of the step's operators the table speaks, and which of those it limits; they are no measure of "
    "readiness.",
    "{vendors} 的算子表不完整：表中没有的算子是未知，不是缺失。这些列只说明该步的算子中有多少个在表中、其中哪些受限，不能"
    "衡量就绪程度。",
)
MADE = Text(
    "Made by `tools/make_readiness_table.py` on {day} with torch {torch}, torchvision {torchvision} and timm {timm}. "
    "The models are those of [the simulated device's table](models.md); a version beside a vendor is that of the "
    "adapter whose table was asked.",
    "由 `tools/make_readiness_table.py` 于 {day} 生成，使用 torch {torch}、torchvision {torchvision}、timm {timm}。模型与"
    "[模拟设备的表](models.md)相同；厂商旁的版本是所查算子表对应的插件版本。",
)
HEAD = Text("| # | Model | Operators | {vendors} |", "| 序号 | 模型 | 算子数 | {vendors} |")
CONCERNS = Text("Operators that need a look", "需要关注的算子")
NO_CONCERNS = Text(
    "None: no complete table lacks or limits an operator of these models.",
    "无：完整的算子表对这些模型的算子没有缺失，也没有限制。",
)
CONCERN_HEAD = Text(
    "| Operator | Vendor | What happens | Models | What to do |",
    "| 算子 | 厂商 | 会发生什么 | 模型 | 怎么办 |",
)
KNOWN = Text("{known} of {total} known", "{total} 个中已知 {known} 个")
COUNTS = {
    OperatorSupport.FALLBACK: Text("fall back: {names}", "回退到 CPU：{names}"),
    OperatorSupport.MISSING: Text("missing: {names}", "缺失：{names}"),
    OperatorSupport.LIMITED: Text("limited: {names}", "受限：{names}"),
    OperatorSupport.UNKNOWN: Text("unknown: {names}", "未知：{names}"),
}
MANY = Text("{count} models", "{count} 个模型")
MAX_NAMES = 6
BETWEEN_NAMES = Text(", ", "、")
BETWEEN_PARTS = Text("; ", "；")
NO_ADVICE = Text("nothing is known but what the limit says", "除限制说明所述外，没有其他已知办法")
FAILED = Text("does not train", "无法训练")


@dataclass(frozen=True)
class Row:
    """One model on every vendor's device; without any if it could not be captured."""

    model: str
    operators: int  # different ones
    readiness: tuple[Readiness, ...] = ()


def capture_models() -> list[dict[str, Any]]:
    """A step of every model, captured in a process of its own; a dot on stderr for each."""
    answers = []
    command = [sys.executable, "-m", _RUNNER, "--all"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as child:
        assert child.stdout
        for line in child.stdout:
            answers.append(json.loads(line))
            print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    if child.returncode:
        sys.exit(f"the models' process ended with {child.returncode}")
    return answers


def judged(answer: dict[str, Any], vendors: list[str]) -> Row:
    """One model, judged for every vendor."""
    name = answer["name"]
    if "error" in answer:
        print(f"{name}: {answer['error']}", file=sys.stderr)
        return Row(name, 0)
    capture = capture_json.load(json.dumps(answer["capture"]), name)
    return Row(name, _count(capture), tuple(judge(capture, get_vendor(vendor)) for vendor in vendors))


def _count(capture: Capture) -> int:
    """The different operators that arrive at a device which has no kernel for a composite one."""
    uses = device_uses(capture, lambda operator: operator.partition("::")[2] in TAKEN_WHOLE)
    return len({use.operator for use in uses})


def cell(readiness: Readiness, language: Language) -> str:
    """One model on one vendor's device."""
    parts = []
    supports = [OperatorSupport.FALLBACK, OperatorSupport.MISSING, OperatorSupport.LIMITED]
    if readiness.complete:
        parts.append(ready_percent(readiness))
        supports.append(OperatorSupport.UNKNOWN)
    else:
        total = len(readiness.operators(*OperatorSupport))
        known = total - len(readiness.operators(OperatorSupport.UNKNOWN))
        parts.append(KNOWN.format(known=known, total=total).in_language(language))
    for support in supports:
        names = sorted(readiness.operators(support))
        if names:
            between = BETWEEN_NAMES.in_language(language)
            said = COUNTS[support].format(names=between.join(f"`{name}`" for name in names))
            parts.append(said.in_language(language))
    return BETWEEN_PARTS.in_language(language).join(parts)


def table(rows: list[Row], language: Language) -> str:
    """A row for each model, a column for each vendor."""
    columns = next(row.readiness for row in rows if row.readiness)
    vendors = " | ".join(map(_column, columns))
    lines = [HEAD.format(vendors=vendors).in_language(language), "|---:|---|---:|" + "---|" * len(columns)]
    for number, row in enumerate(rows, start=1):
        cells = [cell(each, language) for each in row.readiness]
        cells = cells or [FAILED.in_language(language)] * len(columns)
        lines.append(f"| {number} | {row.model} | {row.operators} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _column(readiness: Readiness) -> str:
    return f"{readiness.vendor} {readiness.version}".strip()


def concerns(rows: list[Row], language: Language) -> str:
    """Each operator that some device lacks or limits, with what to do about it."""
    found: dict[tuple[str, str, str], tuple[UseJudgement, list[str]]] = {}
    for row in rows:
        for readiness in row.readiness:
            for judgement in readiness.problems:
                key = (judgement.use.operator, readiness.vendor, judgement.reason.en)
                models = found.setdefault(key, (judgement, []))[1]
                if row.model not in models:
                    models.append(row.model)
    if not found:
        return NO_CONCERNS.in_language(language)
    lines = [CONCERN_HEAD.in_language(language), "|---|---|---|---|---|"]
    for (operator, vendor, _), (judgement, models) in sorted(found.items()):
        advice = (judgement.advice[0].text if judgement.advice else NO_ADVICE).in_language(language)
        reason = judgement.reason.in_language(language)
        lines.append(f"| `{operator}` | {vendor} | {reason} | {_some(models, language)} | {advice} |")
    return "\n".join(lines)


def _some(models: list[str], language: Language) -> str:
    if len(models) <= MAX_NAMES:
        return BETWEEN_NAMES.in_language(language).join(models)
    return MANY.format(count=len(models)).in_language(language)


def page(rows: list[Row], language: Language) -> str:
    """The whole page in one language."""
    columns = next(row.readiness for row in rows if row.readiness)
    complete = [each.vendor for each in columns if each.complete]
    incomplete = [each.vendor for each in columns if not each.complete]
    versions = {name: metadata.version(name).partition("+")[0] for name in ("torch", "torchvision", "timm")}
    parts = [INTRO.format(total=len(rows))]
    if complete and not any(each.problems for row in rows for each in row.readiness if each.complete):
        parts.append(NOTHING_LACKS.format(vendors=_list(complete)))
    parts.append(PROOF)
    if incomplete:
        parts.append(INCOMPLETE.format(vendors=_list(incomplete)))
    parts.append(MADE.format(day=date.today().isoformat(), **versions))
    return "\n\n".join(
        [
            f"# {TITLE.in_language(language)}",
            *(part.in_language(language) for part in parts),
            table(rows, language),
            f"## {CONCERNS.in_language(language)}",
            concerns(rows, language) + "\n",
        ]
    )


def _list(names: list[str]) -> Text:
    *first, last = names
    english = f"{', '.join(first)} and {last}" if first else last
    return Text(english, "、".join(names))


def main() -> int:
    """Write both pages; 1 if a model could not be captured."""
    vendors = vendor_names()
    rows = [judged(answer, vendors) for answer in capture_models()]
    for language in LANGUAGES:
        (ROOT / "docs" / language / PAGE).write_text(page(rows, language), "utf-8")
    return 0 if all(row.readiness for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
