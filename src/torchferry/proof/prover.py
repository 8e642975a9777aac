"""The proof from beginning to end: the runs, the verdict on each vendor, and why a run has parted. Imports no torch."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.accuracy.record.settings import RecordSettings
from torchferry.emulate.plugins import refuse_without_emulation
from torchferry.errors import FerryError, OutputError
from torchferry.files import written
from torchferry.files.aside import folder_aside, remove_leftovers
from torchferry.launch.place import DeviceKind, Place, build_for
from torchferry.launch.plugin import refuse_without_plugin
from torchferry.launch.program import check_script
from torchferry.proof.compare import EXACT, Tolerance, compare
from torchferry.proof.model import (
    BY_HAND,
    Cause,
    OperatorCall,
    OperatorJudgement,
    ProgramRun,
    Proof,
    ProofRequest,
    ProofVerdict,
    RunDifference,
    VendorResult,
    What,
)
from torchferry.proof.operators import first_difference
from torchferry.proof.recordings import processes_that_called_backward
from torchferry.proof.report import REPORTS
from torchferry.proof.report.sentences import log_tails
from torchferry.proof.runs import Execution, ProofPlan, Runner, Watch
from torchferry.report.formats import Options
from torchferry.text import Language, Text
from torchferry.vendors.model import Vendor

if TYPE_CHECKING:
    from torchferry.building.build import Progress

_ORIGINAL_CRASHED = Text(
    "the original ended with exit code {code} on the CPU, after {steps} optimizer steps",
    "原程序在 CPU 上以退出码 {code} 结束（已执行 {steps} 个优化步）",
)
_MIGRATED_CRASHED = Text(
    "the migrated run ended with exit code {code}, after {steps} optimizer steps",
    "迁移后的运行以退出码 {code} 结束（已执行 {steps} 个优化步）",
)
_WRONG_IMPORTS = Text(
    "{whose} imported files of the other side: {files}; remove that folder from PYTHONPATH, or "
    "install each side's own package (pip install -e)",
    "{whose}导入了另一侧的文件：{files}；请从 PYTHONPATH 中去掉该文件夹，"
    "或为每一侧安装各自的软件包（pip install -e）",
)
_ORIGINAL = Text("the original", "原程序")
_MIGRATED = Text("the migrated run", "迁移后的运行")
_NAMED_FILES = 3
_NO_STEP = Text(
    "the original made no step with an optimizer of torch.optim or a subclass, so there is nothing "
    "to compare",
    "原程序没有用 torch.optim 或其子类的优化器执行任何一步：没有可比较的内容",
)
_UPDATED_BY_HAND = Text(
    "the program has no torch.optim optimizer: each call of backward counts as a step, with the "
    "parameters before it and the gradients after it",
    "程序没有使用 torch.optim 的优化器：每次调用 backward 计为一步，比较其调用时的参数和产生的梯度",
)
_NO_GRADIENT = Text(
    "the original's optimizers made steps without a gradient, and it never called backward, so there "
    "is nothing to compare; does it train with these arguments?",
    "原程序的优化器在没有梯度的情况下执行，且没有调用 backward，因此没有可比较的内容；"
    "请确认程序使用这些参数时会进行训练",
)
_NO_BACKWARD = Text(
    "the original never called backward and made no optimizer step, so there is nothing to compare; "
    "does it train with these arguments?",
    "原程序没有调用 backward，也没有执行优化步，因此没有可比较的内容；请确认程序使用这些参数时会进行训练",
)
_NOT_ON_DEVICE = Text(
    "the migrated run trained on the CPU and never on {device}, so the migration was not tested; "
    "does the program use CUDA with these arguments?",
    "迁移后的程序只在 CPU 上训练，从未使用 {device}，迁移没有得到检验；请确认程序使用这些参数时会使用 CUDA",
)
_UNREPEATABLE = Text(
    "a second run of the original on the CPU already gave another {what} at step {step}; fix its "
    "seeds or the order of its data; or does it read what the first run wrote, such as a checkpoint?",
    "原程序在 CPU 上第二次运行时，第 {step} 步的 {what} 就已不同；请固定随机种子或数据顺序，"
    "并检查它是否读取了第一次运行写出的文件（如 checkpoint）",
)
_CRASHED_AGAIN = Text(
    "a second run of the original on the CPU ended with exit code {code}",
    "原程序在 CPU 上第二次运行时以退出码 {code} 结束",
)
_WHAT_IN_CHINESE = {
    What.LOSS: "损失",
    What.GRADIENT: "梯度",
    What.PARAMETER: "参数",
    What.BUFFER: "缓冲区",
}
_UNREPEATABLE_STEPS = Text(
    "a second run of the original on the CPU already made other steps; does it read what the first "
    "run wrote, such as a checkpoint?",
    "原程序在 CPU 上第二次运行时执行的步就已不同；请检查它是否读取了第一次运行写出的文件（如 checkpoint）",
)


def prove(request: ProofRequest, vendors: Sequence[Vendor], runner: Runner) -> Proof:
    """Run everything and come to a verdict on each vendor."""
    reference = runner.reference()
    hopeless = _hopeless(reference)
    if hopeless:
        verdict, reason = hopeless
        results = [VendorResult(each.name, each.device_type, verdict, None, 0, reason) for each in vendors]
    else:
        inquiry = _Inquiry(request, runner, reference)
        results = [inquiry.result(vendor) for vendor in vendors]
    date = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return Proof(request, reference.run, tuple(results), version("torch"), date)


def _wrong_imports(execution: Execution, whose: Text) -> Text | None:
    """What to say where a side has run with files of the other one: whatever it shows is not shown of its own."""
    files = execution.wrong_imports()
    if not files:
        return None
    more = f" (+{len(files) - _NAMED_FILES})" if len(files) > _NAMED_FILES else ""
    return _WRONG_IMPORTS.format(whose=whose, files=", ".join(files[:_NAMED_FILES]) + more)


def _hopeless(reference: Execution) -> tuple[ProofVerdict, Text] | None:
    """Why no vendor's run could be compared with it."""
    wrong = _wrong_imports(reference, _ORIGINAL)
    if wrong:
        return ProofVerdict.INCOMPARABLE, wrong
    if reference.crashed:
        code, steps = reference.run.exit_code, _step_count(reference.run)
        return ProofVerdict.CRASHED, _ORIGINAL_CRASHED.format(code=code, steps=steps)
    if not reference.run.processes:
        trained = processes_that_called_backward(reference.folder)
        return ProofVerdict.INCOMPARABLE, _NO_STEP if trained else _NO_BACKWARD
    taken = [step for process in reference.run.processes for step in process.steps]
    if not any(step.losses or step.gradient_norm for step in taken):
        return ProofVerdict.INCOMPARABLE, _NO_GRADIENT
    return None


