"""A whole project: find its files, look at those worth it, in one process or several, and gather what was learned."""

from __future__ import annotations

import contextlib
import gc
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from torchferry.conversion import added, problems
from torchferry.conversion.added import AddedFile, TakenNames
from torchferry.conversion.custom.model import CustomRules
from torchferry.conversion.discover import PYTHON_SUFFIXES, ProjectEntry, discover, is_python, read_file
from torchferry.conversion.estimates import estimated
from torchferry.conversion.file import WELL_KNOWN, FileJob, convert_text
from torchferry.conversion.program.neighbours import Neighbours
from torchferry.conversion.rule import Rule, RuleSet, all_rules, prepared
from torchferry.conversion.settings import PassSettings
from torchferry.conversion.target import Target
from torchferry.conversion.targets import is_helper, placed
from torchferry.conversion.texts.kinds import converter_of, might_be_text
from torchferry.conversion.workers import WorkerEndedError, map_in_processes, with_deep_stack
from torchferry.errors import FerryError
from torchferry.finding import Finding, Kind, Message, Wording, finding_of
from torchferry.outcome import FileRecord, FileStatus, Report
from torchferry.source.decode import UndecodableError, decode
from torchferry.source.module import ParseError, TooDeepError
from torchferry.text import Text

Progress = Callable[[int, int], None]

# The package of each import statement that begins a line, and whatever else begins one with these words.
_IMPORTED = re.compile(rb"\n[ \t]*(?:import|from)[ \t]+(\w+)")
_GUESSED = Message(
    Text("File without a declared encoding", "未声明编码的文件"),
    why=Text("It was read as {encoding}.", "按 {encoding} 读取。"),
)
_UNSAFE = Message(
    Text("File left as it was", "文件保持原样"),
    why=Text("The rewrite did not pass its own check: {reason}.", "改写未通过自检：{reason}。"),
    do=Text("Convert the file by hand, or report the problem.", "请手动转换该文件，或报告该问题。"),
)
_PLACES = Text("This project has {count} such places.", "本项目中共有 {count} 处。")
_UNREADABLE = Message(
    Text("File not read", "未能读取的文件"),
    why=Text("{reason}.", "{reason}。"),
    do=Text(
        "Make the file readable, or exclude it with `--exclude`.", "请使文件可读，或用 `--exclude` 排除。"
    ),
)
# A module takes about a kilobyte of memory for each call, name or element, six for each change: a file of 10 MB would
# take more than most machines have. The largest modules that people write have a tenth of this.
_MOST_PARTS = 1_500_000
_PUNCTUATION = (b".", b",", b"(", b"[", b"=", b";", b"+", b"-", b"*", b":")
_TOO_LARGE = (
    "too large to be taken apart (more than a million calls, names or elements); split it, or --exclude it"
)
# Below this, starting processes costs more than they save.
_BYTES_WORTH_PROCESSES = 3_000_000


@dataclass(frozen=True)
class Plan:
    """What to convert to, and how."""

    target: Target
    options: frozenset[str] = frozenset()  # opt-in rules, by the name of their option
    select: tuple[str, ...] = ()  # rule ids or prefixes; empty means all
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()  # file name patterns
    custom: CustomRules = CustomRules()
    settings: PassSettings = PassSettings()
    jobs: int = 1

    def rules(self) -> tuple[Rule, ...]:
        """The rules that apply, the user's own first."""
        chosen = [rule for rule in all_rules() if not rule.option or rule.option in self.options]
        if self.select:
            # What follows from other changes (`finish`) belongs to them.
            every = tuple(rule.id for rule in all_rules())
            causes = {rule.id: (rule.follows or every) if rule.finish else () for rule in chosen}
            chosen = [
                rule
                for rule in chosen
                if any(each.startswith(self.select) for each in (rule.id, *causes[rule.id]))
            ]
        chosen = prepared(chosen, self.target)
        if self.custom.rules:
            from torchferry.conversion.custom.engine import custom_rules

            chosen = [*custom_rules(self.custom, self.target.name), *chosen]
        if self.ignore:
            chosen = [rule for rule in chosen if not rule.id.startswith(self.ignore)]
        return tuple(chosen)


