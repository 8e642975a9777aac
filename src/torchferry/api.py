"""The commands as functions: their options by the same names, their results as the records that the commands report.

What would end a command with exit code 2 raises a `FerryError` here. Programs run as processes of their own, as they do
under the commands; nothing of a user's project is imported into this process.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchferry.errors import FerryError, InputError, ReportError, RunError
from torchferry.text import Text

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from torchferry.accuracy.compare.model import RankComparison
    from torchferry.accuracy.overflow.launching import Checked
    from torchferry.accuracy.record.launching import Recorded
    from torchferry.accuracy.replay.launching import ReplayOutcome
    from torchferry.checkpoint.model import Checkpoint, Repaired
    from torchferry.conversion.planning import ConversionRequest
    from torchferry.examination.examine import MachineReport
    from torchferry.explanation.model import Explanation
    from torchferry.launch.place import Place
    from torchferry.launch.program import Program
    from torchferry.migration.steps import Migration
    from torchferry.onnx_export.report import ExportReport
    from torchferry.outcome import Report
    from torchferry.perf.collect.launching import Profiled
    from torchferry.perf.report.sentences import RunsReport
    from torchferry.proof.model import Proof
    from torchferry.readiness.model import Readiness
    from torchferry.report.formats import Options, Reports
    from torchferry.sim.summary import RunSummary
    from torchferry.text import Language
    from torchferry.zoo.new import NewDelivery
    from torchferry.zoo.review import Review

__all__ = [
    "FerryError",
    "analyze",
    "checkpoint_fix",
    "checkpoint_info",
    "compare",
    "convert",
    "doctor",
    "explain",
    "export",
    "migrate",
    "ops",
    "overflow",
    "profile",
    "prove",
    "record",
    "render",
    "replay",
    "run",
    "save",
    "scan",
    "watch",
    "zoo_check",
    "zoo_new",
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
    "Checkpoint": "torchferry.checkpoint.report",
    "ExportReport": "torchferry.onnx_export.report",
    "Review": "torchferry.zoo.review",
    "Migration": "torchferry.migration.report",
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
        raise RunError(
            Text(
                "give exactly one of a program, a capture and a trace",
                "程序、算子清单和 trace 只能给出其中一个",
            )
        )
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
        raise ReportError(
            Text("emulate needs a vendor; name it with to", "emulate 需要指定厂商；请用 to 指定")
        )
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
        raise InputError(
            Text(
                f"no such folder: {cwd}; cwd is where both runs start",
                f"没有该文件夹：{cwd}；cwd 是两次运行的启动位置",
            )
        )
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
        raise RunError(
            Text(
                "stats and inputs, or whole and first_step, can't be used together; leave one out",
                "stats 与 inputs、whole 与 first_step 不能同时使用；请去掉其中一个",
            )
        )
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


def replay(
    record: StrPath,
    output: StrPath = "replay.h5",
    *,
    to: str | None = None,
    sim: bool = False,
    emulate: bool = False,
    device: str = "",
    module: Sequence[str] = (),
    op: Sequence[str] = (),
    phase: Sequence[str] = (),
    vendor_path: Sequence[StrPath] = (),
) -> tuple[ReplayOutcome, ...]:
    """Call the operators of a record once more on another device, as `ferry replay`; one outcome for each rank.

    The device is a vendor's, or one that PyTorch has by itself: `device="cuda:1"`.
    """
    from torchferry.accuracy.record.launching import build_for
    from torchferry.accuracy.record.outputs import file_of
    from torchferry.accuracy.record.settings import Selection
    from torchferry.accuracy.replay.launching import records_to_replay, replay_record

    if bool(to) == bool(device):
        raise RunError(
            Text(
                "replay needs a device; name a vendor (to) or a device of PyTorch (device)",
                "重放需要指定设备；请给出厂商（to）或 PyTorch 设备（device）",
            )
        )
    place = _place(to, sim, emulate, device, bool(to), vendor_path, 1)
    file = Path(output).absolute()
    records = records_to_replay(Path(record), file)
    build_for(place, quiet=True)
    selection = Selection(tuple(module), tuple(op), tuple(phase))
    return tuple(
        _replayed(
            replay_record(path, file_of(file, rank, world), place, selection, shows_progress=False), path
        )
        for path, rank, world in records
    )


def _replayed(outcome: ReplayOutcome, path: Path) -> ReplayOutcome:
    if not outcome.calls and not outcome.left:
        raise InputError(
            Text(
                f"{path}: no call matches module, op and phase",
                f"{path}：没有符合 module、op 和 phase 的调用",
            )
        )
    return outcome


def watch(
    program: StrPath | Sequence[str],
    output: StrPath = "watch.h5",
    *,
    module: bool = False,
    nproc: int | None = None,
    to: str | None = None,
    sim: bool = False,
    emulate: bool = False,
    converted: bool = False,
    as_is: str = "",
    every: int = 100,
    seed: int | None = None,
    devices: int | None = None,
    timeout: float | None = None,
    vendor_path: Sequence[StrPath] = (),
) -> Recorded:
    """Run a program to its end and keep statistics of every n-th step, as `ferry watch`; the exit code of the program
    is `recorded.ending.exit_code`."""
    from torchferry.accuracy.model import Kept
    from torchferry.accuracy.record.launching import build_for, check_output, run_recorded
    from torchferry.accuracy.record.settings import WatchSettings

    file = Path(output).absolute()
    wanted = _program(program, module, nproc)
    place = _place(to, sim, emulate, as_is, converted, vendor_path, devices or nproc)
    settings = WatchSettings(
        str(file), kept=Kept.STATISTICS, steps=None, seed=seed, replaced=check_output(file), every=every
    )
    build_for(place, quiet=True)
    recorded = run_recorded(wanted, settings, place, timeout)
    if not recorded.files:
        code = recorded.ending.exit_code
        raise RunError(
            Text(
                f"{wanted.target}: ended with exit code {code} before anything could be watched",
                f"{wanted.target}：在监视到任何内容之前就以退出码 {code} 结束",
            )
        )
    return recorded


def compare(
    mine: StrPath, golden: StrPath | None = None, *, jobs: int = 0, thorough: bool = False
) -> list[RankComparison]:
    """Compare two records of a run, operator by operator, as `ferry compare`; one comparison for each rank.

    Without `golden` each operator is compared with its own result in double precision.
    """
    from torchferry.accuracy.compare.comparing import ComparingPlan, compare_files

    plan = ComparingPlan(jobs, is_thorough=thorough)
    return compare_files(Path(mine), None if golden is None else Path(golden), plan)


# What costs time, and what an error means.


def profile(
    program: StrPath | Sequence[str],
    output: StrPath = "prof",
    *,
    module: bool = False,
    nproc: int | None = None,
    to: str | None = None,
    sim: bool = False,
    emulate: bool = False,
    converted: bool = False,
    as_is: str = "",
    steps: tuple[int, int] = (10, 12),
    warmup: int = 1,
    no_stacks: bool = False,
    no_shapes: bool = False,
    no_memory: bool = False,
    keep_running: bool = False,
    seed: int | None = None,
    devices: int | None = None,
    timeout: float | None = None,
    vendor_path: Sequence[StrPath] = (),
) -> Profiled:
    """Profile some steps of a program into a folder, as `ferry profile`; `analyze` says what takes the time of them.

    `steps` are the first and the last one, counted from 1.
    """
    from torchferry.accuracy.record.launching import build_for
    from torchferry.perf.collect.launching import check_output, nothing_profiled, run_profiled
    from torchferry.perf.collect.settings import ProfileSettings

    folder, (first, last) = Path(output).absolute(), steps
    if not 1 <= first <= last:
        raise RunError(
            Text(
                f"steps: {first} to {last} is not a range of steps from 1 on; give for example (10, 12)",
                f"steps：{first} 到 {last} 不是从 1 开始的有效范围；例如 (10, 12)",
            )
        )
    wanted = _program(program, module, nproc)
    place = _place(to, sim, emulate, as_is, converted, vendor_path, devices or nproc)
    check_output(folder)
    settings = ProfileSettings(
        "",
        first,
        last,
        warmup,
        stacks=not no_stacks,
        shapes=not no_shapes,
        memory=not no_memory,
        keep_running=keep_running,
        seed=seed,
    )
    build_for(place, quiet=True)
    profiled = run_profiled(wanted, settings, place, folder, timeout)
    if not profiled.is_written:
        raise RunError(nothing_profiled(wanted, settings, profiled))
    return profiled


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
        raise InputError(
            Text(
                "nothing to analyze; give a trace, or the folder that `ferry profile` wrote",
                "没有可分析的内容；请给出 trace，或 `ferry profile` 写入的文件夹",
            )
        )
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
        raise InputError(
            Text(
                "nothing to explain; give a message, or the logs of one run",
                "没有可解释的内容；请给出错误消息，或一次运行的日志",
            )
        )
    book = rule_book([to] if to else (), _paths(vendor_path))
    return explain_logs(_paths(logs), book) if logs else explain_text(message, book)


# Weights, and what is made of a migrated model.


def checkpoint_info(file: StrPath) -> Checkpoint:
    """What is inside a checkpoint, as `ferry checkpoint info`; nothing of it is run."""
    from torchferry.checkpoint.folders import read

    return read(Path(file))


def checkpoint_fix(
    file: StrPath,
    output: StrPath,
    *,
    only: str = "",
    strip: Sequence[str] = (),
    rename: Mapping[str, str] | None = None,
    map: Mapping[str, str] | None = None,  # noqa: A002  as --map
    dtype: str = "",
    plain: bool = False,
    allow_pickle: bool = False,
    force: bool = False,
) -> Repaired:
    """Write a mended copy of a checkpoint, as `ferry checkpoint fix`.

    `rename` has the new beginning of names by the old one, `map` the new device by the old one.
    """
    from torchferry.checkpoint.fixing import repair
    from torchferry.checkpoint.model import Repair

    asked = Repair(
        only,
        tuple(strip),
        tuple((map or {}).items()),
        allow_pickle,
        force,
        tuple((rename or {}).items()),
        dtype,
        plain,
    )
    return repair(Path(file), Path(output), asked)


def export(
    checkpoint: StrPath,
    output: StrPath,
    *,
    model: str,
    input: Sequence[str] = (),  # noqa: A002  as --input
    init: str = "",
    only: str = "",
    lenient: bool = False,
    allow_pickle: bool = False,
    opset: int | None = None,
    input_names: Sequence[str] = (),
    output_names: Sequence[str] = (),
    dynamic: Sequence[str] = (),
    batches: Sequence[int] = (1, 4),
    simplify: bool = False,
    tolerance: float = 1e-4,
    force: bool = False,
    to: str | None = None,
    chip: str = "",
    vendor_path: Sequence[StrPath] = (),
) -> ExportReport:
    """Make an ONNX model of a checkpoint and hold it against PyTorch, as `ferry export`; `report.exported.is_good` is
    the answer, `report.command` the call of the vendor's converter, which is not run."""
    from torchferry.onnx_export import launching
    from torchferry.onnx_export.model import DEFAULT_OPSET, ExportRequest
    from torchferry.onnx_export.offline import command_for
    from torchferry.onnx_export.report import ExportReport
    from torchferry.readiness.models.request import ModelRequest
    from torchferry.vendors.offline import OfflineTable, load_offline
    from torchferry.vendors.registry import get_vendor

    vendor = get_vendor(to, _paths(vendor_path)) if to else None
    table = load_offline(Path(vendor.folder)) if vendor else OfflineTable()
    launching.check_output(Path(output), Path(checkpoint), force)
    request = ExportRequest(
        ModelRequest(model, tuple(input), init),
        os.fspath(output),
        opset or table.opset or DEFAULT_OPSET,
        checkpoint=os.fspath(checkpoint),
        only=only,
        lenient=lenient,
        allow_pickle=allow_pickle,
        input_names=tuple(input_names),
        output_names=tuple(output_names),
        dynamic=tuple(dynamic),
        batches=tuple(batches),
        simplify=simplify,
        replace=force,
        tolerance=tolerance,
    )
    exported = launching.export(request)
    command = command_for(table, exported, chip) if table.has_tool else []
    return ExportReport(exported, vendor, table, command, was_run=False)


