"""The words that all formats have for curves."""

from __future__ import annotations

from torchferry.accuracy.curves.runs import Series
from torchferry.accuracy.watch import rows
from torchferry.report.safe import one_line
from torchferry.text import Text

ROWS = {
    rows.LOSS: Text("Loss", "损失"),
    rows.GRADIENT_NORM: Text("Gradient norm", "梯度范数"),
    rows.GROUP_NORM: Text("Group's gradient norm", "参数组梯度范数"),
    rows.LEARNING_RATE: Text("Learning rate", "学习率"),
    rows.SCALE: Text("Scale of the GradScaler", "GradScaler 的缩放系数"),
    rows.SECONDS: Text("Seconds per step", "每步耗时（秒）"),
    rows.MODULE: Text("Outputs", "输出"),
    rows.OUTPUT_GRADIENT: Text("Gradients of outputs", "输出的梯度"),
    rows.GRADIENT: Text("Gradients", "梯度"),
    rows.PARAMETERS: Text("Parameters", "参数"),
    rows.UPDATE: Text("Updates ÷ parameters", "更新量 ÷ 参数"),
    rows.BUFFERS: Text("Running statistics", "运行统计值"),
}
OF_TRAINING = (rows.LOSS, rows.GRADIENT_NORM, rows.GROUP_NORM, rows.LEARNING_RATE, rows.SCALE, rows.SECONDS)
OF_MODULES = tuple(row for row in ROWS if row not in OF_TRAINING)

_NORM, _RMS = Text("norm", "范数"), Text("root mean square", "均方根")
SIZES = {
    rows.GRADIENT: _NORM,
    rows.PARAMETERS: _NORM,
    rows.UPDATE: Text("ratio of root mean squares", "均方根之比"),
    rows.MODULE: _RMS,
    rows.OUTPUT_GRADIENT: _RMS,
    rows.BUFFERS: _RMS,
}  # what the size of a row of modules is
FIGURES = {
    "size": Text("Norm or root mean square", "范数或均方根"),
    "mean": Text("Mean", "均值"),
    "extremes": Text("Smallest and largest element", "最小与最大元素"),
    "zeros": Text("Share of zeros", "零的占比"),
    "nans": Text("Number of NaN", "NaN 个数"),
    "infinities": Text("Number of Inf", "Inf 个数"),
}

MINE, GOLDEN = Text("mine", "待测"), Text("golden", "标杆")
STEP, MODULE, TYPE = Text("Step", "步"), Text("Module", "模块"), Text("Type", "类型")
TOGETHER = Text("total", "合计")
STEPS = Text("{count} steps, {first} to {last}", "{count} 步，第 {first} 至 {last} 步")
CUT_OFF = Text(
    "its process was killed before it could close the file, or is still running",
    "进程在关闭文件之前被终止，或仍在运行",
)
NOT_FINITE = Text("{what} first at step {step}: {where}", "{what} 首次出现在第 {step} 步：{where}")
ALL_FINITE = Text("no NaN, no Inf", "没有 NaN 和 Inf")
SPIKES = Text("{what} jumps at step {steps}", "{what}在第 {steps} 步突增")
AND_MORE = Text("{steps} and {count} more", "{steps} 以及另外 {count} 处")
PART = Text(
    "{what}: more than rounding from step {step} on, at most {most} apart",
    "{what}：自第 {step} 步起超出舍入误差，最多相差 {most}",
)
SAME = Text("{what}: differs only by rounding (at most {most})", "{what}：仅有舍入误差（最多 {most}）")
EQUAL = Text("{what}: equal", "{what}：相等")
COMMON = Text("{count} common steps are compared", "比较了双方共有的 {count} 步")
NO_COMMON = Text(
    "no step in common: watch both runs with the same --every",
    "没有共同的步：请用相同的 --every 监视双方",
)
ALONE = Text(
    "{count} curves are only in {which}, of {modules}", "有 {count} 条曲线仅存在于{which}中，涉及 {modules}"
)
SHOWN_RANK = Text(
    "rank {rank} of {count} is shown; for loss and gradient norm also the minimum and maximum of all ranks",
    "显示 {count} 个 rank 中的 rank {rank}；损失和梯度范数还显示所有 rank 的最小值和最大值",
)
LEAST_OF_RANKS = Text("minimum of {count} ranks", "{count} 个 rank 的最小值")
MOST_OF_RANKS = Text("maximum of {count} ranks", "{count} 个 rank 的最大值")
DIFFERENCE = Text("Difference", "相对差异")
OUTPUT, GRADIENT, UPDATE_RATIO = (
    Text("Output", "输出"),
    Text("Gradient", "梯度"),
    Text("Update ratio", "更新比"),
)
FIRST_BAD = Text("NaN, Inf", "NaN、Inf")  # the step from which on


def where(series: Series) -> Text:
    """What a series is of, in words: Outputs of Sorter: body.1."""
    name = ROWS[series.row] if series.row in ROWS else Text(series.row, series.row)
    place = place_of(series)
    return Text(f"{name.en}, {place}", f"{name.zh}，{place}") if place else name


def place_of(series: Series) -> str:
    """Model, module and tensor, as in reports of records: Sorter: body.0.weight."""
    plain = series.name in ("", "value", "all") or series.name.startswith("output_")
    path = ".".join(filter(None, (series.module, "" if plain else series.name)))
    return one_line(": ".join(filter(None, (series.model, path))))


def known(series: Series) -> bool:
    """Whether this version has words for a row; files of later ones may have others."""
    return series.row in ROWS
