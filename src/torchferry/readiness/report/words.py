"""The words and sentences that all readiness reports share, in English and Chinese; sizes, shapes and places in short."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torchferry import units
from torchferry.readiness.model import (
    NOTES,
    Capture,
    OperatorSupport,
    Phase,
    Readiness,
    Remedy,
    Signature,
    Special,
    TensorSpec,
    Use,
    Value,
)
from torchferry.readiness.report.tables import label, worst
from torchferry.report.records import BAD, DOUBT, GOOD, RISK, UNCLEAR, Grade
from torchferry.report.safe import one_line, shortened
from torchferry.text import Text

SUPPORT = {
    OperatorSupport.KERNEL: Grade(
        Text("kernel", "有 kernel"),
        GOOD,
        "✓",
        Text("the device has a kernel for it", "设备有该算子的 kernel"),
    ),
    OperatorSupport.STRUCTURED: Grade(
        Text("structured", "结构化"),
        GOOD,
        "✓",
        Text("the kernel of another overload computes it", "由另一重载的 kernel 计算"),
    ),
    OperatorSupport.COMPOSITE: Grade(
        Text("composite", "复合"),
        GOOD,
        "✓",
        Text(
            "PyTorch composes it of other operators, which are judged separately",
            "由 PyTorch 拆成其他算子，各算子分别判断",
        ),
    ),
    OperatorSupport.LIMITED: Grade(
        Text("limited", "受限"),
        RISK,
        "!",
        Text(
            "a kernel exists, but not for this dtype, or with a limit",
            "有 kernel，但不支持该数据类型，或有其他限制",
        ),
        own_style="yellow",
    ),
    OperatorSupport.UNKNOWN: Grade(
        Text("unknown", "未知"),
        UNCLEAR,
        "?",
        Text("the vendor's table does not cover it", "厂商的算子表未提及"),
    ),
    OperatorSupport.FALLBACK: Grade(
        Text("CPU fallback", "回退到 CPU"),
        DOUBT,
        "↩",
        Text("no kernel: the plugin computes it on the CPU", "无 kernel：插件在 CPU 上计算"),
    ),
    OperatorSupport.MISSING: Grade(
        Text("missing", "缺失"),
        BAD,
        "✕",
        Text("no kernel: the plugin raises an error", "无 kernel：插件报错"),
    ),
}  # the best first
REMEDY = {
    Remedy.COMPOSITION: Text("compute it with other operators", "用其他算子组合"),
    Remedy.VENDOR_OPERATOR: Text("use the vendor's operator", "使用厂商算子"),
    Remedy.OTHER_VERSION: Text("use another version of the plugin", "使用其他版本的插件"),
    Remedy.OTHER_DTYPE: Text("use another dtype", "使用其他数据类型"),
    Remedy.KEEP_ON_CPU: Text("keep it on the CPU", "保留在 CPU 上"),
}
PHASE = {
    Phase.SETUP: Text("setup", "准备"),
    Phase.DATA: Text("data loading", "数据加载"),
    Phase.FORWARD: Text("forward", "前向"),
    Phase.BACKWARD: Text("backward", "反向"),
    Phase.OPTIMIZER: Text("optimizer", "优化器"),
}

READY_TIME = Text("{share} of operator time has a device kernel", "{share} 的算子时间有设备 kernel")
READY_CALLS = Text(
    "{share} of operator calls have a device kernel (times are unknown)",
    "{share} 的算子调用有设备 kernel（没有时间数据）",
)
KNOWN_TIME = Text(
    "{share} of operator time is known to have a device kernel", "已知 {share} 的算子时间有设备 kernel"
)
KNOWN_CALLS = Text(
    "{share} of operator calls are known to have a device kernel (times are unknown)",
    "已知 {share} 的算子调用有设备 kernel（没有时间数据）",
)
ALL_READY = Text("no operator falls back to the CPU or is missing", "没有算子回退到 CPU 或缺失")
NOTHING_JUDGED = Text(
    "the run called no operator that a device has to execute, so there is nothing to judge",
    "本次运行没有调用任何需要设备执行的算子，无需判断",
)
NOTHING_KNOWN = Text(
    "unknown: the vendor's table lists none of the {count} operators",
    "情况未知：厂商的算子表未列出这 {count} 个算子中的任何一个",
)


def _forms(one: str, several: str, zh: str) -> tuple[Text, Text]:
    """A clause that follows the share: for one operator, for several."""
    return Text(one, zh), Text(several, zh)


CLAUSES = {
    OperatorSupport.MISSING: _forms(
        "{count} operator is missing and raises: {names}",
        "{count} operators are missing and raise: {names}",
        "{count} 个算子缺失并会报错：{names}",
    ),
    OperatorSupport.FALLBACK: _forms(
        "{count} operator falls back to the CPU: {names}",
        "{count} operators fall back to the CPU: {names}",
        "{count} 个算子回退到 CPU：{names}",
    ),
    OperatorSupport.LIMITED: _forms(
        "{count} operator has a kernel with a limit: {names}",
        "{count} operators have kernels with a limit: {names}",
        "{count} 个算子的 kernel 有限制：{names}",
    ),
}
UNLISTED = _forms(
    "{count} operator is unknown, because the vendor's table does not list all: {names}",
    "{count} operators are unknown, because the vendor's table does not list all: {names}",
    "{count} 个算子情况未知，因为厂商的算子表不完整：{names}",
)
UNKNOWN = _forms(
    "{count} operator is unknown to the vendor's table: {names}",
    "{count} operators are unknown to the vendor's table: {names}",
    "{count} 个算子未见于厂商的算子表：{names}",
)
ABSENT = "–"
ABSENT_MEANS = Text(
    "–: never reaches this device, because the device executes the composite operator around it, or "
    "the parts of it.",
    "–：该算子不会到达此设备，因为设备整体执行其外层的复合算子，或执行其组成部分。",
)
AND_MORE_NAMES = Text("{names} and {count} more", "{names} 及另外 {count} 个")
PER_STEP = Text("{size} moved per step", "每步搬运 {size}")
PER_RUN = Text("{size} moved in the run", "本次运行共搬运 {size}")
WITH_COST = Text("{said} ({cost})", "{said}（{cost}）")
VERDICT = Text("{vendor}: {said}", "{vendor}：{said}")

TITLE = Text("Operator readiness", "算子适配情况")
SUMMARY = Text("Summary", "概览")
PROBLEMS = Text("Operators that need attention", "需要处理的算子")
PROBLEMS_OF = Text("Operators that need attention on {vendor}", "{vendor} 上需要处理的算子")
COMPARED = Text("Operators with a problem on any device", "在任一设备上有问题的算子")
ADVICE = Text("What can be done", "处理建议")
BY_SUPPORT = Text("Operators by support", "按支持情况统计")
OPERATORS = Text("Operators", "算子")
CALLS_SHEET = Text("Calls", "调用")
MODULES = Text("Modules", "模块")
SOURCE = Text("Source lines", "源代码行")

OPERATOR = Text("Operator", "算子")
SUPPORT_COLUMN = Text("Support", "支持情况")
DTYPES = Text("Dtypes", "数据类型")
CALLS = Text("Calls", "调用次数")
SECONDS = Text("Seconds", "秒")
TIME = Text("Time", "时间")
SHARE = Text("Share", "占比")
PHASE_COLUMN = Text("Phase", "阶段")
MODULE = Text("Module", "模块")
FILE = Text("File", "文件")
PLACE = Text("Line", "代码行")
WHERE = Text("Where", "位置")
REASON = Text("Reason", "原因")
MOVED = Text("Bytes moved", "搬运字节数")
VENDOR = Text("Device", "设备")
INPUTS = Text("Inputs", "输入")
OUTPUTS = Text("Outputs", "输出")
STRIDES = Text("Strides of the inputs", "输入的步长")
ARGUMENTS = Text("Other arguments", "其他参数")
NODE = Text("Autograd step", "自动求导步骤")
INSIDE = Text("Inside", "所属复合算子")
FACT = Text("Fact", "项目")
VALUE = Text("Value", "值")
PROGRAM = Text("Program", "程序")
DEVICE = Text("Computed on", "计算设备")
TORCH = Text("PyTorch", "PyTorch")
STEPS = Text("Optimizer steps", "优化器步数")
PROCESSES = Text("Processes", "进程数")
JUDGED = Text("Judged uses of operators", "已判断的算子用法")
NOT_JUDGED = Text(
    "Uses in setup, data loading and composite operators, not judged",
    "准备、数据加载及复合算子中未判断的用法",
)
NOTE = Text("Note", "说明")
VARIED = Text("and other shapes", "以及其他形状")
WHOLE_PROGRAM = Text("whole program", "整个程序")
SEVERAL = Text("{first} and {count} more", "{first} 及另外 {count} 处")

SEARCH = Text("Search operators, modules, lines", "搜索算子、模块、代码行")
ANY_DEVICE = Text("any device", "任一设备")
SHOWN = Text("{shown} of {count} operators", "{count} 个算子中的 {shown} 个")
DETAILS = Text("calls, reasons, advice", "调用、原因、建议")
LEFT_OUT = Text(
    "{count} further uses are in the JSON and XLSX reports.", "另有 {count} 种用法，见 JSON 和 XLSX 报告。"
)
UNREADABLE = Text("The file could not be read when this page was created.", "生成本页时无法读取该文件。")
HEAT_HELP = Text(
    "Share of operator time below each module that runs on the device itself. Open a module to see "
    "its operators.",
    "各模块下由设备自身计算的算子时间占比。展开模块可查看其算子。",
)
HEAT_HELP_CALLS = Text(
    "Share of operator calls below each module that run on the device itself. Open a module to see "
    "its operators.",
    "各模块下由设备自身计算的算子调用占比。展开模块可查看其算子。",
)
LINES_HELP = Text(
    "Lines of the program that call operators; for the backward pass, the line of the forward call.",
    "程序中调用算子的代码行；反向阶段为对应前向调用所在的行。",
)


MAX_NAMES = 5
MAX_TEXT = 60
MAX_ITEMS = 8


def verdict(readiness: Readiness) -> Text:
    """The readiness in one line: ascend 2.13: 98.2 % of operator time has a device kernel; ..."""
    return VERDICT.format(vendor=one_line(label(readiness)), said=said(readiness))


def grade(readinesses: Sequence[Readiness]) -> Grade:
    """The readiness for all devices in one line, in the tone of the worst support."""
    lines = [verdict(each) for each in readinesses]
    support = worst(judgement.support for each in readinesses for judgement in each.judgements)
    line = Text("; ".join(each.en for each in lines), "；".join(each.zh for each in lines))
    return Grade(line, SUPPORT[support].tone if support else UNCLEAR)


def said(readiness: Readiness) -> Text:
    """The verdict without the device's name."""
    judgements = readiness.judgements
    if not judgements:
        return NOTHING_JUDGED
    if all(judgement.support is OperatorSupport.UNKNOWN for judgement in judgements):
        return NOTHING_KNOWN.format(count=len(readiness.operators(OperatorSupport.UNKNOWN)))
    is_timed = readiness.seconds > 0
    if any(judgement.support is OperatorSupport.UNKNOWN for judgement in judgements):
        share = KNOWN_TIME if is_timed else KNOWN_CALLS
    else:
        share = READY_TIME if is_timed else READY_CALLS
    clauses = [share.format(share=ready_percent(readiness))]
    for support, forms in CLAUSES.items():
        clauses += _clause(readiness, support, forms)
    if len(clauses) == 1:
        clauses.append(ALL_READY)
    unknown = UNKNOWN if readiness.complete else UNLISTED
    clauses += _clause(readiness, OperatorSupport.UNKNOWN, unknown)
    return Text("; ".join(clause.en for clause in clauses), "；".join(clause.zh for clause in clauses))


