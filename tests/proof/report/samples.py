"""Proofs to render: equal, parted, crashed, distributed, adversarial, hostile, empty, long, not finite."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from torchferry.proof.model import (
    REFERENCE,
    Cause,
    OperatorCall,
    OperatorDifference,
    OperatorJudgement,
    ProcessIdentity,
    ProcessSummary,
    ProgramRun,
    Proof,
    ProofRequest,
    ProofVerdict,
    RunDifference,
    StepSummary,
    TensorFacts,
    VendorResult,
    What,
)
from torchferry.text import Text

HOSTILE = "</script><img src=x onerror='window.hacked=1'>\u202e\udcff\x1b[31m&\""
Loss = Callable[[int], float]


def falling(step: int) -> float:
    return 2.3 * math.exp(-step / 30) + 0.02 * math.sin(step)


def drifting(step: int) -> float:
    return falling(step) + (0.004 * (step - 4) if step > 4 else 0)


def steps(count: int, loss: Loss, optimizers: int = 1) -> tuple[StepSummary, ...]:
    return tuple(
        StepSummary(at, (at - 1) % optimizers, (loss(at),), 3 * abs(loss(at)), f"{loss(at)!r}", 0)
        for at in range(1, count + 1)
    )


def run(
    name: str = REFERENCE,
    count: int = 20,
    loss: Loss = falling,
    ranks: int = 1,
    optimizers: tuple[str, ...] = ("SGD",),
) -> ProgramRun:
    processes = tuple(
        ProcessSummary(
            ProcessIdentity(rank if ranks > 1 else None, "main", 100 + rank, rank, 0, "2.13.0"),
            optimizers,
            steps(count, loss, len(optimizers)),
        )
        for rank in range(ranks)
    )
    return ProgramRun(name, 0, 12.34, f"{name}.stdout", f"{name}.stderr", processes)


def equal(vendor: str = "ascend", device_type: str = "npu", **about: object) -> VendorResult:
    return VendorResult(vendor, device_type, ProofVerdict.EQUAL, run(vendor, **about), 20)  # type: ignore[arg-type]


def facts(norm: float = 2.0, dtype: str = "float32") -> TensorFacts:
    return TensorFacts((4, 3), dtype, f"{norm}", norm, (1.0, 2.0))


def parting(name: str = "layer1.0.conv1.weight", rank: int | None = None) -> RunDifference:
    return RunDifference(What.GRADIENT, 5, rank, 0, name, facts(), facts(2.1), 0.1, 0.05, 2e-6)


def call(name: str = "aten::convolution", **changes: object) -> OperatorCall:
    made = OperatorCall(
        17,
        name,
        "forward",
        "layer1.0.conv1",
        "train.py:57",
        (facts(),),
        (facts(), facts(1.0)),
        "[1, 1], False",
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def operator(cause: Cause = Cause.RESULT) -> OperatorDifference:
    return OperatorDifference(call(), call(outputs=(facts(2.1),)), 0, 0.1, 0.05, cause, ("compiled",))


def parted(vendor: str = "cambricon", device_type: str = "mlu") -> VendorResult:
    return VendorResult(
        vendor,
        device_type,
        ProofVerdict.PARTED,
        run(vendor, loss=drifting),
        20,
        parting=parting(),
        operator=operator(),
        judgement=judgement(),
    )


def judgement() -> OperatorJudgement:
    why = Text(
        "output/output_0: the last 4 of 12 elements are wrong",
        "output/output_0：最后 4 个元素（共 12 个）错误",
    )
    return OperatorJudgement("fault", "tail", 0.12, 4.9e-08, why, "records/cambricon.h5", 3)


def proof(*results: VendorResult, reference: ProgramRun | None = None, **about: object) -> Proof:
    request = ProofRequest(
        ("train.py", "--lr", "0.1"),
        "",
        tuple(each.vendor for each in results),
        20,
        7,
        0,
        True,
        False,
        None,
        None,
    )
    return Proof(
        replace(request, **about),  # type: ignore[arg-type]
        reference or run(),
        results,
        "2.13.0",
        "2026-11-15T09:00:00Z",
    )


def sample() -> Proof:
    """One vendor is equal, one parts, one fails."""
    failed = replace(run("tecorigin", count=3), exit_code=1)
    crashed = VendorResult(
        "tecorigin",
        "sdaa",
        ProofVerdict.CRASHED,
        failed,
        3,
        Text("The migrated run failed.", "迁移后的运行失败。"),
    )
    return proof(equal(), parted(), crashed)


def empty() -> Proof:
    return proof(reference=ProgramRun(REFERENCE, 0, 0.0, "", "", ()))


def not_started() -> Proof:
    """The original did not run."""
    reason = Text("The original failed.", "原程序运行失败。")
    result = VendorResult("ascend", "npu", ProofVerdict.CRASHED, None, 0, reason)
    return proof(result, reference=ProgramRun(REFERENCE, 1, 1.0, "reference.stdout", "reference.stderr", ()))


def one_step() -> Proof:
    return proof(equal(count=1), reference=run(count=1))


def long(count: int = 10_000) -> Proof:
    """One value stands out in the middle of each curve."""

    def spiked(step: int) -> float:
        return 9.0 if step == 4321 else falling(step)

    return proof(equal(count=count, loss=spiked), reference=run(count=count, loss=spiked))


def not_finite() -> Proof:
    def bad(step: int) -> float:
        return {3: math.nan, 4: math.inf, 5: -math.inf}.get(step, falling(step))

    return proof(
        equal(loss=bad), equal("cambricon", "mlu", loss=lambda step: math.nan), reference=run(loss=bad)
    )


def distributed() -> Proof:
    result = replace(parted(), run=run("cambricon", ranks=2, loss=drifting), parting=parting(rank=1))
    return proof(equal(ranks=2), result, reference=run(ranks=2), processes=2)


def adversaries() -> Proof:
    two = ("Adam", "RMSprop")
    return proof(equal(optimizers=two), reference=run(optimizers=two))


def hostile() -> Proof:
    """Every text that comes from a user's project, or its error messages, tries to break out."""
    difference = OperatorDifference(
        call(HOSTILE, module=HOSTILE, place=HOSTILE, arguments=HOSTILE, node=HOSTILE, phase=HOSTILE),
        call(HOSTILE),
        0,
        math.inf,
        math.nan,
        Cause.ARGUMENTS,
        (HOSTILE,),
    )
    result = VendorResult(
        HOSTILE,
        HOSTILE,
        ProofVerdict.PARTED,
        run(HOSTILE, optimizers=(HOSTILE, HOSTILE)),
        20,
        Text(HOSTILE, HOSTILE),
        parting(HOSTILE),
        operator=difference,
    )
    reference = run(optimizers=(HOSTILE, HOSTILE))
    return proof(result, reference=reference, original=("train.py", HOSTILE), converted=HOSTILE)


SAMPLES: dict[str, Callable[[], Proof]] = {
    each.__name__: each
    for each in (
        sample, empty, not_started, one_step, long, not_finite, distributed, adversaries, hostile
    )
}  # fmt: skip
