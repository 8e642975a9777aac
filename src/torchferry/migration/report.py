"""What `ferry migrate` says: a line for each step as it ends, what to do at the end, and all of it as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from torchferry import units
from torchferry.migration.folder import INDEX, MigrationFolder, find
from torchferry.migration.migrating import last_lines
from torchferry.migration.steps import STATES, Migration, MigrationStep, StepState
from torchferry.report.commands import NEXT, ferry_command
from torchferry.report.formats import Options, Reports
from torchferry.report.json import head, picked, plain
from torchferry.report.page import Cell, Column, Page, Table
from torchferry.report.records import Grade
from torchferry.report.safe import one_line
from torchferry.text import Language, Text

REPORTS: Reports[Migration] = Reports(
    {"json": f"{__name__}:to_json"}, page=f"{__name__}:page_of", verdict=f"{__name__}:grade"
)
_FORMAT = "torchferry-migration-steps"
_TITLE = Text("Migration of {name} to {to}", "将 {name} 迁移到 {to}")
_STEPS = Text("Steps", "步骤")
_STEP, _RESULT, _TIME, _COMMAND = (
    Text("Step", "步骤"),
    Text("Result", "结果"),
    Text("Time", "用时"),
    Text("Command", "命令"),
)
_COMPLETE = Text("Migrated and proved: {verdict}", "已迁移并通过验证：{verdict}")
_COMPLETE_WITH = Text(
    "Migrated and proved, with {names} accepted: {verdict}", "已迁移并通过验证（已接受 {names}）：{verdict}"
)
_COMPLETE_ACCEPTED = Text(
    "Migrated; accepted without proof or in spite of a problem: {names}. {verdict}",
    "已迁移；未经验证或带着问题接受：{names}。{verdict}",
)
_LEFT = Text("work list when it was converted: {verdict}", "转换时的工作清单：{verdict}")
_STOPPED = Text("Stopped at {step}: {count} to decide", "停在 {step}：有 {count} 项需要决定")
_FAILED = Text("Stopped at {step}: {verdict}", "停在 {step}：{verdict}")
_PAGE = Text("page: {path}", "页面：{path}")
_OR = Text("or: {command}", "或：{command}")
_NAME_WIDTH = 9


def grade(migration: Migration) -> Grade:
    """How far the migration is, in one line."""
    stopped = migration.stopped_at
    if stopped is not None:
        count = len(migration.decisions)
        form = _STOPPED if count else _FAILED
        line = form.format(step=stopped.name, count=count, verdict=stopped.verdict)
        return Grade(line, STATES[stopped.state].tone)
    accepted = [step.name for step in migration.steps if step.state is StepState.ACCEPTED]
    proof = migration.step("prove").verdict
    if accepted:
        line = _COMPLETE_ACCEPTED.format(names=", ".join(accepted), verdict=proof)
        return Grade(line, STATES[StepState.ACCEPTED].tone)
    form = _COMPLETE_WITH if migration.accepted else _COMPLETE
    line = form.format(verdict=proof, names=", ".join(migration.accepted))
    return Grade(line, STATES[StepState.DONE].tone)


def page_of(migration: Migration, options: Options) -> Page:
    """The steps, each with its command."""
    columns = (
        Column(_STEP, is_whole=True),
        Column(_RESULT),
        Column(_TIME, is_number=True, is_whole=True),
        Column(_COMMAND, kind="code"),
    )
    rows = tuple(
        (
            Cell(step.name, STATES[step.state].style),
            step.verdict if step.verdict.en else STATES[step.state].name,
            Cell(units.duration(step.seconds) if step.seconds else "", value=step.seconds),
            Cell(step.command, is_code=True),
        )
        for step in migration.steps
    )
    said = grade(migration)
    title = _TITLE.format(name=migration.project, to=migration.request.to)
    notes = (*(each.text for each in migration.decisions), *migration.advice)
    return Page(title, ((said.name, said.style),), (Table(_STEPS, columns, rows),), notes)


def to_json(migration: Migration, options: Options) -> str:
    """How far it is: a step with its state, verdict, time and command each, and what must be decided."""
    request = migration.request
    document = {
        **head(_FORMAT),
        "project": migration.project,
        "to": request.to,
        "device": request.means or "real",
        "program": [request.script, *request.arguments],
        "copy": request.copy,
        "complete": migration.is_complete,
        "verdict": plain(grade(migration).name),
        "steps": [
            picked(step, "name", "state", "verdict", "seconds", "exit_code", "run", "command")
            for step in migration.steps
        ],
        "decisions": [picked(each, "name", "places", "text") for each in migration.decisions],
        "advice": plain(migration.advice),
        "accepted": plain(migration.accepted),
    }
    return json.dumps(document, indent=1) + "\n"


def step_lines(step: MigrationStep, language: Language) -> Iterator[str]:
    """A step that has ended: its sign, its verdict and how long it took; below it the command."""
    look = STATES[step.state]
    said = one_line(step.verdict.in_language(language)) or look.name.in_language(language)
    if step.state in (StepState.UNCHANGED, StepState.ACCEPTED):
        said = f"{look.name.in_language(language)}: {said}"
    time = f"  ({units.duration(step.seconds)})" if step.seconds else ""
    yield f"{look.sign} {step.name:<{_NAME_WIDTH}}{said}{time}"
    yield f"{'':<{_NAME_WIDTH + 2}}$ {step.command}"


def last_word(migration: Migration, folder: MigrationFolder, language: Language) -> str:
    """What it has come to, what must be decided, and what to type next."""
    lines = ["", grade(migration).name.in_language(language)]
    lines += [f"  - {one_line(each.text.in_language(language))}" for each in migration.decisions]
    stopped = migration.stopped_at
    if stopped is not None and stopped.state is StepState.FAILED:
        lines += [f"    {one_line(line)}" for line in last_lines(folder, stopped.name)]
    lines += [one_line(each.in_language(language)) for each in migration.advice]
    if stopped is not None:
        lines += [NEXT.format(command=resume_command(folder)).in_language(language)]
    names = sorted({each.name for each in migration.decisions})
    if names:
        lines += [_OR.format(command=resume_command(folder, names)).in_language(language)]
    convert = migration.step("convert")
    if migration.is_complete and convert.verdict.en:
        lines += [_LEFT.format(verdict=convert.verdict).in_language(language)]
    page = os.path.relpath(folder.path / INDEX)
    lines += [_PAGE.format(path=page).in_language(language)]
    return "\n".join(lines)


def resume_command(folder: MigrationFolder, accept: list[str] | None = None) -> str:
    """The command that goes on."""
    words = ["migrate", "--resume"]
    found = find(Path.cwd())
    if found is None or found.path.resolve() != folder.path.resolve():
        words += ["--into", os.path.relpath(folder.path)]
    return ferry_command(*words, *(word for name in accept or () for word in ("--accept", name)))
