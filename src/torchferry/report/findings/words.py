"""The words of the reports in English and Chinese; findings bring their own sentences."""

from __future__ import annotations

from torchferry.finding import Kind, Severity
from torchferry.outcome import FileStatus
from torchferry.report.records import BAD, DOUBT, GOOD, QUIET, RISK, UNCLEAR, Grade
from torchferry.text import Text, joined_chinese

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
SEVERITY = {
    Severity.BLOCKER: Grade(
        Text("blocker", "阻塞项"),
        BAD,
        meaning=Text(
            "The program can't run on the target until this is replaced, and nothing replaces it as it is.",
            "替换之前程序无法在目标上运行，且没有可直接使用的替代。",
        ),
    ),
    Severity.DECISION: Grade(
        Text("decision", "待决定"),
        DOUBT,
        meaning=Text("You choose; each entry says what to do.", "需要您决定；每一条都说明了该做什么。"),
    ),
    Severity.CHECK: Grade(
        Text("check once", "待检查"),
        RISK,
        meaning=Text(
            "Works as far as public sources tell; look at it once.", "据公开资料可以工作；请检查一次。"
        ),
    ),
    Severity.NOTE: Grade(
        Text("note", "说明"),
        QUIET,
        meaning=Text("Nothing to do; the reason is given.", "无需处理，并说明原因。"),
    ),
    Severity.DONE: Grade(Text("done", "已完成"), GOOD, meaning=Text("Converted for you.", "已为您转换。")),
}
SEVERITY_HEADING = {
    Severity.BLOCKER: Text("Blockers", "阻塞项"),
    Severity.DECISION: Text("Decisions", "待决定"),
    Severity.CHECK: Text("Check once", "待检查"),
    Severity.NOTE: Text("Notes", "说明"),
    Severity.DONE: Text("Done", "已完成"),
}
# One, and several; Chinese has one form.
_COUNTED = {
    Severity.BLOCKER: (
        Text("{count} blocker", "{count} 个阻塞项"),
        Text("{count} blockers", "{count} 个阻塞项"),
    ),
    Severity.DECISION: (
        Text("{count} decision", "{count} 个待决定"),
        Text("{count} decisions", "{count} 个待决定"),
    ),
    Severity.CHECK: (Text("{count} to check once", "{count} 个待检查"),) * 2,
    Severity.NOTE: (Text("{count} note", "{count} 条说明"), Text("{count} notes", "{count} 条说明")),
    Severity.DONE: (
        Text("{count} place done", "已完成 {count} 处"),
        Text("{count} places done", "已完成 {count} 处"),
    ),
}
_AUTOMATIC = (
    Text("{count} place is automatic", "{count} 处可自动完成"),
    Text("{count} places are automatic", "{count} 处可自动完成"),
)
IN_FILES = (
    Text("{what} in {count} file", "{count} 个文件中有 {what}"),
    Text("{what} in {count} files", "{count} 个文件中有 {what}"),
)
NO_WORK = Text("Nothing to decide", "没有需要决定的内容")
_ABOUT = Text("about {time}", "约 {time}")
_MINUTES = Text("{count} min", "{count} 分钟")
_HOUR, _HOURS = Text("1 hour", "1 小时"), Text("{count} hours", "{count} 小时")
_HALF_A_DAY, _DAY = Text("half a day", "半天"), Text("1 day", "1 天")
_DAYS, _WEEKS = Text("{count} days", "{count} 天"), Text("{count} weeks", "{count} 周")
MINUTES_A_DAY = 8 * 60
_DAYS_A_WEEK = 5


def counted(severity: Severity, count: int, command: str = "convert") -> Text:
    """So many of a severity: 3 blockers, 109 places done."""
    forms = _AUTOMATIC if severity is Severity.DONE and command == "scan" else _COUNTED[severity]
    return forms[count != 1].format(count=f"{count:,}")


def listed(several: list[Text]) -> Text:
    """One after the other."""
    return Text(", ".join(each.en for each in several), "、".join(each.zh for each in several))


def work_time(minutes: int) -> Text:
    """How long a person works, as roughly as it is known: 20 min, 2 hours, half a day, 3 days, 2 weeks."""
    if minutes < 55:
        return _MINUTES.format(count=max(5 * round(minutes / 5), 5))
    hours = round(minutes / 60)
    if hours <= 2:
        return _HOUR if hours == 1 else _HOURS.format(count=hours)
    if minutes < MINUTES_A_DAY * 0.75:
        return _HALF_A_DAY
    days = round(minutes / MINUTES_A_DAY)
    if days < 2 * _DAYS_A_WEEK:
        return _DAY if days <= 1 else _DAYS.format(count=days)
    return _WEEKS.format(count=f"{round(days / _DAYS_A_WEEK):,}")