def _was_on(device_type: str, execution: Execution) -> bool:
    """Whether a process had a loss or a parameter on such a device: what is true of one is true of all ranks."""
    steps = (step for recording in execution.recordings() for step in recording.steps())
    return any(device_type in step.devices for step in steps)


def _step_count(run: ProgramRun) -> int:
    """The steps of the process that took most."""
    return max((len(process.steps) for process in run.processes), default=0)


class _Inquiry:
    """Compares vendors' runs with one reference; where one has parted, looks for the reason."""

    def __init__(self, request: ProofRequest, runner: Runner, reference: Execution) -> None:
        self._runner = runner
        self._reference = reference
        self._tolerance = EXACT if request.exact else Tolerance(request.rtol, request.atol)
        self._repeated: dict[tuple[int, int | None], Execution] = {}

    def result(self, vendor: Vendor) -> VendorResult:
        """Run a vendor and judge it."""
        migrated = self._runner.migrated(vendor)
        run = migrated.run
        result = VendorResult(vendor.name, vendor.device_type, ProofVerdict.INCOMPARABLE, run, 0)
        wrong = _wrong_imports(migrated, _MIGRATED)
        if wrong:
            return replace(result, reason=wrong)
        if migrated.crashed:
            reason = _MIGRATED_CRASHED.format(code=run.exit_code, steps=_step_count(run))
            return replace(result, verdict=ProofVerdict.CRASHED, reason=reason)
        found = compare(self._reference.recordings(), migrated.recordings(), self._tolerance)
        if not found.parting and not found.reason and not _was_on(vendor.device_type, migrated):
            return replace(result, reason=_NOT_ON_DEVICE.format(device=vendor.device_type))
        by_hand = any(BY_HAND in process.optimizers for process in self._reference.run.processes)
        result = replace(
            result,
            verdict=found.verdict,
            compared_steps=found.compared_steps,
            reason=found.reason,
            parting=found.parting,
            largest=found.largest,
            notes=(*found.notes, *([_UPDATED_BY_HAND] if by_hand else [])),
        )
        if found.verdict in (ProofVerdict.EQUAL, ProofVerdict.CLOSE):
            return result
        return self._explained(result, vendor, found.earliest if found.parting else None)

    def _explained(
        self, result: VendorResult, vendor: Vendor, earliest: RunDifference | None
    ) -> VendorResult:
        """What led to a difference that counts began where the bits first differed."""
        again = self._reference_again(earliest.step, earliest.rank) if earliest else self._reference_again()
        itself = self._compare_with_itself(again)
        if itself is not None:
            return replace(result, verdict=ProofVerdict.UNREPEATABLE, reason=itself)
        if earliest is None:
            return result
        migrated = self._runner.migrated_again(vendor, earliest.step, earliest.rank)
        files = [
            next((each.operators for each in run.recordings() if each.identity.rank == earliest.rank), None)
            for run in (again, migrated)
        ]
        operator = None if None in files else first_difference(*filter(None, files))
        if operator is None:
            return result
        explained = replace(result, operator=replace(operator, step=earliest.step))
        if operator.cause is not Cause.RESULT or operator.migrated is None or result.run is None:
            return explained
        place = operator.migrated, earliest.step, earliest.rank
        return replace(explained, judgement=judged(self._runner, vendor, result.run, *place))

    def _reference_again(self, step: int = 0, rank: int | None = None) -> Execution:
        """Up to a step, whose operators are recorded; 0: all of it."""
        known = self._repeated.get((step, rank))
        if known is None:
            known = self._runner.reference_again(step, rank, len(self._repeated) + 1)
            self._repeated[step, rank] = known
        return known

    def _compare_with_itself(self, again: Execution) -> Text | None:
        """What is different when the original runs a second time, if anything."""
        if again.crashed:
            return _CRASHED_AGAIN.format(code=again.run.exit_code)
        until = again.settings.operators_step or None
        found = compare(self._reference.recordings(), again.recordings(), self._tolerance, until)
        if found.earliest:
            what, name = found.earliest.what, found.earliest.name
            said = Text(f"{what.value} ({name})", f"{_WHAT_IN_CHINESE[what]}（{name}）")
            return _UNREPEATABLE.format(what=said, step=found.earliest.step)
        return _UNREPEATABLE_STEPS if found.reason else None


