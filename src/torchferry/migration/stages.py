"""The stages of a migration: which command's result belongs to which, and what to do next where there is none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from torchferry.migration.model import KeptRun
from torchferry.report.records import BAD, DOUBT, GOOD, QUIET, RISK, UNCLEAR, Tone
from torchferry.text import Text


@dataclass(frozen=True)
class MigrationStage:
    """One stage: a light in the overview and a tab of the page."""

    key: str  # in addresses: index.html#plan
    title: Text
    commands: tuple[str, ...]  # whose results belong here; the first decides the light
    asks: Text  # the question that the stage answers
    next_command: str  # what to type where there is no result; {to} and {main} stand for target and program


STAGES = (
    MigrationStage(
        "plan",
        Text("Plan", "计划"),
        ("scan",),
        Text("What must change, and how much work is it?", "需要改什么？工作量多大？"),
        "ferry scan . --to {to}",
    ),
    MigrationStage(
        "changes",
        Text("Changes", "改动"),
        ("convert",),
        Text("What was converted, line by line?", "逐行转换了什么？"),
        "ferry convert . --to {to} -o ../{copy}",
    ),
    MigrationStage(
        "operators",
        Text("Operators", "算子"),
        ("ops", "case"),
        Text("Which operators does the device have?", "设备有哪些算子？"),
        "ferry ops --to {to} {main}",
    ),
    MigrationStage(
        "proof",
        Text("Proof", "验证"),
        ("prove", "run", "explain"),
        Text("Does the converted program compute the same?", "转换后的程序计算结果是否相同？"),
        "ferry prove --to {to} --before {main} --after ../{copy}/{main}",
    ),
    MigrationStage(
        "accuracy",
        Text("Accuracy", "精度"),
        ("compare", "overflow", "watch", "replay", "record"),
        Text("If results differ: which operator is wrong?", "如果结果不同：哪个算子出错？"),
        "ferry record --to {to} -o {to}.h5 {main}",
    ),
    MigrationStage(
        "speed",
        Text("Speed", "性能"),
        ("analyze", "profile", "oplog"),
        Text("What takes the time on the device?", "设备上的时间花在哪里？"),
        "ferry profile --to {to} {main}",
    ),
    MigrationStage(
        "machine",
        Text("Machine", "机器"),
        ("doctor", "bundle"),
        Text("Can this machine use the device?", "这台机器能否使用该设备？"),
        "ferry doctor --to {to}",
    ),
    MigrationStage(
        "delivery",
        Text("Delivery", "交付"),
        ("zoo", "export", "checkpoint"),
        Text("Is the model ready to be handed over?", "模型是否可以交付？"),
        "ferry zoo check .",
    ),
)
ASIDE = ("explain", "bundle", "case")  # about something that went wrong before: no light of their own
OPTIONAL = ("accuracy", "speed", "delivery")  # without a result they are no step that is missing
KEEPERS = tuple(command for stage in STAGES for command in stage.commands)  # commands that add their results
LIGHTS = {
    GOOD: Text("done", "已完成"),
    RISK: Text("look once", "待检查"),
    DOUBT: Text("needs you", "需要处理"),
    UNCLEAR: Text("unknown", "未知"),
    BAD: Text("problem", "有问题"),
    QUIET: Text("not done yet", "尚未进行"),
}


def latest(runs: Sequence[KeptRun]) -> dict[str, KeptRun]:
    """The latest run of each command that has come to a result; interrupted ones count only where there is no other."""
    found: dict[str, KeptRun] = {}
    for run in runs:
        if run.tone != QUIET.kind or run.command not in found:
            found[run.command] = run
    return found


def of_stage(stage: MigrationStage, runs: Sequence[KeptRun]) -> list[KeptRun]:
    """The latest run of each of the stage's commands, in their order."""
    found = latest(runs)
    return [found[command] for command in stage.commands if command in found]


def decisive(runs: Sequence[KeptRun]) -> KeptRun | None:
    """The run that the stage's light shows: that of its first command; a later failure of another one goes before it."""
    if not runs:
        return None
    later = (run for run in runs[1:] if run.number > runs[0].number and run.command not in ASIDE)
    failed = [run for run in later if run.light in (BAD, DOUBT)]
    return failed[-1] if failed else runs[0]


def tone_of_runs(runs: Iterable[KeptRun]) -> Tone:
    """The light of a stage."""
    run = decisive(list(runs))
    return QUIET if run is None else run.light
