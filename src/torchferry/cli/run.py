"""`ferry run`: a CUDA program, unchanged, on a vendor's device: the real one if it is here, else the vendor's own plugin on an
emulated one if `ferry emulate setup` has set it up, else a simulated one."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.cli import options
from torchferry.cli.grammar import About, Example, Group, Parser
from torchferry.cli.made import JSON, add_summary_format, stdout_kept, tell_made
from torchferry.cli.output import check_writable, say, write
from torchferry.cli.program import USAGE, add_converted, add_program, add_torchrun, program_of, words_of
from torchferry.errors import RunError
from torchferry.text import Text
from torchferry.vendors.registry import get_vendor, with_card

if TYPE_CHECKING:
    from torchferry.launch.place import DeviceKind, Place
    from torchferry.sim.summary import RunSummary
    from torchferry.vendors.model import Vendor

_OF_THE_LAYER = ("--type-checks", "--capability", "--cuda-version", "--list-redirects")
_OF_SOME_DEVICES = ("native", "converted", "devices", "memory", "card", "strict", "output")
_SIGNALS = 128  # as shells count: exit codes above it are signals


ABOUT = About(
    Text(
        "The names of CUDA mean the vendor's device while the program runs; its files are not changed. Without the "
        "hardware the program runs on the vendor's own plugin with an emulated device, or on a simulated device that "
        "has the vendor's names and limits and computes on the CPU.",
        "程序运行期间，CUDA 的名称指向厂商设备；程序文件不变。没有硬件时，程序在仿真设备上用厂商自己的插件运行，或在模拟设备上"
        "运行：它具有厂商的名称和限制，在 CPU 上计算。",
    ),
    (
        Example(
            "ferry run --to ascend train.py --epochs 1",
            Text("Run a script with its arguments", "运行脚本并传入参数"),
        ),
        Example(
            "ferry run --to ascend --sim --nproc 2 train.py",
            Text("Two processes on simulated devices", "在模拟设备上运行两个进程"),
        ),
        Example(
            "ferry run --to npu --list-redirects",
            Text("List what CUDA's names become", "列出 CUDA 名称对应的内容"),
        ),
    ),
    usage=(f"--to VENDOR {USAGE}",),
    exit_codes=(
        (
            "0",
            Text(
                "The program ended with 0; any other code of the program is passed on",
                "程序以 0 结束；其他退出码原样返回",
            ),
        ),
    ),
    page="how-to/run.md",
)


def add_arguments(parser: Parser) -> None:
    """The options of `ferry run`."""
    add_program(parser, "--module")
    text = Text(
        "Vendor whose device is used, by name or device type (default: the variable TORCHFERRY_TO)",
        "使用哪个厂商的设备，可用名称或设备类型（默认：环境变量 TORCHFERRY_TO）",
    )
    options.add_to(parser, text)
    options.add_vendor_path(parser)
    options.add_quiet(parser)
    text = Text("Do not explain a crash after its traceback", "程序崩溃时不在回溯之后给出解释")
    options.add_switch(parser, "--no-diagnosis", text)
    text = Text(
        "Stop the program after N steps (default: it runs to its end)",
        "运行 N 步后停止程序（默认：运行到结束）",
    )
    options.add_steps(parser, text, default=None)
    add_summary_format(parser)
    options.add_language(parser)
    _add_redirection(parser.group(Text("What CUDA's names mean", "CUDA 名称的含义")))
    _add_device(parser.group(Text("Simulated or emulated device", "模拟设备或仿真设备")))
    add_torchrun(parser)


def _add_redirection(group: Group) -> None:
    add_converted(group)
    text = Text(
        "What device.type equals: `cuda` and the vendor's type (both, default), or the vendor's type alone (vendor)",
        "device.type 等于什么：`cuda` 和厂商类型均可（both，默认），或仅厂商类型（vendor）",
    )
    group.add("--type-checks", choices=("both", "vendor"), text=text)
    text = Text(
        "Answer of get_device_capability (default: 8.0, a GPU with bfloat16)",
        "get_device_capability 的返回值（默认：8.0，即支持 bfloat16 的 GPU）",
    )
    group.add("--capability", metavar="X.Y", text=text)
    text = Text("Value of torch.version.cuda (default: unchanged)", "torch.version.cuda 的值（默认：不变）")
    group.add("--cuda-version", metavar="X.Y", text=text)
    text = Text(
        "List what is redirected; works without PROGRAM, and runs it if there is one",
        "列出被重定向的内容；无需 PROGRAM，若给出则随后运行",
    )
    options.add_switch(group, "--list-redirects", text, old=("--explain",))


def _add_device(group: Group) -> None:
    options.add_means(group)
    text = Text(
        "With --emulate: redirect CUDA's names with the vendor's own migration, not with TorchFerry's",
        "配合 --emulate：用厂商自带的迁移功能而非 TorchFerry 重定向 CUDA 名称",
    )
    options.add_switch(group, "--native", text)
    text = Text(
        "Number of devices (default: as many as a typical server of the vendor)",
        "设备数（默认：与该厂商的典型服务器相同）",
    )
    options.add_devices(group, text)
    text = Text(
        "Memory of each device: 32GiB, 512MiB or a number of bytes (default: that of a typical device)",
        "每个设备的显存：32GiB、512MiB 或字节数（默认：典型设备的显存）",
    )
    options.add_memory(group, text)
    text = Text(
        "With --sim: another card of the vendor; `ferry vendors NAME` lists them",
        "配合 --sim：该厂商的其他型号；`ferry vendors NAME` 列出全部",
    )
    group.add("--card", metavar="NAME", text=text)
    text = Text(
        "With --sim: raise an error for a missing operator instead of falling back to the CPU",
        "配合 --sim：遇到缺失算子时报错，而不回退到 CPU",
    )
    options.add_switch(group, "--strict", text)
    text = Text("Write what the run used of the device to FILE.json", "将运行对设备的使用情况写入 FILE.json")
    group.add("-o", "--output", old=("--summary",), type=Path, metavar="FILE.json", text=text)


def run(args: argparse.Namespace) -> int:
    """Run the program, or only say what would be changed for it; the answer is an exit code."""
    from torchferry import variables
    from torchferry.building.build import silent
    from torchferry.launch import plugin
    from torchferry.launch.program import run_at
    from torchferry.settings import environment_kept

    name = args.to or os.environ.get(variables.TO)
    if not name:
        raise RunError(
            Text(
                f"which device? ferry run --to VENDOR SCRIPT, options come before the script; or set {variables.TO}",
                f"哪种设备？ferry run --to VENDOR SCRIPT（选项写在脚本之前），或设置 {variables.TO}",
            )
        )
    vendor = with_card(get_vendor(name, args.vendor_path), args.card)
    choice = plugin.choose(vendor, args.sim, args.emulate, may_emulate=not (args.strict or args.card))
    plugin.refuse_unfit(vendor, choice.kind, {name: getattr(args, name) for name in _OF_SOME_DEVICES})
    if words_of(args) or not args.list_redirects:
        program = program_of(args, "ferry run --to VENDOR (SCRIPT | -m MODULE)")
    if args.output:
        check_writable(args.output)
    place = _place(args, vendor, choice.kind)
    if args.list_redirects:
        from torchferry.launch.environment import environment_at
        from torchferry.launch.explain import explain

        # on stdout; on stderr if a program is to have stdout for itself
        stream = None if not words_of(args) else sys.stderr.fileno()
        code = explain(environment_at(place), stream).exit_code
        if code or not words_of(args):
            return code
    if choice.reason is not None:
        say(args, "torchferry", choice.reason)
    # How the program's processes are to speak about a crash: they inherit our environment.
    wishes = {variables.DIAGNOSIS: "0"} if args.no_diagnosis or args.quiet else {}
    if args.lang:
        wishes["TORCHFERRY_LANG"] = args.lang
    with environment_kept():
        os.environ.update(wishes)
        with stdout_kept(args):
            summary = run_at(place, program, silent if args.quiet else None, args.steps)
        _show(args, place, summary)
    code = summary.outcome.exit_code
    if code > _SIGNALS and not args.no_diagnosis:  # the program could not say anything itself
        from torchferry.explanation.explaining import explain_exit

        said = explain_exit(code, vendor)
        if said is not None:
            say(args, "torchferry", said)
    return code


_UNREDIRECTED = Text(
    "{chosen}: not with --converted, where nothing is redirected; leave one out",
    "{chosen}：不能与不做重定向的 --converted 同用；请去掉一个",
)
_BY_VENDOR = Text(
    "{chosen}: not with --native, where the vendor redirects; leave one out",
    "{chosen}：不能与由厂商重定向的 --native 同用；请去掉一个",
)


def _place(args: argparse.Namespace, vendor: Vendor, kind: DeviceKind) -> Place:
    from torchferry.launch.place import Place
    from torchferry.runtime.settings import LayerSettings, TypeChecks

    chosen = [name for name in _OF_THE_LAYER if getattr(args, name[2:].replace("-", "_"))]
    paths, layer = options.vendor_paths(args), None
    if not args.converted and not args.native:
        checks = TypeChecks(args.type_checks or TypeChecks.BOTH)
        layer = LayerSettings(vendor.name, paths, checks, args.capability or "", args.cuda_version or "")
    elif chosen:
        why = _UNREDIRECTED if args.converted else _BY_VENDOR
        raise RunError(why.format(chosen=", ".join(chosen)))
    place = Place(
        kind,
        vendor,
        paths,
        args.devices,
        args.memory,
        converted=args.converted,
        redirection=layer,
        native=args.native,
        strict=args.strict,
    )
    place.machine()  # if there can be none, that is all to be said
    return place


def _show(args: argparse.Namespace, place: Place, summary: RunSummary) -> None:
    from torchferry.files.aside import write_whole
    from torchferry.launch.place import DeviceKind
    from torchferry.sim.summary import LEFT_RUNNING, to_json, to_text

    if place.kind is DeviceKind.REAL:
        if summary.outcome.left_running:
            say(args, "torchferry", LEFT_RUNNING.format(count=summary.outcome.left_running))
        tell_made(args, "run", summary.outcome.exit_code, vendor=place.vendor_name, device=place.kind.value)
        return
    if args.output:
        write_whole(args.output, to_json(summary).encode())
    if args.format == JSON:
        write(to_json(summary))
    elif not args.quiet:
        print(to_text(summary, options.language_of(args)), file=sys.stderr)
