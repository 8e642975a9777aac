"""The options that several commands share: each has one name, one meaning, one explanation and one check."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchferry import units
from torchferry.cli.grammar import Group, WrongValue
from torchferry.text import Language, Text, can_show, user_language

if TYPE_CHECKING:
    from torchferry.accuracy.cutting import NumberRange
    from torchferry.vendors.model import Vendor

# Titles of groups that several commands have.
SEVERAL_PROCESSES = Text("Several processes, through torchrun", "多进程（通过 torchrun）")
REPORTS = Text("Reports", "报告")
DEVICE = Text("Device", "设备")

# Whose device.

TO = Text(
    "Target vendor, by name or device type: ascend or npu, cambricon or mlu ...; `ferry vendors` lists them",
    "目标厂商，可用名称或设备类型：ascend 或 npu、cambricon 或 mlu 等；`ferry vendors` 列出全部",
)
TO_SEVERAL = Text(
    "Target vendors, by name or device type, separated by commas; `all` for every vendor",
    "目标厂商，可用名称或设备类型，多个以逗号分隔；`all` 表示全部厂商",
)


def add_to(group: Group, text: Text = TO, required: bool = False, metavar: str = "VENDOR") -> None:
    """Add --to, which names a vendor, or several."""
    group.add("--to", required=required, metavar=metavar, text=text)


def add_vendor_path(group: Group) -> None:
    """Where a user's own vendors are."""
    text = Text(
        "Folder with your own vendor data, or with several such folders",
        "存放自定义厂商数据的文件夹，或包含多个此类文件夹的目录",
    )
    add_repeatable(group, "--vendor-path", "DIR", text, type=Path)


def vendor_of(args: argparse.Namespace) -> Vendor | None:
    """The vendor that --to names, None without it."""
    from torchferry.vendors.registry import get_vendor

    return get_vendor(args.to, args.vendor_path) if args.to else None


def vendor_paths(args: argparse.Namespace) -> tuple[str, ...]:
    """The folders of --vendor-path, for processes that may start elsewhere."""
    return tuple(str(path.resolve()) for path in args.vendor_path)


def names(text: str) -> list[str]:
    """Names that are written with commas, each once."""
    return list(dict.fromkeys(filter(None, (name.strip() for name in text.split(",")))))


_ON_VENDOR = Text(
    "Use a device of this vendor, by name or device type: the real one if its plugin is installed, else a simulated one",
    "使用该厂商的设备，可用名称或设备类型：已安装插件时用真实设备，否则用模拟设备",
)
SIMULATE = Text(
    "Use the simulated device even if the vendor's plugin is installed", "即使已安装厂商插件也使用模拟设备"
)
EMULATE = Text(
    "Use the vendor's own plugin on an emulated device; `ferry emulate setup` installs it",
    "在仿真设备上使用厂商自己的插件；`ferry emulate setup` 负责安装",
)


def add_vendor_device(parser: Group, group: Group) -> None:
    """A vendor's device, the real one or simulated."""
    add_to(group, _ON_VENDOR)
    add_vendor_path(parser)
    add_means(group)


def add_means(group: Group, simulate: Text = SIMULATE, emulate: Text = EMULATE) -> None:
    """A device that is not there in truth: ours, or the vendor's plugin without its hardware."""
    either = group.either()
    add_switch(either, "--sim", simulate)
    add_emulate(either, emulate)


def add_emulate(group: Group, text: Text = EMULATE) -> None:
    """The vendor's plugin without its hardware, where the other ways are not a choice."""
    add_switch(group, "--emulate", text)


def add_devices(group: Group, text: Text) -> None:
    """How many devices a program sees."""
    group.add("--devices", type=at_least_one, metavar="N", text=text)


def add_memory(group: Group, text: Text) -> None:
    """Add --memory, the size of each device."""
    from torchferry.sim.environment import parse_memory

    group.add("--memory", type=parse_memory, metavar="SIZE", text=text)


# How a program or a model is run.


def add_steps(group: Group, text: Text, default: int | None = 1) -> None:
    """After how many steps a program is ended."""
    group.add("--steps", type=steps, default=default, metavar="N", text=text)


def add_first_step(group: Group, text: Text, old: Sequence[str] = ("--from",)) -> None:
    """The step with which something begins."""
    group.add(
        "--first-step", old=old, dest="first_step", type=at_least_one, default=1, metavar="N", text=text
    )


def add_every(group: Group, text: Text, default: int) -> None:
    """Which of the steps are looked at."""
    group.add("--every", type=at_least_one, default=default, metavar="N", text=text)


def add_seed(group: Group, text: Text, default: int | None = None) -> None:
    """What random numbers begin with."""
    group.add("--seed", type=seed, default=default, metavar="N", text=text)


def add_timeout(group: Group, text: Text, default: float | None = None) -> None:
    """How long a program may take."""
    group.add("--timeout", type=seconds, default=default, metavar="SECONDS", text=text)


def add_part(group: Group, text: Text) -> None:
    """A part of a checkpoint in place of all of it."""
    group.add("--part", old=("--only",), dest="only", default="", metavar="PART", text=text)


