"""The words of the reports, in both languages."""

from __future__ import annotations

from torchferry.perf.compare.model import MatchKind
from torchferry.perf.model import Severity, TimePart
from torchferry.report.records import BAD, DOUBT, GOOD, QUIET, RISK, UNCLEAR, Grade, Tone
from torchferry.text import Text

PART = {
    TimePart.COMPUTE: Text("the device computes", "设备计算"),
    TimePart.COMMUNICATION: Text("communication", "通信"),
    TimePart.COPY: Text("copies host ↔ device", "主机与设备间拷贝"),
    TimePart.MOVE: Text("copies and fills within the device", "设备内的拷贝与填充"),
    TimePart.LOADER: Text("waiting for data", "等待数据"),
    TimePart.HOST: Text("waiting for the host", "等待主机下发"),
    TimePart.OTHER: Text("idle, cause not in the trace", "空闲，跟踪中看不出原因"),
}
PART_OF_HOST = {
    **PART,
    TimePart.COMPUTE: Text("operators", "算子"),
    TimePart.OTHER: Text("outside of operators (Python)", "算子之外（Python）"),
}  # where the operators are the work
SEVERITY = {
    Severity.HIGH: Grade(Text("high", "高"), BAD, own_style="bold red"),
    Severity.MEDIUM: Grade(Text("medium", "中"), DOUBT, own_style="bold yellow"),
    Severity.LOW: Grade(Text("low", "低"), RISK, own_style="bold blue"),
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
    "runtime": Text("call of the runtime", "运行时调用"),
    "compute": Text("compute", "计算"),
    "communication": Text("communication", "通信"),
    "copy": Text("copy", "拷贝"),
    "move": Text("copy within the device", "设备内拷贝"),
    "fill": Text("fill, event", "填充、事件"),
    "gc": Text("garbage collection", "垃圾回收"),
    "merged": Text("short ones, merged", "合并的短条"),
}

WHERE_TIME_GOES = Text("Where the time of a step goes", "单步时间的去向")
WHERE_ALL_TIME_GOES = Text("Where the time goes", "时间的去向")
FINDINGS = Text("Findings", "发现")
NO_FINDINGS = Text("No detector found anything.", "没有检测器发现问题。")
REMEDY = Text("Remedy", "措施")
GAIN = Text("Gain", "收益")
WHAT = Text("What", "对象")
DETAIL = Text("Detail", "详情")
PLACE = Text("Place", "位置")
COUNT = Text("Count", "次数")
TIME = Text("Time", "时间")
SHARE = Text("Share", "占比")
OPERATORS = Text("Operators", "算子")
OPERATOR = Text("Operator", "算子")
SHAPES = Text("Shapes", "形状")
DTYPES = Text("Types", "类型")
CALLS = Text("Calls", "调用次数")
CALLS_OF_BASELINE = Text("Calls, baseline", "基线调用次数")
HOST_TIME = Text("Host time", "主机时间")
DEVICE_TIME = Text("Device time", "设备时间")
ROOFLINE = Text("Of roofline", "屋顶线占比")
KERNELS = Text("Work of the device", "设备任务")
KERNEL = Text("Name", "名称")
KIND = Text("Kind", "类别")
LAUNCHED_BY = Text("Launched by", "下发算子")
STEPS = Text("Steps", "步")
STEP = Text("Step", "步")
MEMORY = Text("Memory", "内存")
ALLOCATED = Text("allocated", "已分配")
RESERVED = Text("reserved", "已保留")
LIMIT = Text("limit", "上限")
TIMELINE = Text("Timeline", "时间线")
RANKS = Text("Ranks", "各 rank")
RANK = Text("Rank", "rank")
WORKS = Text("Works", "自身工作")
MAIN_FINDING = Text("Main finding", "主要发现")
NOT_CHECKED = Text("Not checked", "未检查")
NEEDS = Text("needs {what}", "需要{what}")
BROKE_DOWN = Text("broke down: {error}", "出错：{error}")
CHECKED = Text("Checked", "已检查")
NOTE = Text("Note", "说明")
RUN = Text("The run", "本次运行")
FILE = Text("File", "文件")
PROGRAM = Text("Program", "程序")
DEVICE = Text("Device", "设备")
TORCH = Text("PyTorch", "PyTorch")
A_SIMULATED_DEVICE = Text("a simulated device: times are this machine's", "模拟设备：时间为本机的时间")
SIMULATED = Text(
    "{device}, simulated: times are those of this machine's CPU", "{device}，模拟：时间为本机 CPU 的时间"
)
COMPARISON = Text("Comparison", "对比")
BASELINE = Text("Baseline", "基线")
COMPARED = Text("This run", "本次运行")
MORE = Text("More per step", "每步多出")
RATIO = Text("Ratio", "比值")
HOW = Text("Matched by", "匹配方式")
ONLY_BASELINE = Text("In the baseline only", "仅在基线中")
ONLY_COMPARED = Text("In this run only", "仅在本次运行中")
PAIRS = Text("Operators in both runs, what costs most more first", "两次运行都有的算子，多耗时最多的在前")
PER_STEP = Text("per step", "每步")

SEARCH = Text("Search operators, shapes, lines", "搜索算子、形状、代码行")
SHOW_IN_TIMELINE = Text("show in the timeline", "在时间线中查看")
TIMELINE_HELP = Text(
    "Step {step} in full, and what surrounds each finding. Wheel or + and −: zoom; drag or ← and →: move; 0: all; a "
    "bar: its name, shapes and time.",
    "完整的第 {step} 步，以及各项发现前后的事件。滚轮或 + −：缩放；拖动或 ← →：移动；0：全部；指向一条：名称、形状与时间。",
)
TIMELINE_HELP_WHOLE = Text(
    "The whole trace, and what surrounds each finding. Wheel or + and −: zoom; drag or ← and →: move; 0: all; a bar: "
    "its name, shapes and time.",
    "整个跟踪，以及各项发现前后的事件。滚轮或 + −：缩放；拖动或 ← →：移动；0：全部；指向一条：名称、形状与时间。",
)
TIMELINE_LEFT_OUT = Text(
    "{count} short events of it have no bar of their own; neighbours among them are drawn as one.",
    "其中 {count} 个短事件没有单独成条；相邻者合并为一条。",
)
TIMELINE_NEEDS_SCRIPT = Text("The timeline is drawn by a script.", "时间线由脚本绘制。")
ZOOM_IN = Text("Zoom in", "放大")
ZOOM_OUT = Text("Zoom out", "缩小")
EARLIER = Text("Earlier", "向前")
LATER = Text("Later", "向后")
WHOLE_STEP = Text("The step", "整步")
WHOLE = Text("Everything", "全部")
SHORT_ONES = Text("{count} short ones", "{count} 个短条")
