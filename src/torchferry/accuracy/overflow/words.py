"""What is said of overflows, in English and Chinese. No torch."""

from __future__ import annotations

from torchferry.accuracy.overflow.model import OverflowKind
from torchferry.text import Text

FOUND = {
    OverflowKind.NAN: Text("overflow: {operator} makes NaN", "溢出：{operator} 产生 NaN"),
    OverflowKind.INFINITE: Text(
        "overflow: {operator} makes infinities of finite inputs", "溢出：{operator} 由有限的输入产生无穷大"
    ),
    OverflowKind.HALF: Text(
        "overflow: {operator} makes values that float16 can't hold",
        "溢出：{operator} 产生 float16 无法表示的值",
    ),
}
GIVEN = Text(
    "overflow: {operator} is given NaN that none of the checked operators made: it comes from data, set-up, compiled "
    "code or another process; --whole checks from `import torch` on",
    "溢出：{operator} 的输入已含 NaN，且不是由已检查的算子产生：它来自数据、初始化、编译的代码或其他进程；--whole 从 "
    "`import torch` 起检查",
)
NONE = Text(
    "no overflow: {operators} calls of operators were checked on {device}, steps: {steps}",
    "未发现溢出：在 {device} 上检查了 {steps} 步中的 {operators} 个算子",
)
INTERRUPTED = Text(
    "no overflow until the run was ended: {operators} calls of operators were checked on {device}, complete steps: {steps}",
    "运行终止前未发现溢出：在 {device} 上检查了 {steps} 个完整步中的 {operators} 个算子",
)
FAILED = Text(
    "the program failed with exit code {code}, see its output: only what it called until then was checked",
    "程序以退出码 {code} 失败（见其输出）：只检查了此前的调用",
)
WHERE = Text("step {step}, {phase}", "第 {step} 步，{phase}")
PHASES = {
    "forward": Text("forward pass", "前向"),
    "backward": Text("backward pass", "反向"),
    "optimizer": Text("optimizer", "优化器"),
}
MODULE = Text("module {module}", "模块 {module}")
NODE = Text("derivative {node}", "反向节点 {node}")
RANK = Text("rank {rank} of {world} was first", "{world} 个进程中 rank {rank} 最先溢出")
OTHER_RANK = Text("rank {rank}: {operator}, {where}", "rank {rank}：{operator}，{where}")
SCALED = Text(
    "the loss was scaled by {scale:g}, and the GradScaler could not get rid of it",
    "损失被放大 {scale:g} 倍，而 GradScaler 未能消除该溢出",
)
BEFORE = Text("operators before it, the last {count}:", "此前的 {count} 个算子：")
SAVED = Text("its inputs as they were before the call: {file}", "其调用前的输入：{file}")
UNSAVED = Text(
    "not in it, since they were overwritten meanwhile: {names}", "以下输入此间已被覆盖，未保存：{names}"
)
CASE = Text(
    "this operator alone, on a device against the CPU: {command}", "在设备上与 CPU 对比该单算子：{command}"
)
CASE_WRITTEN = Text("the same as a test: {file}", "同样内容的测试：{file}")
SKIPPED = Text(
    "{count} steps overflowed in scaled gradients and were skipped by the GradScaler, last at scale {scale:g} in "
    "{operator}: this is normal while it looks for a scale",
    "{count} 步的放大梯度溢出并被 GradScaler 跳过，最后一次缩放系数为 {scale:g}，算子 {operator}：这是其寻找系数时的正常现象",
)
INTENDED = {
    "table": Text(
        "taken for intended: {operator} at {place} makes infinities of zeros in a table or mask without gradients",
        "视为有意：{place} 处的 {operator} 在不带梯度的表或掩码中由零产生无穷大",
    ),
    "lowest": Text(
        "taken for intended: {operator} at {place} adds a mask of the lowest number of {dtype}",
        "视为有意：{place} 处的 {operator} 加上了 {dtype} 的最小值掩码",
    ),
}
LARGEST = Text(
    "closest to the limit of float16 (65504): {value:g}, {operator}, {where}",
    "最接近 float16 上限（65504）的值：{value:g}，{operator}，{where}",
)
UNDERFLOW = Text(
    "would become zero in float16: {share:.1%} of the values of {operator}, {where}",
    "在 float16 中会变为零：{operator} 的 {share:.1%} 的值，{where}",
)
MORE = Text(
    "{count} more overflows, the first of them: {operator}, {where}",
    "另有 {count} 处溢出，首个：{operator}，{where}",
)
