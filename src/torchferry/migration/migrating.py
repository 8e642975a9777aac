"""`ferry migrate`: does the steps one after the other, each as the command that it would be by hand, and keeps how far it is."""

from __future__ import annotations

import fcntl
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from torchferry.errors import InputError, RunError
from torchferry.files.aside import write_whole
from torchferry.files.written import foreign
from torchferry.launch.supervise import run_supervised, stop_if_told
from torchferry.migration.decisions import OpenDecision, missing_operators, open_blockers
from torchferry.migration.fingerprints import Digests, digests, fingerprint, made_by_program
from torchferry.migration.folder import INDEX, MigrationFolder
from torchferry.migration.model import DOCUMENT, KeptRun
from torchferry.migration.request import DEVICES, STEP_NAMES, MigrationRequest
from torchferry.migration.steps import FINISHED, Migration, MigrationStep, StepState, begun
from torchferry.report.records import BAD
from torchferry.settings import decode, encode
from torchferry.text import Text
from torchferry.variables import BY_HAND

STATE, LOGS, ACCEPTED = "migrate.json", "logs", "accepted"
_LOCK = "migrate.lock"
_FINDINGS = "findings.json"
_PROGRAM_STEPS = ("ops", "run", "prove")  # in which the program runs, and may write files
_SOFT = ("ops",)  # the conversion comes before what they have to say
_LINES, _MANY = 12, 200  # of a log, where a step has failed
_INTERRUPTED = Text(
    "interrupted in step {step}; `ferry migrate --resume` goes on from there",
    "在步骤 {step} 中被中断；`ferry migrate --resume` 可从此处继续",
)
_ENDED = Text("ended with exit code {code}", "以退出码 {code} 结束")
_PAGE_MADE = Text("page written to {path}", "页面已写入 {path}")
_WITHOUT_DEVICE = Text("{said}; {device} is used instead", "{said}；改用{device}")
_ENDED_BY = Text("{said}: {error}", "{said}：{error}")
_ERROR = re.compile(r"[\w.]*(?:Error|Exception|Interrupt)\b")  # as tracebacks end
_EDITED = Text(
    "The project has changed since the conversion, and the converted copy has your edits ({files}). Keep the copy as it "
    "is: --accept convert; or move it away, and it is converted again.",
    "转换之后项目有改动，而转换后的副本中有您的修改（{files}）。保留副本：--accept convert；或将其移走，以重新转换。",
)
_BUSY = Text(
    "{path}: another `ferry migrate` is at work there; wait until it has ended",
    "{path}：另一个 `ferry migrate` 正在运行；请等待其结束",
)
_NOTHING_BEGUN = Text(
    "no migration has been started here; `ferry migrate PROGRAM --to VENDOR` starts one",
    "此处尚未开始迁移；请先运行 `ferry migrate PROGRAM --to VENDOR`",
)
_NOT_READY = Text(
    "The machine is not ready for the real device: --sim migrates on a simulated one, --accept doctor goes on as it is.",
    "机器尚不能使用真实设备：--sim 可在模拟设备上迁移，--accept doctor 则直接继续。",
)
_FAILED = {
    "doctor": Text("See {log}.", "请查看 {log}。"),
    "scan": Text("See {log}.", "请查看 {log}。"),
    "convert": Text("See {log}.", "请查看 {log}。"),
    "ops": Text(
        "The original program does not run on this machine, so its operators are unknown; see {log}. Repair it, or go on "
        "without: --accept ops.",
        "原程序无法在本机运行，因此无法得知其算子；请查看 {log}。请修复程序，或跳过：--accept ops。",
    ),
    "run": Text(
        "The converted program fails; see {log}. Edit the converted copy in {copy}, then `ferry migrate --resume`.",
        "转换后的程序运行失败；请查看 {log}。请修改 {copy} 中转换后的副本，然后运行 `ferry migrate --resume`。",
    ),
    "prove": Text(
        "The proof does not hold; the page shows where the runs part, {log} what they printed. Edit the converted copy in "
        "{copy}, then `ferry migrate --resume`; or accept the difference: --accept prove.",
        "验证未通过；页面显示两次运行从何处开始不同，输出见 {log}。请修改 {copy} 中转换后的副本，然后运行 `ferry migrate "
        "--resume`；或接受差异：--accept prove。",
    ),
    "report": Text("See {log}.", "请查看 {log}。"),
}
Tell = Callable[[MigrationStep, bool], None]  # a step, and whether it only begins


def load(folder: MigrationFolder) -> Migration:
    """The migration that was begun in a folder."""
    try:
        return decode(Migration, (folder.path / STATE).read_bytes())
    except (OSError, ValueError, RecursionError):
        raise InputError(_NOTHING_BEGUN) from None


