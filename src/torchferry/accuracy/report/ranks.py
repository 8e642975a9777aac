"""Runs with another number of processes held against each other: the first place where they part, and each stage of a
step. No torch."""

from __future__ import annotations

import json
from typing import Any

from torchferry import __version__, units
from torchferry.accuracy.compare.layouts import RankLayout, Way
from torchferry.accuracy.compare.stages import Outcome, RankGroup, RanksComparison, StageResult, StepStage
from torchferry.accuracy.report import words
from torchferry.report.commands import ferry_command
from torchferry.report.formats import Options
from torchferry.report.json import plain
from torchferry.report.page import Cell, Column, Page, Table, lines
from torchferry.report.records import BAD, DOUBT, GOOD, QUIET, UNCLEAR, Grade
from torchferry.report.safe import one_line
from torchferry.text import Text

FORMAT, VERSION = "torchferry-ranks-comparison", 1
_NOT_FINITE = ("nan", "inf", "-inf")

OUTCOMES = {
    Outcome.PARTS: Grade(Text("diverges here", "从此处开始不一致"), BAD, "×"),
    Outcome.RANDOM: Grade(Text("other random numbers", "随机数不同"), DOUBT, "!"),
    Outcome.UNKNOWN: Grade(Text("not compared", "未比较"), UNCLEAR, "?"),
    Outcome.FOLLOWS: Grade(Text("consequence", "由前面的差异引起"), QUIET, "·"),
    Outcome.FITS: Grade(Text("agrees", "一致"), GOOD, "="),
}
STAGES = {
    StepStage.BATCH: Text("batch", "批次"),
    StepStage.PARAMETERS: Text("weights at the start", "初始权重"),
    StepStage.FORWARD: Text("forward pass", "前向"),
    StepStage.LOSS: Text("loss", "损失"),
    StepStage.BACKWARD: Text("backward pass", "反向"),
    StepStage.REDUCTION: Text("reduction", "梯度归约"),
    StepStage.OPTIMIZER: Text("optimizer step", "优化器更新"),
    StepStage.UPDATE: Text("weights after the step", "更新后的权重"),
}
_ROLES = {
    "parameter": Text("parameters", "参数"),
    "buffer": Text("buffers", "缓冲区"),
    "input": Text("inputs", "输入"),
    "activation": Text("activations", "激活"),
    "gradient of a rank": Text("gradients before the reduction", "归约前的梯度"),
    "gradient": Text("gradients that the optimizer reads", "优化器读取的梯度"),
}
_WAYS = {
    Way.SAME: Text("the same on every rank", "各 rank 相同"),
    Way.ROWS: Text(
        "each rank has the part of its samples (axis {axis})", "各 rank 只有自己的样本（第 {axis} 维）"
    ),
    Way.SPLIT: Text("each rank has a piece along axis {axis}", "各 rank 各有一段（沿第 {axis} 维切分）"),
    Way.FUSED: Text(
        "each rank has a piece of each of the {parts} parts along axis {axis}",
        "沿第 {axis} 维的 {parts} 个部分各自切分",
    ),
    Way.SUM: Text("the sum over the ranks", "各 rank 之和"),
    Way.MEAN: Text("the mean over the ranks", "各 rank 的平均"),
    Way.ONE: Text("each on one rank only", "每个只在一个 rank 上"),
}
_TITLE = Text("{many} processes compared with {few}", "{many} 个进程与 {few} 个进程的比较")
_ALL_FIT = Text(
    "no difference except rounding: together, the {many} processes of {path} compute the same as {other}",
    "除舍入误差外没有差异：{path} 的 {many} 个进程合起来与 {other} 的计算一致",
)
_FIT_AS_FAR = Text(
    "no difference found, but not everything could be compared; see the stages",
    "未发现差异，但有些内容无法比较：见各阶段",
)
_NOTHING = Text("nothing could be compared", "没有可比较的内容")
_PARTS = Text("step {step}, {stage}: {why}", "第 {step} 步，{stage}：{why}")
_DIVISION = Text("how the batch is divided: {how}", "批次的划分：{how}")
_STAGES = Text("Stages", "各阶段")
_LAYOUTS = Text("How the ranks' tensors form those of the other side", "各 rank 的张量如何组成对方的张量")
_WHAT = Text("What", "说明")
_STAGE = Text("Stage", "阶段")
_RESULT = Text("Result", "结果")
_TENSORS = Text("Compared", "比较数")
_DISTANCE = Text("Difference", "差异")
_KIND = Text("Tensors", "张量")
_LAYOUT = Text("Layout", "布局")
_EXAMPLE = Text("As", "例如")
_PROCESSES = Text("Processes", "进程数")
_GROWN = Text(
    "from step {step} on, weights differ by rounding that the optimizer amplifies, as it does for "
    "gradients near zero; only results that do not depend on them were judged",
    "从第 {step} 步起，权重因优化器放大的舍入误差而略有不同（梯度接近零时会如此）；只判断了与此无关的内容",
)
_NEXT = Text("{what}: {command}", "{what}：{command}")
_NEXT_JUDGE = Text("each operator of one rank against double precision", "用双精度检查某个 rank 的每个算子")
_WHERE = Text("where: {where}", "位置：{where}")
_RANK = Text("rank {rank}", "rank {rank}")


def page_of(comparison: RanksComparison, options: Options) -> Page:
    """The verdict, the stages, the layouts, the records."""
    return Page(
        _TITLE.format(many=len(comparison.many.headers), few=len(comparison.few.headers)),
        ((headline(comparison), _style(comparison)), *_where_it_is(comparison)),
        (_stages(comparison), _layouts(comparison), _records(comparison)),
        (*_remarks(comparison), *comparison.notes),
    )