@dataclass(frozen=True)
class FileOutcome:
    """What became of one file; `path` is relative, as the file system names it."""

    path: str
    record: FileRecord
    findings: tuple[Finding, ...] = ()
    new_data: bytes | None = None


@dataclass
class ProjectOutcome:
    """What became of a project."""

    root: Path
    target: Target
    entries: list[ProjectEntry] = field(default_factory=list)
    outcomes: list[FileOutcome] = field(default_factory=list)
    added: dict[str, AddedFile] = field(default_factory=dict)  # by path, relative, with forward slashes
    remarks: list[Finding] = field(default_factory=list)  # about what is no file: folders left out, links

    @property
    def folder(self) -> Path:
        """What all paths are relative to."""
        return self.root.parent if self.root.is_file() else self.root

    @property
    def taken(self) -> TakenNames:
        """The paths that no added file may have."""
        paths = [*(entry.path for entry in self.entries), *self.added]
        return TakenNames(paths, str(self.folder) if self.root.is_file() else "")

    def add(self, path: str, file: AddedFile) -> str:
        """Add a file under this path, or one like it that the project does not have; answers with that path.

        A file that is there already with the same content, from an earlier conversion, is not added again.
        """
        with contextlib.suppress(OSError):
            if read_file(os.path.join(self.folder, path)) == file.data:
                return path
        free = self.taken.free(path)
        self.added[free] = file
        return free

    @property
    def failed(self) -> bool:
        return any(outcome.record.status is FileStatus.FAILED for outcome in self.outcomes)

    def report(self, command: str) -> Report:
        """The findings of all files, in order."""
        findings = [finding for outcome in self.outcomes for finding in outcome.findings] + self.remarks
        findings.sort(key=lambda finding: (finding.path, finding.line, finding.col, finding.rule))
        findings = list(map(estimated, _once_per_project(findings)))
        return Report(
            command=command,
            vendor=self.target.name,
            project=self.root.resolve().name,
            files_seen=sum(not (entry.is_folder or entry.is_link) for entry in self.entries),
            files=(
                *(
                    outcome.record
                    for outcome in self.outcomes
                    if outcome.findings or outcome.record.status is not FileStatus.UNCHANGED
                ),
                *(file.record(path) for path, file in sorted(self.added.items())),
            ),
            findings=tuple(findings),
        )


def _once_per_project(findings: list[Finding]) -> list[Finding]:
    """Of what is one fact about the whole project only the first place, with the number of all."""
    once = {rule.id for rule in all_rules() if rule.per_project}
    counts = Counter((item.rule, item.kind, item.title) for item in findings if item.rule in once)
    kept: list[Finding] = []
    for item in findings:
        key = (item.rule, item.kind, item.title)
        count = counts.pop(key, 0) if item.rule in once else 1
        if count > 1:
            item = replace(item, why=item.parts.because(_PLACES.format(count=count)).why)
        if count:
            kept.append(item)
    return kept