def _clause(readiness: Readiness, support: OperatorSupport, forms: tuple[Text, Text]) -> list[Text]:
    operators = readiness.operators(support)
    if not operators:
        return []
    shown = [shortened(operator, MAX_TEXT) for operator in operators[:MAX_NAMES]]
    names = Text(", ".join(shown), "、".join(shown))
    if len(operators) > MAX_NAMES:
        names = AND_MORE_NAMES.format(names=names, count=len(operators) - MAX_NAMES)
    said = forms[len(operators) > 1].format(count=len(operators), names=names)
    if support is OperatorSupport.FALLBACK:
        cost = moved(readiness.moved_bytes, readiness.capture)
        said = WITH_COST.format(said=said, cost=cost) if cost else said
    return [said]


def moved(count: int, capture: Capture) -> Text | None:
    """What goes to the CPU and back; for each step, where there were steps. None if that is nothing."""
    if not count:
        return None
    form = PER_STEP if capture.steps else PER_RUN
    return form.format(size=units.size(count / max(capture.steps, 1)))


def ready_percent(readiness: Readiness) -> str:
    """The share that the device computes; 100 % is said only where that is all."""
    return units.percent_of_all(readiness.ready_share, readiness.is_ready)


def tensor(spec: TensorSpec) -> str:
    """float32[8,64,56,56]; a layout other than strided is named."""
    layout = "" if spec.layout == "strided" else f" {one_line(spec.layout)}"
    return f"{one_line(spec.dtype)}[{','.join(map(str, spec.shape))}]{layout}"