# Judges the operator that a proof has named: is what it made of its inputs right, in double precision?
#
# The migrated program runs once more up to the step where the bits first differ; of that operator, in that module, the
# tensors are recorded. The record stays with the proof, and is where a search goes on: `ferry compare`, `ferry case`.

RECORDS = "records"


def judged(
    runner: Runner, vendor: Vendor, run: ProgramRun, call: OperatorCall, step: int, rank: int | None
) -> OperatorJudgement | None:
    """What is to be said of a call in a step of a vendor's run; None where the second run has recorded no such call."""
    name = f"{RECORDS}/{vendor.name}.h5"
    output = runner.kept / name
    output.parent.mkdir(exist_ok=True)
    steps = next((process.steps for process in run.processes if process.identity.rank == rank), ())
    # as a record counts steps: those of the training, not of one optimizer
    number = next((each.step for each in steps if each.ordinal == step), step)
    settings = RecordSettings(
        str(output),
        program=runner.program_of(vendor).shown(),
        first_step=number,
        operators=(call.name,),
        modules=(call.module,) if call.module else (),
        phases=(call.phase,) if call.phase else (),
        rank=rank,
        device=vendor.device_type,
        vendor=vendor.name,
        simulated=True,
    )
    runner.migrated_recorded(vendor, settings)
    return _judged(output, name, number)


def _judged(path: Path, name: str, step: int) -> OperatorJudgement | None:
    from torchferry.accuracy.compare.comparing import compare_files
    from torchferry.accuracy.judge.model import Verdict
    from torchferry.accuracy.report.sentences import headline

    try:
        comparisons = compare_files(path, None)
    except FerryError:
        return None
    worst = max(comparisons, key=lambda each: each.culprit is not None, default=None)
    outlines = (pair for each in comparisons for pair in each.pairs.outlines())
    if worst is None or all(pair.verdict is Verdict.UNKNOWN for pair in outlines):
        return None
    if worst.culprit is None:
        return OperatorJudgement("normal", "", None, None, None, name, step)
    found = worst.pairs[worst.culprit].judgement
    why = found.why or headline(worst)
    return OperatorJudgement(
        found.verdict.value, found.sort.value, found.own_error, found.limit, why, name, step
    )


