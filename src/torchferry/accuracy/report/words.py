"""Words and sentences of the reports, in both languages."""

from __future__ import annotations

from torchferry.accuracy.compare.matching import EQUIVALENT, EXTRA, GROUP, MOVED, NOTHING, SAME, SIMILAR
from torchferry.accuracy.judge.model import ErrorKind, Verdict
from torchferry.report.records import BAD, DOUBT, GOOD, QUIET, RISK, UNCLEAR, Grade
from torchferry.report.safe import one_line
from torchferry.text import Text

# The worst first.
VERDICT = {
    Verdict.PROGRAM: Grade(
        Text("programs differ", "程序不同"),
        BAD,
        "≠",
        Text("called with different arguments, or by one side only", "调用参数不同，或只有一方调用"),
    ),
    Verdict.FAULT: Grade(
        Text("fault", "错误"), BAD, "✕", Text("its own error is not rounding", "自身误差不是舍入造成的")
    ),
    Verdict.SUSPICIOUS: Grade(
        Text("suspicious", "可疑"),
        DOUBT,
        "!",
        Text("its own error is larger than it should be", "自身误差大于应有范围"),
    ),
    Verdict.UNEXPLAINED: Grade(
        Text("unexplained", "原因不明"),
        UNCLEAR,
        "¿",
        Text("it differs, and which side is correct is unknown", "结果不同，且无法确定是否正确"),
    ),
    Verdict.UNKNOWN: Grade(Text("unknown", "无法判断"), UNCLEAR, "?", Text("can't be judged", "无法判断")),
    Verdict.REDUCED: Grade(
        Text("reduced precision", "精度降低"),
        RISK,
        "≈",
        Text(
            "computed with lower precision than the dtype has, as with TF32",
            "以低于数据类型的精度计算（如 TF32）",
        ),
    ),
    Verdict.INHERITED: Grade(
        Text("inherited", "继承误差"),
        QUIET,
        "↓",
        Text(
            "its inputs already differ; for these inputs its results are correct",
            "输入已有差异；就这些输入而言结果正确",
        ),
        own_style="cyan",
    ),
    Verdict.NORMAL: Grade(
        Text("normal", "正常"), GOOD, "✓", Text("differs only by rounding", "差异在舍入误差范围内")
    ),
    Verdict.EQUAL: Grade(Text("equal", "完全相同"), GOOD, "=", Text("equal bit for bit", "逐位一致")),
}
RANK_OF = {verdict: at for at, verdict in enumerate(VERDICT)}
SORT = {
    ErrorKind.NONE: Text("", ""),
    ErrorKind.NAN: Text("unexpected NaN", "出现不应有的 NaN"),
    ErrorKind.INFINITE: Text("unexpected Inf", "出现不应有的 Inf"),
    ErrorKind.ZERO: Text("all zero", "结果全为零"),
    ErrorKind.TAIL: Text("wrong from some element to the end", "从某个元素起直到末尾都错"),
    ErrorKind.TILE: Text("wrong in blocks at regular distances", "按固定间隔成块出错"),
    ErrorKind.STRIPE: Text("every n-th element is wrong", "每隔若干元素出错"),
    ErrorKind.CHANNEL: Text("wrong in some channels only", "只有部分通道出错"),
    ErrorKind.STALE: Text("old content, or the result of another call", "是之前的旧数据或其他调用的结果"),
    ErrorKind.UNWRITTEN: Text("an argument that should be written was not", "应写入的参数没有被写入"),
    ErrorKind.SCALE: Text("off by a constant factor", "与正确值差一个常数倍"),
    ErrorKind.BIAS: Text("off by a constant", "与正确值差一个常数"),
    ErrorKind.SIGN: Text("wrong sign", "符号相反"),
    ErrorKind.TRANSPOSED: Text("transposed", "结果被转置"),
    ErrorKind.SHIFTED: Text("correct values at the wrong place", "数值正确但位置错误"),
    ErrorKind.ACCUMULATE: Text("accumulation missing or done twice", "累加缺失或重复"),
    ErrorKind.LATE: Text("as if part of an input were not ready", "如同输入的一部分尚未就绪"),
    ErrorKind.MISREAD: Text("as if an argument had another value", "如同某个参数取了别的值"),
    ErrorKind.PRECISION: Text("too few digits", "有效位数过少"),
    ErrorKind.POINTS: Text("only some elements are wrong", "个别元素出错"),
    ErrorKind.RANDOM: Text("wrong distribution of random numbers", "随机数分布不正确"),
    ErrorKind.SHAPE: Text("different shape or dtype", "形状或数据类型不同"),
    ErrorKind.ARGUMENTS: Text("called with different arguments", "调用参数不同"),
    ErrorKind.ONE_SIDED: Text("only one side calls it", "只有一方调用"),
    ErrorKind.VALUES: Text("wrong values", "数值错误"),
}
# Rows of `ferry watch`, and of records of modules.
WATCHED = {
    "module": Text("its output", "其输出"),
    "input_gradient": Text("the gradient of its input", "其输入的梯度"),
    "output_gradient": Text("the gradient of its output", "其输出的梯度"),
    "loss": Text("the loss", "损失"),
    "gradient": Text("the gradient of a parameter", "参数的梯度"),
    "gradient_norm": Text("the norm of all gradients", "全部梯度的范数"),
    "parameter": Text("a parameter", "参数"),
    "update": Text("the update of a parameter", "参数的更新量"),
    "buffer": Text("a buffer", "缓冲区"),
    "learning_rate": Text("the learning rate", "学习率"),
    "scale": Text("the scale of the loss", "损失的缩放系数"),
}
DIFFER = Text("the values differ", "数值不同")
HOW = {
    SAME: Text("same", "相同"),
    EQUIVALENT: Text("equivalent", "等价算子"),
    SIMILAR: Text("similar name", "名称相近"),
    MOVED: Text("moved", "位置不同"),
    GROUP: Text("in pieces", "拆分或合并"),
    EXTRA: Text("extra copy or view", "多出的拷贝或视图"),
    NOTHING: Text("no counterpart", "无对应项"),
}
PHASE = {
    "forward": Text("forward", "前向"),
    "backward": Text("backward", "反向"),
    "optimizer": Text("optimizer", "优化器"),
}


