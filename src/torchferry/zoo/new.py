"""Makes the folder of a delivery: the converted code, READMEs, requirements, scripts that train, logs, the licence."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from torchferry.conversion.added import AddedFile
from torchferry.conversion.discover import check_input, read_file
from torchferry.conversion.project import Plan, ProjectOutcome, examine_project
from torchferry.conversion.settings import AmpForm, Distributed, PassSettings
from torchferry.conversion.target import vendor_target
from torchferry.conversion.write import Replace, check_output, write_project
from torchferry.errors import InputError, OutputError
from torchferry.report.html import escaped
from torchferry.text import NOTHING, Text, then
from torchferry.vendors.model import Vendor
from torchferry.vendors.zoo import ZooTable
from torchferry.zoo import run_scripts
from torchferry.zoo.delivery import (
    FRAMEWORK,
    LARGE,
    READMES,
    REQUIREMENTS,
    DeliveryPath,
    DeliveryRequest,
    MisfitReason,
    checked_place,
    from_imports,
    leads_out,
    licence_files,
    licence_name,
    sort_of,
    without_unwanted,
)
from torchferry.zoo.evidence import RunEvidence, StepCurve, compare, holds_both, is_plain, read_evidence
from torchferry.zoo.readme import DeliveryFacts, readme
from torchferry.zoo.run_scripts import Candidate, candidates, clear_one

# Draws the loss curves of both runs into one picture that a README can show.

NAME = "loss.svg"
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM, _RIGHT = 720, 360, 60, 30, 30, 15
_COLOURS = ("#888888", "#c03030")
_MOST_POINTS = 600
_TICKS = 5


def draw(original: StepCurve, port: StepCurve, names: tuple[str, str]) -> str:
    """An SVG of its own; "" where there is nothing to draw."""
    curves = []
    for curve in (original, port):  # at most as many points as can be told apart
        finite = [(step, value) for step, value in enumerate(curve.values) if math.isfinite(value)]
        curves.append(finite[:: max(1, math.ceil(len(finite) / _MOST_POINTS))])
    values = [value for curve in curves for _, value in curve]
    if not values:
        return ""
    low, high = min(values), max(values)
    margin = (high - low) * 0.05 or abs(high) * 0.1 or 1.0
    low, high = low - margin, high + margin
    last = max(max((step for step, _ in curve), default=1) for curve in curves) or 1

    def across(step: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * step / last

    def down(value: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (high - value) / (high - low)

    svg = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" '
        f'height="{_HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
    ]
    for tick in range(_TICKS):
        value, step = low + (high - low) * tick / (_TICKS - 1), last * tick / (_TICKS - 1)
        svg.append(
            f'<path d="M{_LEFT} {down(value):.1f}H{_WIDTH - _RIGHT}" stroke="#dddddd"/>'
            f'<text x="{_LEFT - 6}" y="{down(value) + 4:.1f}" text-anchor="end">{value:.4g}</text>'
            f'<text x="{across(step):.1f}" y="{_HEIGHT - 10}" text-anchor="middle">{step:.0f}</text>'
        )
    for place, (known, name, colour) in enumerate(zip(curves, names, _COLOURS, strict=True)):
        points = " ".join(f"{across(step):.1f},{down(value):.1f}" for step, value in known)
        svg.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        svg.append(f'<text x="{_LEFT + 140 * place}" y="18" fill="{colour}">{escaped(name)}</text>')
    return "".join(svg) + "</svg>\n"


_KEPT_README = "README.original.md"
# Small data may be what a program needs.
_LEFT_OUT = (MisfitReason.LARGE, MisfitReason.WEIGHTS, MisfitReason.CACHE)


@dataclass(frozen=True)
class NewDelivery:
    """A delivery that was made, and what its maker should know of it."""

    place: DeliveryPath
    outcome: ProjectOutcome
    main: str
    candidates: tuple[Candidate, ...]  # for the script that trains, the likeliest first
    notebooks: int  # how many the project has
    left_out: tuple[tuple[str, str], ...]  # files and links that do not belong there, and why
    not_required: tuple[str, ...]  # packages that were taken out of the requirements


@dataclass(frozen=True)
class _Log:
    """One run: what it shows, and the file that says so."""

    shows: RunEvidence
    path: str  # in the delivery; "": there is none
    data: bytes


def plan_for_zoo(request: DeliveryRequest, vendor: Vendor, chosen: Mapping[str, bool]) -> Plan:
    """The conversion for a delivery, with those of amp, distributed and channels_last that are chosen."""
    if chosen["distributed"] and not request.main:
        raise InputError(
            Text(
                "--distributed needs the training script; name it with --main",
                "--distributed 需要知道训练脚本；请用 --main 指定",
            )
        )
    distributed = Distributed(request.main) if chosen["distributed"] else None
    settings = PassSettings(distributed, AmpForm.TORCH if chosen["amp"] else None)
    options = frozenset(name for name, is_chosen in chosen.items() if is_chosen)
    return Plan(vendor_target(vendor), options=options, settings=settings)


def make_delivery(request: DeliveryRequest, vendor: Vendor, table: ZooTable, plan: Plan) -> NewDelivery:
    """Convert the project and write it with all that the zoo asks for; nothing is ever overwritten."""
    place = checked_place(request.path, table)
    if place.framework != FRAMEWORK:
        raise InputError(
            Text(
                f"{request.path}: programs for {place.framework} can't be converted yet, only {FRAMEWORK}; create "
                "the folder by hand, then `ferry zoo check` looks at its path and files",
                f"{request.path}：目前只能转换 {FRAMEWORK} 程序，不支持 {place.framework}；请手动创建该文件夹，"
                "`ferry zoo check` 会检查其路径和文件",
            )
        )
    request = replace(request, arguments=_one_line_of_shell(request.arguments))
    origin = check_input(request.origin)
    if not origin.is_dir():
        raise InputError(
            Text(
                f"{origin}: is a file; give --from the folder of the original project",
                f"{origin}：是文件；--from 需要原项目的文件夹",
            )
        )
    out = _checked_output(origin, request.path)
    logs = _logs(request, table)
    outcome = examine_project(origin, plan, skip=[out])
    left_out = _leave_out(outcome)
    _carry_licence(outcome, origin)
    found = candidates(str(outcome.folder), outcome.entries)
    main = _main(request, outcome, found)
    curves = [log.shows.curves.get("loss", StepCurve(())) for log in logs]
    has_both = all(curve.values for curve in curves)
    picture = draw(curves[0], curves[1], (table.original_log, table.port_log)) if has_both else ""
    facts = _with_logs(DeliveryFacts(request, place, vendor, table, *_licence(outcome)), logs)
    facts = replace(facts, picture=f"{table.run_folder}/{NAME}" if picture else "")
    not_required = _add_requirements(outcome)
    _keep_readme(outcome)
    _add_files(outcome, facts, logs, picture, run_scripts.start_of(str(outcome.folder), main))
    write_project(outcome, out, {}, Replace.NOTHING)
    notebooks = sum(entry.path.endswith(".ipynb") for entry in outcome.entries)
    return NewDelivery(place, outcome, main, found, notebooks, left_out, tuple(not_required))


def _checked_output(origin: Path, path: Path) -> Path:
    """The folder to make; unlike a conversion it never takes the place of another."""
    if path.is_dir() and any(path.iterdir()):
        raise OutputError(
            Text(
                f"{path}: not empty, and nothing is overwritten; choose another name, or move it away",
                f"{path}：文件夹非空，不会覆盖其中内容；请另选名称，或将其移走",
            )
        )
    if path.resolve() == origin.resolve():
        raise OutputError(
            Text(
                f"{path}: this is the original itself; choose another folder",
                f"{path}：这正是原项目；请另选文件夹",
            )
        )
    return check_output(origin, path, Replace.NOTHING)


def _one_line_of_shell(arguments: str) -> str:
    """The words of a text, written so that a shell takes none of them for anything else."""
    try:
        return shlex.join(shlex.split(arguments))
    except ValueError as error:
        raise InputError(
            Text(
                f"--arguments {arguments!r}: {error}; quote the text as in a shell",
                f"--arguments {arguments!r}：{error}；请按 shell 的规则加引号",
            )
        ) from None


def _logs(request: DeliveryRequest, table: ZooTable) -> tuple[_Log, _Log]:
    """Of the original and of the port, read before anything is written. A proof holds both sides: one file is enough."""
    results, original = request.results, request.original
    if original is None and results is not None and holds_both(results):
        original = results
    return (
        _log(original, table, table.original_log, of_original=True),
        _log(results, table, table.port_log, of_original=False),
    )


def _log(path: Path | None, table: ZooTable, name: str, of_original: bool) -> _Log:
    """A text is kept as the run has written it; what only TorchFerry reads, or is large, as what it shows."""
    if path is None:
        return _Log(RunEvidence(), "", b"")
    shows = read_evidence(path, of_original=of_original)
    if is_plain(path) and path.stat().st_size <= LARGE:
        suffix = path.suffix.lower() or ".log"
        return _Log(shows, f"{table.run_folder}/{name}{suffix}", path.read_bytes())
    return _Log(shows, f"{table.run_folder}/{name}.json", shows.to_json().encode())


def _leave_out(outcome: ProjectOutcome) -> tuple[tuple[str, str], ...]:
    """Take out what does not belong into a repository of code; the answer names it, and why."""
    left = {}
    for entry in outcome.entries:
        path = os.path.join(outcome.folder, entry.path)
        if entry.is_link:
            if leads_out(outcome.folder, entry.path):
                left[entry.path] = "a link that leads out of the project"
        elif not entry.is_folder and not entry.problem:
            sort = sort_of(entry.path.replace(os.sep, "/"), os.path.getsize(path))
            if sort in _LEFT_OUT:
                left[entry.path] = sort.value
    outcome.entries = [entry for entry in outcome.entries if entry.path not in left]
    outcome.outcomes = [each for each in outcome.outcomes if each.path not in left]
    return tuple(sorted(left.items()))


def _main(request: DeliveryRequest, outcome: ProjectOutcome, found: tuple[Candidate, ...]) -> str:
    if not request.main:
        clear = clear_one(found)
        return clear.path if clear else ""
    wanted = Path(request.main).as_posix()
    if wanted not in {entry.path.replace(os.sep, "/") for entry in outcome.entries if not entry.is_folder}:
        near = ", ".join(each.path for each in found[:3])
        absent = Text(
            f"--main {request.main}: {request.origin} has no such file",
            f"--main {request.main}：{request.origin} 中没有该文件",
        )
        raise InputError(then(absent, Text(f"likely: {near}", f"可能是：{near}") if found else NOTHING))
    return wanted


def _with_logs(facts: DeliveryFacts, logs: tuple[_Log, _Log]) -> DeliveryFacts:
    original, port = (log.shows for log in logs)
    rows = compare(original, port, facts.table.relative_error, facts.table.absolute_error)
    paths = tuple(log.path for log in logs if log.path)
    return replace(facts, rows=tuple(rows), logs=paths, simulated=bool(port.simulated))


def _licence(outcome: ProjectOutcome) -> tuple[str, str]:
    """The name of the licence, and that of its file."""
    files = _licences(outcome)
    if not files:
        return "", ""
    added = outcome.added.get(files[0])
    data = added.data if added else read_file(os.path.join(outcome.folder, files[0]))
    return licence_name(data.decode("utf-8", "replace")), files[0]


def _licences(outcome: ProjectOutcome) -> list[str]:
    own = [entry.path for entry in outcome.entries if not (entry.is_folder or entry.is_link or entry.problem)]
    return licence_files([*own, *outcome.added])


def _carry_licence(outcome: ProjectOutcome, origin: Path) -> None:
    """Of a project that is a part of a repository, the licence lies above it."""
    folder = origin.resolve()
    if _licences(outcome) or not any((above / ".git").exists() for above in (folder, *folder.parents)):
        return
    while not (folder / ".git").exists():
        folder = folder.parent
        names = licence_files(sorted(path.name for path in folder.iterdir() if path.is_file()))
        if names:
            outcome.add(names[0], AddedFile(read_file(str(folder / names[0]))))
            return


def _keep_readme(outcome: ProjectOutcome) -> None:
    """The original's README stays, under another name: the one of the delivery has its place."""
    ours = {name.casefold() for name in READMES.values()}
    for entry in [each for each in outcome.entries if each.path.casefold() in ours and not each.is_folder]:
        if not entry.is_link and not entry.problem:
            outcome.add(_KEPT_README, AddedFile(read_file(os.path.join(outcome.folder, entry.path))))
        outcome.entries.remove(entry)
    outcome.outcomes = [each for each in outcome.outcomes if each.path.casefold() not in ours]