# The folders of a proof, and what is compiled before its runs.

_PROOF = "proof.json"


def run_proof(
    plan: ProofPlan,
    output: Path | None = None,
    language: Language = "en",
    watch: Watch | None = None,
    on_end: Callable[[Proof, Path], None] | None = None,
    progress: Progress | None = None,
) -> tuple[Path | None, Proof]:
    """Run a proof and keep it in `output`; answers where what was there is kept, if it is not a proof's alone.

    `on_end` gets the proof and the folder with the logs of its runs, which is gone afterwards without an output.
    """
    _check_scripts(plan)
    if output:
        check_output(output)
    # what the original on the CPU needs is the simulated device's library; a device that is not set up is said at once
    for place in (*plan.places, plan.place_of(None)):
        build_for(place, progress)
    with proof_folders(output) as folders:
        runner = Runner(plan, folders.records, folders.kept, watch or (lambda *_: nullcontext()))
        proof = prove(plan.request, plan.vendors, runner)
        REPORTS.write(proof, folders.kept / _PROOF)
        logs = log_tails(proof, folders.kept)
        REPORTS.write(proof, folders.kept / "proof.html", Options(language, logs=logs))
        if on_end is not None:
            on_end(proof, folders.kept)
    return folders.earlier, proof


def refuse_unprovable(vendor: Vendor, emulate: bool) -> None:
    """Complain of a vendor whose device can't be simulated, or not be emulated where that is asked for."""
    refuse_without_plugin(vendor)
    if emulate:
        refuse_without_emulation(vendor)


def places_of(
    vendors: Sequence[Vendor],
    emulate: bool,
    converted: bool,
    devices: int,
    memory: int | str | None,
    vendor_paths: tuple[str, ...],
) -> tuple[Place, ...]:
    """Where the migrated program runs, for each vendor."""
    kind = DeviceKind.EMULATED if emulate else DeviceKind.SIMULATED
    return tuple(
        Place(kind, vendor, vendor_paths, devices, memory, converted=converted, shared_randomness=True)
        for vendor in vendors
    )


def _check_scripts(plan: ProofPlan) -> None:
    """All scripts must be there before anything is built or run."""
    if plan.original.is_module:
        return
    check_script(plan.original.target)
    if plan.converted is not None:
        for vendor in plan.vendors:
            check_script(plan.converted.target.replace("{vendor}", vendor.name))


def check_output(folder: Path) -> None:
    """Raise before the runs, not after them, if a proof can't be written to this folder."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise OutputError(
            Text(f"{folder}: not a folder; choose another name", f"{folder}：不是文件夹；请另选名称")
        )
    if folder.is_dir() and any(folder.iterdir()) and not (folder / _PROOF).is_file():
        raise OutputError(
            Text(
                f"{folder}: not empty and holds no proof; choose another folder",
                f"{folder}：文件夹非空且其中没有验证结果；请另选文件夹",
            )
        )
    parent = Path(os.path.abspath(folder)).parent
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise OutputError(
            Text(
                f"{folder}: can't be written to {parent}; name a folder inside one that exists",
                f"{folder}：无法写入 {parent}；请给出已有文件夹下的文件夹名",
            )
        )


@dataclass
class ProofFolders:
    """The folders of a proof while it is made."""

    records: Path  # nobody keeps it
    kept: Path  # becomes the output
    earlier: Path | None = None  # where an earlier output is to which something was added


@contextmanager
def proof_folders(output: Path | None) -> Iterator[ProofFolders]:
    """Make the folders; what was to be kept is the output when the block has ended well, and gone if it has not."""
    place = None if output is None else Path(os.path.abspath(output))
    parent = Path(tempfile.gettempdir() if place is None else place).resolve()
    parent = parent if place is None else parent.parent
    remove_leftovers(parent)
    with folder_aside(parent) as aside:
        folders = ProofFolders(aside.path / "records", aside.path / "new")
        folders.records.mkdir()
        folders.kept.mkdir()
        yield folders
        if place is not None:
            proof = folders.kept / _PROOF
            proof.write_bytes(written.with_list(proof.read_bytes(), _PROOF, written.digests(folders.kept)))
            folders.earlier = aside.replace(folders.kept, place, lambda old: not written.foreign(old, _PROOF))
