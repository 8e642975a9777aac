"""Run a vendor's own plugin on this machine without the vendor's hardware: fetch it, build what stands for its toolkit."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.cli import options
from torchferry.cli.output import say, write
from torchferry.errors import RunError
from torchferry.text import Text
from torchferry.vendors.registry import get_vendor, vendor_names

if TYPE_CHECKING:
    from torchferry.vendors.model import Vendor

_COMMAND = "ferry emulate"
_SETUP, _INFO, _REMOVE = "setup", "info", "remove"
_DOES = {
    _SETUP: "fetch the plugin that fits the installed PyTorch into a folder of TorchFerry's own, and build the libraries",
    _INFO: "say what is set up, and where",
    _REMOVE: "remove what was fetched and built",
}
_EPILOG = """The plugin never becomes part of your environment: where it is installed and the vendor's toolkit is not, every
`import torch` fails. Then: ferry run --to VENDOR --emulate SCRIPT

exit codes: 0 fine; 1 `info`: it is not set up; 2 bad usage, or it can't be set up here"""

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `ferry emulate`."""
    parser.usage = "ferry emulate (setup | info | remove) [--to VENDOR] [OPTIONS]"
    parser.epilog = _EPILOG
    parser.add_argument(
        "verb",
        choices=tuple(_DOES),
        metavar="VERB",
        help="; ".join(f"{verb}: {does}" for verb, does in _DOES.items()),
    )
    options.add_to(parser, "whose plugin (default: the only vendor that can be emulated)")
    parser.add_argument(
        "--wheel",
        type=Path,
        metavar="FILE",
        help="with setup: take this wheel of the plugin instead of fetching one, as on a machine without a network",
    )
    options.add_vendor_path(parser)
    options.add_quiet(parser, "no progress and no remarks on stderr")
    options.add_language(parser)


def run(args: argparse.Namespace) -> int:
    """Set up, tell or remove."""
    from torchferry.emulate.plugins import refuse_without_emulation

    if args.wheel is not None and args.verb != _SETUP:
        raise RunError("--wheel: only with setup; leave it out")
    if not args.to:
        vendors = (get_vendor(name, args.vendor_path) for name in vendor_names(args.vendor_path))
        can = [vendor.name for vendor in vendors if vendor.emulation.toolkit]
        if len(can) != 1:
            raise RunError(f"whose plugin? ferry emulate {args.verb} --to VENDOR; known are {', '.join(can)}")
        args.to = can[0]
    vendor = get_vendor(args.to, args.vendor_path)
    refuse_without_emulation(vendor)
    if args.verb != _REMOVE:
        return (_set_up if args.verb == _SETUP else _tell)(args, vendor)
    from torchferry.emulate import build, plugins

    gone = [*plugins.remove(vendor), *build.remove()]
    say(args, _COMMAND, *([_REMOVED.format(folder=folder) for folder in gone] or [_NOTHING]))
    return 0


def _set_up(args: argparse.Namespace, vendor: Vendor) -> int:
    from torchferry.building.build import silent
    from torchferry.emulate import build, plugins

    plugin = None if args.wheel is not None else plugins.found(vendor)
    if plugin is None:
        plugin = plugins.set_up(vendor, args.wheel, lambda line: say(args, _COMMAND, Text(line, line)))
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