def _add_requirements(outcome: ProjectOutcome) -> list[str]:
    """The project's own without what the vendor brings, or what it imports; the answer names what was taken out."""
    own = [entry for entry in outcome.entries if entry.path == REQUIREMENTS and not entry.is_link]
    if not own or own[0].problem or own[0].is_folder:
        text = from_imports(outcome.folder, outcome.entries)
        outcome.add(REQUIREMENTS, AddedFile(text.encode()))
        return []
    converted = {each.path: each.new_data for each in outcome.outcomes}.get(REQUIREMENTS)
    data = converted or read_file(os.path.join(outcome.folder, REQUIREMENTS))
    kept, left_out = without_unwanted(data.decode("utf-8", "surrogateescape"))
    if left_out:
        outcome.entries.remove(own[0])
        outcome.outcomes = [each for each in outcome.outcomes if each.path != REQUIREMENTS]
        outcome.added[REQUIREMENTS] = AddedFile(kept.encode("utf-8", "surrogateescape"))
    return left_out


def _add_files(
    outcome: ProjectOutcome,
    facts: DeliveryFacts,
    logs: tuple[_Log, _Log],
    picture: str,
    start: run_scripts.Start,
) -> None:
    for language, name in READMES.items():
        outcome.added[name] = AddedFile(readme(facts, language).encode("utf-8", "replace"))
    table, model = facts.table, facts.place.model
    launcher = table.launcher(model)
    arguments = facts.request.arguments
    test = run_scripts.short_test(os.path.basename(launcher), arguments, "test.log")
    training = run_scripts.start_script(launcher, arguments, table.start_script)
    added = {
        launcher: AddedFile(run_scripts.launcher(model, start).encode()),
        table.test: AddedFile(test.encode(), executable=True),
        table.start_script: AddedFile(training.encode(), executable=True),
        f"{table.run_folder}/README.md": AddedFile(run_scripts.explained(start).encode()),
    }
    if picture:
        added[facts.picture] = AddedFile(picture.encode())
    added |= {log.path: AddedFile(log.data) for log in logs if log.path}
    taken = {entry.path.replace(os.sep, "/") for entry in outcome.entries}
    # what the project itself has under these names is its own, and stays
    outcome.added |= {path: file for path, file in added.items() if path not in taken}
