"""The words of the reports, in both languages."""

from __future__ import annotations

from torchferry.perf.compare.model import MatchKind
from torchferry.perf.model import Impact, TimePart
from torchferry.report.records import BAD, DOUBT, GOOD, QUIET, RISK, UNCLEAR, Grade, Tone
from torchferry.text import Text

PART = {
    TimePart.COMPUTE: Text("the device computes", "设备计算"),
    TimePart.COMMUNICATION: Text("communication", "通信"),
    TimePart.COPY: Text("copies host ↔ device", "主机与设备间拷贝"),
    TimePart.MOVE: Text("copies and fills within the device", "设备内的拷贝与填充"),
    TimePart.LOADER: Text("waiting for data", "等待数据"),
    TimePart.HOST: Text("waiting for the host", "等待主机下发"),
    TimePart.OTHER: Text("idle, cause not in the trace", "空闲，trace 中看不出原因"),
}
PART_OF_HOST = {
    **PART,
    TimePart.COMPUTE: Text("operators", "算子"),
    TimePart.OTHER: Text("outside operators (Python)", "算子之外（Python）"),
}  # where the operators are the work
SEVERITY = {
    Impact.HIGH: Grade(Text("high", "高"), BAD, own_style="bold red"),
    Impact.MEDIUM: Grade(Text("medium", "中"), DOUBT, own_style="bold yellow"),
    Impact.LOW: Grade(Text("low", "低"), RISK, own_style="bold blue"),
}
NOTHING_STANDS_OUT = Grade(Text("", ""), GOOD, own_style="bold green")
MATCH = {
    MatchKind.EXACT: Text("same name, shapes and types", "名称、形状、类型都相同"),
    MatchKind.NAME: Text("same name", "名称相同"),
    MatchKind.EQUIVALENT: Text("equivalent operator", "等价算子"),
    MatchKind.CALLER: Text("under the same caller", "同一调用者之下"),
    MatchKind.KERNEL: Text("same kernel", "同名设备任务"),
    MatchKind.NONE: Text("no counterpart", "无对应"),
}
PART_TONES = {
    TimePart.COMPUTE: GOOD,
    TimePart.COMMUNICATION: UNCLEAR,
    TimePart.COPY: Tone("risk", "cyan"),
    TimePart.MOVE: Tone("move", "blue"),
    TimePart.LOADER: BAD,
    TimePart.HOST: DOUBT,
    TimePart.OTHER: QUIET,
}
SPAN_KIND = {
    "step": Text("step", "步"),
    "operator": Text("operator", "算子"),
    "annotation": Text("annotation", "标注"),
    "python": Text("Python", "Python"),
    "runtime": Text("runtime call", "运行时调用"),
    "compute": Text("compute", "计算"),
    "communication": Text("communication", "通信"),
    "copy": Text("copy", "拷贝"),
    "move": Text("copy within the device", "设备内拷贝"),
    "fill": Text("fill, event", "填充、事件"),
    "gc": Text("garbage collection", "垃圾回收"),
    "merged": Text("short events, merged", "合并的短条"),
}

WHERE_TIME_GOES = Text("Where the time of a step goes", "单步时间的去向")
WHERE_ALL_TIME_GOES = Text("Where the time goes", "时间的去向")
REMEDY = Text("Remedy", "措施")
GAIN = Text("Gain", "收益")
WHAT = Text("What", "对象")
STEPS = Text("Steps", "步")
STEP = Text("Step", "步")
ALLOCATED = Text("allocated", "已分配")
RESERVED = Text("reserved", "已保留")
LIMIT = Text("limit", "上限")
TIMELINE = Text("Timeline", "时间线")
NOT_CHECKED = Text("Not checked", "未检查")
BECAUSE = Text("{name} ({why})", "{name}（{why}）")
NOTE = Text("Note", "说明")
SIMULATED = Text(
    "{device}, simulated: times are those of this machine's CPU", "{device}，模拟：时间为本机 CPU 的时间"
)
COMPARISON = Text("Comparison", "对比")
BASELINE = Text("Baseline", "基线")
COMPARED = Text("This run", "本次运行")
HOW = Text("Matched by", "匹配方式")

SEARCH = Text("Search operators, shapes, lines", "搜索算子、形状、代码行")
SHOW_IN_TIMELINE = Text("show in the timeline", "在时间线中查看")
TIMELINE_HELP = Text(
    "All of step {step}, and the surroundings of each finding. Wheel or + and −: zoom; drag or ← and "
    "→: move; 0: all; bar: name, shapes and time.",
    "完整的第 {step} 步，以及各项发现前后的事件。滚轮或 + −：缩放；拖动或 ← →：移动；0：全部；"
    "指向一条：名称、形状与时间。",
)
TIMELINE_HELP_WHOLE = Text(
    "The whole trace, and the surroundings of each finding. Wheel or + and −: zoom; drag or ← and →: "
    "move; 0: all; bar: name, shapes and time.",
    "整个 trace，以及各项发现前后的事件。滚轮或 + −：缩放；拖动或 ← →：移动；0：全部；指向一条：名称、"
    "形状与时间。",
)
TIMELINE_LEFT_OUT = Text(
    "{count} short events are not drawn separately; neighboring ones are merged into one bar.",
    "其中 {count} 个短事件没有单独成条；相邻者合并为一条。",
)
TIMELINE_NEEDS_SCRIPT = Text("The timeline needs JavaScript.", "时间线需要 JavaScript。")
