"""The README of a delivery: what a reviewer needs, filled in as far as it is known, in Chinese and in English."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from torchferry.report.markdown import escape
from torchferry.text import Language, Text
from torchferry.vendors.model import Vendor
from torchferry.vendors.zoo import ZooTable
from torchferry.zoo.delivery import PLACEHOLDER, REQUIREMENTS, DeliveryPath, DeliveryRequest
from torchferry.zoo.evidence import METRIC, FigureRow, canonical
from torchferry.zoo.run_scripts import DEVICES


@dataclass(frozen=True)
class DeliveryFacts:
    """What is known of a delivery when it is made; "" becomes a place to fill in."""

    request: DeliveryRequest
    place: DeliveryPath
    vendor: Vendor
    table: ZooTable
    licence: str = ""
    licence_file: str = ""
    rows: tuple[FigureRow, ...] = ()
    logs: tuple[str, ...] = ()  # their paths
    picture: str = ""
    simulated: bool = False


_TEMPLATE = """# {model}

## 1. {overview_head}

{overview}

- {source_head}

  ```text
  url={source}
  commit_id={commit}
  ```

- {migrated}

## 2. {start_head}

### 2.1 {environment_head}

- {environment}
- {container_head}

  ```bash
  {container}
  ```

### 2.2 {dataset_head}

{dataset}

### 2.3 {requirements_head}

```bash
pip install -r {requirements}
```

### 2.4 {training_head}

```bash
cd {folder}
# {short_training}
bash {test}
# {one_device}
{command}
# {several_devices}
{parallel}
```

{options}

### 2.5 {results_head}

{results}

## 3. {licence_head}

