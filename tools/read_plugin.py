"""Reads a vendor's tables from its own plugin, running on the emulated toolkit beside the installed PyTorch.

python -m tools.read_plugin --to ascend -o plugin.json     the operators and names that this release has
python -m tools.read_plugin --to ascend --check            where the vendor's tables say something else

In an environment with another release of PyTorch it reads the plugin that fits that one: data of a new release is one
command. Exit codes: 0 done, 1 with --check if something differs, 2 bad usage or no plugin.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torchferry.building.toolchain import find_torch
from torchferry.errors import FerryError
from torchferry.operators import native_functions
from torchferry.vendors.model import Support, Vendor
from torchferry.vendors.ops import load_ops
from torchferry.vendors.registry import get_vendor

_ATEN = "aten::"
_CUDA = "torch.cuda."
# What is there while a program uses it, and what is no name of the module but of its instances.
_NOT_LOOKED_UP = ("torch.nn.", "torch.Tensor.", "torch.UntypedStorage.", "torch.TypedStorage.")


@dataclass(frozen=True)
class Plugin:
    """What a running plugin has."""

    torch: str
    version: str
    operators: tuple[str, ...]  # of ATen, with a kernel for the device
    custom: tuple[str, ...]  # in a library of the vendor's
    autograd: tuple[str, ...]  # with a gradient of the vendor's own
    autocast: tuple[str, ...]
    names: tuple[str, ...]  # torch.<device>.*


def read(vendor: Vendor) -> Plugin:
    """The tables of the plugin in this process."""
    import torch

    module = getattr(torch, vendor.device_type)
    operators = _registered("PrivateUse1")
    return Plugin(
        torch=torch.__version__,
        version=sys.modules[vendor.plugin].__version__,
        operators=tuple(name.removeprefix(_ATEN) for name in operators if name.startswith(_ATEN)),
        custom=tuple(name for name in operators if not name.startswith((_ATEN, "c10d::"))),
        autograd=_registered("AutogradPrivateUse1"),
        autocast=_registered("AutocastPrivateUse1"),
        names=tuple(name for name in sorted(dir(module)) if not name.startswith("_")),
    )


def _registered(key: str) -> tuple[str, ...]:
    import torch

    return tuple(sorted(torch._C._dispatch_get_registrations_for_dispatch_key(key)))


def differences(vendor: Vendor, plugin: Plugin) -> list[str]:
    """Where the vendor's tables and the plugin do not agree, in words."""
    return [*operators_that_differ(vendor, plugin), *_names_that_differ(vendor)]


def operators_that_differ(vendor: Vendor, plugin: Plugin) -> Iterator[str]:
    """The table lists what the public registration has; the plugin registers helpers of its own beside it."""
    release = ".".join(plugin.torch.split(".")[:2])
    ops = load_ops(Path(vendor.folder))
    listed = {name for name in ops.kernels if ops.has_kernel(name, release)}
    yield from (f"{name}: in the table, not registered" for name in sorted(listed - set(plugin.operators)))
    known = _of_pytorch(plugin.operators)
    yield from (f"{name}: registered, not in the table" for name in sorted(known - listed))


def _of_pytorch(names: Iterable[str]) -> set[str]:
    """The operators that PyTorch itself has under these names: not those that the plugin adds to its library."""
    text = (find_torch().torchgen / native_functions.LIST_IN_TORCHGEN).read_text("utf-8")
    return set(names) & set(native_functions.read_native_functions(text))


def _names_that_differ(vendor: Vendor) -> Iterator[str]:
    """A name that the table calls available is there, one that it calls unsupported is not."""
    for name, api in sorted(vendor.apis.items()):
        if name.startswith(_NOT_LOOKED_UP) or api.support is Support.UNKNOWN:
            continue
        its = api.name or name.replace(_CUDA, f"{vendor.torch_module}.")
        if api.support is Support.UNSUPPORTED:
            if name.startswith(_CUDA) and _is_there(its):
                yield f"{name}: unsupported in the table, and {its} is there"
        elif not _is_there(its):
            yield f"{name}: available in the table, and {its} is not there"


def _is_there(dotted: str) -> bool:
    """Whether a dotted name means something, importing what must be."""
    parts = dotted.split(".")
    found: Any = importlib.import_module(parts[0])
    for i, part in enumerate(parts[1:], 2):
        if not hasattr(found, part):
            try:
                importlib.import_module(".".join(parts[:i]))
            except ImportError:
                return False
        found = getattr(found, part, None)
    return found is not None


def main(arguments: list[str] | None = None) -> int:
    """Read, then write or compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--to", default="ascend", metavar="VENDOR", help="default: %(default)s")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE.json", help="write what the plugin has")
    parser.add_argument("--check", action="store_true", help="compare with the vendor's tables")
    options = parser.parse_args(arguments)
    if not (options.output or options.check):
        parser.error("say -o FILE.json, or --check")
    from torchferry import emulate

    try:
        emulate.activate(options.to, devices=1)
    except FerryError as error:
        print(error, file=sys.stderr)
        return 2
    vendor = get_vendor(options.to)
    plugin = read(vendor)
    if options.output:
        options.output.write_text(json.dumps(asdict(plugin), indent=1) + os.linesep, "utf-8")
    found = differences(vendor, plugin) if options.check else []
    print(
        "\n".join(
            [
                *found,
                f"{vendor.plugin} {plugin.version}: {len(plugin.operators)} operators, {len(found)} differences",
            ]
        )
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