def zoo_new(
    path: StrPath,
    origin: StrPath,
    *,
    to: str | None = None,
    main: str = "",
    arguments: str = "",
    results: StrPath | None = None,
    original: StrPath | None = None,
    source: str = "",
    commit: str = "",
    dataset: str = "",
    amp: bool = False,
    distributed: bool = False,
    channels_last: bool = False,
    vendor_path: Sequence[StrPath] = (),
) -> NewDelivery:
    """Make a delivery for a vendor's model zoo of a project, as `ferry zoo new --from`."""
    from torchferry.vendors.zoo import find_zoo
    from torchferry.zoo.delivery import DeliveryRequest
    from torchferry.zoo.new import make_delivery, plan_for_zoo

    vendor, table = find_zoo(to, _paths(vendor_path))
    request = DeliveryRequest(
        Path(path),
        Path(origin),
        main,
        arguments,
        None if results is None else Path(results),
        None if original is None else Path(original),
        source,
        commit,
        dataset,
    )
    chosen = {"amp": amp, "distributed": distributed, "channels_last": channels_last}
    return make_delivery(request, vendor, table, plan_for_zoo(request, vendor, chosen))


def zoo_check(
    path: StrPath,
    *,
    to: str | None = None,
    run: bool = False,
    emulate: bool = False,
    tolerance: float | None = None,
    vendor_path: Sequence[StrPath] = (),
) -> Review:
    """What a delivery for a vendor's model zoo lacks, as `ferry zoo check`; `review.is_complete` is the answer."""
    from torchferry.vendors.zoo import find_zoo
    from torchferry.zoo.delivery import Delivery
    from torchferry.zoo.review import review, run_short_training

    if not Path(path).is_dir():
        raise InputError(
            Text(f"no such folder: {path}; zoo_new creates one", f"没有该文件夹：{path}；可用 zoo_new 创建")
        )
    if emulate and not run:
        raise RunError(
            Text(
                "emulate selects where the short training runs; add run, or leave it out",
                "emulate 用于选择短训练的运行位置；请加 run，或去掉 emulate",
            )
        )
    vendor, table = find_zoo(to, _paths(vendor_path))
    delivery = Delivery(Path(path), vendor, table, tolerance)
    ran = (run_short_training(delivery, _words(vendor_path), emulate),) if run else ()
    return review(delivery, ran)


