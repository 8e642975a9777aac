"""The page of a migration folder: where the migration stands, and the latest report of each stage in full."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from torchferry import units
from torchferry.errors import FerryError
from torchferry.migration.folder import INDEX, MigrationFolder
from torchferry.migration.model import DOCUMENT, KeptRun
from torchferry.migration.stages import (
    LIGHTS,
    OPTIONAL,
    STAGES,
    MigrationStage,
    decisive,
    latest,
    of_stage,
    tone_of_runs,
)
from torchferry.migration.ticks import ticks_for_script
from torchferry.report.bodies import PageBody, made_block, nested, whole_page
from torchferry.report.formats import write_file
from torchferry.report.html import ARROW, both, code, data_for_script, escaped, quiet, row, table
from torchferry.report.private import without_private
from torchferry.report.records import Tone
from torchferry.text import Language, Text

_OVERVIEW, _HISTORY = Text("Overview", "总览"), Text("History", "历史")
_NO_RUNS = Text(
    "No results yet. Commands add theirs while this folder is there: begin with `ferry scan . --to VENDOR`.",
    "还没有结果。此文件夹存在时，各命令会自动添加结果：可先运行 `ferry scan . --to VENDOR`。",
)
_NO_REPORT = Text("This command writes no report.", "该命令没有单独的报告。")
_NEXT, _AGAIN = Text("Next", "下一步"), Text("Run again", "重新运行")
_ACCEPTED = Text("Accepted: {names}", "已接受：{names}")
_HEADS = (
    Text("Run", "序号"),
    Text("Result", "结果"),
    Text("Date (UTC)", "日期（UTC）"),
    Text("Time", "用时"),
    Text("Exit code", "退出码"),
    Text("Commit", "提交"),
)
_NUMBERS = (0, 3, 4)  # columns of the history
_NO_SCRIPT = Text("The reports need scripts to be shown.", "显示报告需要启用脚本。")
_HOW = Text("How this result was made", "此结果的生成方式")
_NEWEST_FIRST = Text("The newest run comes first.", "最近的运行排在最前。")


@dataclass(frozen=True)
class MigrationFacts:
    """What suggested commands need to know; empty where it is not known."""

    to: str = ""
    main: str = ""
    copy: str = ""


def write_index(folder: MigrationFolder, language: Language, path: Path | None = None) -> Path:
    """Write the page; its path."""
    target = path or folder.path / INDEX
    write_file(target, index_page(folder, language).encode("utf-8", "replace"))
    return target


def index_page(folder: MigrationFolder, language: Language) -> str:
    """The page as one file."""
    runs = folder.runs()
    shown = {run.number: body for run in latest(runs).values() if (body := _body(folder, run)) is not None}
    facts = facts_of(folder, runs)
    title = " → ".join(filter(None, [folder.name, facts.to]))
    index = PageBody(
        "migration",
        title,
        heading=escaped(folder.name) + (ARROW + escaped(facts.to) if facts.to else ""),
        sections=(
            _tabs(runs),
            _panel("overview", _overview(folder, runs, facts)),
            *(_panel(stage.key, _reports(stage, runs, shown, facts)) for stage in _stages_shown(runs)),
            _panel("history", _history(runs, shown)),
            ticks_for_script(folder),
            f"<noscript>{quiet(_NO_SCRIPT)}</noscript>",
        ),
        package=str(__package__),
        styles=("migration.css",),
        scripts=("migration.js",),
    )
    return whole_page(index, language, inside=list(shown.values()))


def _body(folder: MigrationFolder, run: KeptRun) -> PageBody | None:
    """None: it has no page, or one that an other version of the kit has written."""
    if not run.has_page:
        return None
    try:
        return folder.body(run)
    except (FerryError, ValueError):
        return None


def facts_of(folder: MigrationFolder, runs: Sequence[KeptRun]) -> MigrationFacts:
    """The target of the latest command that names one; program and copy of `ferry migrate`."""
    from torchferry.migration.migrating import load

    try:
        request = load(folder).request
    except FerryError:
        return MigrationFacts(next(filter(None, map(_target, reversed(runs))), ""))
    return MigrationFacts(request.to, request.script, request.copy.rpartition("/")[2])


def _target(run: KeptRun) -> str:
    try:
        words = shlex.split(run.line)
    except ValueError:
        return ""
    named = [after for word, after in pairwise(words) if word == "--to"]
    return named[0] if named and "," not in named[0] else ""


def _stages_shown(runs: Sequence[KeptRun]) -> list[MigrationStage]:
    """All but the delivery, which many migrations don't have."""
    return [stage for stage in STAGES if stage.key != "delivery" or of_stage(stage, runs)]


def _tabs(runs: Sequence[KeptRun]) -> str:
    tabs = [("overview", both(_OVERVIEW))]
    tabs += [
        (stage.key, _light(tone_of_runs(of_stage(stage, runs))) + both(stage.title))
        for stage in _stages_shown(runs)
    ]
    tabs += [("history", f'{both(_HISTORY)}<span class="count">{len(runs)}</span>')]
    links = "".join(
        f'<a class="stage-tab" href="#{key}" data-stage="{key}">{shown}</a>' for key, shown in tabs
    )
    return f'<nav class="stage-tabs">{links}</nav>'


def _light(tone: Tone) -> str:
    """A traffic light; its name is there for those who don't see colours."""
    name = both(LIGHTS[tone], 'span class="hush"')
    return f'<i class="light {tone.kind}">{name}</i>'