def headline(comparison: RanksComparison) -> Text:
    """One sentence: the first place where they part, or that there is none."""
    if comparison.culprit is not None:
        stage = comparison.stages[comparison.culprit]
        why = stage.why or OUTCOMES[stage.outcome].name
        return _PARTS.format(step=stage.step, stage=STAGES[stage.stage], why=why)
    found = {each.outcome for each in comparison.stages}
    if not found:
        return _NOTHING
    if found <= {Outcome.FITS, Outcome.FOLLOWS}:
        many, few = comparison.many, comparison.few
        return _ALL_FIT.format(many=len(many.headers), path=one_line(many.path), other=one_line(few.path))
    return _FIT_AS_FAR


def _where_it_is(comparison: RanksComparison) -> list[tuple[Text, str]]:
    if comparison.culprit is None:
        return []
    found = where(comparison.stages[comparison.culprit])
    return [(_WHERE.format(where=found), "")] if found.en else []


def _style(comparison: RanksComparison) -> str:
    outcomes = {each.outcome for each in comparison.stages} or {Outcome.UNKNOWN}
    worst = next(outcome for outcome in OUTCOMES if outcome in outcomes)
    return OUTCOMES[worst].style


def _stages(comparison: RanksComparison) -> Table:
    columns = (
        Column(words.STEP, is_number=True),
        Column(_STAGE),
        Column(_RESULT),
        Column(_TENSORS, kind="count"),
        Column(_DISTANCE, is_number=True),
        Column(words.LIMIT, is_number=True),
        Column(_WHAT),
    )
    return Table(_STAGES, columns, [_stage_row(each) for each in comparison.stages]).without_empty_columns()


def _stage_row(each: StageResult) -> tuple[Any, ...]:
    said = [text for text in (each.why, where(each)) if text is not None and text.en]
    return (
        Cell(str(each.step), value=each.step),
        STAGES[each.stage],
        OUTCOMES[each.outcome],
        each.compared,
        _figure(each.distance),
        _figure(each.limit),
        lines(said) if said else "",
    )


def where(each: StageResult) -> Text:
    """Rank, module, operator, line and tensor, as far as they are known."""
    spot = each.spot
    parts = [each.tensor] if spot is None else [spot.module, spot.operator, spot.place, each.tensor]
    said = ", ".join(one_line(part) for part in parts if part)
    if each.rank is None:
        return Text(said, said)
    rank = _RANK.format(rank=each.rank)
    return Text(", ".join(filter(None, (rank.en, said))), "，".join(filter(None, (rank.zh, said))))


def _figure(value: float | None) -> Cell | None:
    return None if value is None else Cell(units.short_number(value), value=value)


def _layouts(comparison: RanksComparison) -> Table:
    columns = (
        Column(_KIND),
        Column(_LAYOUT),
        Column(words.COUNT, kind="count"),
        Column(_EXAMPLE, kind="code"),
    )
    rows = [
        (
            _ROLES.get(each.role, Text(each.role, each.role)),
            layout_in_words(each.layout),
            each.count,
            one_line(each.example),
        )
        for each in comparison.layouts
    ]
    return Table(_LAYOUTS, columns, rows)


def layout_in_words(layout: RankLayout) -> Text:
    """How the tensors of the ranks make up the whole."""
    return _WAYS[layout.way].format(axis=layout.axis, parts=layout.parts)


def _records(comparison: RanksComparison) -> Table:
    columns = (
        Column(words.FILE, kind="code"),
        Column(_PROCESSES, kind="count"),
        Column(words.PROGRAM, kind="code"),
    )
    rows = [
        (one_line(side.path), len(side.headers), one_line(side.headers[0].program))
        for side in (comparison.many, comparison.few)
    ]
    return Table(words.RECORDS, columns, rows)


def _remarks(comparison: RanksComparison) -> list[Text]:
    found = [_DIVISION.format(how=comparison.division)] if comparison.division is not None else []
    grown = [each.step for each in comparison.stages if each.outcome is Outcome.FOLLOWS]
    if comparison.culprit is None and grown:
        found.append(_GROWN.format(step=min(grown)))
    if comparison.culprit is not None:
        stage = comparison.stages[comparison.culprit]
        if stage.stage in (StepStage.FORWARD, StepStage.BACKWARD):
            found += [_NEXT.format(what=_NEXT_JUDGE, command=ferry_command("compare", comparison.many.path))]
    return found


def to_json(comparison: RanksComparison, options: Options) -> str:
    """The document; `culprit` is a position in `stages`."""
    culprit = comparison.culprit
    content = {
        "format": FORMAT,
        "version": VERSION,
        "tool": f"TorchFerry {__version__}",
        "verdict": comparison.stages[culprit].outcome if culprit is not None else "fits",
        "culprit": culprit,
        "said": headline(comparison),
        "many": _side(comparison.many),
        "few": _side(comparison.few),
        "division": comparison.division,
        "stages": comparison.stages,
        "layouts": [
            {
                "role": each.role,
                "said": layout_in_words(each.layout),
                "count": each.count,
                "example": each.example,
                "way": each.layout.way,
                "axis": each.layout.axis,
                "parts": each.layout.parts,
            }
            for each in comparison.layouts
        ],
        "notes": comparison.notes,
        "seconds": comparison.seconds,
    }
    return json.dumps(plain(content, _NOT_FINITE), indent=1) + "\n"


def _side(side: RankGroup) -> dict[str, Any]:
    return {"path": side.path, "ranks": list(side.headers)}
