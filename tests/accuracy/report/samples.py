"""Comparisons to render: made by hand, so that every figure in a test can be read here."""

from __future__ import annotations

import math
from dataclasses import replace

from torchferry.accuracy.compare.model import NetworkCurve, NetworkDifference, RankComparison, packed
from torchferry.accuracy.judge.model import CallPair, ErrorKind, Judgement, PairDifference, Verdict
from torchferry.accuracy.model import Call, Kept, Metrics, RecordHeader, Statistics, TensorRecord
from torchferry.text import Text

MINE = RecordHeader(Kept.TENSORS, "train.py --lr 0.1", "npu", "2.13.0", vendor="ascend", simulated=True)
GOLDEN = RecordHeader(Kept.TENSORS, "train.py --lr 0.1", "cuda", "2.13.0")
EVIL = "<img src=x onerror=hacked=1>\u202e\x1b[2J\n=cmd()"


def metrics(error: float = 0.0, count: int = 512) -> Metrics:
    """Of elements that are all off by this much, relatively."""
    equal = 0 if error else count
    return Metrics(
        count, equal, error, error, error, error, error, error, error, 1.0, error, 1.0, 1.0, error * 2**23, error * 2**23,
        0, 0, 0, 0, 0, 0, 0 if error else -1,
    )  # fmt: skip


def tensor(name: str = "output/output_0", shape: tuple[int, ...] = (16, 32)) -> TensorRecord:
    return TensorRecord(
        name, "float32", shape, (shape[-1], 1) if len(shape) == 2 else (1,) * len(shape), "npu:0"
    )


def difference(error: float = 0.0, name: str = "output/output_0", picture: str = "") -> PairDifference:
    return PairDifference(tensor(name), tensor(name), metrics(error), picture)


def pair(
    number: int,
    operator: str,
    module: str,
    judgement: Judgement,
    error: float = 0.0,
    *,
    phase: str = "forward",
    step: int = 1,
    picture: str = "",
) -> CallPair:
    call = Call(number, operator, step, phase, "Net", module, f"train.py:{30 + number}")
    inputs = (difference(name="input/self"),)
    return CallPair(call, call, "same", inputs, (difference(error, picture=picture),), judgement)


def faulty() -> list[RankComparison]:
    """A relu whose last elements are not written; a custom operator; an extra copy; a call that golden has alone."""
    fault = Judgement(
        Verdict.FAULT, ErrorKind.TAIL, "output/output_0", 0.25, 3e-8, 1.2e-7, "float64",
        Text("the last 100 of 512 elements are wrong", "最后 100 个元素（共 512 个）错误"),
    )  # fmt: skip
    pairs = [
        pair(1, "aten::mm", "layer1.fc", Judgement(Verdict.NORMAL, own_error=2e-8), 2e-8),
        pair(2, "aten::relu", "layer1", fault, 0.25, picture="......##"),
        pair(3, "aten::mm", "layer2.fc", Judgement(Verdict.INHERITED, own_error=1e-8), 0.1),
        pair(
            4,
            "lib::fast_gelu",
            "layer2",
            Judgement(Verdict.SUSPICIOUS, ErrorKind.PRECISION, own_error=1e-5, limit=1e-7),
            0.1,
        ),
        pair(5, "aten::native_layer_norm_backward", "layer2", Judgement(Verdict.EQUAL), phase="backward"),
    ]
    pairs[3] = replace(pairs[3], golden=replace(_call(pairs[3]), operator="aten::gelu"), how="similar")
    copy = Call(6, "aten::copy_", 1, "optimizer")
    pairs.append(CallPair(copy, None, "extra", judgement=Judgement(Verdict.NORMAL)))
    pairs.append(CallPair(None, replace(copy, operator="aten::sin", number=7), ""))
    network = (NetworkDifference("output", 1, 0.1), NetworkDifference("loss", 1, 3e-5))
    note = Text("mine: the run was interrupted", "待测记录：运行被中断")
    return [
        RankComparison(
            MINE, GOLDEN, "npu.h5", "gpu.h5", packed(pairs), 1, 0.5, 4096, (note,), network=network
        )
    ]


def _call(each: CallPair) -> Call:
    assert each.mine is not None
    return each.mine