class Migrating:
    """A migration while it goes on."""

    def __init__(
        self, folder: MigrationFolder, request: MigrationRequest, project: Path, tell: Tell, resume: bool
    ) -> None:
        self.folder, self._request, self._tell = folder, request, tell
        self._project = project
        self._copy = Path(os.path.normpath(project / request.copy))
        known: Mapping[str, MigrationStep] = {}
        earlier = load(folder) if resume else None
        if earlier is not None:
            known = {step.name: step for step in earlier.steps}
        self.migration = replace(
            begun(request, folder.name, os.path.relpath(project, folder.path), known),
            accepted=tuple(folder.decisions().get(ACCEPTED, ())),
            made=earlier.made if earlier is not None else (),
        )

    @property
    def start(self) -> Path:
        """The folder where the program is started, and where the commands of the steps can be typed."""
        return Path(os.path.normpath(self._project / self._request.here))

    def accept(self, names: Sequence[str], revoked: Sequence[str] = ()) -> None:
        """Take decisions of the user's, or take them back."""
        accepted = self.folder.decide(ACCEPTED, names, revoked)
        self.migration = replace(self.migration, accepted=tuple(accepted))

    def carry_out(self) -> Migration:
        """Do all steps, up to one that needs the user; the page is made in any case."""
        report = MigrationStep("report", self._command("report"))
        self.migration = self.migration.with_step(report)
        with self._alone():
            for name in STEP_NAMES[:-1]:
                self._step(name)
                self._tell(self.migration.step(name), False)
                if name not in _SOFT and not self._may_go_on(name):
                    break
            self._advise()
            self._do("report")
            self._tell(self.migration.step("report"), False)
        return self.migration

    def _advise(self) -> None:
        """What to do about the step that has failed."""
        step = self.migration.stopped_at
        is_failed = step is not None and step.state is StepState.FAILED
        advice = (self._advice(step.name),) if step is not None and is_failed else ()
        self.migration = replace(self.migration, advice=advice)
        self._save()

    def _may_go_on(self, name: str) -> bool:
        return all(self.migration.step(each).is_finished for each in STEP_NAMES[: STEP_NAMES.index(name) + 1])

    # One step.

    def _step(self, name: str) -> None:
        step = self.migration.step(name)
        number = self._fingerprint(name)
        if step.run and step.fingerprint == number:
            if step.state in FINISHED:
                return self._set(replace(step, state=StepState.UNCHANGED))
            if name in self.migration.accepted and step.state in (StepState.FAILED, StepState.DECIDE):
                return self._set(replace(step, state=StepState.ACCEPTED))
            if name == "convert" and step.state is StepState.DECIDE:
                return self._judge(replace(step, state=StepState.UNCHANGED))
        if name == "convert" and self._is_kept_for_edits(step, number):
            return None
        self._do(name)
        self._judge(self.migration.step(name))
        return None

    def _is_kept_for_edits(self, step: MigrationStep, number: str) -> bool:
        """Whether the copy stays as it is, because it holds the user's edits."""
        edited = self.edited()
        if not edited:
            return False
        if "convert" in self.migration.accepted:
            self._judge(replace(step, state=StepState.ACCEPTED, fingerprint=number))
            return True
        name = ", ".join(sorted(edited)[:3])
        decision = OpenDecision("convert", tuple(edited), _EDITED.format(files=name))
        self._set(replace(step, state=StepState.DECIDE, verdict=decision.text, fingerprint=""), (decision,))
        return True

    def _do(self, name: str) -> None:
        """Run the step's command."""
        step = MigrationStep(name, self._command(name), fingerprint=self._fingerprint(name))
        self._tell(step, True)
        self.migration = self.migration.with_step(replace(step, state=StepState.INTERRUPTED))
        self._save()  # whoever kills us now leaves a step that was interrupted
        before = self._sources()
        last = max((run.number for run in self.folder.runs()), default=0)
        began = time.monotonic()
        code = self._run(name, step.command)
        runs = [run for run in self.folder.runs() if run.number > last and run.command == name]
        if name in _PROGRAM_STEPS:
            self._note_made(before)
            step = replace(step, fingerprint=self._fingerprint(name))
        step = replace(
            step,
            state=_state(name, code),
            verdict=self._verdict(name, runs[-1] if runs else None, code),
            seconds=round(time.monotonic() - began, 3),
            exit_code=code,
            run=runs[-1].number if runs else 0,
        )
        if step.state is StepState.FAILED and name in self.migration.accepted:
            step = replace(step, state=StepState.ACCEPTED)
        self._set(step, self.migration.decisions if name == "report" else ())

    def _verdict(self, name: str, run: KeptRun | None, code: int) -> Text:
        """What the report says; of a program that has failed, its error."""
        if name == "report" and not code:
            return _PAGE_MADE.format(path=os.path.relpath(self.folder.path / INDEX))
        said = run.verdict if run is not None else _ENDED.format(code=code)
        if name == "doctor" and run is not None and run.light is BAD and self._request.means:
            return _WITHOUT_DEVICE.format(said=said, device=DEVICES[self._request.means])
        errors = [line for line in last_lines(self.folder, name, _MANY) if _ERROR.match(line)]
        is_bare = code and (run is None or DOCUMENT not in run.files)
        return _ENDED_BY.format(said=said, error=errors[-1][:300]) if is_bare and errors else said

    def _note_made(self, before: Sequence[Digests]) -> None:
        """Files that the program has written are none of the user's changes."""
        pairs = zip(before, self._sources(), strict=True)
        made = (path for earlier, now in pairs for path in made_by_program(earlier, now))
        self.migration = replace(self.migration, made=tuple(dict.fromkeys([*self.migration.made, *made])))

    def _command(self, name: str) -> str:
        return self._request.by_hand(name, force=name == "convert" and self._copy.is_dir())

    def _run(self, name: str, by_hand: str) -> int:
        request = self._request
        words = request.words(name, force=name == "convert" and self._copy.is_dir())
        into = [] if name == "report" else ["--into", str(self.folder.path)]
        target = [str(self.folder.path)] if name == "report" else []
        command = [sys.executable, "-m", "torchferry", words[0], *into, *words[1:], *target]
        log = self.folder.path / LOGS / f"{name}.txt"
        log.parent.mkdir(exist_ok=True)
        cwd = Path(os.path.normpath(self._project / request.folder_of(name)))
        if not cwd.is_dir():
            raise RunError(_NOTHING_BEGUN)
        environment = {**os.environ, BY_HAND: by_hand}
        with log.open("wb") as output, open(os.devnull, "rb") as nothing:
            ending = run_supervised(command, environment, output, output, nothing, is_ours=True, cwd=cwd)
        stop_if_told(ending, _INTERRUPTED.format(step=name))
        return ending.exit_code

    # What a step comes to.

    def _judge(self, step: MigrationStep) -> None:
        """Stop after a step whose result asks for decisions."""
        decisions: list[OpenDecision] = []
        accepted = self.migration.accepted
        if step.name == "doctor" and not self._request.means and self._light("doctor") is BAD:
            if "doctor" not in accepted:
                decisions = [OpenDecision("doctor", (), _NOT_READY)]
        if step.name == "convert" and step.is_finished:
            edited = self.edited()
            decisions = open_blockers(self._document("convert"), accepted, edited)
            if self.migration.step("ops").is_finished:
                decisions += missing_operators(self._document("ops"), accepted, edited)
        if decisions:
            step = replace(step, state=StepState.DECIDE)
        self._set(step, tuple(decisions))

    def _light(self, name: str) -> object:
        run = self._kept(name)
        return None if run is None else run.light

    def _document(self, name: str) -> Mapping[str, Any]:
        run = self._kept(name)
        if run is None or DOCUMENT not in run.files:
            return {}
        document: Mapping[str, Any] = self.folder.document(run)
        return document

    def _kept(self, name: str) -> KeptRun | None:
        number = self.migration.step(name).run
        return self.folder.run(number) if number else None

    def _advice(self, name: str) -> Text:
        log = os.path.relpath(self.folder.path / LOGS / f"{name}.txt")
        return _FAILED[name].format(log=log, copy=os.path.relpath(self._copy))

    def edited(self) -> list[str]:
        """Files of the converted copy that a person has changed or added since it was written."""
        if not (self._copy / _FINDINGS).is_file():
            return []
        made = set(self.migration.made)
        changed = (path for path in foreign(self._copy, _FINDINGS) if path not in made)
        return [path for path in changed if path.endswith((".py", ".pyw")) or (self._project / path).exists()]

    # State.

    def _fingerprint(self, name: str) -> str:
        return fingerprint(self._request, name, *self._sources(), self.migration.made)

    def _sources(self) -> tuple[Digests, Digests]:
        """Those of the project and of the converted copy."""
        return digests(self._project), digests(self._copy) if self._copy.is_dir() else {}

    def _set(self, step: MigrationStep, decisions: tuple[OpenDecision, ...] = ()) -> None:
        self.migration = replace(self.migration.with_step(step), decisions=decisions)
        self._save()

    def _save(self) -> None:
        write_whole(self.folder.path / STATE, encode(self.migration).encode())

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Nobody else carries out a migration in this folder meanwhile."""
        with open(self.folder.path / _LOCK, "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise RunError(_BUSY.format(path=self.folder.path)) from None
            yield


def _state(name: str, code: int) -> StepState:
    """What an exit code says: scan and convert report with 3 that some files could not be read, and have done the rest."""
    well = (0, 3) if name in ("scan", "convert") else (0,)
    return StepState.DONE if code in well else StepState.FAILED


def last_lines(folder: MigrationFolder, name: str, count: int = _LINES) -> list[str]:
    """How the output of a step ended."""
    try:
        text = (folder.path / LOGS / f"{name}.txt").read_text("utf-8", "replace")
    except OSError:
        return []
    return text.rstrip().splitlines()[-count:]


def exit_code(migration: Migration) -> int:
    """0: all done; 1: something must be decided, or the proof does not hold; 3: a step could not be done."""
    step = migration.stopped_at
    if step is None:
        return 0
    return 1 if step.state is StepState.DECIDE or (step.name == "prove" and step.exit_code == 1) else 3