{licence}
"""
_WORDS = {
    "overview_head": Text("Overview", "模型概述"),
    "source_head": Text("Source:", "参考实现（代码来源）："),
    "migrated": Text(
        "Migrated to {company} (`{device}`) for {zoo}.", "已迁移至 {company}（`{device}`），面向 {zoo}。"
    ),
    "start_head": Text("Quick start", "快速开始"),
    "environment_head": Text("Basic environment", "基础环境安装"),
    "environment": Text(
        "PyTorch with `{plugin}`, device `{device}`, collectives `{backend}`.",
        "PyTorch 与 `{plugin}`，设备 `{device}`，通信后端 `{backend}`。",
    ),
    "container_head": Text("Start a container, if you use one:", "如使用容器，启动命令："),
    "dataset_head": Text("Data set", "准备数据集"),
    "requirements_head": Text("Requirements", "构建环境"),
    "training_head": Text("Training", "启动训练"),
    "short_training": Text("a short training run to check that everything works", "短训练，用于确认一切正常"),
    "one_device": Text("one device", "单卡"),
    "several_devices": Text(
        "several devices: {devices} processes, one for each", "多设备：{devices} 个进程，每设备一个"
    ),
    "options": Text(
        "The options are explained in [{folder}/README.md]({folder}/README.md).",
        "参数说明见 [{folder}/README.md]({folder}/README.md)。",
    ),
    "results_head": Text("Results", "训练结果"),
    "licence_head": Text("License", "许可证"),
}
_OVERVIEW = Text("purpose of the model, and its paper", "模型用途与论文")
_SOURCE = Text("URL of the original repository", "原仓库地址")
_COMMIT = Text("commit of the original", "原仓库的 commit")
_DATASET = Text("name, URL, download instructions and folder layout", "名称、地址、下载方法与目录结构")
_CONTAINER = Text("container command", "容器启动命令")
_LICENCE = Text("license of the original", "原仓库的许可证")
_LICENCE_TEXT = Text("{licence}, see [{file}]({file}).", "{licence}，见 [{file}]({file})。")
_HEAD = Text("| Metric | Original | Migrated | Difference |", "| 指标 | 原模型 | 迁移后 | 差异 |")
_NO_ROWS = Text("accuracy and throughput of real runs, as a table", "真实运行的精度与吞吐表格")
_CURVE = Text(
    "{name} (at the end; difference: mean over {steps} steps)", "{name}（末段均值；差异为 {steps} 步平均）"
)
_RULE = Text(
    "The loss passes if the mean relative error is at most {relative:g}, or the mean absolute error "
    "at most {absolute:g}.",
    "平均相对误差不超过 {relative:g}，或平均绝对误差不超过 {absolute:g}，即为通过。",
)
_LOGS = Text("Logs: {original}, {port}.", "日志：{original}、{port}。")
_SIMULATED = Text(
    "The figures of the migrated model come from a simulated device.", "迁移后的数据来自模拟设备。"
)


def readme(facts: DeliveryFacts, language: Language) -> str:
    """The text of the file, in one language."""

    def known(value: str, what: Text) -> str:
        return value or f"{PLACEHOLDER}: {what.in_language(language)}>"

    script = facts.table.launcher(facts.place.model).partition("/")[2]
    command = shlex.join(["python", script])
    arguments = f" {facts.request.arguments}" if facts.request.arguments else ""
    container = facts.table.container.replace("{name}", facts.place.model.lower())
    licence = _LICENCE_TEXT.format(licence=facts.licence or facts.licence_file, file=facts.licence_file)
    values = {
        "model": facts.place.model,
        "overview": known("", _OVERVIEW),
        "source": known(facts.request.source, _SOURCE),
        "commit": known(facts.request.commit, _COMMIT),
        "company": facts.vendor.company_name.in_language(language),
        "device": facts.vendor.device_type,
        "zoo": facts.table.name,
        "plugin": facts.vendor.plugin or "torch",
        "backend": facts.vendor.dist_backend,
        "container": known(container, _CONTAINER),
        "requirements": REQUIREMENTS,
        "dataset": known(facts.request.dataset, _DATASET),
        "devices": DEVICES,
        "folder": facts.table.run_folder,
        "test": facts.table.test_script,
        "command": command + arguments,
        "parallel": f"{command} --nproc_per_node {DEVICES}{arguments}",
        "results": _results(facts, language) or known("", _NO_ROWS),
        "licence": licence.in_language(language) if facts.licence_file else known("", _LICENCE),
    }
    words = {name: text.format(**values).in_language(language) for name, text in _WORDS.items()}
    return _TEMPLATE.format(**values, **words)


def _results(facts: DeliveryFacts, language: Language) -> str:
    if not facts.rows:
        return ""
    lines = [_HEAD.in_language(language), "|---|---:|---:|---:|"]
    for row in facts.rows:
        curve = _CURVE.format(name=row.name, steps=row.steps).in_language(language)
        shown = (f"{PLACEHOLDER}>" if value is None else f"{value:.6g}" for value in (row.original, row.port))
        share = "" if math.isnan(row.difference) else f"{row.difference:+.2%}"
        cells = (escape(curve if row.steps else row.name), *shown, share)
        lines.append("| " + " | ".join(cells) + " |")
    for row in facts.rows:
        if row.steps and row.name == "loss":
            lines += ["", f"MeanRelativeError: {row.difference:.6g}", f"MeanAbsoluteError: {row.offset:.6g}"]
            limits = {"relative": facts.table.relative_error, "absolute": facts.table.absolute_error}
            lines += ["", _RULE.format(**limits).in_language(language)]
    if facts.picture:
        lines += ["", f"![loss]({facts.picture})"]
    if len(facts.logs) == 2:
        links = [f"[{log}]({log})" for log in facts.logs]
        lines += ["", _LOGS.format(original=links[0], port=links[1]).in_language(language)]
    if facts.simulated:
        lines += ["", _SIMULATED.in_language(language)]
    return "\n".join(lines)


# The figures that a README states: in its tables, and as the mean errors of a loss.

DIFFERENCE, OFFSET = "difference", "mean absolute error"
ORIGINAL, PORT = "original", "migrated"
_NUMBER = re.compile(
    r"[\s*]*([-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf))\s*(%?)[\s*]*(?:\w+/s)?[\s*]*"
)
_SPEEDS = r"(?:images?|imgs?|samples?|tokens?|sentences?|frames?|steps?)/s(?:ec)?"
_NAME = re.compile(rf"(?i)(?<![\w/])(?P<name>{METRIC}|{_SPEEDS}|(?:train[_. ])?loss)(?![\w])")
# What the title of a column, or the first field of a row, says of its figures.
_KINDS = {
    DIFFERENCE: re.compile(r"(?i)difference|差异|误差|\berror\b"),
    PORT: re.compile(r"(?i)\b(?:migrated|port(?:ed)?|ours?)\b|迁移|移植"),
    ORIGINAL: re.compile(r"(?i)\b(?:original|reference|golden|baseline|cuda|gpu)\b|原模型|原始|参考|基线"),
}
_RULER = re.compile(r"\|?[\s:|-]*--[\s:|-]*")
_MEAN_ERRORS = re.compile(
    r"Mean(?P<which>Relative|Absolute)Error\s*[:=]\s*(?P<value>[-+]?[\d.]+(?:[eE][-+]?\d+)?)"
)


class Figure(NamedTuple):
    """A number, and of what it is."""

    name: str  # acc1
    shown: str
    line: int
    value: float
    half_a_digit: float  # how far the true value may be from what is written
    kind: str = ""


def figures(text: str) -> Iterator[Figure]:
    """All of them; tables name a figure in the first cell of a row, or at the head of a column."""
    head: list[str] = []
    before: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        for found in _MEAN_ERRORS.finditer(line):
            kind = DIFFERENCE if found["which"] == "Relative" else OFFSET
            yield from _figure("loss", found["value"], number, kind)
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if "|" in line else []
        if not cells:
            head = []
        elif _RULER.fullmatch(line.strip()):
            head = before
        elif head:
            yield from _of_row(head, cells, number)
        before = cells


def _of_row(head: list[str], cells: list[str], line: int) -> Iterator[Figure]:
    row = _NAME.search(cells[0])
    for title, cell in list(zip(head, cells, strict=False))[1 if row else 0 :]:
        named = row or _NAME.search(title)
        if named:
            kind = _kind(title) or ("" if row else _kind(cells[0]))
            yield from _figure(canonical(named["name"]), cell, line, kind)


def _kind(text: str) -> str:
    return next((kind for kind, pattern in _KINDS.items() if pattern.search(text)), "")


def _figure(name: str, cell: str, line: int, kind: str) -> Iterator[Figure]:
    found = _NUMBER.fullmatch(cell)
    if not found:
        return
    try:
        written = Decimal(found[1].replace(",", ""))
    except InvalidOperation:
        return
    exponent = written.as_tuple().exponent
    half = 0.51 * 10.0**exponent if isinstance(exponent, int) else 0.0
    scale = 0.01 if found[2] and kind == DIFFERENCE else 1.0
    yield Figure(name, cell.strip(" *"), line, float(written) * scale, half * scale, kind)


def agrees(figure: Figure, value: float) -> bool:
    """Whether a value, rounded as the figure is, is the figure; a share may be written in percent."""
    if math.isnan(value) or math.isinf(value):
        return str(value) == str(figure.value)
    forms = [value] if figure.kind in (DIFFERENCE, OFFSET) else [value, value * 100, value / 100]
    return any(abs(form - figure.value) <= max(figure.half_a_digit, abs(form) * 1e-5) for form in forms)