def add_allow_pickle(group: Group) -> None:
    """The permission to run what a checkpoint names."""
    text = Text(
        "Allow code named in the file to run where it can't be loaded otherwise; only for files you trust",
        "无法以其他方式加载时，允许执行文件中指定的代码；仅用于可信文件",
    )
    add_switch(group, "--allow-pickle", text)


def add_model(group: Group, shapes: str, required: bool = False) -> None:
    """A model without a program, and what it is called with."""
    text = Text(
        "The model: package.module:name or file.py:name of a class, a function that returns a module, or a module",
        "模型：package.module:name 或 file.py:name，可为类、返回模块的函数或模块对象",
    )
    group.add("--model", required=required, metavar="FACTORY", text=text)
    text = Text(
        "Arguments for the factory, for example `num_classes=10, depth=3`",
        "传给 FACTORY 的参数，例如 `num_classes=10, depth=3`",
    )
    group.add("--init", default="", metavar="ARGUMENTS", text=text)
    text = Text("One argument of the model, for example {shapes}", "模型的一个参数，例如 {shapes}").format(
        shapes=shapes
    )
    add_repeatable(group, "--input", "SHAPE", text)


def add_modules(group: Group, text: Text) -> None:
    """Of which modules."""
    add_repeatable(group, "--in-module", "PATTERN", text, old=("--module",), dest="modules")


def add_selection(group: Group) -> None:
    """Which operators, of all that are called."""
    add_modules(
        group,
        Text(
            "Only operators of modules whose path matches, for example layer1.* or *.attn",
            "仅限路径匹配的模块中的算子，例如 layer1.* 或 *.attn",
        ),
    )
    text = Text(
        "Only operators whose name matches, for example aten::convolution*, mm, *norm*",
        "仅限名称匹配的算子，例如 aten::convolution*、mm、*norm*",
    )
    add_repeatable(group, "--op", "PATTERN", text, dest="operators")
    text = Text(
        "Only operators of the forward pass, the backward pass or the optimizer",
        "仅限前向传播、反向传播或优化器中的算子",
    )
    phases = ("forward", "backward", "optimizer")
    add_repeatable(group, "--phase", None, text, dest="phases", choices=phases)


# What is reported, and how.


PAGE_FORMATS = ("text", "json", "md", "csv", "html")  # as which any report that has a page can be printed
SUMMARY_FORMATS = ("text", "json")
VERBOSE = Text("List everything, without a limit", "列出全部内容，不限条数")
QUIET = Text("Print results and errors only: no progress, no remarks", "仅输出结果和错误：不显示进度和提示")
FORCE = Text("Replace a file that exists", "覆盖已存在的文件")


def add_reports(group: Group) -> None:
    """How reports that have a page are printed and written, and in which language."""
    add_format(group)
    add_outputs(group)
    add_language(group)


_FORMAT = Text("Format of the printed report (default: text)", "输出报告的格式（默认：text）")
_JSON = Text("Short for --format json", "等同于 --format json")


def add_format(group: Group, formats: Sequence[str] = PAGE_FORMATS, text: Text = _FORMAT) -> None:
    """How what is printed is written, and --json, its short form."""
    group.add("--format", choices=formats, default="text", text=text)
    add_json(group)


def add_json(group: Group) -> None:
    """The short form of --format json."""
    group.add(
        "--json", dest="format", action="store_const", const="json", default=argparse.SUPPRESS, text=_JSON
    )


def add_outputs(group: Group, suffixes: str = ".txt, .json, .md, .csv, .xlsx, .html") -> None:
    """Add -o, which writes reports as files."""
    text = Text(
        "Write the report to FILE; the suffix selects the format: {suffixes}; repeatable",
        "将报告写入 FILE，由后缀决定格式：{suffixes}；可重复使用",
    )
    text = text.format(suffixes=suffixes)
    group.add("-o", "--output", action="append", type=Path, default=[], metavar="FILE", text=text)


def add_output(group: Group, default: str | None, text: Text, name: str = "FILE") -> None:
    """The one file or folder that a command makes."""
    path = None if default is None else Path(default)
    group.add("-o", "--output", type=Path, default=path, metavar=name, text=text)


_CHECK = Text("Exit with 1 if {when}", "{when}时以退出码 1 结束")


def add_check(group: Group, when: Text) -> None:
    """An exit code that ends a script."""
    add_switch(group, "--check", _CHECK.format(when=when))


def add_verbose(group: Group, old: Sequence[str] = ("--all",)) -> None:
    """A report without a limit."""
    group.add("-v", "--verbose", old=old, dest="verbose", action="store_true", text=VERBOSE)


def add_quiet(group: Group) -> None:
    """Add --quiet."""
    group.add("-q", "--quiet", action="store_true", text=QUIET)


def add_force(group: Group, text: Text = FORCE) -> None:
    """What is there already may be replaced."""
    add_switch(group, "--force", text)


