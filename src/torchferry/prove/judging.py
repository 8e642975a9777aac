"""Judges the operator that a proof has named: is what it made of its inputs right, in double precision?

The migrated program runs once more up to the step where the bits first differ; of that operator, in that module, the
tensors are recorded. The record stays with the proof, and is where a search goes on: `ferry compare`, `ferry case`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.accuracy.record.settings import RecordSettings
from torchferry.errors import FerryError
from torchferry.prove.model import OperatorCall, OperatorJudgement, Run

if TYPE_CHECKING:
    from torchferry.accuracy.compare.model import Comparison
    from torchferry.prove.runs import Runner
    from torchferry.vendors.model import Vendor

RECORDS = "records"


def judged(
    runner: Runner, vendor: Vendor, run: Run, call: OperatorCall, step: int, rank: int | None
) -> OperatorJudgement | None:
    """What is to be said of a call in a step of a vendor's run; None where the second run has recorded no such call."""
    name = f"{RECORDS}/{vendor.name}.h5"
    output = runner.kept / name
    output.parent.mkdir(exist_ok=True)
    number = _step_of_training(run, step, rank)
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


def _step_of_training(run: Run, ordinal: int, rank: int | None) -> int:
    """The number that a record gives to a step of an optimizer."""
    steps = next((process.steps for process in run.processes if process.identity.rank == rank), ())
    return next((each.step for each in steps if each.ordinal == ordinal), ordinal)


def _judged(path: Path, name: str, step: int) -> OperatorJudgement | None:
    from torchferry.accuracy.compare.comparing import compare_files
    from torchferry.accuracy.judge.model import Verdict

    try:
        comparisons = compare_files(path, None)
    except FerryError:
        return None
    worst = max(comparisons, key=lambda each: each.culprit is not None, default=None)
    outlines = (pair for each in comparisons for pair in each.pairs.outlines())
    is_judged = any(pair.verdict is not Verdict.UNKNOWN for pair in outlines)
    return _described(worst, name, step) if worst is not None and is_judged else None


def _described(comparison: Comparison, name: str, step: int) -> OperatorJudgement:
    from torchferry.accuracy.report.sentences import headline

    if comparison.culprit is None:
        return OperatorJudgement("normal", "", None, None, None, name, step)
    judgement = comparison.pairs[comparison.culprit].judgement
    return OperatorJudgement(
        judgement.verdict.value,
        judgement.sort.value,
        judgement.own_error,
        judgement.limit,
        judgement.why or headline(comparison),
        name,
        step,
    )
