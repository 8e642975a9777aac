"""The words of the reports in English and Chinese; findings bring their own sentences."""

from __future__ import annotations

from torchferry.finding import Kind
from torchferry.outcome import FileStatus
from torchferry.report.records import BAD, DOUBT, GOOD, QUIET, RISK, UNCLEAR, Grade
from torchferry.text import Text

KIND = {
    Kind.CHANGE: Grade(Text("rewrite", "改写"), GOOD, meaning=Text("Done for you.", "已为您自动完成。")),
    Kind.TODO: Grade(
        Text("to decide", "待决定"),
        DOUBT,
        meaning=Text(
            "You must decide; each entry says what and why.", "需要您决定；每一条都说明了做什么和为什么。"
        ),
    ),
    Kind.UNSUPPORTED: Grade(
        Text("not supported", "不支持"),
        BAD,
        meaning=Text("The target does not have this.", "目标平台没有此功能。"),
    ),
    Kind.UNKNOWN: Grade(
        Text("unknown", "未知"),
        UNCLEAR,
        meaning=Text(
            "Nothing public says whether the target has this; try it on the device.",
            "公开资料未说明目标平台是否支持；请在设备上确认。",
        ),
    ),
    Kind.RISK: Grade(
        Text("risk", "风险"),
        RISK,
        meaning=Text("Works, but accuracy or speed may differ.", "可以运行，但精度或性能可能不同。"),
    ),
    Kind.INFO: Grade(
        Text("left as is", "保持原样"),
        QUIET,
        meaning=Text("Left as it is, with the reason.", "保持原样，并说明原因。"),
    ),
}
KIND_SHORT = {
    Kind.CHANGE: Text("rewr.", "改写"),
    Kind.TODO: Text("todo", "待定"),
    Kind.UNSUPPORTED: Text("unsup.", "不支持"),
    Kind.UNKNOWN: Text("unkn.", "未知"),
    Kind.RISK: Text("risk", "风险"),
    Kind.INFO: Text("info", "提示"),
}
STATUS = {
    FileStatus.CHANGED: Text("changed", "已修改"),
    FileStatus.ADDED: Text("added", "新增"),
    FileStatus.UNCHANGED: Text("unchanged", "未修改"),
    FileStatus.FAILED: Text("not processed", "未处理"),
}

TITLE = Text("TorchFerry report", "TorchFerry 迁移报告")
PROJECT = Text("Project", "项目")
TARGET = Text("Target", "目标平台")
COMMAND = Text("Command", "命令")
SUMMARY = Text("Summary", "概览")
SITES = Text("Places that mean CUDA", "涉及 CUDA 的位置")
AUTOMATIC = Text("Done automatically", "自动完成")
AUTOMATIC_SHARE = Text("Share done automatically", "自动完成比例")
TO_DECIDE = Text("You decide", "需要您决定")
UNSUPPORTED = Text("Not supported", "不支持")
UNKNOWN = Text("Unknown", "未知")
RISKS = Text("Risks", "风险")
LEFT = Text("Left as is", "保持原样")
FILES_SEEN = Text("Files seen", "扫描的文件")
FILES_CHANGED = Text("Files changed", "修改的文件")
FILES_TO_CHANGE = Text("Files to change", "需要修改的文件")
FILES_ADDED = Text("Files added", "新增的文件")
FILES_FAILED = Text("Files not processed", "未能处理的文件")
RULES = Text("Rules", "规则")
RULE = Text("Rule", "规则")
ABOUT = Text("About", "说明")
FINDINGS = Text("Findings", "发现")
FILES = Text("Files", "文件")
FILE = Text("File", "文件")
KIND_COLUMN = Text("Kind", "类别")
LINE = Text("Line", "行")
COLUMN = Text("Column", "列")
BEFORE = Text("Before", "修改前")
AFTER = Text("After", "修改后")
MESSAGE = Text("Message", "说明")
VENDOR = Text("Vendor", "厂商")
LINK = Text("Link", "链接")
STATUS_COLUMN = Text("Status", "状态")
REASON = Text("Reason", "原因")
TOTAL = Text("Total", "合计")
NEEDS_ATTENTION = Text("Needs attention", "需要关注")
NOTHING_FOUND = Text("Nothing in this project means CUDA.", "此项目中没有涉及 CUDA 的代码。")
NOTHING_TO_DO = Text("Nothing needs your attention.", "没有需要您处理的内容。")
AS_AT = Text("the same as at {place}", "同 {place}")
AND_MORE = Text("and {count} more; --verbose shows all", "还有 {count} 条；使用 --verbose 查看全部")
ROWS_LEFT_OUT = Text(
    "{count} more findings do not fit into a sheet", "另有 {count} 条发现超出工作表的行数限制"
)

# Words that only the HTML page uses; it holds both languages and switches between them.
PAGE = {
    "all_files": Text("All files", "全部文件"),
    "all_rules": Text("All rules", "全部规则"),
    "search": Text("Search code, messages, files, rules", "搜索代码、说明、文件、规则"),
    "search_label": Text("Search", "搜索"),
    "clear": Text("Clear filters", "清除筛选"),
    "tab_findings": Text("Findings", "发现"),
    "tab_files": Text("Files and changes", "文件与改动"),
    "views": Text("Views", "视图"),
    "filters": Text("Filters", "筛选"),
    "language": Text("Language", "语言"),
    "show_more": Text("Show {count} more", "再显示 {count} 条"),
    "remaining": Text("{count} left", "剩余 {count} 条"),
    "no_match": Text("Nothing matches these filters.", "没有符合筛选条件的内容。"),
    "no_findings": Text(
        "Nothing in this project means CUDA: there is nothing to convert.",
        "此项目中没有涉及 CUDA 的代码，无需转换。",
    ),
    "no_diff": Text("No line of this file changes.", "此文件没有改动的行。"),
    "elsewhere": Text("Elsewhere in this file", "此文件的其他位置"),
    "old_code": Text("Before", "修改前"),
    "new_code": Text("After", "修改后"),
    "line": Text("line", "行"),
    "source": Text("Source", "来源"),
    "expand_all": Text("Expand shown", "展开当前"),
    "collapse_all": Text("Collapse all", "全部折叠"),
    "explain": Text("Explain changes", "显示说明"),
    "of_sites": Text("of {count} places", "共 {count} 处"),
    "percent_automatic": Text("automatic", "自动完成"),
    "files_line": Text(
        "{seen} files seen · {changed} changed · {failed} not processed",
        "扫描 {seen} 个文件 · 修改 {changed} 个 · 未处理 {failed} 个",
    ),
    "files_line_scan": Text(
        "{seen} files seen · {changed} to change · {failed} not processed",
        "扫描 {seen} 个文件 · 需修改 {changed} 个 · 未处理 {failed} 个",
    ),
    "chart": Text("How the places divide", "各类位置的占比"),
    "made_by": Text("Made by {tool}", "由 {tool} 生成"),
    "skip": Text("Skip to the findings", "跳到发现列表"),
    "open_file": Text("Show in the file", "在文件中查看"),
    "hunks_more": Text("Show more of this file", "显示此文件的更多改动"),
}