def examine_project(
    root: Path, plan: Plan, skip: Sequence[Path] = (), progress: Progress | None = None
) -> ProjectOutcome:
    """Look at every file of a folder, or at a single file."""
    outcome = ProjectOutcome(root, plan.target)
    if root.is_file():
        outcome.entries = [ProjectEntry(root.name)]
        folder = root.parent
    else:

        def note(path: str, reason: Text) -> None:
            outcome.remarks.append(problems.left_out_finding(_shown(path), reason, outcome.target))

        outcome.entries = list(discover(root, plan.exclude, skip, note))
        links = {}
        for entry in outcome.entries:
            if entry.is_link:
                with contextlib.suppress(OSError):  # gone meanwhile
                    links[entry.path] = os.readlink(os.path.join(root, entry.path))
        outcome.remarks += problems.link_findings(links, plan.target)
        folder = root
    files = [entry for entry in outcome.entries if not (entry.is_folder or entry.is_link or entry.problem)]
    paths = [entry.path for entry in files]
    plan = replace(plan, target=placed(plan.target, folder, paths))
    with _without_garbage_collection():
        candidates = _read(folder, outcome, plan)
        plan = replace(plan, target=added.placed(plan.target, folder, paths, candidates.data))
        outcome.outcomes += _convert_all(candidates, plan, folder, progress)
    outcome.outcomes.sort(key=lambda item: item.path)
    if candidates.modules and not candidates.has_plugin:
        outcome.remarks += problems.unloaded_findings(
            (finding for item in outcome.outcomes for finding in item.findings),
            (item.new_data or b"" for item in outcome.outcomes),
            plan.target,
        )
    added.add_helper(outcome, plan.target.helper)
    added.add_helper(outcome, plan.target.lightning)
    added.add_launch_script(outcome, plan.settings.distributed)
    return outcome


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Syntax trees are large and free of cycles; looking for cycles in them takes a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled and not gc.get_freeze_count():  # what the caller has frozen stays so
            gc.freeze()  # what is here now counts as old: else the next new object would have all of it looked at
            gc.unfreeze()
        if enabled:
            gc.enable()


@dataclass
class _CandidateFiles:
    """Files that hold a trigger word."""

    paths: list[str] = field(default_factory=list)
    data: list[bytes] = field(default_factory=list)
    modules: list[str] | None = None  # the paths of all Python files of a project
    has_plugin: bool = False  # whether one of them names the target's plugin

    def add(self, path: str, data: bytes) -> None:
        self.paths.append(path)
        self.data.append(data)


def _read(folder: Path, outcome: ProjectOutcome, plan: Plan) -> _CandidateFiles:
    """Read each file once; what has no trigger word is done with."""
    candidates = _CandidateFiles()
    if not outcome.root.is_file():
        candidates.modules = [item.path for item in outcome.entries if item.path.endswith(PYTHON_SUFFIXES)]
    rules, plugin = RuleSet(plan.rules()), plan.target.prelude_module.encode()
    for entry in outcome.entries:
        if entry.problem:
            outcome.outcomes.append(_unreadable(entry.path, entry.problem, plan.target))
        if entry.is_link or entry.is_folder or entry.problem:
            continue
        if not entry.path.endswith(PYTHON_SUFFIXES) and not might_be_text(_shown(entry.path)):
            continue
        try:
            data = read_file(os.path.join(folder, entry.path))
        except OSError as error:
            outcome.outcomes.append(_unreadable(entry.path, error.strerror or str(error), plan.target))
            continue
        if is_python(os.path.basename(entry.path), data[:200]):
            candidates.has_plugin = candidates.has_plugin or bool(plugin and plugin in data)
            # Whether it is worth parsing, by its bytes.
            if rules.is_called_for(data) or not rules.imports.isdisjoint(_IMPORTED.findall(b"\n" + data)):
                if not is_helper(data) and not added.is_helper(data):
                    candidates.add(entry.path, data)
        elif converter_of(_shown(entry.path), data) is not None:
            candidates.add(entry.path, data)
    return candidates


def _convert_all(
    candidates: _CandidateFiles, plan: Plan, folder: Path, progress: Progress | None
) -> list[FileOutcome]:
    work: Iterable[FileOutcome]
    if plan.jobs > 1 and sum(map(len, candidates.data)) > _BYTES_WORTH_PROCESSES:
        work = _in_processes(candidates, plan, folder)
    else:
        convert = _make_work(plan, folder, candidates.modules)
        work = map(convert, zip(candidates.paths, candidates.data, strict=True))
    outcomes: list[FileOutcome] = []
    for outcome in work:
        outcomes.append(outcome)
        if progress is not None:
            progress(len(outcomes), len(candidates.paths))
    return outcomes