def stride(spec: TensorSpec) -> str:
    """(200704,3136,56,1); a dash where there is none."""
    return "–" if spec.stride is None else f"({','.join(map(str, spec.stride))})"


def is_contiguous(spec: TensorSpec) -> bool:
    """Whether the strides are those of a new tensor; those of dimensions of one element don't matter."""
    expected = 1
    for length, step in zip(reversed(spec.shape), reversed(spec.stride or ()), strict=False):
        if length != 1 and step != expected:
            return False
        expected *= length
    return True


def tensors(specs: Sequence[TensorSpec], most: int = MAX_ITEMS) -> str:
    """Several, of which so many are shown."""
    shown = [tensor(spec) for spec in specs[:most]]
    return ", ".join(shown) + (f", … +{len(specs) - most}" if len(specs) > most else "")


def dtypes(uses: Iterable[Use]) -> str:
    """Each dtype of several uses once."""
    return ", ".join(dict.fromkeys(one_line(dtype) for use in uses for dtype in use.signature.dtypes))


def value(given: Value) -> str:
    """An argument as text; tensors by their shape."""
    if isinstance(given, TensorSpec):
        return tensor(given)
    if isinstance(given, Special):
        return one_line(given.text)
    if isinstance(given, tuple):
        shown = [value(each) for each in given[:MAX_ITEMS]]
        return f"[{', '.join(shown)}{', …' if len(given) > MAX_ITEMS else ''}]"
    return shortened(repr(given), MAX_TEXT)