def phase(name: str) -> Text:
    """What a phase is called; of one that is not known, the name that the record has for it."""
    return PHASE.get(name, Text(one_line(name), one_line(name)))


BASIS = {
    "float32": Text("against single precision", "相对单精度"),
    "float64": Text("against double precision", "相对双精度"),
    "golden": Text("against golden", "相对标杆"),
    "statistics": Text("from statistics", "来自统计值"),
}
CURVE = {
    "loss": Text("loss", "损失"),
    "gradient norm": Text("gradient norm", "梯度范数"),
    "output": Text("output of the network", "网络输出"),
}

FAULT_FOUND = Text("{operator} computes wrong results: {sort}", "{operator} 计算错误：{sort}")
SUSPICION = Text(
    "no certain fault; {operator} is the first operator whose own error is too large{sort}",
    "没有确定的错误；{operator} 是第一个自身误差超出应有范围的算子{sort}",
)
PARTS = Text(
    "the runs diverge at step {step}, {module}: {operator}, {sort}",
    "两次运行从第 {step} 步的 {module} 开始分歧：{operator}，{sort}",
)
OUTSIDE = Text("outside any module", "模块之外")
ARGUMENTS_DIFFER = Text(
    "the programs differ here: {operator} has different arguments: {arguments}",
    "两边的程序在此处不同：{operator} 的调用参数不同：{arguments}",
)
ONE_SIDED = Text(
    "the programs differ here: only {side} calls {operator}",
    "两边的程序在此处不同：只有{side}调用 {operator}",
)
UNEXPLAINED = Text(
    "whether {operator} is correct is unknown: {why} ({count} of {total} calls were judged, none is wrong)",
    "无法确定 {operator} 是否正确：{why}（{total} 个调用中判断了 {count} 个，其中没有错误）",
)
ARGUMENTS_UNEXPLAINED = Text(
    "whether the programs differ is unknown: {operator} has different arguments: {arguments}",
    "无法确定两边的程序是否不同：{operator} 的调用参数不同：{arguments}",
)
ONE_SIDED_UNEXPLAINED = Text(
    "whether the programs differ is unknown: only {side} calls {operator}",
    "无法确定两边的程序是否不同：只有{side}调用 {operator}",
)
FINE = Text(
    "no operator is wrong: {count} of {total} calls were judged, all differences are rounding or inherited",
    "没有算子出错：{total} 个调用中判断了 {count} 个，差异均为舍入或继承误差",
)
FINE_AS_FAR_AS_KNOWN = Text(
    "{count} of {total} calls were judged and none is wrong; the other {left} could not be judged",
    "{total} 个调用中判断了 {count} 个，其中没有错误；其余 {left} 个无法判断",
)
ALL_EQUAL = Text("all {count} calls are equal bit for bit", "全部 {count} 个调用逐位一致")
NOTHING_KNOWN = Text("no verdict: none of the calls could be judged", "无法判断：没有一个调用可供判断")
NO_PARTING = Text(
    "the runs do not diverge: their statistics differ only by rounding or inherited differences",
    "两次运行没有分歧：统计值的差异均为舍入或继承误差",
)
RANK = Text("rank {rank}", "rank {rank}")
WHERE = Text("where", "位置")
CALLED_FROM = Text("called from", "调用自")
KIND = Text("kind", "类型")
ERROR = Text("error", "误差")
RESULT = Text("result", "结果")
PICTURE = Text("picture", "图示")
WHY = Text("why", "原因")
PICTURE_COLUMN = Text("Picture", "图示")
WHERE_COLUMN = Text("Where", "位置")
GOLDEN_CALL_AT = Text("golden's call {number}, step {step}", "标杆的第 {number} 个调用，第 {step} 步")
ALSO = Text("also", "另有")
ALSO_HERE = Text("{operator}, {where}: {why}", "{operator}，{where}：{why}")
CALL_AT = Text("call {number}, step {step}", "第 {number} 个调用，第 {step} 步")
ERRORS = Text("its own {own}{basis}", "自身 {own}{basis}")
GOLDENS = Text("golden's own error is {golden}", "标杆自身为 {golden}")
LIMIT_IS = Text("up to {limit} is normal", "正常上限为 {limit}")
MATCHED_AS = Text("matched with {operator} ({how})", "对应 {operator}（{how}）")
NEXT_CASE = Text("test only this call", "单独测试这个调用")
NEXT_CUT = Text("cut this call out of the recordings, to send it", "把这个调用从记录中单独取出，便于发送")
NEXT_DUMP = Text(
    "dump only the tensors of this place on both sides, with this in msprobe's config.json",
    "两侧都只导出此处的张量：在 msprobe 的 config.json 中写入",
)
NEXT_ALL = Text("list every call", "列出所有调用")
NEXT_RECORD = Text("record only this place on both sides", "在两边只记录此处")
NEXT_NARROW = Text(
    "nothing was recorded between steps {good} and {bad}: record statistics of these steps on both "
    "sides and compare them",
    "第 {good} 步到第 {bad} 步之间没有数据：请在两边记录这些步的统计值，再进行比较",
)
NEXT_REPLAY = Text(
    "replay golden's inputs on the device, so that no error is inherited",
    "在设备上用标杆的输入重放，排除继承误差",
)
NETWORK_NORMAL = Text(
    "whole network, step {step}: mean absolute difference of the {what} {mean}, normal (<= 1e-4)",
    "整网第 {step} 步：{what}的平均绝对误差为 {mean}，正常（<= 1e-4）",
)
NETWORK_LARGE = Text(
    "whole network, step {step}: mean absolute difference of the {what} {mean}, above the normal 1e-4",
    "整网第 {step} 步：{what}的平均绝对误差为 {mean}，超过正常值 1e-4",
)
GROWTH = Text(
    "largest difference: {first} in step {start}, {last} in step {end}",
    "最大差异：第 {start} 步为 {first}，第 {end} 步为 {last}",
)