# The whole way.


def migrate(
    program: StrPath | Sequence[str] = "",
    to: str = "",
    *,
    project: StrPath | None = None,
    output: StrPath | None = None,
    into: StrPath | None = None,
    sim: bool = False,
    emulate: bool = False,
    steps: int = 20,
    seed: int = 0,
    nproc: int | None = None,
    convert_options: Sequence[str] = (),
    vendor_path: Sequence[StrPath] = (),
    accept: Sequence[str] = (),
    resume: bool = False,
) -> Migration:
    """Migrate a program step by step, as `ferry migrate`; with `resume` go on with the one that was begun here.

    The record says how far it has come: `is_complete`, `stopped_at`, `decisions`. Each step is a process of its own.
    """
    from torchferry.migration import starting

    words = [os.fspath(program)] if isinstance(program, (str, os.PathLike)) else [*map(os.fspath, program)]
    folder = None if into is None else Path(into)
    if resume:
        migrating = starting.resume(_untold, folder)
    elif not words[0] or not to:
        raise RunError(
            Text(
                "which program, for which device? migrate(PROGRAM, VENDOR)",
                "缺少程序或设备；用法：migrate(PROGRAM, VENDOR)",
            )
        )
    else:
        migrating = starting.start(
            Path(words[0]),
            to,
            _untold,
            arguments=words[1:],
            project=None if project is None else Path(project),
            copy=None if output is None else Path(output),
            into=folder,
            sim=sim,
            emulate=emulate,
            steps=steps,
            seed=seed,
            nproc=nproc or 0,
            convert_options=convert_options,
            vendor_path=_paths(vendor_path),
        )
    migrating.accept(accept)
    return migrating.carry_out()