def _panel(key: str, content: str) -> str:
    is_first = key == "overview"
    return f'<div class="stage-panel" data-panel="{key}"{"" if is_first else " hidden"}>{content}</div>'


# The overview.


def _overview(folder: MigrationFolder, runs: Sequence[KeptRun], facts: MigrationFacts) -> str:
    if not runs:
        return f'<div class="empty">{both(_NO_RUNS)}</div>'
    accepted = folder.decisions().get("accepted", [])
    said = quiet(_ACCEPTED.format(names=", ".join(accepted))) if accepted else ""
    lines = "".join(_stage_line(stage, runs, facts) for stage in _stages_shown(runs))
    return f'{_card(folder)}{said}<ol class="stages">{lines}</ol>'


def _card(folder: MigrationFolder) -> str:
    """How far `ferry migrate` is, if it was used."""
    from torchferry.migration.migrating import load
    from torchferry.migration.report import grade, resume_command
    from torchferry.migration.steps import StepState

    try:
        migration = load(folder)
    except FerryError:
        return ""
    report = migration.step("report")
    migration = migration.with_step(replace(report, state=StepState.DONE))  # it is being made
    said = grade(migration)
    todo = "".join(both(each.text, "li") for each in migration.decisions)
    todo += "".join(both(each, "li") for each in migration.advice)
    listed = f"<ul>{todo}</ul>" if todo else ""
    command = "" if migration.is_complete else f"<pre>{escaped(resume_command(folder))}</pre>"
    return f'<div class="card {said.kind}">{both(said.name, "h2")}{listed}{command}</div>'


def _stage_line(stage: MigrationStage, runs: Sequence[KeptRun], facts: MigrationFacts) -> str:
    found = of_stage(stage, runs)
    run, tone = decisive(found), tone_of_runs(found)
    said = both(run.verdict if run is not None else stage.asks, "p")
    made = "" if run is None else f'<p class="quiet">{code(run.line)} · {escaped(_date(run))}</p>'
    if run is None and stage.key not in OPTIONAL and (command := _suggested(stage, facts)):
        made = f"<pre>{escaped(command)}</pre>"
    return (
        f'<li class="stage-line {tone.kind}">{_light(tone)}<div><h2><a href="#{stage.key}">{both(stage.title)}</a>'
        f'<span class="quiet"> {both(LIGHTS[tone])}</span></h2>{said}{made}</div></li>'
    )


def _suggested(stage: MigrationStage, facts: MigrationFacts) -> str:
    """The command, if all that it needs is known."""
    known = {"to": facts.to, "main": facts.main, "copy": facts.copy}
    if any(f"{{{name}}}" in stage.next_command and not value for name, value in known.items()):
        return ""
    return stage.next_command.format(**known)


def _date(run: KeptRun) -> str:
    return run.started.replace("T", " ").removesuffix("Z")[:16]


# The reports of a stage.


def _reports(
    stage: MigrationStage, runs: Sequence[KeptRun], shown: Mapping[int, PageBody], facts: MigrationFacts
) -> str:
    found = of_stage(stage, runs)
    if not found:
        command = _suggested(stage, facts)
        hint = f"<p>{both(_NEXT)}</p><pre>{escaped(command)}</pre>" if command else ""
        return f'<div class="empty">{both(stage.asks, "p")}{hint}</div>'
    return "".join(_report(stage, run, shown.get(run.number)) for run in found)


def _report(stage: MigrationStage, run: KeptRun, body: PageBody | None) -> str:
    """One report under the command that made it; the script puts it in its place when its tab is opened."""
    head = (
        f'<div class="stage-head"><h2>{_light(run.light)}{code(f"ferry {run.command}")}</h2>'
        f'<p class="quiet">{code(run.line)} · {escaped(_date(run))} · {units.duration(run.seconds)}</p>'
        f"<details><summary>{both(_HOW)}</summary>{made_block(run.made)}{_plugins(run)}</details></div>"
    )
    if body is None:
        return f'<div class="stage-part">{head}{both(run.verdict, "p")}{quiet(_NO_REPORT)}</div>'
    content = data_for_script(without_private(nested(body, f"{stage.key}-{run.command}-")))
    return f'<div class="stage-part">{head}<div class="stage-report">{content}</div></div>'


def _plugins(run: KeptRun) -> str:
    known = ", ".join(f"{name} {version}" for name, version in run.plugins.items())
    return f'<p class="quiet">{escaped(known)}</p>' if known else ""


# The history.


def _history(runs: Sequence[KeptRun], shown: Mapping[int, PageBody]) -> str:
    rows = (row(_cells(run, shown), numbers=_NUMBERS) for run in reversed(runs))
    return quiet(_NEWEST_FIRST) + table(_HEADS, rows, "rules history", _NUMBERS)


def _cells(run: KeptRun, shown: Mapping[int, PageBody]) -> Iterable[str]:
    stage = next((stage for stage in STAGES if run.command in stage.commands), None)
    verdict = both(run.verdict)
    if stage is not None and run.number in shown:
        verdict = f'<a href="#{stage.key}">{verdict}</a>'
    elif DOCUMENT in run.files:
        verdict += f' <a href="runs/{run.number:04}/{DOCUMENT}">JSON</a>'
    return [
        str(run.number),
        f"{_light(run.light)} {verdict}<br>{code(run.line)}",
        escaped(_date(run)),
        units.duration(run.seconds),
        str(run.exit_code),
        escaped(run.made.commit[:12]),
    ]
