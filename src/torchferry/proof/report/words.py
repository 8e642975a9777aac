"""The words of a proof's reports in English and Chinese."""

from __future__ import annotations

from torchferry.proof.model import Cause, ProofVerdict, What
from torchferry.report.records import BAD, DOUBT, GOOD, UNCLEAR, Grade
from torchferry.text import Text

VERDICT = {
    ProofVerdict.EQUAL: Grade(Text("equal bit for bit", "逐位一致"), GOOD),
    ProofVerdict.CLOSE: Grade(Text("equal within the tolerance", "在容差范围内相等"), GOOD),
    ProofVerdict.PARTED: Grade(Text("different", "不同"), BAD),
    ProofVerdict.INCOMPARABLE: Grade(Text("can't be compared", "无法比较"), UNCLEAR),
    ProofVerdict.CRASHED: Grade(Text("failed", "运行失败"), BAD),
    ProofVerdict.UNREPEATABLE: Grade(Text("the original is not reproducible", "原程序的结果不可复现"), DOUBT),
}
WHAT = {
    What.LOSS: Text("the loss", "损失"),
    What.GRADIENT: Text("the gradient of {name}", "{name} 的梯度"),
    What.PARAMETER: Text("the parameter {name}", "参数 {name}"),
    What.BUFFER: Text("the buffer {name}", "缓冲区 {name}"),
}
CAUSE = {
    Cause.RESULT: Text(
        "{migrated} is the first operator that gives another result for the same inputs.",
        "在输入相同的情况下，第一个结果不同的算子是 {migrated}。",
    ),
    Cause.RANDOM: Text(
        "The first operator that differs draws random numbers, and they differ: {migrated}.",
        "第一个不同的算子会生成随机数，而两次运行的随机数不同：{migrated}。",
    ),
    Cause.ARGUMENTS: Text(
        "{migrated} has the same input tensors but other arguments: ({ours}) instead of ({theirs}).",
        "{migrated} 的输入张量相同，但其他参数不同：({ours})，而原程序为 ({theirs})。",
    ),
    Cause.CALLS: Text(
        "The runs execute different operators: the original {reference}, the migrated program {migrated}.",
        "两次运行执行的算子不同：原程序为 {reference}，迁移后为 {migrated}。",
    ),
    Cause.DATA: Text(
        "The data of this step differ: an input of {migrated} comes from outside PyTorch's operators.",
        "这一步的数据不相同：{migrated} 的一个输入来自 PyTorch 算子之外。",
    ),
    Cause.STATE: Text(
        "A parameter, a buffer or the optimizer's state already differed before this step; it is an "
        "input of {migrated}.",
        "在这一步之前，参数、缓冲区或优化器状态就已不同；它是 {migrated} 的输入。",
    ),
    Cause.COMMUNICATION: Text(
        "The contribution of other processes to {migrated} differs; check the other ranks.",
        "其他进程提供给 {migrated} 的内容不相同；请查看其他 rank。",
    ),
    Cause.NONE: Text(
        "All operators of this step give the same results in both runs: the difference comes from an "
        "earlier step, or from code outside PyTorch's operators.",
        "这一步的所有算子在两次运行中结果相同：差异来自更早的步，或来自非 PyTorch 算子的代码。",
    ),
}
JUDGED_NORMAL = Text(
    "Double precision confirms its result for the inputs it got: the difference is rounding.",
    "以双精度对照，就其输入而言结果正确：差异属于舍入。",
)
JUDGED_WRONG = Text(
    "Double precision shows that its result is wrong for the inputs it got: {why}.",
    "以双精度对照，就其输入而言结果错误：{why}。",
)
JUDGED_ERRORS = Text(
    "Its own error is {own}; up to {limit} is normal.", "其自身误差为 {own}；不超过 {limit} 属正常。"
)
NEXT = Text("Next steps:", "下一步：")
COMPILED = Text(
    "Operators inside code compiled by torch.compile are not visible.",
    "torch.compile 编译的代码内部的算子无法查看。",
)
MIGRATED = Text("migrated", "迁移后")
NO_CALL = Text("none", "无")
AT = Text("{name} ({phase}, {place})", "{name}（{phase}，{place}）")
AT_PHASE = Text("{name} ({phase})", "{name}（{phase}）")
PHASE = {
    "forward": Text("forward pass", "前向"),
    "backward": Text("backward pass", "反向"),
    "optimizer": Text("optimizer", "优化器"),
}