NOTE = Text("note", "说明")
BY_VERDICT = Text("Calls by verdict", "各判定的调用数")
WORST = Text("Calls that need attention", "需要关注的调用")
ALL_CALLS = Text("All calls", "所有调用")
LONELY = Text("Calls without a counterpart", "没有对应项的调用")
OPERATOR = Text("Operator", "算子")
GOLDEN_OPERATOR = Text("Golden's operator", "标杆算子")
VERDICT_COLUMN = Text("Verdict", "判定")
SORT_COLUMN = Text("Kind of error", "错误类型")
OWN_ERROR = Text("Own error", "自身误差")
GOLDEN_ERROR = Text("Golden's error", "标杆误差")
LIMIT = Text("Limit", "上限")
NUMBER = Text("No.", "序号")
GOLDEN_NUMBER = Text("Golden's no.", "标杆序号")
STEP = Text("Step", "步")
PHASE_COLUMN = Text("Phase", "阶段")
MODULE = Text("Module", "模块")
MODEL = Text("Model", "模型")
PLACE = Text("Source", "源码")
HOW_COLUMN = Text("Match", "匹配")
COSINE = Text("Cosine", "余弦")
MAX_ABS = Text("Max abs", "最大绝对误差")
MAX_REL = Text("Max rel", "最大相对误差")
TENSOR = Text("Tensor", "张量")
DTYPE = Text("Dtype", "类型")
SHAPE = Text("Shape", "形状")
SIDE = Text("Side", "来源")
COUNT = Text("Calls", "调用数")
MEANS = Text("Meaning", "含义")
FACT, VALUE, SUMMARY = Text("Fact", "项目"), Text("Value", "值"), Text("Summary", "概要")
MINE, GOLDEN = Text("mine", "待测"), Text("golden", "标杆")
PROGRAM = Text("Program", "程序")
DEVICE = Text("Device", "设备")
FILE = Text("Recording", "记录")
TORCH = Text("PyTorch", "PyTorch")
RANK_COLUMN = Text("Rank", "Rank")
DIFFERENCES = Text("Tensors", "张量误差")
INPUTS, OUTPUTS = Text("inputs", "输入"), Text("outputs", "输出")
MODULES = Text("Modules", "模块")
STEPS_AND_PHASES = Text("Steps and phases", "步与阶段")
CURVES = Text("Loss and gradients", "损失与梯度")
CALLS = Text("Operators", "算子调用")
SEARCH = Text("Search operator, module, source", "搜索算子、模块、源码")
SHOWN = Text("{shown} of {count} shown", "显示 {shown} / {count}")
WHOLE_PROGRAM = Text("whole program", "整个程序")
TREE_HELP = Text(
    "A module has the color of its worst call, including submodules. Click its name to list its calls.",
    "模块的颜色取自其中（含下级）最差的调用。点击名称列出其调用。",
)
NO_SCRIPT = Text(
    "Without JavaScript only the worst calls are listed; the CSV and JSON reports list all.",
    "未启用 JavaScript 时只列出最差的调用；完整列表见 CSV 和 JSON 报告。",
)
RECORDS = Text("Recordings", "记录")