def _untold(*_step: object) -> None:
    """Nobody is told how far it is."""


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
            Text(
                f"no report for {kind}; reports exist for the results of scan, convert, prove, ops, compare, "
                "analyze, explain, doctor, checkpoint_info, export and zoo_check",
                f"{kind} 没有报告；有报告的是 scan、convert、prove、ops、compare、analyze、explain、doctor、"
                "checkpoint_info、export 和 zoo_check 的结果",
            )
        )
    found: Reports[Any] = import_module(_REPORTS[kind]).REPORTS
    return found


def _wishes(lang: Language | None, everything: bool) -> Options:
    from torchferry.conversion.examples import rule_docs
    from torchferry.report.formats import Options
    from torchferry.text import user_language

    return Options(lang or user_language(), everything, folder=Path.cwd(), rule_docs=rule_docs())


# What the functions have in common.


def _program(program: StrPath | Sequence[str], module: bool, nproc: int | None) -> Program:
    """A script or module alone, or with its arguments."""
    from torchferry.launch.program import program_of, torchrun_words

    words = [os.fspath(program)] if isinstance(program, (str, os.PathLike)) else [*map(os.fspath, program)]
    if not words:
        raise RunError(
            Text(
                "which program? Name a script, or [script, argument, ...]",
                "缺少程序；请给出脚本，或 [script, argument, ...]",
            )
        )
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
        raise RunError(
            Text(
                "sim and emulate can't be used together; leave one out",
                "sim 与 emulate 不能同时使用；请去掉其中一个",
            )
        )
    vendor = get_vendor(to, _paths(vendor_path)) if to else None
    return place_of(
        vendor, sim, emulate, as_is, converted, vendor_paths=_words(vendor_path), devices=devices or 1
    )


def _names(given: Names) -> list[str]:
    names = given.split(",") if isinstance(given, str) else given
    found = list(dict.fromkeys(filter(None, map(str.strip, names))))
    if not found:
        raise RunError(Text("which devices? Name one vendor or several", "缺少设备；请给出一个或多个厂商"))
    return found


def _paths(given: Sequence[StrPath]) -> list[Path]:
    return [Path(each) for each in given]


def _words(given: Sequence[StrPath]) -> tuple[str, ...]:
    """Folders for processes that may start elsewhere."""
    return tuple(str(path.resolve()) for path in _paths(given))


def _quiet() -> Any:
    from torchferry.building.build import silent

    return silent
