"""Writes docs/en/evidence/conformance.md and docs/zh/evidence/conformance.md from the result of a conformance run.

python -m tools.conformance --vendor NAME -o result.json
python -m tools.make_conformance_docs result.json
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tools.conformance.reasons import DIFFERENCES, REASONS, explanation
from tools.conformance.records import Outcome, Result, Run, pass_rate

from torchferry.text import Language, Text

DOCS = Path(__file__).resolve().parent.parent / "docs"

TITLE = Text("Conformance of the simulated device", "模拟设备的一致性")
INTRO = Text(
    "PyTorch ships samples for its operators (OpInfo, `op_db`). Every operator is run on up to {samples} of them, "
    "on the CPU and on the simulated device with the vendor's limits lifted, and everything that can be seen is "
    "compared: values bit for bit, dtype, shape, strides, device, which results are views and of what, what became "
    "of the arguments, whether gradients flow, and the type of an error. Each operator is called plainly, in place, "
    "into given outputs (`out=` of the right size, of another size, not contiguous), and with its backward pass.",
    "PyTorch 自带各算子的样例（OpInfo，即 `op_db`）。每个算子最多取 {samples} 个样例，分别在 CPU 和解除了厂商限制的模拟设备上"
    "运行，并比较所有可见的结果：逐位比较数值，并比较数据类型、形状、步长、设备、哪些结果是视图及其来源、参数运行后的状态、"
    "是否参与求梯度，以及报错类型。调用方式包括普通调用、原地调用、写入给定输出（`out=`，大小正确、大小不符、不连续三种）和反向传播。",
)
HALF = Text(
    "`float16` and `bfloat16` are examined where PyTorch has the operator on the CPU or on CUDA. Where the CPU has "
    "no kernel for them, the device computes that step in `float32` and rounds, and so does the CPU that it is compared "
    "with. The other dtypes are examined where the CPU has them.",
    "`float16` 和 `bfloat16`：只要 PyTorch 在 CPU 或 CUDA 上支持该算子就参与检查。CPU 没有相应 kernel 时，设备将该步用 `float32` "
    "计算后舍入，作为对照的 CPU 也这样计算。其他数据类型只检查 CPU 支持的算子。",
)
MADE = Text(
    "Made from a run on {date} with PyTorch {torch}, Python {python}, TorchFerry {torchferry}, as "
    "`{vendor}`. `make test-all` runs the suite again and fails if a bar is missed: 99.4 % of the operators "
    "in `float32`, 98 % in `float16` and `bfloat16`.",
    "本页由 {date} 的一次运行生成：PyTorch {torch}、Python {python}、TorchFerry {torchferry}，目标为 `{vendor}`。"
    "`make test-all` 会重新运行，并在未达到下限时失败：`float32` 为 99.4 % 的算子，"
    "`float16` 和 `bfloat16` 为 98 %。",
)
BY_DTYPE = Text("By dtype", "按数据类型")
DTYPE_HEAD = Text(
    "| dtype | Operators | Equal bit for bit | Equal but for rounding | Different | Crashed | Passing | Skipped | Calls compared | of these upcast |",
    "| 数据类型 | 算子数 | 逐位一致 | 仅舍入不同 | 不同 | 崩溃 | 通过率 | 跳过 | 比较的调用数 | 其中升精度 |",
)
ROUNDING = Text("Equal but for rounding", "仅舍入不同")
DIFFERENT = Text("Different or crashed", "不同或崩溃")
SKIPPED = Text("Skipped", "跳过")
NONE = Text("None.", "无。")
OPERATOR_HEAD = Text("| Operator | dtypes | What |", "| 算子 | 数据类型 | 说明 |")
SKIP_HEAD = Text("| Operators | dtypes | Why |", "| 算子 | 数据类型 | 原因 |")
DIFFERS = Text("{name}: {words}", "{name}：{words}")
CRASHED = Text("crashed: {words}", "崩溃：{words}")


def page(run: Run, language: Language) -> str:
    """The whole page."""
    lines = [f"# {TITLE.in_language(language)}", ""]
    for text in (INTRO, HALF, MADE):
        lines += [text.format(**vars(run)).in_language(language), ""]
    lines += _section(BY_DTYPE, language, _dtype_rows(run, language))
    close = [result for result in run.results if result.outcome is Outcome.CLOSE]
    wrong = [result for result in run.results if result.outcome in (Outcome.FAIL, Outcome.CRASH)]
    lines += _section(ROUNDING, language, _operator_rows(close, language))
    lines += _section(DIFFERENT, language, _operator_rows(wrong, language))
    lines += _section(SKIPPED, language, _skip_rows(run, language))
    return "\n".join(lines).rstrip("\n") + "\n"


def _section(title: Text, language: Language, rows: list[str]) -> list[str]:
    return [f"## {title.in_language(language)}", "", *(rows or [NONE.in_language(language)]), ""]


def _dtype_rows(run: Run, language: Language) -> list[str]:
    rows = [DTYPE_HEAD.in_language(language), "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"]
    for dtype in run.dtypes():
        results = run.of_dtype(dtype)
        counts = Counter(result.outcome for result in results)
        cells = [
            f"`{dtype}`",
            len(results) - counts[Outcome.SKIPPED],
            *(counts[outcome] for outcome in (Outcome.PASS, Outcome.CLOSE, Outcome.FAIL, Outcome.CRASH)),
            f"{pass_rate(results):.2f} %",
            counts[Outcome.SKIPPED],
            sum(result.checks for result in results),
            sum(result.upcast for result in results),
        ]
        rows.append(_row(cells))
    return rows


def _operator_rows(results: list[Result], language: Language) -> list[str]:
    """Results that say the same of one operator share a row."""
    rows: dict[tuple[str, str], list[str]] = {}
    for result in results:
        rows.setdefault((result.operator, _what(result, language)), []).append(result.dtype)
    if not rows:
        return []
    lines = [_row([f"`{name}`", _listed(dtypes, language), what]) for (name, what), dtypes in rows.items()]
    return [OPERATOR_HEAD.in_language(language), "|---|---|---|", *lines]


def _what(result: Result, language: Language) -> str:
    if text := explanation(result):
        return text.in_language(language)
    if result.outcome is Outcome.CRASH:
        return CRASHED.format(words=f"`{result.reason}`").in_language(language)
    difference = result.differences[0]
    name = DIFFERENCES[difference.kind].in_language(language)
    words = f"`{difference.check}: {difference.words}`".replace("|", "\\|")
    return DIFFERS.format(name=name, words=words).in_language(language)


def _skip_rows(run: Run, language: Language) -> list[str]:
    """Skips for the same reason share a row."""
    dtypes: dict[tuple[str, str], list[str]] = {}
    for result in run.results:
        if result.outcome is Outcome.SKIPPED:
            dtypes.setdefault((result.reason, result.operator), []).append(result.dtype)
    rows: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (reason, operator), some in dtypes.items():
        rows.setdefault((reason, tuple(some)), []).append(f"`{operator}`")
    if not rows:
        return []
    lines = [
        _row([_joined(names, language), _listed(some, language), REASONS[reason].in_language(language)])
        for (reason, some), names in rows.items()
    ]
    return [SKIP_HEAD.in_language(language), "|---|---|---|", *lines]


def _listed(dtypes: Iterable[str], language: Language) -> str:
    return _joined([f"`{dtype}`" for dtype in dtypes], language)


def _joined(names: list[str], language: Language) -> str:
    return (", " if language == "en" else "、").join(names)


def _row(cells: Iterable[object]) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


def main() -> int:
    """Write both pages."""
    parser = argparse.ArgumentParser(description="writes the pages about conformance")
    parser.add_argument("result", type=Path, help="JSON file of a conformance run")
    parser.add_argument("--docs", type=Path, default=DOCS, help="the folder with en/ and zh/")
    options = parser.parse_args()
    run = Run.read(options.result)
    languages: tuple[Language, ...] = ("en", "zh")
    for language in languages:
        (options.docs / language / "evidence/conformance.md").write_text(page(run, language), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
