"""Analyses to render: made by hand, and of small traces."""

from __future__ import annotations

from dataclasses import replace

from torchferry.perf.compare.model import Cost, MatchKind, Measure, OperatorPair, RunComparison, Side
from torchferry.perf.model import (
    Analysis,
    Diagnosis,
    Evidence,
    KernelRow,
    MemoryPoint,
    OperatorRow,
    Span,
    StepTime,
    TimePart,
)
from torchferry.perf.report.sentences import RunsReport
from torchferry.text import Text

EVIL = "<img src=x onerror=window.hacked=1>|`[red]\x1b[31m\u202e</script><script>window.hacked=1</script>"
LOADER = Diagnosis(
    "data_loader",
    Text("The program waits for data", "程序在等待数据"),
    Text("The data loader takes 40.0% of the time of a step.", "数据加载占单步时间的 40.0%。"),
    0.4,
    (
        Text(
            "Give DataLoader num_workers=4; see `ferry doctor host`.",
            "设置 num_workers=4；见 `ferry doctor host`。",
        ),
    ),
    (Evidence("enumerate(DataLoader)#next", "batch 8", "train.py:42", 2, 0.08, 0.4, 0.1),),
    gain=0.35,
    gain_basis=Text("the device is idle for so long", "设备空闲的时间"),
)
SMALL = replace(
    LOADER, id="zero_grad", title=Text("Gradients are filled", "梯度被填充"), share=0.01, gain=0.01
)


def analysis() -> Analysis:
    """Two steps of 100 ms on a device."""
    parts = {TimePart.COMPUTE: 0.05, TimePart.LOADER: 0.04, TimePart.HOST: 0.01}
    return Analysis(
        ("prof/trace.json",),
        "npu",
        "Ascend910B",
        "2.13.0",
        steps=(StepTime(3, 0.0, 0.1, parts), StepTime(4, 0.1, 0.1, parts)),
        seconds=0.2,
        parts={part: 2 * seconds for part, seconds in parts.items()},
        diagnoses=(LOADER, SMALL),
        operators=(
            OperatorRow("aten::mm", "64×64, 64×32", "float32×2", 20, 0.002, 0.06, "train.py:10"),
            OperatorRow("aten::add", "64×32, 64×32", "float32×2", 40, 0.004, 0.03, "/a/b/c/d/model.py:7"),
            OperatorRow("aten::relu", "64×32", "float32", 40, 0.006, 0.01),
        ),
        kernels=(KernelRow("MatMulV2", "compute", 20, 0.06, "aten::mm"), KernelRow("Copy", "copy", 2, 0.01)),
        timeline=(
            Span("steps", "3", 0.0, 0.1, "step"),
            Span("steps", "4", 0.1, 0.1, "step"),
            Span("stream 3", "MatMulV2", 0.05, 0.05, "compute"),
            Span("thread 1", "aten::linear", 0.01, 0.03, "operator", "64×64"),
            Span("thread 1", "aten::mm", 0.02, 0.01, "operator", "64×64, 64×32"),
            Span("thread 1", "7", 0.045, 0.001, "merged"),
            Span("thread 1", "enumerate(DataLoader)#next", 0.1, 0.04, "annotation"),
        ),
        timeline_step=3,
        timeline_left_out=7,
        memory={"npu:0": (MemoryPoint(0.0, 0, 2**20), MemoryPoint(0.1, 2**30, 2**31))},
        memory_limit=2**32,
        notes=(Text("The file was cut short.", "文件被截断。"),),
        checked=("data_loader", "zero_grad"),
        unchecked={"non_contiguous": Text("strides", "步长"), "copies": Text("strides", "步长")},
    )


def bottleneck() -> RunsReport:
    return RunsReport((analysis(),))


def healthy() -> RunsReport:
    return RunsReport((replace(analysis(), diagnoses=()),))


def ranks() -> RunsReport:
    """The second rank works longer; the others wait for it in communication."""
    waiting = {TimePart.COMPUTE: 0.1, TimePart.COMMUNICATION: 0.1}
    quick = replace(analysis(), rank=0, diagnoses=(), parts=waiting, steps=(StepTime(1, 0, 0.2, waiting),))
    slow = replace(analysis(), rank=1, diagnoses=(LOADER,))
    return RunsReport((quick, replace(slow, steps=slow.steps[:1]), replace(quick, rank=2)))


def hostile() -> RunsReport:
    evil = Text(EVIL, EVIL)
    first = analysis()
    return RunsReport(
        (
            replace(
                first,
                sources=(EVIL,),
                device_name=EVIL,
                diagnoses=(
                    replace(LOADER, summary=evil, evidence=(Evidence(EVIL, EVIL, EVIL, 1, 0.1, 0.1, 0.05),)),
                ),
                operators=(OperatorRow(EVIL, EVIL, EVIL, 1, 0.1, 0.1, EVIL),),
                kernels=(KernelRow(EVIL, "compute", 1, 0.1, EVIL),),
                timeline=(Span(EVIL, EVIL, 0.0, 0.2, "operator", EVIL),),
                memory={EVIL: (MemoryPoint(0.0, 1, 1),)},
                notes=(evil,),
            ),
        ),
        (
            replace(
                _comparison(),
                notes=(evil,),
                pairs=(replace(_comparison().pairs[0], operator=EVIL, place=EVIL),),
            ),
        ),
    )


def large() -> RunsReport:
    """As much as a page is given: 5,000 bars, 2,000 operators."""
    operators = tuple(
        OperatorRow(f"aten::op{number % 50}", f"{number}×8", "float32", number, 1e-6, 1e-5 * (2000 - number))
        for number in range(2000)
    )
    bars = tuple(
        Span(f"thread {number % 4}", f"aten::op{number}", number * 2e-5, 1e-5, "operator")
        for number in range(5000)
    )
    return RunsReport((replace(analysis(), operators=operators, timeline=bars),))


def compared() -> RunsReport:
    return RunsReport((analysis(),), (_comparison(),))


def _comparison() -> RunComparison:
    def side(device: str, step: float) -> Side:
        parts = {TimePart.COMPUTE: step / 2, TimePart.HOST: step / 2}
        return Side((f"{device}.json",), device, "", "", None, Measure.DEVICE, 2, True, step, step / 2, parts)

    mm = OperatorPair(
        "aten::mm", "64×64", "float32", MatchKind.EXACT, Cost(10, 0.01), Cost(10, 0.04), place="train.py:10"
    )
    conv = OperatorPair(
        "aten::convolution_overrideable", "8×8", "", MatchKind.EQUIVALENT, Cost(1, 0.02), Cost(1, 0.01),
        baseline_operator="aten::cudnn_convolution",
    )  # fmt: skip
    only = OperatorPair("aten::cast", "64×64", "float16", MatchKind.NONE, None, Cost(4, 0.005))
    lost = OperatorPair("aten::fused", "1×1", "", MatchKind.NONE, Cost(1, 0.001), None)
    return RunComparison(
        side("cuda", 0.05), side("npu", 0.1), (mm, conv), (lost,), (only,),
        matched={MatchKind.EXACT: (0.7, 0.6), MatchKind.EQUIVALENT: (0.2, 0.3), MatchKind.NONE: (0.1, 0.1)},
    )  # fmt: skip
