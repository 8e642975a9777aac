"""Reads a vendor's tables from its own plugin, running on the emulated toolkit beside the installed PyTorch, or from a wheel.

python -m tools.read_plugin --to ascend -o plugin.json     the operators and names that this release has
python -m tools.read_plugin --to ascend --check            where the vendor's tables say something else
python -m tools.read_plugin --wheel FILE.whl -o plugin.json           of a release whose PyTorch is not installed
python -m tools.read_plugin --wheel FILE.whl --against plugin.json    where it differs from what was read of it running

`tools.read_list` takes the file over into a vendor's folder: data of a new release is two commands. Exit codes: 0 done,
1 with --check or --against if something differs, 2 bad usage or no plugin.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from torchferry.errors import FerryError
from torchferry.vendors.registry import get_vendor

from .plugin import Plugin
from .running import differences as from_tables
from .running import read
from .wheel import differences as from_running
from .wheel import read_wheel


def main(arguments: list[str] | None = None) -> int:
    """Read, then write or compare."""
    options = _options(arguments)
    vendor = get_vendor(options.to)
    try:
        plugin = _read(options)
    except FerryError as error:
        print(error, file=sys.stderr)
        return 2
    if options.output:
        options.output.write_text(json.dumps(asdict(plugin), indent=1) + os.linesep, "utf-8")
    found = from_tables(vendor, plugin) if options.check else []
    if options.against:
        found += from_running(plugin, json.loads(options.against.read_text("utf-8")))
    counts = f"{len(plugin.operators)} operators, {len(plugin.names)} names, {len(found)} differences"
    print("\n".join([*found, f"{vendor.plugin} {plugin.version} for torch {plugin.torch}: {counts}"]))
    return 1 if found else 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--to", default="ascend", metavar="VENDOR", help="default: %(default)s")
    parser.add_argument(
        "--wheel", type=Path, metavar="FILE.whl", help="read this, or the folder of an unpacked one"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE.json", help="write what the plugin has")
    parser.add_argument(
        "--check", action="store_true", help="compare the running plugin with the vendor's tables"
    )
    parser.add_argument("--against", type=Path, metavar="FILE.json", help="with --wheel: compare with this")
    options = parser.parse_args(arguments)
    if (options.check and options.wheel) or (options.against and not options.wheel):
        parser.error("--check is of the running plugin, --against of a wheel")
    if not (options.output or options.check or options.against):
        parser.error("say -o FILE.json, --check, or --against FILE.json")
    return options


def _read(options: argparse.Namespace) -> Plugin:
    vendor = get_vendor(options.to)
    if options.wheel:
        return read_wheel(options.wheel, vendor)
    from torchferry import emulate

    emulate.activate(options.to, devices=1)
    return read(vendor)


if __name__ == "__main__":
    sys.exit(main())