def _make_work(
    plan: Plan, folder: Path, modules: list[str] | None
) -> Callable[[tuple[str, bytes]], FileOutcome]:
    """What converts a file; in a process of its own nobody else has turned off the collection of garbage."""
    gc.disable()
    neighbours = Neighbours(folder, WELL_KNOWN, modules)
    job = FileJob(plan.target, RuleSet(plan.rules()), settings=plan.settings, neighbours=neighbours)
    return lambda item: convert_file(*item, job)


def _in_processes(candidates: _CandidateFiles, plan: Plan, folder: Path) -> Iterator[FileOutcome]:
    # The largest first, so that no process is left with a long file at the end.
    items = sorted(zip(candidates.paths, candidates.data, strict=True), key=lambda item: -len(item[1]))
    try:
        yield from map_in_processes(partial(_make_work, plan, folder, candidates.modules), items, plan.jobs)
    except WorkerEndedError:
        raise FerryError(
            Text(
                "a worker process was killed (out of memory?); try again with -j 1",
                "有工作进程被终止（可能是内存不足）；请加 -j 1 重试",
            )
        ) from None


def convert_file(path: str, data: bytes, job: FileJob) -> FileOutcome:
    """One file, whatever is wrong with it."""
    shown = _shown(path)
    is_module = is_python(os.path.basename(path), data[:200])
    convert = (None if is_module else converter_of(shown, data)) or convert_text
    # To take a file apart needs memory for about so many parts.
    if len(data) > _MOST_PARTS and sum(map(data.count, _PUNCTUATION)) > _MOST_PARTS:
        return _unreadable(path, _TOO_LARGE, job.target)
    try:
        decoded = decode(data)
    except UndecodableError as error:
        return _unreadable(path, str(error), job.target)
    try:
        try:
            conversion = convert(decoded, shown, job)
        except (RecursionError, TooDeepError):
            conversion = with_deep_stack(lambda: convert(decoded, shown, job))
    except ParseError as error:
        findings = problems.unparsed_findings(shown, str(error), error.line, decoded.text, job.target)
        return FileOutcome(path, FileRecord(shown, FileStatus.FAILED, str(error)), tuple(findings))
    except Exception as error:  # a mistake of ours must not cost the user the other files
        reason = f"{type(error).__name__}: {error} (please report this file)"
        remark = _remark(problems.UNSAFE, Kind.TODO, shown, _UNSAFE.format(reason=reason), job.target)
        return FileOutcome(path, FileRecord(shown, FileStatus.FAILED, reason), (remark,))
    findings = list(conversion.findings)
    if decoded.guessed:
        message = _GUESSED.format(encoding=decoded.encoding)
        findings.insert(0, _remark(problems.ENCODING, Kind.INFO, shown, message, job.target))
    if conversion.failure:
        message = _UNSAFE.format(reason=conversion.failure)
        findings.insert(0, _remark(problems.UNSAFE, Kind.TODO, shown, message, job.target))
        return FileOutcome(path, FileRecord(shown, FileStatus.FAILED, conversion.failure), tuple(findings))
    if conversion.new_text is None:
        return FileOutcome(path, FileRecord(shown, FileStatus.UNCHANGED), tuple(findings))
    record = FileRecord(shown, FileStatus.CHANGED, hunks=conversion.hunks)
    return FileOutcome(path, record, tuple(findings), decoded.encode(conversion.new_text))


def _unreadable(path: str, reason: str, target: Target) -> FileOutcome:
    finding = _remark(problems.UNREADABLE, Kind.TODO, _shown(path), _UNREADABLE.format(reason=reason), target)
    return FileOutcome(path, FileRecord(_shown(path), FileStatus.FAILED, reason), (finding,))


def _remark(rule: Rule, kind: Kind, path: str, message: Wording, target: Target) -> Finding:
    return finding_of(rule.id, kind, (path, 1, 1), message, target.name)


def _shown(path: str) -> str:
    return path.replace(os.sep, "/")