_JOBS = Text(
    "Number of parallel {what} (default: one per processor core)",
    "并行的{what}数（默认：每个处理器核心一个）",
)
PROCESSES = Text("processes", "进程")
THREADS = Text("threads", "线程")


def add_jobs(group: Group, what: Text, default: int, most: int | None = None) -> None:
    """How much is done at once."""
    text = _JOBS.format(what=what)
    group.add("-j", "--jobs", type=whole_number(1, most), default=default, metavar="N", text=text)


_LANG = Text(
    "Language of all output: en or zh (default: TORCHFERRY_LANG, then the locale)",
    "所有输出的语言：en 或 zh（默认：TORCHFERRY_LANG，其次为系统区域设置）",
)


def add_language(group: Group) -> None:
    """The language of what is printed."""
    group.add("--lang", choices=("en", "zh"), text=_LANG)
    add_color(group)


def language_of(args: argparse.Namespace) -> Language:
    """The language of what is printed: the one that --lang names, else the user's; English where the streams lack its
    characters."""
    language: Language = args.lang or user_language()
    return language if can_show(language, sys.stdout, sys.stderr) else "en"


_COLOR = Text(
    "Colors of the printed report (default: auto, which follows the terminal, NO_COLOR and FORCE_COLOR)",
    "输出报告的颜色（默认：auto，即由终端、NO_COLOR 和 FORCE_COLOR 决定）",
)


def add_color(group: Group) -> None:
    """Add --color."""
    group.add("--color", choices=("auto", "always", "never"), default="auto", text=_COLOR)


_REPEATABLE = Text("{text}; repeatable", "{text}；可重复使用")


def add_repeatable(group: Group, flag: str, metavar: str | None, text: Text, **more: Any) -> None:
    """An option that may be given several times; `more` is for `Group.add`."""
    text = _REPEATABLE.format(text=text)
    group.add(flag, action="append", default=[], metavar=metavar, text=text, **more)


def add_switch(group: Group, flag: str, text: Text, old: Sequence[str] = ()) -> None:
    """An option that is given or not."""
    group.add(flag, action="store_true", text=text, old=old)


def chosen(args: argparse.Namespace, kind: type[Any]) -> Any:
    """The options that a function takes as this kind of keywords, by the same names."""
    return {name: getattr(args, name) for name in kind.__annotations__}


# What the words after options mean: whole numbers, steps, seeds, times.

LARGEST_SEED = (1 << 32) - 1  # what PYTHONHASHSEED and numpy take
_AT_LEAST = Text("'{text}' is not a number from {least} on", "'{text}' 不是不小于 {least} 的整数")
_BETWEEN = Text(
    "'{text}' is not a number from {least} to {most}", "'{text}' 不是 {least} 到 {most} 之间的整数"
)
_NO_NUMBERS = Text(
    "'{text}' is no list of numbers from 1 on; write 12, 12-20 or 3,12-20",
    "'{text}' 不是从 1 开始的编号列表；请写成 12、12-20 或 3,12-20",
)
_NO_TIME = Text("'{text}' is not a time; write seconds, such as 600", "'{text}' 不是时间；请写秒数，例如 600")
_NO_SIZE = Text(
    "'{text}' is not a size; write 50GB, 512MB or a number of bytes",
    "'{text}' 不是大小；请写成 50GB、512MB 或字节数",
)
_NOT = Text("'{text}' is not {what}", "'{text}' 不是{what}")


def whole_number(least: int, most: int | None = None) -> Callable[[str], int]:
    """What reads a number in this range, as the `type` of an option."""
    said = _AT_LEAST if most is None else _BETWEEN

    def read(text: str) -> int:
        value = int(text) if text.isascii() and text.isdecimal() else least - 1
        if value < least or (most is not None and value > most):
            raise WrongValue(said.format(text=text, least=least, most=most))
        return value

    return read


at_least_one = whole_number(1)
seed = whole_number(0, LARGEST_SEED)


def number_ranges(text: str) -> tuple[NumberRange, ...]:
    """Numbers and ranges of them, with commas."""
    from torchferry.accuracy.cutting import number_ranges as read

    try:
        return read(text)
    except ValueError:
        raise WrongValue(_NO_NUMBERS.format(text=text)) from None


def steps(text: str) -> int | None:
    """A number of steps; None for `all`."""
    return None if text == "all" else at_least_one(text)


def seconds(text: str) -> float:
    """A time that is more than none."""
    value = number(text)
    if not 0 < value < math.inf:
        raise WrongValue(_NO_TIME.format(text=text))
    return value


def size(text: str) -> int:
    """A number of bytes, more than none."""
    value = units.bytes_of(text)
    if not value:
        raise WrongValue(_NO_SIZE.format(text=text))
    return value


def number(text: str) -> float:
    """NaN where it is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def number_from_zero(most: float, what: Text) -> Callable[[str], float]:
    """What reads a number that is not negative and not above `most`, nor endless."""

    def read(text: str) -> float:
        value = number(text)
        if not 0 <= value <= most or value == math.inf:
            raise WrongValue(_NOT.format(text=text, what=what))
        return value

    return read
