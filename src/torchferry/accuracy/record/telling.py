"""What a user is told of a recording: in sentences. Imports no torch."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from torchferry.accuracy.record.outputs import Outcome
from torchferry.ops.notes import NOTES
from torchferry.report.safe import one_line
from torchferry.text import Text

_WRITTEN = Text(
    "{file}: {steps}, {calls} calls, {nbytes}{saved}, {seconds} s",
    "{file}：{steps}，{calls} 次调用，{nbytes}{saved}，{seconds} 秒",
)
_ONE_STEP = Text("step {first}", "第 {first} 步")
_STEPS = Text("steps {first} to {last}", "第 {first} 至 {last} 步")
_NO_STEP = Text("no optimizer stepped, so all up to the end", "没有优化器执行更新，记录至程序结束")
_SAVED = Text(" ({raw} if equal tensors were not written once)", "（若相同张量不只写一次则为 {raw}）")
_REPAIRED = Text(
    "{file}: its process was ended before it could end the file; completed, it holds all calls up to then",
    "{file}：其进程在结束文件之前已被终止；文件已补全，包含此前的全部调用",
)
_PROBLEM = Text(
    "{file}: recording ended early: {problem}; what was recorded until then is kept",
    "{file}：记录提前结束：{problem}；此前已记录的内容已保留",
)
_REPLAYED = Text(
    "{file}: {paired} of {recorded} recorded calls gave their inputs to operators here{unpaired}",
    "{file}：记录中的 {recorded} 次调用有 {paired} 次将其输入用于此处的算子{unpaired}",
)
_UNPAIRED = Text(
    "; {count} calls here have none in the record and computed with their own: {examples}",
    "；此处有 {count} 次调用在记录中没有对应项，使用其自身输入：{examples}",
)
_NOTES = {
    "graphs": Text(
        "captured graphs of the device were run: what they compute inside is not in the record",
        "运行了设备的捕获图：其内部的计算不在记录中",
    ),
    "not looked into": Text(
        "what happens inside of {what} is not in the record",
        "{what} 内部的运算不在记录中",
    ),
    "ended early": Text(
        "the recorder failed and ended; the program went on: {what}",
        "记录器出错并已停止，程序继续运行：{what}",
    ),
}
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size(nbytes: int) -> str:
    """57.3 MiB."""
    value, unit = float(nbytes), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{nbytes} B" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"


_FEWER = Text(
    "{file}: the program ended after {steps} of {wanted} steps",
    "{file}：程序在 {wanted} 步中的 {steps} 步之后结束",
)


def sentences(outcome: Outcome, was_repaired: bool, wanted: int | None = None) -> Iterator[Text]:
    """Of the file of one process, of which so many steps were wanted (None: all)."""
    file = one_line(os.path.relpath(outcome.path))
    yield _WRITTEN.format(
        file=file,
        steps=_steps(outcome),
        calls=f"{outcome.calls:,}",
        nbytes=size(outcome.nbytes),
        saved=_SAVED.format(raw=size(outcome.raw_nbytes)) if outcome.raw_nbytes > outcome.nbytes else "",
        seconds=f"{outcome.seconds:.1f}",
    )
    if wanted is not None and 0 < outcome.steps < wanted:
        yield _FEWER.format(file=file, steps=outcome.steps, wanted=wanted)
    if was_repaired:
        yield _REPAIRED.format(file=file)
    if outcome.problem:
        yield _PROBLEM.format(file=file, problem=one_line(outcome.problem))
    if outcome.recorded:
        yield _REPLAYED.format(
            file=file,
            paired=f"{outcome.paired:,}",
            recorded=f"{outcome.recorded:,}",
            unpaired=_unpaired(outcome),
        )
    yield from noted(outcome.notes)


def noted(notes: Iterable[str]) -> Iterator[Text]:
    """What could not be seen."""
    for note in notes:
        key, between, what = note.partition(": ")
        known = _NOTES.get(key) or NOTES.get(note)
        yield (
            Text(one_line(note), one_line(note))
            if known is None
            else known.format(what=one_line(what))
            if between
            else known
        )


def _unpaired(outcome: Outcome) -> Text | str:
    if not outcome.unpaired:
        return ""
    return _UNPAIRED.format(
        count=f"{outcome.unpaired:,}", examples=", ".join(map(one_line, outcome.examples))
    )


def _steps(outcome: Outcome) -> Text:
    last = outcome.first_step + outcome.steps - 1
    if outcome.steps < 1:
        return _NO_STEP
    return (_ONE_STEP if outcome.steps == 1 else _STEPS).format(first=outcome.first_step, last=last)