def fine() -> list[RankComparison]:
    pairs = tuple(pair(at, "aten::mm", f"layers.{at}", Judgement(Verdict.NORMAL), 1e-8) for at in (1, 2, 3))
    return [RankComparison(MINE, GOLDEN, "npu.h5", "gpu.h5", packed(pairs), None)]


def equal() -> list[RankComparison]:
    pairs = tuple(pair(at, "aten::mm", "fc", Judgement(Verdict.EQUAL)) for at in (1, 2))
    return [RankComparison(MINE, GOLDEN, "npu.h5", "gpu.h5", packed(pairs), None)]


def statistical() -> list[RankComparison]:
    """Two runs of statistics that part at step 2."""
    pairs = []
    for step in (1, 2):
        parts = step == 2
        verdict = Verdict.SUSPICIOUS if parts else Verdict.NORMAL
        made = pair(
            step,
            "aten::gelu",
            "layers.0",
            Judgement(
                verdict, ErrorKind.VALUES if parts else ErrorKind.NONE, own_error=0.5 if parts else 1e-6
            ),
            step=step,
        )
        size = 1.5 if parts else 1.0 + 1e-6
        outputs = tuple(
            replace(each, mine=replace(each.mine, statistics=_statistics(size)), golden=replace(each.golden, statistics=_statistics(1.0)), metrics=None)
            for each in made.outputs
        )  # fmt: skip
        pairs.append(replace(made, outputs=outputs))
    mine, golden = (replace(header, kept=Kept.STATISTICS) for header in (MINE, GOLDEN))
    curve = NetworkCurve("loss", (1, 2, 3), (2.5, 2.4, math.nan), (2.5, 2.3, 2.2))
    return [RankComparison(mine, golden, "run a.h5", "b.h5", packed(pairs), 1, curves=(curve,))]


def _statistics(size: float) -> Statistics:
    return Statistics(512, 0, 0, 0, -size, size, 0.0, size, int(size * 2**40))


def hostile() -> list[RankComparison]:
    """Names and texts that try to be markup, formulas and terminal codes."""
    judgement = Judgement(Verdict.FAULT, ErrorKind.VALUES, EVIL, 0.1, why=Text(EVIL, EVIL))
    call = Call(1, f"=evil::{EVIL}", 1, EVIL, EVIL, EVIL, EVIL, EVIL)
    bad = PairDifference(tensor(EVIL), tensor(EVIL), metrics(0.1), EVIL)
    pairs = (CallPair(call, call, "same", (), (bad,), judgement),)
    header = replace(MINE, program=EVIL, vendor=EVIL)
    curve = NetworkCurve(EVIL, (1, 2), (0.0, 1.0), (None, None))
    return [
        RankComparison(
            header,
            GOLDEN,
            f"{EVIL}.h5",
            "gpu.h5",
            packed(pairs),
            0,
            notes=(Text(EVIL, EVIL),),
            curves=(curve,),
        )
    ]


def large(count: int = 10_000) -> list[RankComparison]:
    """Many calls; each 100th is suspicious."""
    pairs = []
    for at in range(1, count + 1):
        verdict = Verdict.SUSPICIOUS if at % 100 == 0 else Verdict.NORMAL
        operator = f"aten::op{at % 40}"
        pairs.append(
            pair(
                at,
                operator,
                f"layers.{at // 50}.fc",
                Judgement(verdict, own_error=at * 1e-9),
                1e-8,
                step=1 + at // 5000,
            )
        )
    return [RankComparison(MINE, GOLDEN, "npu.h5", "gpu.h5", packed(pairs), 99)]


def ranks() -> list[RankComparison]:
    (good,), (bad,) = fine(), faulty()
    return [good, replace(bad, mine=replace(bad.mine, rank=1, world=2))]


def alone() -> list[RankComparison]:
    (comparison,) = faulty()
    pairs = packed(
        replace(each, golden=None, inputs=(), outputs=()) for each in comparison.pairs if each.mine
    )
    return [replace(comparison, golden=None, golden_path="", pairs=pairs, network=())]


SAMPLES = {
    "faulty": faulty, "fine": fine, "equal": equal, "statistical": statistical, "hostile": hostile, "ranks": ranks,
    "alone": alone,
}  # fmt: skip
