"""What a check found, as text with the verdict first, and as JSON. No torch."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Sequence

from torchferry.accuracy.overflow import words
from torchferry.accuracy.overflow.launching import Checked
from torchferry.accuracy.overflow.model import (
    CallFigures,
    OverflowEvent,
    OverflowFindings,
    Standing,
    TensorFigures,
    plain,
)
from torchferry.readiness.readiness import NOTES
from torchferry.report.safe import one_line
from torchferry.text import Language, Text

FORMAT = 1
_GIVEN = "given"
_VENDOR = "VENDOR"
_MOST_TENSORS = 6


def to_text(checked: Checked, language: Language, vendor: str, case: str = "") -> str:
    """For people. `vendor` is whose device the case would be for, `case` the test's file if one was written."""
    lines = [
        line.in_language(language) if isinstance(line, Text) else line
        for line in _lines(checked, vendor, case)
    ]
    return "\n".join(map(one_line, lines)) + "\n"


def to_json(checked: Checked, vendor: str, case: str = "") -> str:
    """For programs."""
    first = checked.first
    data = {
        "format": FORMAT,
        "program": checked.program,
        "overflow": first is not None,
        "rank": None if first is None else first[0].rank,
        "first": None if first is None else plain(first[1]),
        "case": None if first is None or not first[1].record else case_command(first[1], vendor),
        "case_file": case or None,
        "exit_code": checked.ending.exit_code,
        "processes": [plain(each) for each in checked.processes],
    }
    return json.dumps(data, ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def case_command(event: OverflowEvent, vendor: str) -> str:
    """What makes a test of the operator alone."""
    record = os.path.relpath(event.record)
    return shlex.join(["ferry", "case", event.call.operator, "--to", vendor or _VENDOR, "--from", record])


def _lines(checked: Checked, vendor: str, case: str) -> Iterator[Text | str]:
    first = checked.first
    if first is None:
        yield from _verdict_of_none(checked)
    else:
        yield from _found(checked, *first, vendor, case)
    if checked.failed:
        yield words.FAILED.format(code=checked.ending.exit_code)
    for findings in checked.processes:
        yield from _notes(findings)


def _verdict_of_none(checked: Checked) -> Iterator[Text]:
    steps = min((each.steps for each in checked.processes), default=0)
    operators = sum(each.operators for each in checked.processes)
    device = next((each.device for each in checked.processes), "")
    said = words.INTERRUPTED if checked.failed or checked.ending.signal else words.NONE
    yield said.format(operators=f"{operators:,}", steps=steps, device=device)


def _found(
    checked: Checked, findings: OverflowFindings, event: OverflowEvent, vendor: str, case: str
) -> Iterator[Text | str]:
    said = words.GIVEN if event.why == _GIVEN else words.FOUND[event.kind]
    verdict, place = said.format(operator=event.call.operator), where(event.call)
    yield Text(f"{verdict.en} ({place.en})", f"{verdict.zh}（{place.zh}）")
    if findings.world > 1:
        yield words.RANK.format(rank=findings.rank, world=findings.world)
    for figures in (*event.call.inputs[:_MOST_TENSORS], *event.call.outputs[:_MOST_TENSORS]):
        yield f"  {_tensor(figures)}"
    if event.scale is not None:
        yield words.SCALED.format(scale=event.scale)
    if event.before:
        yield words.BEFORE.format(count=len(event.before))
        for seen in event.before:
            yield f"  {_call(seen)}"
    if event.record:
        yield words.SAVED.format(file=os.path.relpath(event.record))
        if event.unsaved:
            yield words.UNSAVED.format(names=", ".join(event.unsaved))
        yield words.CASE.format(command=case_command(event, vendor))
    if case:
        yield words.CASE_WRITTEN.format(file=case)
    for other in checked.processes:
        if other is not findings and other.first is not None:
            call = other.first.call
            yield words.OTHER_RANK.format(rank=other.rank, operator=call.operator, where=where(call))


def _notes(findings: OverflowFindings) -> Iterator[Text]:
    found = [event for event in findings.events if event.standing is Standing.FOUND]
    if len(found) > 1:
        call = found[1].call
        yield words.MORE.format(count=len(found) - 1, operator=call.operator, where=where(call))
    skipped = [event for event in findings.events if event.standing is Standing.SKIPPED]
    if skipped:
        last = skipped[-1]
        yield words.SKIPPED.format(
            count=max(len(skipped), findings.skipped_steps),
            scale=last.scale or 0.0,
            operator=last.call.operator,
        )
    for event in findings.events:
        if event.standing is Standing.INTENDED:
            yield words.INTENDED[event.why].format(
                operator=event.call.operator, place=event.call.place, dtype=event.call.outputs[0].dtype
            )
    if findings.largest is not None:
        call = findings.largest.call
        yield words.LARGEST.format(value=findings.largest.value, operator=call.operator, where=where(call))
    for each in findings.underflow:
        yield words.UNDERFLOW.format(share=each.share, operator=each.call.operator, where=where(each.call))
    for note in findings.notes:
        yield NOTES.get(note, Text(note, note))


def where(call: CallFigures) -> Text:
    """step 3, backward pass, module layer1.0.conv1, train.py:31."""
    phase = words.PHASES.get(call.phase, Text(call.phase, call.phase))
    parts = [words.WHERE.format(step=call.step, phase=phase)]
    if call.module:
        parts.append(words.MODULE.format(module=call.module))
    if call.node:
        parts.append(words.NODE.format(node=call.node))
    if call.place:
        parts.append(Text(call.place, call.place))
    return Text(", ".join(part.en for part in parts), "，".join(part.zh for part in parts))


def _call(seen: CallFigures) -> str:
    """One line: number, operator, place, figures of what went in and came out."""
    place = " ".join(filter(None, (seen.phase, seen.module, seen.place)))
    return f"#{seen.number} {seen.operator}  {place}  {_range_of(seen.inputs)} -> {_range_of(seen.outputs)}"


def _range_of(tensors: Sequence[TensorFigures]) -> str:
    parts = [_range(each) for each in tensors if each.statistics is not None and each.statistics.count]
    return ", ".join(parts[:3]) + (", ..." if len(parts) > 3 else "") if parts else "()"


def _tensor(figures: TensorFigures) -> str:
    shape = "x".join(map(str, figures.shape)) or "scalar"
    return f"{figures.name}  {figures.dtype} {shape}  {_range(figures)}".rstrip()


def _range(figures: TensorFigures) -> str:
    """[-1.2, 3.4] rms 0.5, 3 NaN."""
    statistics = figures.statistics
    if statistics is None:
        return ""
    parts = []
    if statistics.count > statistics.nans + statistics.infinities:
        parts.append(f"[{statistics.minimum:.4g}, {statistics.maximum:.4g}] rms {statistics.rms:.4g}")
    if statistics.nans:
        parts.append(f"{statistics.nans} of {statistics.count} NaN")
    if statistics.infinities:
        parts.append(f"{statistics.infinities} of {statistics.count} infinite")
    return ", ".join(parts)