def about_time(minutes: int) -> Text:
    """The same in a sentence."""
    return joined_chinese(_ABOUT.format(time=work_time(minutes)))


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
SITES = Text("Places that use CUDA", "涉及 CUDA 的位置")
AUTOMATIC = Text("Done automatically", "自动完成")
AUTOMATIC_SHARE = Text("Share done automatically", "自动完成比例")
TO_DECIDE = Text("You decide", "需要您决定")
UNSUPPORTED = Text("Not supported", "不支持")
UNKNOWN = Text("Unknown", "未知")
RISKS = Text("Risks", "风险")
LEFT = Text("Left as is", "保持原样")
FILES_READ = (Text("{count} file", "{count} 个文件"), Text("{count} files", "{count} 个文件"))
FILES_SEEN = Text("Files seen", "扫描的文件")
FILES_CHANGED = Text("Files changed", "修改的文件")
FILES_TO_CHANGE = Text("Files to change", "需要修改的文件")
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
WHY = Text("Why", "原因")
DO = Text("What to do", "处理方法")
PLACES = Text("Places", "位置")
EFFORT = Text("Effort", "工作量")
EFFORT_ONCE, EFFORT_EACH = Text("Minutes, once", "一次性分钟数"), Text("Minutes, each place", "每处分钟数")
TITLE_COLUMN, SOURCE_LINE = Text("Finding", "发现"), Text("Line of code", "代码行")
SEVERITY_COLUMN = Text("Severity", "严重程度")
CAUSE = Text("Cause", "原因")
NOTHING_FOUND = Text("No code in this project uses CUDA.", "此项目中没有涉及 CUDA 的代码。")
AND_MORE_PLACES = Text("{places} and {rest} more", "{places} 及另外 {rest} 处")
MORE_CAUSES = Text(
    "… {count} more: {what}; --verbose lists all", "…… 另有 {count} 项：{what}；--verbose 列出全部"
)
ROWS_LEFT_OUT = Text(
    "{count} more findings do not fit into a sheet", "另有 {count} 条发现超出工作表的行数限制"
)

# Words that only the page uses.
TAB_WORK, TAB_FILES = Text("Work list", "工作清单"), Text("Files and changes", "文件与改动")
SEARCH = Text("Search code, messages, files, rules", "搜索代码、说明、文件、规则")
SEARCH_LABEL, CLEAR = Text("Search", "搜索"), Text("Clear filters", "清除筛选")
EXPORT = Text("Export ticks", "导出勾选")
FILES_LINE = Text(
    "{seen} files read, {changed} changed, {failed} not processed",
    "读取 {seen} 个文件，修改 {changed} 个，未处理 {failed} 个",
)
FILES_LINE_SCAN = Text(
    "{seen} files read, {changed} to change, {failed} not processed",
    "读取 {seen} 个文件，需修改 {changed} 个，未处理 {failed} 个",
)
PAGE = {
    "why": Text("Why:", "原因："),
    "do": Text("What to do:", "处理方法："),
    "place": Text("1 place", "1 处"),
    "places_one": Text("{count} places in 1 file", "1 个文件中的 {count} 处"),
    "all_rules": Text("All rules", "全部规则"),
    "places": Text("{count} places in {files} files", "{files} 个文件中的 {count} 处"),
    "ticked": Text("{count} ticked off", "已勾选 {count} 处"),
    "tick": Text("Tick off {place}", "勾选 {place}"),
    "open": Text("{count} open", "{count} 处待处理"),
    "show_more": Text("Show {count} more ({left} left)", "再显示 {count} 条（剩余 {left} 条）"),
    "no_match": Text("Nothing matches these filters.", "没有符合筛选条件的内容。"),
    "no_diff": Text("No line of this file changes.", "此文件没有改动的行。"),
    "elsewhere": Text("Elsewhere in this file", "此文件的其他位置"),
    "old_code": Text("Before", "修改前"),
    "new_code": Text("After", "修改后"),
    "line": Text("line {count}", "第 {count} 行"),
    "source": Text("Source", "来源"),
    "expand_all": Text("Expand", "展开"),
    "collapse_all": Text("Collapse", "折叠"),
    "sort_decide": Text("Sort by most to decide", "按待处理数量排序"),
    "sort_folders": Text("Sort by folder", "按文件夹排序"),
    "hide_trivial": Text("Hide trivial rewrites", "隐藏简单改写"),
    "explain": Text("Explain changes", "显示说明"),
    "show_findings": Text("Show its findings", "查看其发现"),
    "more_about": Text("More about it:", "更多说明："),
    "hunks_more": Text("Show more of this file", "显示此文件的更多改动"),
}
