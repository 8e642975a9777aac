"""What a user is told of a profile: in sentences. Imports no torch."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from torchferry.accuracy.record.telling import size
from torchferry.perf.collect.settings import ProfileSettings
from torchferry.perf.collect.told import Told
from torchferry.report.safe import one_line
from torchferry.text import Text

_WRITTEN = Text(
    "{file}: {steps}, {each} ms each, {nbytes}",
    "{file}：{steps}，每步 {each} ms，{nbytes}",
)
_ONE_STEP = Text("step {first}", "第 {first} 步")
_STEPS = Text("steps {first} to {last}", "第 {first} 至 {last} 步")
_FEWER = Text(
    "the program ended after {made} of {wanted} steps: the profile holds those that were whole",
    "程序执行了 {wanted} 步中的 {made} 步后结束：性能数据仅包含完整的步",
)
_FAILED = Text(
    "the program ended with exit code {code} before its steps were made; its output is above",
    "程序在完成所需步数之前以退出码 {code} 结束；其输出见上文",
)
_NEXT = Text("next: ferry analyze {output}", "下一步：ferry analyze {output}")


def sentences(
    output: Path, settings: ProfileSettings, traces: tuple[Told, ...], exit_code: int
) -> Iterator[Text]:
    """Of a profile that was written."""
    shown = one_line(os.path.relpath(output))
    for told in traces:
        yield _WRITTEN.format(
            file=one_line(os.path.join(shown, told.trace)),
            steps=_steps(told),
            each=f"{told.seconds / told.steps * 1000:,.1f}",
            nbytes=size(_nbytes(output / told.trace)),
        )
    made = min(told.last_step for told in traces)
    if made < settings.last_step:
        yield _FEWER.format(made=made, wanted=settings.last_step)
        if exit_code:
            yield _FAILED.format(code=exit_code)
    yield _NEXT.format(output=shown)


def _steps(told: Told) -> Text:
    form = _ONE_STEP if told.steps == 1 else _STEPS
    return form.format(first=told.first_step, last=told.last_step)


def _nbytes(path: Path) -> int:
    files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    return sum(file.stat().st_size for file in files)