HOLDS = Text("Equal in everything that was compared", "所比较的内容全部相等")
FAILS = Text("Not equal, or not compared", "不相等，或未能比较")
SCOPE = Text(
    "Compared: losses, gradients, parameters and small buffers of {steps}, seed {seed}, {arguments}, "
    "on a simulated {device} that uses the CPU's kernels. Not covered: rounding and bugs of the "
    "vendor's own kernels, speed, memory, later steps, other arguments.",
    "比较范围：{steps}的损失、梯度、参数和小型缓冲区，随机种子 {seed}，{arguments}，在使用 CPU "
    "kernel 计算的模拟 {device} 设备上。未涉及：厂商自身 kernel 的舍入与缺陷、速度、显存、之后的步、"
    "其他参数。",
)
SCOPE_EMULATED = Text(
    "Compared: losses, gradients, parameters and small buffers of {steps}, seed {seed}, {arguments}, "
    "with the vendor's own plugin on an emulated {device} that uses the CPU's kernels. Not covered: "
    "rounding and bugs of the vendor's own kernels, speed, memory, later steps, other arguments.",
    "比较范围：{steps}的损失、梯度、参数和小型缓冲区，随机种子 {seed}，{arguments}，"
    "使用厂商官方插件，运行于使用 CPU kernel 计算的仿真 {device}。未涉及：厂商自身 kernel "
    "的舍入与缺陷、速度、显存、之后的步、其他参数。",
)
SCOPE_STEPS = Text("{count} steps", "{count} 步")
SCOPE_RANKS = Text("{count} steps of {processes} processes in total", "{processes} 个进程共 {count} 步")
SCOPE_ARGUMENTS = Text("these arguments", "这些命令行参数")
SCOPE_NO_ARGUMENTS = Text("no arguments", "无命令行参数")
IN_ONE_LINE = Text(
    "{vendor}: {verdict} for {steps}, seed {seed}, on {device}; not covered: the vendor's own kernels, speed, memory, "
    "later steps, other arguments",
    "{vendor}：{steps}{verdict}，随机种子 {seed}，在{device}上运行；未涵盖：厂商自身的算子、速度、显存、之后的步骤、其他参数",
)
A_SIMULATED, AN_EMULATED = Text("a simulated device", "模拟设备"), Text("an emulated device", "仿真设备")
FAILED_FOR = Text("{vendor}: {verdict}", "{vendor}：{verdict}")
NOTHING = Text("Nothing was compared.", "没有进行任何比较。")
COMPARED_ONE, COMPARED = (
    Text("1 step compared", "比较了 1 步"),
    Text("{count} steps compared", "比较了 {count} 步"),
)
PARTED_AT = Text(
    "step {step}: {what} differs by {distance} ({relative} of its norm; the tolerance is {tolerance})",
    "第 {step} 步：{what} 相差 {distance}（为其范数的 {relative}；容差为 {tolerance}）",
)
LARGEST = Text(
    "largest difference, in step {step}: {what}, {distance} ({relative} of its norm)",
    "最大差异在第 {step} 步：{what}，{distance}（为其范数的 {relative}）",
)
IN_RANK = Text("rank {rank}, {sentence}", "rank {rank}，{sentence}")
NO_GRADIENT = Text(
    "step {step}: {what} exists in only one run", "第 {step} 步：{what} 只存在于其中一次运行中"
)
EXIT_CODE = Text("exit code {code}", "退出码 {code}")
REFERENCE = Text("original on the CPU", "CPU 上的原程序")
OPERATOR = Text("First operator that differs", "第一个不同的算子")
APART = Text(
    "{which} {position} differs by {distance}, {relative} of its norm",
    "{which} {position} 相差 {distance}，为其范数的 {relative}",
)
OTHER_KIND = Text(
    "{which} {position} is {migrated}; in the original it is {reference}",
    "{which} {position} 为 {migrated}；原程序中为 {reference}",
)
OUTPUT = Text("output", "输出")
INPUT = Text("input", "输入")
RUN = Text("Run", "运行")
NAME = Text("Operator", "算子")
WHEN = Text("Phase", "阶段")
MODULE = Text("Module", "模块")
PLACE = Text("Line", "代码行")
ARGUMENTS = Text("Arguments", "参数")
INPUTS = Text("Inputs", "输入")
OUTPUTS = Text("Outputs", "输出")

STEPS = Text("Steps", "步")
STEP = Text("Step", "步")
OPTIMIZER = Text("Optimizer", "优化器")
BITS_DIFFER = Text("first different bits in step {step}", "第 {step} 步首次出现不同的比特")
LOSS_REFERENCE = Text("Loss, original", "损失（原程序）")
LOSS = Text("Loss, {vendor}", "损失（{vendor}）")
DIFFERENCE = Text("Difference", "差异")
GRADIENT_NORM = Text("Gradient norm", "梯度范数")
PARAMETERS = Text("Parameters", "参数")
EQUAL = Text("equal", "相等")
DIFFERENT = Text("differ", "不同")
MISSING = Text("–", "–")
LEFT_OUT = Text("{count} steps not shown", "省略 {count} 步")
SKIPPED = Text("{step} (after {count} skipped)", "{step}（之前跳过 {count} 步）")
RANK = Text("rank {rank}", "rank {rank}")
PROCESS = Text("process {number}", "进程 {number}")

LOSSES = Text("Loss", "损失")
NORMS = Text("Gradient norm", "梯度范数")
NO_STEPS = Text("No process made an optimizer step.", "没有进程执行过优化步。")
LOGS = Text("Last output of failed runs", "失败运行的最后输出")
LOG_FILES = Text("full logs: {stdout}, {stderr}", "完整日志：{stdout}、{stderr}")
SETTINGS = Text("Settings", "设置")
PROGRAM = Text("Program", "程序")
CONVERTED = Text("Converted program", "转换后的程序")
UNCHANGED = Text("the unchanged original, through the runtime layer", "未修改的原程序，通过运行时层运行")
STEPS_ASKED = Text("Steps", "步数")
TO_THE_END = Text("until the program ends", "直到程序结束")
SEED = Text("Seed", "随机种子")
PROCESSES = Text("Processes", "进程数")
SAME_WEIGHTS = Text("Same initial weights", "相同的初始权重")
TOLERANCE = Text("Tolerance", "容差")
BIT_FOR_BIT = Text("none: bit for bit", "无：逐位比较")
BY_DTYPE = Text("by dtype", "按数据类型")
YES = Text("yes", "是")
NO = Text("no", "否")
DATE = Text("Date", "日期")
VERSIONS = Text("Versions", "版本")
SECONDS = Text("Seconds", "秒")
