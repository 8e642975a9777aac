"""`ferry ops`: the operators that a program calls, and which of them a vendor's device has."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry import traces
from torchferry.cli import options
from torchferry.cli.grammar import About, Example, Group, Parser
from torchferry.cli.output import check_reports, exit_code, need, report_options, show
from torchferry.cli.program import (
    USAGE,
    add_converted,
    add_device,
    add_program,
    add_torchrun,
    program_of,
)
from torchferry.errors import RunError
from torchferry.report.progress import beside_program, long_task
from torchferry.text import Text
from torchferry.vendors.registry import get_vendor, vendor_names

if TYPE_CHECKING:
    from torchferry.launch.place import Place
    from torchferry.readiness.model import Capture
    from torchferry.vendors.model import Vendor


ABOUT = About(
    Text(
        "Runs a program for one step, or calls a model, and asks the vendors' tables for every operator: its own "
        "kernel, a fallback to the CPU, or missing; what to write instead is said with it. A trace or an earlier "
        "capture will do as well.",
        "运行程序一步或调用模型，针对每个算子查询厂商的算子表：有自己的 kernel、回退到 CPU，还是缺失，并给出替代写法。也可以使用 "
        "trace 或先前的采集结果。",
    ),
    (
        Example(
            "ferry ops --to ascend,cambricon train.py",
            Text("Compare two vendors for one step of a program", "针对程序的一步比较两个厂商"),
        ),
        Example(
            "ferry ops --to all --model net.py:build --input 8x3x224x224 --backward",
            Text("Check a model without a program", "检查模型，无需程序"),
        ),
        Example(
            "ferry ops --to npu --trace trace.json -o ops.html",
            Text("Check what a profiler recorded", "检查性能采集中的算子"),
        ),
    ),
    usage=(
        f"--to VENDOR[,VENDOR...] {USAGE}",
        "--to VENDOR[,VENDOR...] [OPTIONS] --model PACKAGE.MODULE:FACTORY --input SHAPE ...",
        "--to VENDOR[,VENDOR...] [OPTIONS] (--trace | --capture) FILE",
    ),
    exit_codes=(
        (
            "1",
            Text(
                "With --check: an operator is missing, falls back to the CPU or is limited",
                "使用 --check 时：有算子缺失、回退到 CPU 或受限",
            ),
        ),
        (
            "3",
            Text(
                "The program failed before its end; no problem was found until then",
                "程序中途失败；在此之前未发现问题",
            ),
        ),
    ),
    page="how-to/operators.md",
)


def add_arguments(parser: Parser) -> None:
    """The options of `ferry ops`."""
    add_program(parser, "--module")
    text = Text(
        "Vendors by name or device type, separated by commas, or `all`; VENDOR@VERSION selects a version of the "
        "vendor's plugin. May also follow the program's arguments, with further options of `ferry ops` after it",
        "厂商名称或设备类型，以逗号分隔，或 `all`；VENDOR@VERSION 指定厂商插件的版本。也可以写在程序参数之后，其后可继续写 "
        "`ferry ops` 的选项",
    )
    options.add_to(parser, text, metavar="VENDOR[,VENDOR]")
    options.add_vendor_path(parser)
    _add_of_program(parser.group(Text("A program", "程序")))
    _add_of_model(parser.group(Text("A model without a program", "不带程序的模型")))
    group = parser.group(Text("An earlier recording", "先前的记录"))
    text = Text(
        "Read a trace of torch.profiler (.json, .json.gz), or the table that it prints",
        "读取 torch.profiler 的 trace（.json、.json.gz）或其输出的表格",
    )
    group.add("--trace", type=Path, metavar="FILE", text=text)
    text = Text(
        "Read a .json file written by `ferry ops -o`, and judge it again",
        "读取 `ferry ops -o` 写出的 .json 文件并重新判断",
    )
    group.add("--capture", type=Path, metavar="FILE", text=text)
    group = parser.group(options.REPORTS)
    options.add_outputs(group, ".json .html .xlsx .md .csv .txt")
    options.add_format(group, ("text", "json", "md", "csv", "xlsx", "html"))
    options.add_verbose(group)
    text = Text(
        "an operator is missing, falls back to the CPU or is limited on one of the vendors",
        "某个厂商有算子缺失、回退到 CPU 或受限",
    )
    options.add_check(group, text)
    options.add_quiet(group)
    options.add_language(parser)
    add_torchrun(parser)


def _add_of_program(group: Group) -> None:
    text = Text(
        "Stop the program after N steps, not counting those that a GradScaler skips; `all` runs it to its end (default: 1)",
        "运行 N 步后停止程序，不计 GradScaler 跳过的步；`all` 表示运行到结束（默认：1）",
    )
    options.add_steps(group, text)
    sim = Text(
        "Run on the simulated device of the first vendor instead of the CPU",
        "在第一个厂商的模拟设备上运行，而非 CPU",
    )
    emulate = Text(
        "Run on the first vendor's own plugin with an emulated device instead of the CPU",
        "在仿真设备上用第一个厂商自己的插件运行，而非 CPU",
    )
    options.add_means(group, sim, emulate)
    add_converted(group)
    add_device(group)
    text = Text(
        "Stop the program after SECONDS and report what was seen (default: no limit)",
        "超过 SECONDS 秒后停止程序并报告已采集的内容（默认：不限时）",
    )
    options.add_timeout(group, text)


def _add_of_model(group: Group) -> None:
    options.add_model(group, "8x3x224x224, 4x128:int64:ints(0,30000), mask=4x128:bool")
    options.add_switch(
        group,
        "--backward",
        Text("Do a training step: loss, backward pass, optimizer", "执行一个训练步：损失、反向传播、优化器"),
    )
    text = Text(
        "Loss as package.module:function of output and inputs (default: the output's own loss, or gradients of ones)",
        "损失函数 package.module:function，参数为输出和输入（默认：输出自带的损失，或全 1 梯度）",
    )
    group.add("--loss", default="", metavar="FUNCTION", text=text)
    text = Text(
        "With --backward: optimizer of torch.optim (default: SGD)",
        "配合 --backward：torch.optim 中的优化器（默认：SGD）",
    )
    group.add("--optimizer", default="", metavar="NAME", text=text)
    text = Text(
        "Run under autocast; with --backward, float16 also scales gradients (default: float16)",
        "在 autocast 下运行；配合 --backward 时，float16 还会缩放梯度（默认：float16）",
    )
    group.add(
        "--autocast", old=("--amp",), nargs="?", const="float16", choices=("float16", "bfloat16"), text=text
    )
    text = Text(
        "Use shapes only, for models too large to run here: nothing is computed, no time is measured",
        "仅使用形状，适用于过大而无法在本机运行的模型：不计算也不计时",
    )
    options.add_switch(group, "--fake", text)


_TO = "--to"


def run(args: argparse.Namespace) -> int:
    """Capture or read, judge, report; the answer is an exit code."""
    from torchferry.readiness.judge import judge
    from torchferry.readiness.report import REPORTS
    from torchferry.readiness.runs import ENDED_ILL

    _take_options_from_the_end(args)
    asked = _vendors(args)
    _check_sources(args)
    check_reports(REPORTS, args.output)
    capture = _capture(args, [vendor for vendor, _ in asked])
    readinesses = [judge(capture, vendor, version) for vendor, version in asked]
    folder = Path.cwd()  # of the program, whose lines pages show
    for path in args.output:
        REPORTS.write(readinesses, path, report_options(args, everything=False, folder=folder))
    limit = {"limit": None if args.verbose else 30} if args.format == "text" else {"everything": False}
    show(REPORTS, readinesses, args, folder=folder, **limit)
    is_found = args.check and any(readiness.problems for readiness in readinesses)
    return exit_code(is_found=is_found, is_partial=ENDED_ILL in capture.notes)


def _take_options_from_the_end(args: argparse.Namespace) -> None:
    """`ferry ops train.py --epochs 1 --to ascend -o ops.html`: from our own `--to` on, all is ours."""
    places = [place for place, word in enumerate(args.program) if word == _TO or word.startswith(f"{_TO}=")]
    if args.to is not None or not places:
        return
    position = places[-1]
    args.program, ours = args.program[:position], args.program[position:]
    parser = Parser("ferry ops", Text("", ""), ABOUT)
    add_arguments(parser)
    for name, value in vars(parser.parse(ours, args.lang)).items():
        if value == parser.default_of(name) or not value:
            continue
        if name == "program":
            raise RunError(
                Text(
                    f"{value[0]}: unexpected; only options of ferry ops follow --to VENDOR at the end",
                    f"{value[0]}：无法识别；末尾的 --to VENDOR 之后只能是 ferry ops 的选项",
                )
            )
        setattr(args, name, [*getattr(args, name), *value] if isinstance(value, list) else value)


def _vendors(args: argparse.Namespace) -> list[tuple[Vendor, str]]:
    """The vendors, each with the version of its adapter that was asked for."""
    from torchferry.readiness.judge import vendor_table

    names = options.names(args.to or "")
    if names == ["all"]:
        names = list(vendor_names(args.vendor_path))
    if not names:
        raise RunError(
            Text(
                "which devices? ferry ops --to VENDOR[,VENDOR...] SCRIPT",
                "哪些设备？ferry ops --to VENDOR[,VENDOR...] SCRIPT",
            )
        )
    parts = [name.partition("@") for name in names]
    asked = [(get_vendor(name, args.vendor_path), version) for name, _, version in parts]
    for vendor, version in asked:
        vendor_table(vendor, version)  # a version that is not known is said before the run
    return asked


def _check_sources(args: argparse.Namespace) -> None:
    sources = {
        "a program": bool(args.program),
        "--model": bool(args.model),
        "--trace": bool(args.trace),
        "--capture": bool(args.capture),
    }
    given = [name for name, is_given in sources.items() if is_given]
    if not given:
        raise RunError(
            Text(
                "which program? ferry ops --to VENDOR SCRIPT; or --model, --trace, --capture",
                "哪个程序？ferry ops --to VENDOR SCRIPT；或 --model、--trace、--capture",
            )
        )
    if len(given) > 1:
        raise RunError(
            Text(
                f"{' and '.join(given)}: only one of them at a time; leave the others out",
                f"{' 和 '.join(given)}：一次只能使用其中一个；请去掉其他",
            )
        )
    of_models = {
        "--input": args.input,
        "--init": args.init,
        "--backward": args.backward,
        "--autocast": args.autocast,
    }
    of_models |= {"--fake": args.fake, "--loss": args.loss, "--optimizer": args.optimizer}
    wrong = [name for name, value in of_models.items() if value]
    if wrong and not args.model:
        raise RunError(
            Text(
                f"{', '.join(wrong)}: only with --model; the options of a program come after it",
                f"{', '.join(wrong)}：只能与 --model 一起使用；程序的选项写在程序之后",
            )
        )
    if (args.sim or args.emulate) and args.device:
        option = "--sim" if args.sim else "--emulate"
        raise RunError(
            Text(
                f"{option} and --device: only one of them at a time; leave one out",
                f"{option} 和 --device：一次只能使用其中一个；请去掉一个",
            )
        )


_CAPTURING = Text("listing the operators of the program", "正在列出程序的算子")
_CAPTURING_MODEL = Text("listing the operators of the model", "正在列出模型的算子")
_READING = Text("reading the trace", "正在读取 trace")


def _capture(args: argparse.Namespace, vendors: list[Vendor]) -> Capture:
    if args.trace:
        need(traces.EXTRA, *traces.LIBRARIES)
        from torchferry.readiness.trace import read_trace

        with long_task(_READING, args.quiet, language=options.language_of(args)):
            return read_trace(args.trace)
    if args.capture:
        from torchferry.readiness.capture_json import read_capture

        return read_capture(args.capture)
    from torchferry.building.build import silent
    from torchferry.launch.place import build_for
    from torchferry.readiness.models.request import ModelRequest
    from torchferry.readiness.runs import capture_model, capture_program

    place = _place(args, vendors[0])
    if place.vendor is not None:
        build_for(place, silent if args.quiet else None)
    if not args.model:
        program = program_of(args, "ferry ops --to VENDOR SCRIPT [ARGUMENTS]")
        with beside_program(_CAPTURING, args.quiet, options.language_of(args)):
            return capture_program(program, place, args.steps, args.timeout, args.quiet)
    request = ModelRequest(
        args.model,
        tuple(args.input),
        init=args.init,
        backward=args.backward,
        loss=args.loss,
        optimizer=args.optimizer,
        amp=args.autocast or "",
        fake=args.fake,
    )
    with beside_program(_CAPTURING_MODEL, args.quiet, options.language_of(args)):
        return capture_model(request, place if place.vendor is not None else None, args.timeout)


def _place(args: argparse.Namespace, vendor: Vendor) -> Place:
    from torchferry.emulate.plugins import refuse_without_emulation
    from torchferry.launch.place import DeviceKind, Place
    from torchferry.launch.plugin import refuse_without_plugin

    devices = args.nproc or 1
    if args.device:
        return Place(DeviceKind.AS_IS, as_is=args.device)
    if not args.sim and not args.emulate:
        return Place(DeviceKind.REFERENCE, devices=devices)
    if args.emulate:
        refuse_without_emulation(vendor)
    refuse_without_plugin(
        vendor, Text(", name that one first, or leave --sim out", "，并将其放在首位，或去掉 --sim")
    )
    kind = DeviceKind.EMULATED if args.emulate else DeviceKind.SIMULATED
    return Place(kind, vendor, options.vendor_paths(args), devices, converted=args.converted)
