"""The commands as functions: their options by the same names, their results as the records that the commands report.

What would end a command with exit code 2 raises a `FerryError` here. Programs run as processes of their own, as they do
under the commands; nothing of a user's project is imported into this process.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchferry.errors import FerryError, InputError, ReportError, RunError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from torchferry.accuracy.compare.model import RankComparison
    from torchferry.accuracy.overflow.launching import Checked
    from torchferry.accuracy.record.launching import Recorded
    from torchferry.conversion.planning import ConversionRequest
    from torchferry.examination.examine import MachineReport
    from torchferry.explanation.model import Explanation
    from torchferry.launch.place import Place
    from torchferry.launch.program import Program
    from torchferry.outcome import Report
    from torchferry.perf.report.sentences import RunsReport
    from torchferry.proof.model import Proof
    from torchferry.readiness.model import Readiness
    from torchferry.report.formats import Options, Reports
    from torchferry.sim.summary import RunSummary
    from torchferry.text import Language

__all__ = [
    "FerryError",
    "analyze",
    "compare",
    "convert",
    "doctor",
    "explain",
    "ops",
    "overflow",
    "prove",
    "record",
    "render",
    "run",
    "save",
    "scan",
]

StrPath = str | os.PathLike[str]
Names = str | Sequence[str]  # "ascend,mlu", or a list of names

# The record that a function returns, or holds in a sequence -> the reports that are made of it.
_REPORTS = {
    "Report": "torchferry.report.findings",
    "Proof": "torchferry.proof.report",
    "Readiness": "torchferry.readiness.report",
    "RankComparison": "torchferry.accuracy.report",
    "RunsReport": "torchferry.perf.report",
    "Explanation": "torchferry.explanation.report",
    "MachineReport": "torchferry.examination.report",
}


# Before the run: what must change.


def scan(path: StrPath, to: str, **options: Unpack[ConversionRequest]) -> Report:
    """What must change in a project for a vendor, as `ferry scan`; writes nothing."""
    from torchferry.conversion.discover import check_input
    from torchferry.conversion.planning import plan_for
    from torchferry.conversion.project import examine_project

    root = check_input(Path(path))
    return examine_project(root, plan_for(root, to, **options)).report("scan")


def convert(
    path: StrPath,
    to: str,
    output: StrPath,
    *,
    force: bool = False,
    lang: Language | None = None,
    **options: Unpack[ConversionRequest],
) -> Report:
    """Write a converted copy of a project and its reports into a folder, as `ferry convert -o`.

    `force` replaces the output of an earlier run, and nothing else.
    """
    from torchferry.conversion.discover import check_input
    from torchferry.conversion.planning import plan_for
    from torchferry.conversion.project import examine_project
    from torchferry.conversion.write import REPORT_FILES, Replace, check_output, write_project

    root, replace = check_input(Path(path)), Replace.OURS if force else Replace.NOTHING
    place = check_output(root, Path(output), replace)
    outcome = examine_project(root, plan_for(root, to, **options), skip=[place])
    report = outcome.report("convert")
    files = {name: render(report, form, lang=lang) for name, form in REPORT_FILES.items()}
    write_project(outcome, place, files, replace)
    return report


def ops(
    program: StrPath | Sequence[str] | None = None,
    *,
    to: Names,
    module: bool = False,
    capture: StrPath | None = None,
    trace: StrPath | None = None,
    steps: int | None = 1,
    nproc: int | None = None,
    timeout: float | None = None,
    vendor_path: Sequence[StrPath] = (),
) -> tuple[Readiness, ...]:
    """Which operators of a program the vendors' devices have, as `ferry ops`: one answer for each vendor.

    The operators are those of a program, which runs on the CPU, of a `capture` that `ferry ops` has written, or of
    the `trace` of a profiler.
    """
    from torchferry.launch.place import DeviceKind, Place, build_for
    from torchferry.readiness import capture_json, runs
    from torchferry.readiness import trace as traces
    from torchferry.readiness.judge import judge, vendor_table
    from torchferry.vendors.registry import get_vendor

    if [program, capture, trace].count(None) != 2:
        raise RunError("one of a program, a capture and a trace is needed; leave the others out")
    asked = [name.partition("@") for name in _names(to)]
    vendors = [(get_vendor(name, _paths(vendor_path)), version) for name, _, version in asked]
    for vendor, version in vendors:
        vendor_table(vendor, version)  # a version that is not known is said before the run
    if trace is not None:
        found = traces.read_trace(Path(trace))
    elif capture is not None:
        found = capture_json.read_capture(Path(capture))
    else:
        assert program is not None
        place = Place(DeviceKind.REFERENCE, devices=nproc or 1)
        build_for(place, _quiet())
        found = runs.capture_program(_program(program, module, nproc), place, steps, timeout)
    return tuple(judge(found, vendor, version) for vendor, version in vendors)


def doctor(
    to: str | None = None,
    *,
    nproc: int = 1,
    trial: bool = False,
    emulate: bool = False,
    vendor_path: Sequence[StrPath] = (),
) -> MachineReport:
    """Whether a vendor's device can be used on this machine, and what makes the machine slow, as `ferry doctor`.

    `trial` starts a process that computes on each device, as --try does.
    """
    from torchferry.examination.examine import examine_machine
    from torchferry.examination.host.machine import this_machine

    if emulate and not to:
        raise ReportError("emulate: of which vendor? Name it with to")
    return examine_machine(this_machine(nproc), to, _paths(vendor_path), trial=trial, emulated=emulate)


# Running, and proving that the result is the same.


def run(
    program: StrPath | Sequence[str],
    *,
    to: str,
    module: bool = False,
    nproc: int | None = None,
    sim: bool = False,
    emulate: bool = False,
    native: bool = False,
    converted: bool = False,
    devices: int | None = None,
    memory: int | str | None = None,
    card: str | None = None,
    strict: bool = False,
    vendor_path: Sequence[StrPath] = (),
) -> RunSummary:
    """Run a CUDA program, unchanged, on a vendor's device to its end, as `ferry run`: on the real one if it is here,
    else emulated if that is set up, else simulated.

    The exit code of the program is `summary.outcome.exit_code`.
    """
    from torchferry.launch import plugin
    from torchferry.launch.place import Place
    from torchferry.launch.program import run_at
    from torchferry.vendors.registry import get_vendor, with_card

    vendor = with_card(get_vendor(to, _paths(vendor_path)), card)
    choice = plugin.choose(vendor, sim, emulate, may_emulate=not (strict or card))
    given = {"native": native, "converted": converted, "devices": devices, "memory": memory}
    plugin.refuse_unfit(vendor, choice.kind, {**given, "card": card, "strict": strict})
    place = Place(
        choice.kind,
        vendor,
        _words(vendor_path),
        devices,
        memory,
        converted=converted,
        native=native,
        strict=strict,
    )
    return run_at(place, _program(program, module, nproc), _quiet())


def prove(
    program: StrPath | Sequence[str],
    *,
    to: Names,
    converted: StrPath | None = None,
    output: StrPath | None = None,
    module: bool = False,
    nproc: int | None = None,
    steps: int | None = 20,
    seed: int = 0,
    same_weights: bool = False,
    devices: int | None = None,
    memory: int | str | None = None,
    emulate: bool = False,
    cwd: StrPath | None = None,
    timeout: float | None = None,
    exact: bool = False,
    rtol: float | None = None,
    atol: float | None = None,
    lang: Language | None = None,
    vendor_path: Sequence[StrPath] = (),
) -> Proof:
    """Run a program on the CPU and on each vendor's device, and compare every step, as `ferry prove`; `proof.holds` is
    the answer.

    `converted` is the script after a conversion, with {vendor} for each vendor's name. `output` is the folder for
    proof.json, proof.html and what the runs printed.
    """
    from dataclasses import replace

    from torchferry.proof.prover import places_of, refuse_unprovable, run_proof
    from torchferry.proof.runs import ProofPlan
    from torchferry.text import user_language
    from torchferry.vendors.registry import get_vendor

    if cwd is not None and not Path(cwd).is_dir():
        raise InputError(f"{cwd}: no such folder; cwd is the one that both runs start in")
    vendors = [get_vendor(name, _paths(vendor_path)) for name in _names(to)]
    for vendor in vendors:
        refuse_unprovable(vendor, emulate)
    original, count = _program(program, module, nproc), devices or nproc or 1
    after = None if converted is None else replace(original, target=os.fspath(converted))
    plan = ProofPlan(
        original,
        after,
        places_of(vendors, emulate, after is not None, count, memory, _words(vendor_path)),
        devices=count,
        steps=steps,
        seed=seed,
        same_weights=same_weights,
        timeout=timeout,
        cwd=None if cwd is None else Path(cwd).resolve(),
        exact=exact,
        rtol=rtol,
        atol=atol,
    )
    _, proof = run_proof(
        plan, None if output is None else Path(output), lang or user_language(), progress=_quiet()
    )
    return proof


# What the operators of a program compute.


def record(
    program: StrPath | Sequence[str],
    output: StrPath = "record.h5",
    *,
    module: bool = False,
    nproc: int | None = None,
    to: str | None = None,
    sim: bool = False,
    emulate: bool = False,
    converted: bool = False,
    as_is: str = "",
    steps: int | None = 1,
    first_step: int = 1,
    stats: bool = False,
    inputs: bool = False,
    whole: bool = False,
    seed: int | None = None,
    devices: int | None = None,
    timeout: float | None = None,
    vendor_path: Sequence[StrPath] = (),
) -> Recorded:
    """Record what every operator of a program is given and computes, as `ferry record`: in one HDF5 file, with several
    processes in one for each."""
    from torchferry.accuracy.model import Kept
    from torchferry.accuracy.record.launching import (
        build_for,
        check_output,
        nothing_recorded,
        run_recorded,
    )
    from torchferry.accuracy.record.settings import RecordSettings

    if (stats and inputs) or (whole and first_step > 1):
        raise RunError("stats and inputs, or whole and first_step: only one of them at a time; leave one out")
    file = Path(output).absolute()
    wanted = _program(program, module, nproc)
    place = _place(to, sim, emulate, as_is, converted, vendor_path, devices or nproc)
    settings = RecordSettings(
        str(file),
        kept=Kept.STATISTICS if stats else Kept.INPUTS if inputs else Kept.TENSORS,
        first_step=first_step,
        steps=steps,
        whole=whole,
        seed=seed,
        replaced=check_output(file),
    )
    build_for(place, quiet=True, kept=settings.kept)
    recorded = run_recorded(wanted, settings, place, timeout)
    if not recorded.files:
        raise RunError(nothing_recorded(wanted, settings, recorded))
    return recorded


def overflow(
    program: StrPath | Sequence[str],
    output: StrPath = "overflow.h5",
    *,
    module: bool = False,
    nproc: int | None = None,
    to: str | None = None,
    sim: bool = False,
    emulate: bool = False,
    converted: bool = False,
    as_is: str = "",
    steps: int | None = 1,
    fp16: bool = False,
    strict: bool = False,
    whole: bool = False,
    keep_going: bool = False,
    last: int = 20,
    seed: int | None = None,
    devices: int | None = None,
    timeout: float | None = None,
    vendor_path: Sequence[StrPath] = (),
) -> Checked:
    """The first operator of a program that makes infinities or NaN of finite inputs, as `ferry overflow`; None of
    `checked.first` if there is none. Its inputs are in `output`."""
    from torchferry.accuracy.overflow.launching import run_checked
    from torchferry.accuracy.record.launching import build_for, check_output
    from torchferry.accuracy.record.settings import OverflowSettings

    file = Path(output).absolute()
    wanted = _program(program, module, nproc)
    place = _place(to, sim, emulate, as_is, converted, vendor_path, devices or nproc)
    for earlier in check_output(file):  # it would be taken for the result of this run
        Path(earlier).unlink(missing_ok=True)
    settings = OverflowSettings(
        str(file),
        steps=None,
        whole=whole,
        keep_going=keep_going,
        seed=seed,
        updates=steps,
        last=last,
        half=fp16,
        strict=strict,
    )
    build_for(place, quiet=True)
    return run_checked(wanted, settings, place, timeout)


def compare(mine: StrPath, golden: StrPath | None = None, *, jobs: int = 0) -> list[RankComparison]:
    """Compare two records of a run, operator by operator, as `ferry compare`; one comparison for each rank.

    Without `golden` each operator is compared with its own result in double precision.
    """
    from torchferry.accuracy.compare.comparing import ComparingPlan, compare_files

    return compare_files(Path(mine), None if golden is None else Path(golden), ComparingPlan(jobs))


# What costs time, and what an error means.


def analyze(
    *paths: StrPath,
    baseline: StrPath | None = None,
    rank: int | None = None,
    only: Sequence[str] = (),
    ignore: Sequence[str] = (),
) -> RunsReport:
    """The bottlenecks of a profiled run with their proofs and remedies, as `ferry analyze`."""
    from torchferry.perf.analysis import analyze_paths

    if not paths:
        raise InputError("nothing to analyze: give a trace, or the folder that `ferry profile` wrote")
    return analyze_paths(_paths(paths), None if baseline is None else Path(baseline), rank, only, ignore)


def explain(
    message: str = "",
    *,
    logs: Sequence[StrPath] = (),
    to: str | None = None,
    vendor_path: Sequence[StrPath] = (),
) -> Explanation:
    """What the errors in a message, or in the logs of one run, mean and what to do, as `ferry explain`."""
    from torchferry.explanation.explaining import explain_logs, explain_text
    from torchferry.explanation.rules import rule_book

    if bool(message) == bool(logs):
        raise InputError("what is to be explained? Give a message, or the logs of one run")
    book = rule_book([to] if to else (), _paths(vendor_path))
    return explain_logs(_paths(logs), book) if logs else explain_text(message, book)


# Reports.


def render(
    result: object,
    format: str = "text",  # noqa: A002  as --format
    *,
    lang: Language | None = None,
    everything: bool = False,
) -> bytes:
    """The report of what a function has returned, in a format that the command has: text, json, html and others."""
    return _reports_of(result).render(result, format, _wishes(lang, everything))


def save(
    result: object,
    path: StrPath,
    *,
    format: str = "",  # noqa: A002  as --format
    lang: Language | None = None,
    everything: bool = False,
) -> None:
    """Write the report of what a function has returned; the name's suffix says the format, unless `format` does."""
    reports, file = _reports_of(result), Path(path)
    reports.write(result, file, _wishes(lang, everything), format or reports.format_of(file))


