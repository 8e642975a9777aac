"""`ferry emulate`: a vendor's own plugin on this machine without the vendor's hardware, and what stands for its toolkit."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.cli import options
from torchferry.cli.grammar import About, Example, Parser
from torchferry.cli.output import say, write
from torchferry.errors import RunError
from torchferry.report.progress import long_task
from torchferry.text import Text
from torchferry.vendors.registry import get_vendor, vendor_names

if TYPE_CHECKING:
    from torchferry.vendors.model import Vendor

_COMMAND = "ferry emulate"
_SETUP, _INFO, _REMOVE = "setup", "info", "remove"
_DOES = {
    _SETUP: Text(
        "Fetch the plugin that fits the installed PyTorch into TorchFerry's own folder, and build the libraries",
        "将与已安装 PyTorch 匹配的插件下载到 TorchFerry 自己的文件夹，并构建所需的库",
    ),
    _INFO: Text("Show what is set up, and where", "显示已安装的内容及其位置"),
    _REMOVE: Text("Remove what was fetched and built", "删除已下载和构建的内容"),
}
ABOUT = About(
    Text(
        "The vendor's plugin runs on libraries that stand for its toolkit and compute on the CPU. It never becomes part "
        "of your environment: where a plugin is installed without its toolkit, every `import torch` fails.",
        "厂商插件运行在代替其工具包、在 CPU 上计算的库之上。它不会进入您的环境：只装插件而没有工具包时，每次 `import torch` "
        "都会失败。",
    ),
    (
        Example(
            "ferry emulate setup --to ascend", Text("Set up the emulated device once", "首次安装仿真设备")
        ),
        Example(
            "ferry emulate setup --wheel torch_npu.whl",
            Text("The same without a network", "无网络时的安装方式"),
        ),
        Example("ferry emulate info", Text("Show what is set up", "显示已安装的内容")),
    ),
    usage=("(setup | info | remove) [OPTIONS]",),
    exit_codes=(
        ("1", Text("info: the emulated device is not set up", "info：仿真设备尚未安装")),
        (
            "2",
            Text(
                "Wrong usage, or it can't be set up here; nothing was written",
                "用法有误，或无法在本机安装；未写入任何内容",
            ),
        ),
    ),
    page="how-it-works/emulated.md",
)

_IS_SET_UP = Text(
    "{plugin} {version} is set up for {vendor}: ferry run --to {vendor} --emulate SCRIPT",
    "{vendor} 的 {plugin} {version} 已就绪：ferry run --to {vendor} --emulate SCRIPT",
)
_IS_NOT_SET_UP = Text(
    "{vendor}: the emulated device is not set up: ferry emulate setup --to {vendor}",
    "{vendor}：仿真设备尚未设置：ferry emulate setup --to {vendor}",
)
_PLUGIN = Text("plugin     {version}  {folder}", "插件       {version}  {folder}")
_NO_PLUGIN = Text("plugin     none that fits torch {torch}", "插件       没有适合 torch {torch} 的")
_LIBRARIES = Text("libraries  {folder}", "库         {folder}")
_NO_LIBRARIES = Text("libraries  not built", "库         尚未构建")
_DEVICE = Text("device     {devices} x {card}, {memory}", "设备       {devices} x {card}，{memory}")
_REMOVED = Text("removed: {folder}", "已删除：{folder}")
_NOTHING = Text("there was nothing to remove", "没有可删除的内容")


def add_arguments(parser: Parser) -> None:
    """The options of `ferry emulate`."""
    for verb, summary in _DOES.items():
        _add_options(parser.verb(verb, summary, replace(ABOUT, usage=(), sections=()), dest="verb"), verb)


def _add_options(parser: Parser, verb: str) -> None:
    text = Text(
        "Vendor whose plugin is meant (default: the only one that can be emulated)",
        "使用哪个厂商的插件（默认：唯一支持仿真的厂商）",
    )
    options.add_to(parser, text)
    parser.set_defaults(wheel=None)
    if verb == _SETUP:
        text = Text(
            "Use this wheel of the plugin instead of fetching one, for machines without a network",
            "使用该插件 wheel 而不下载，适用于无网络的机器",
        )
        parser.add("--wheel", type=Path, metavar="FILE", text=text)
    options.add_vendor_path(parser)
    options.add_quiet(parser)
    options.add_language(parser)


def run(args: argparse.Namespace) -> int:
    """Set up, tell or remove."""
    from torchferry.emulate.plugins import refuse_without_emulation

    if not args.to:
        vendors = (get_vendor(name, args.vendor_path) for name in vendor_names(args.vendor_path))
        can = [vendor.name for vendor in vendors if vendor.emulation.toolkit]
        if len(can) != 1:
            raise RunError(
                Text(
                    f"which vendor? ferry emulate {args.verb} --to VENDOR; known: {', '.join(can)}",
                    f"哪个厂商的插件？ferry emulate {args.verb} --to VENDOR；可选：{', '.join(can)}",
                )
            )
        args.to = can[0]
    vendor = get_vendor(args.to, args.vendor_path)
    refuse_without_emulation(vendor)
    if args.verb != _REMOVE:
        return (_set_up if args.verb == _SETUP else _tell)(args, vendor)
    from torchferry.emulate import build, plugins

    gone = [*plugins.remove(vendor), *build.remove()]
    say(args, _COMMAND, *([_REMOVED.format(folder=folder) for folder in gone] or [_NOTHING]))
    return 0


_FETCHING = Text("fetching {plugin}", "正在获取 {plugin}")


def _set_up(args: argparse.Namespace, vendor: Vendor) -> int:
    from torchferry.building.build import silent
    from torchferry.emulate import build, plugins

    plugin = None if args.wheel is not None else plugins.found(vendor)
    if plugin is None:
        with long_task(
            _FETCHING.format(plugin=vendor.plugin), args.quiet, language=options.language_of(args)
        ):
            plugin = plugins.set_up(vendor, args.wheel, lambda text: say(args, _COMMAND, text))
    build.library_folder(vendor, plugin.folder, silent if args.quiet else None)
    say(args, _COMMAND, _IS_SET_UP.format(plugin=vendor.plugin, version=plugin.version, vendor=vendor.name))
    return 0


def _tell(args: argparse.Namespace, vendor: Vendor) -> int:
    from torchferry.building.toolchain import find_torch
    from torchferry.emulate import build, plugins
    from torchferry.emulate.environment import settings_for
    from torchferry.units import size

    lines = []
    plugin = plugins.found(vendor)
    folder = build.built_folder(vendor, plugin.folder) if plugin else None
    if plugin is None:
        lines.append(_NO_PLUGIN.format(torch=plugins.release_of(find_torch().version)))
    else:
        lines.append(_PLUGIN.format(version=plugin.version, folder=plugin.folder))
        lines.append(_LIBRARIES.format(folder=folder) if folder else _NO_LIBRARIES)
    if folder is None:
        lines.append(_IS_NOT_SET_UP.format(vendor=vendor.name))
    else:
        device = settings_for(vendor)
        lines.append(_DEVICE.format(devices=device.devices, card=device.card, memory=size(device.memory)))
    language = options.language_of(args)
    write("".join(f"{line.in_language(language)}\n" for line in lines))
    return int(folder is None)
