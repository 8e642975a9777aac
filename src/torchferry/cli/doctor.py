"""`ferry doctor`: whether a vendor's device can be used on this machine, what blocks it, what makes the machine slow."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from torchferry.cli import options
from torchferry.cli.grammar import About, Example, Parser
from torchferry.cli.output import check_reports, deliver, report_options, show, write
from torchferry.errors import ReportError
from torchferry.report.progress import beside_program
from torchferry.text import Text

if TYPE_CHECKING:
    from torchferry.examination.host.machine import Machine

ABOUT = About(
    Text(
        "Checks the driver, toolkit and plugin and whether their versions match, device files, libraries, environment "
        "variables, the network and the host. `ferry doctor host` looks only at what costs speed. Nothing is changed, "
        "and no privileges are needed.",
        "检查驱动、工具包、插件及其版本是否匹配，以及设备文件、库、环境变量、网络和主机。`ferry doctor host` 只检查影响速度的"
        "因素。不做任何更改，也不需要特殊权限。",
    ),
    (
        Example("ferry doctor --to ascend", Text("Check the whole machine for Ascend", "为昇腾检查整台机器")),
        Example(
            "ferry doctor host --nproc 8",
            Text("What slows down 8 training processes", "找出拖慢 8 个训练进程的因素"),
        ),
        Example(
            "ferry doctor --format md -o doctor.md",
            Text("A report for a ticket, without private data", "可附在工单中的报告，不含隐私数据"),
        ),
    ),
    exit_codes=(
        (
            "1",
            Text(
                "With --check: the machine is not ready, or this is unknown; with `host`: something costs speed",
                "使用 --check 时：机器未就绪或无法判断；使用 `host` 时：存在影响速度的因素",
            ),
        ),
    ),
    page="how-to/doctor.md",
)


def add_arguments(parser: Parser) -> None:
    """The options of `ferry doctor`."""
    text = Text(
        "host: only what costs speed (default: the whole machine)",
        "host：只检查影响速度的因素（默认：整台机器）",
    )
    parser.add("part", nargs="?", choices=("host",), default=None, metavar="PART", text=text)
    text = Text(
        "Vendor whose device is to be used, by name or device type (default: the one whose software is installed)",
        "要使用哪个厂商的设备，可用名称或设备类型（默认：已安装其软件的厂商）",
    )
    options.add_to(parser, text)
    text = Text(
        "Number of processes that will train on this machine and share its processors (default: 1)",
        "将在本机训练并共享处理器的进程数（默认：1）",
    )
    parser.add("--nproc", type=options.whole_number(1, 1024), default=1, metavar="N", text=text)
    text = Text(
        "Also start a process that imports the plugin and computes on each device",
        "另启动一个进程，导入插件并在每个设备上计算",
    )
    parser.add("--try", dest="trial", action="store_true", text=text)
    text = Text(
        "With --to: check what is needed to run the vendor's plugin on an emulated device",
        "配合 --to：检查在仿真设备上运行厂商插件所需的条件",
    )
    options.add_emulate(parser, text)
    options.add_vendor_path(parser)
    group = parser.group(options.REPORTS)
    options.add_verbose(group)
    options.add_switch(
        group,
        "--fix",
        Text("Print only the commands that fix problems; run none", "只输出修复问题的命令，不执行"),
    )
    options.add_format(group)
    options.add_outputs(group)
    options.add_check(
        group,
        Text(
            "the machine is not ready, or with `host` if something costs speed",
            "机器未就绪（或使用 `host` 且存在影响速度的因素）",
        ),
    )
    options.add_quiet(group)
    options.add_language(parser)


def run(args: argparse.Namespace) -> int:
    """Examine, report; the answer is an exit code."""
    from torchferry.examination.host.machine import this_machine
    from torchferry.examination.report import REPORTS

    check_reports(REPORTS, args.output)
    if args.trial and args.part == "host":
        raise ReportError(
            Text(
                "--try computes on the devices, which `host` does not check; leave one of them out",
                "--try 在设备上计算，而 `host` 不检查设备；请去掉其中一个",
            )
        )
    if args.emulate and (args.part == "host" or not args.to):
        raise ReportError(
            Text(
                "--emulate needs --to VENDOR and works only without `host`",
                "--emulate：哪个厂商？需与 --to VENDOR 一起使用，不能与 `host` 同用",
            )
        )
    if args.fix and args.format != "text":
        raise ReportError(
            Text(
                "--fix prints commands, --format a report; leave one of them out",
                "--fix 输出命令，--format 输出报告；请去掉其中一个",
            )
        )
    machine = this_machine(args.nproc)
    return _host(args, machine) if args.part == "host" else _whole(args, machine)


def _host(args: argparse.Namespace, machine: Machine) -> int:
    from torchferry.examination.examine import examine_host, installed_vendor
    from torchferry.examination.report import HOST_REPORTS, to_script
    from torchferry.report.checks import Status

    vendor = options.vendor_of(args) or installed_vendor(args.vendor_path)
    found = examine_host(machine, vendor, is_guess=not args.to)
    if args.fix:
        write(to_script(found.results, options.language_of(args)))
    else:
        deliver(HOST_REPORTS, found, args, everything=args.verbose or args.format == "md")
    return int(args.check and found.count(Status.COSTS) > 0)


_EXAMINING = Text("examining this machine", "正在检查本机")


def _whole(args: argparse.Namespace, machine: Machine) -> int:
    import socket

    from torchferry.examination.examine import examine_machine
    from torchferry.examination.report import REPORTS, for_strangers, to_script

    with beside_program(_EXAMINING, args.quiet, options.language_of(args)):
        report = examine_machine(
            machine,
            args.to,
            args.vendor_path,
            trial=args.trial,
            emulated=args.emulate,
            everything=args.verbose,
        )
    if args.fix:
        write(to_script(report.results, options.language_of(args)))
        return int(args.check and not report.is_ready)
    stripped = for_strangers(report, machine.environment, socket.gethostname() if report.device else "")
    for path in args.output:  # files are made to be sent
        REPORTS.write(stripped, path, report_options(args, everything=True))
    report = stripped if args.format == "md" else report
    show(REPORTS, report, args, everything=args.verbose or args.format == "md")
    return int(args.check and not report.is_ready)