def _reports_of(result: object) -> Reports[Any]:
    is_several = isinstance(result, Sequence) and not isinstance(result, (str, bytes)) and result
    kind = type(result[0] if is_several else result).__name__  # type: ignore[index]
    if kind not in _REPORTS:
        raise ReportError(
            f"no report is made of {kind}; reports are made of what scan, convert, prove, ops, compare, "
            "analyze, explain and doctor return"
        )
    found: Reports[Any] = import_module(_REPORTS[kind]).REPORTS
    return found


def _wishes(lang: Language | None, everything: bool) -> Options:
    from torchferry.conversion.rule import rule_docs
    from torchferry.report.formats import Options
    from torchferry.text import user_language

    return Options(lang or user_language(), everything, folder=Path.cwd(), rule_docs=rule_docs())


# What the functions have in common.


def _program(program: StrPath | Sequence[str], module: bool, nproc: int | None) -> Program:
    """A script or module alone, or with its arguments."""
    from torchferry.launch.program import program_of, torchrun_words

    words = [os.fspath(program)] if isinstance(program, (str, os.PathLike)) else [*map(os.fspath, program)]
    if not words:
        raise RunError("which program? Name a script, or [script, argument, ...]")
    return program_of(words, module, None if nproc is None else torchrun_words(nproc))


def _place(
    to: str | None,
    sim: bool,
    emulate: bool,
    as_is: str,
    converted: bool,
    vendor_path: Sequence[StrPath],
    devices: int | None,
) -> Place:
    from torchferry.launch.plugin import place_of
    from torchferry.vendors.registry import get_vendor

    if sim and emulate:
        raise RunError("sim and emulate: only one of them at a time; leave one out")
    vendor = get_vendor(to, _paths(vendor_path)) if to else None
    return place_of(
        vendor, sim, emulate, as_is, converted, vendor_paths=_words(vendor_path), devices=devices or 1
    )


def _names(given: Names) -> list[str]:
    names = given.split(",") if isinstance(given, str) else given
    found = list(dict.fromkeys(filter(None, map(str.strip, names))))
    if not found:
        raise RunError("which devices? Name a vendor, or several")
    return found


def _paths(given: Sequence[StrPath]) -> list[Path]:
    return [Path(each) for each in given]


def _words(given: Sequence[StrPath]) -> tuple[str, ...]:
    """Folders for processes that may start elsewhere."""
    return tuple(str(path.resolve()) for path in _paths(given))


def _quiet() -> Any:
    from torchferry.building.build import silent

    return silent
