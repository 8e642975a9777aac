"""What `ferry migrate` has done so far: its steps, kept in the migration folder so that it can go on from there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from torchferry.migration.decisions import OpenDecision
from torchferry.migration.request import STEP_NAMES, MigrationRequest
from torchferry.report.records import BAD, DOUBT, GOOD, QUIET, Grade
from torchferry.text import Text


class StepState(str, Enum):
    """How far a step is."""

    DONE = "done"
    UNCHANGED = "unchanged"  # done earlier, and nothing that it depends on has changed
    ACCEPTED = "accepted"  # it failed, and the user goes on
    DECIDE = "decide"  # it is done, and the user must decide something before the next one
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    WAITING = "waiting"  # not begun


STATES = {
    StepState.FAILED: Grade(Text("failed", "失败"), BAD, "✗"),
    StepState.DECIDE: Grade(Text("decision needed", "需要决定"), DOUBT, "!"),
    StepState.INTERRUPTED: Grade(Text("interrupted", "被中断"), DOUBT, "!"),
    StepState.ACCEPTED: Grade(Text("accepted", "已接受"), DOUBT, "~"),
    StepState.DONE: Grade(Text("done", "已完成"), GOOD, "✓"),
    StepState.UNCHANGED: Grade(Text("unchanged", "未变化"), GOOD, "="),
    StepState.WAITING: Grade(Text("not begun", "尚未开始"), QUIET, "·"),
}
FINISHED = (StepState.DONE, StepState.UNCHANGED, StepState.ACCEPTED)


@dataclass(frozen=True)
class MigrationStep:
    """One step of the way."""

    name: str
    command: str  # as one would type it in the folder where the program is started
    state: StepState = StepState.WAITING
    verdict: Text = Text("", "")
    seconds: float = 0.0
    exit_code: int = 0
    run: int = 0  # its number in the history
    fingerprint: str = ""

    @property
    def is_finished(self) -> bool:
        """Whether the next step may begin."""
        return self.state in FINISHED


@dataclass(frozen=True)
class Migration:
    """A migration as far as it has come."""

    request: MigrationRequest
    project: str  # its name
    root: str  # the project's folder, from the migration folder
    steps: tuple[MigrationStep, ...]
    decisions: tuple[OpenDecision, ...] = ()  # what must be decided before it can go on
    advice: tuple[Text, ...] = ()  # what to do where a step has failed
    accepted: tuple[str, ...] = ()
    made: tuple[str, ...] = field(default=())  # files that the program has written in its folders

    @property
    def stopped_at(self) -> MigrationStep | None:
        """The step that has to be dealt with, or that comes next; None: all is done."""
        return next((step for step in self.steps if not step.is_finished), None)

    @property
    def is_complete(self) -> bool:
        """Whether all steps are done."""
        return self.stopped_at is None

    def step(self, name: str) -> MigrationStep:
        """A step by its name."""
        return next(step for step in self.steps if step.name == name)

    def with_step(self, changed: MigrationStep) -> Migration:
        """The same with one step changed."""
        steps = tuple(changed if step.name == changed.name else step for step in self.steps)
        return replace(self, steps=steps)


def begun(
    request: MigrationRequest, project: str, root: str, known: Mapping[str, MigrationStep]
) -> Migration:
    """A migration of which nothing is done, but for what is known of an earlier one."""
    steps = tuple(known.get(name) or MigrationStep(name, request.by_hand(name)) for name in STEP_NAMES)
    return Migration(request, project, root, steps)