def arguments(signature: Signature) -> str:
    """The arguments that hold no tensor: stride=[1, 1], bias=None."""
    given = [each for each in signature.arguments if not Signature("", (each,)).inputs]
    return ", ".join(f"{one_line(each.name)}={value(each.value)}" for each in given)


def place(use: Use) -> str:
    """The line of the user's code, on one line itself."""
    return one_line(use.site.place)


def module(use: Use) -> str:
    """The module, and the composite operator that made the call."""
    inside = f"({one_line(use.site.inside)})" if use.site.inside else ""
    return f"{one_line(use.site.module)} {inside}".strip()


def several(texts: Iterable[str]) -> Text:
    """The first of several different texts, and how many more there are."""
    found = [text for text in dict.fromkeys(texts) if text]
    if len(found) < 2:
        return Text(*[found[0] if found else ""] * 2)
    return SEVERAL.format(first=found[0], count=len(found) - 1)


def facts(capture: Capture, judged: int) -> list[tuple[Text, str | int]]:
    """What the reports say of the run itself."""
    return [
        (PROGRAM, one_line(capture.program)),
        (DEVICE, one_line(capture.device)),
        (TORCH, one_line(capture.torch)),
        (STEPS, capture.steps),
        (PROCESSES, capture.processes),
        (JUDGED, judged),
        (NOT_JUDGED, max(len(capture.uses) - judged, 0)),
    ]


def note(key: str) -> Text:
    """What a capture could not see; the key of a later version is shown as it is."""
    return NOTES.get(key, Text(*[one_line(key)] * 2))


def weight(is_timed: bool) -> Text:
    """What operators are weighed by, as the head of a column: their time, or the share of their calls."""
    return TIME if is_timed else SHARE
