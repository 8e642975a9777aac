"""Writes docs/en/evidence/models.md and docs/zh/evidence/models.md: each model of the guide's table, trained on the CPU and on a
vendor's simulated device.

    python tools/make_model_table.py ascend

The models train here and now, so that the pages can't say what did not happen. It takes a few minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

from torchferry.text import Language, Text
from torchferry.vendors.model import Vendor
from torchferry.vendors.registry import get_vendor

ROOT = Path(__file__).resolve().parent.parent
PAGE = "evidence/models.md"
LANGUAGES: tuple[Language, ...] = ("en", "zh")

TITLE = Text("Models on the simulated device", "模拟设备上的模型")
INTRO = Text(
    "The guide to migrating PyTorch training lists {total} models. Each takes two training steps here, with the same "
    "start, data and random numbers, on the CPU and on the simulated `{device}` of `{vendor}`. “Equal” means that "
    "every loss and afterwards every parameter and buffer is the same to the last bit: {equal} of {total} are.",
    "PyTorch 训练迁移指南列出了 {total} 个模型。这里每个模型都以相同的初始值、数据和随机数，分别在 CPU 和 "
    "`{vendor}` 的模拟设备 `{device}` 上训练两步。“相等”表示每个损失值以及训练后的每个参数和缓冲区逐比特相同："
    "{total} 个中有 {equal} 个相等。",
)
SCOPE = Text(
    "Models of torchvision and timm have their published depth and width unless a note says otherwise; pictures and "
    "batches are small. “own” is a compact implementation in `tests/sim/models`, with the layers and the loss of the "
    "source named. Models that train several parts in turn have a loss for each. Equal results show that the "
    "simulated device computes what the CPU computes; they say nothing of the real device's numbers.",
    "torchvision 和 timm 的模型保持发表时的深度和宽度（另有说明者除外），图像和批次较小。“own” 是 `tests/sim/models` "
    "中的精简实现，包含所注明来源的层和损失。轮流训练多个部分的模型，每个部分有一个损失。结果相等说明模拟设备的计算与 "
    "CPU 一致，并不说明真实设备的数值。",
)
MADE = Text(
    "Made by `tools/make_model_table.py {vendor}` on {day} with torch {torch}, torchvision {torchvision} and timm "
    "{timm} on {cores} cores. Seconds are those of both steps, on the CPU and on the device.",
    "由 `tools/make_model_table.py {vendor}` 于 {day} 生成，使用 torch {torch}、torchvision {torchvision}、timm {timm}，"
    "{cores} 核。秒数为两步合计，依次为 CPU 和设备。",
)
HEAD = Text(
    "| # | Model | Origin | Parameters | Losses, step 1 | Losses, step 2 | Equal | Seconds | Note |",
    "| 序号 | 模型 | 来源 | 参数量 | 第 1 步损失 | 第 2 步损失 | 相等 | 秒 | 说明 |",
)
RULE = "|---:|---|---|---:|---:|---:|---|---:|---|"
YES, NO = Text("yes", "是"), Text("no", "否")
FAILED = Text("does not train", "无法训练")


def run_models(vendor: str) -> list[dict[str, Any]]:
    """Train all models in a process of their own; a dot on stderr for each."""
    command = [sys.executable, "-m", "tests.sim.models.runner", "--vendor", vendor]
    answers = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as child:
        assert child.stdout
        for line in child.stdout:
            answers.append(json.loads(line))
            print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    if child.returncode:
        sys.exit(f"the models' process ended with {child.returncode}")
    return answers


def row(number: int, answer: dict[str, Any], language: Language) -> str:
    """One model."""
    if "error" in answer:
        last = answer["error"].strip().splitlines()[-1].replace("|", "\\|")
        failed = FAILED.in_language(language)
        return f"| {number} | {answer['name']} | | | | | {failed} | | `{last}` |"
    turns = answer["turns"]
    first, second = (" / ".join(f"{loss:.9g}" for loss in part) for part in halves(answer["losses"], turns))
    equal = (YES if answer["equal"] else NO).in_language(language)
    seconds = f"{answer['cpu_seconds']:.2f} / {answer['device_seconds']:.2f}"
    note = answer["note"][LANGUAGES.index(language)] if answer["note"] else ""
    origin = f"{answer['origin']}: {answer['source']}"
    return (
        f"| {number} | {answer['name']} | {origin} | {answer['parameters']:,} "
        f"| {first} | {second} | {equal} | {seconds} | {note} |"
    )


def halves(losses: list[float], turns: int) -> tuple[list[float], list[float]]:
    """The losses of the first step and those of the second."""
    return losses[:turns], losses[turns:]


def page(vendor: Vendor, answers: list[dict[str, Any]], language: Language) -> str:
    """The whole page in one language."""
    equal = sum(answer.get("equal", False) for answer in answers)
    intro = INTRO.format(total=len(answers), equal=equal, device=vendor.device_type, vendor=vendor.name)
    made = MADE.format(
        vendor=vendor.name,
        day=date.today().isoformat(),
        cores=os.cpu_count(),
        **{name: metadata.version(name).partition("+")[0] for name in ("torch", "torchvision", "timm")},
    )
    parts = [
        f"# {TITLE.in_language(language)}",
        *(text.in_language(language) for text in (intro, SCOPE, made)),
    ]
    rows = [row(number, answer, language) for number, answer in enumerate(answers, start=1)]
    table = "\n".join([HEAD.in_language(language), RULE, *rows])
    return "\n\n".join([*parts, table]) + "\n"


def main() -> int:
    """Write both pages; 1 if a model is not equal."""
    parser = argparse.ArgumentParser()
    parser.add_argument("vendor", help="the vendor whose device is simulated")
    vendor = get_vendor(parser.parse_args().vendor)
    answers = run_models(vendor.name)
    for language in LANGUAGES:
        (ROOT / "docs" / language / PAGE).write_text(page(vendor, answers, language), "utf-8")
    return 0 if all(answer.get("equal") for answer in answers) else 1


if __name__ == "__main__":
    sys.exit(main())
