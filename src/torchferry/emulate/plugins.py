"""The vendor's plugin: found where it is, or fetched into a folder of ours, never into the user's environment.

Where a plugin is installed and its toolkit is not, every `import torch` fails; so it is kept beside the environment.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path

from torchferry.building import cache as build_cache
from torchferry.building.toolchain import find_torch
from torchferry.emulate import fetching, toolkits, wheels
from torchferry.errors import RunError
from torchferry.files.aside import folder_aside, remove_leftovers
from torchferry.vendors.machine import load_machine
from torchferry.vendors.model import Vendor

VARIABLE = "TORCHFERRY_PLUGIN"
CACHE = "plugins"
_RELEASE = re.compile(r"\d+\.\d+(\.\d+)?")


@dataclass(frozen=True)
class Plugin:
    """A vendor's plugin on disk."""

    folder: Path  # that which would be on the path
    version: str  # 2.13.0.post1; "" unknown
    is_kept: bool = False  # in our cache, and so ours to remove

    def fits(self, torch: str) -> bool:
        """Whether it was made for this release of PyTorch."""
        return not self.version or release_of(self.version) == torch


def release_of(version: str) -> str:
    """2.13.0 of 2.13.0+cpu, 2.13.0.post2 and 2.13.0rc1."""
    found = _RELEASE.match(version)
    release = found[0] if found else version
    return release if release.count(".") > 1 else f"{release}.0"


def refuse_without_emulation(vendor: Vendor) -> None:
    """Say so if a vendor's plugin can't run here."""
    toolkit = vendor.emulation.toolkit
    if not toolkit or not vendor.plugin:
        raise RunError(
            f"{vendor.name}: there is no emulation of this vendor's toolkit; use --sim, or a vendor whose vendor.toml "
            "has an [emulation]: ferry vendors"
        )
    if toolkit not in toolkits.names():
        raise RunError(
            f"{vendor.name}: its [emulation] names the toolkit {toolkit!r}, which is not among those that can be "
            f"stood in for: {', '.join(toolkits.names())}"
        )
    if sys.platform != "linux":
        raise RunError("a vendor's plugin can be emulated on Linux only")


def found(vendor: Vendor) -> Plugin | None:
    """The plugin that processes would use: the one that the user names, ours, or the one that is installed; None if
    none of them fits the installed PyTorch."""
    named = os.environ.get(VARIABLE)
    if named:
        return _named(Path(named), vendor)
    torch = release_of(find_torch().version)
    kept = kept_folder(vendor)
    for plugin in (_plugin_in(kept, vendor, is_kept=True), _installed(vendor)):
        if plugin is not None and plugin.fits(torch) and build_cache.is_safe_to_load(plugin.folder):
            return plugin
    return None


def needed(vendor: Vendor) -> Plugin:
    """The same; raises where there is none."""
    refuse_without_emulation(vendor)
    plugin = found(vendor)
    if plugin is None:
        raise RunError(
            f"{vendor.plugin} is not set up for this PyTorch: ferry emulate setup --to {vendor.name} fetches it once, "
            "into a folder of its own"
        )
    return plugin


def kept_folder(vendor: Vendor) -> Path:
    """Where we keep the one for this Python, this PyTorch and this sort of machine; it need not exist."""
    torch = release_of(find_torch().version)
    return build_cache.folder(CACHE) / f"{vendor.plugin}-{torch}-{wheels.python_tag()}-{platform.machine()}"


def _named(folder: Path, vendor: Vendor) -> Plugin:
    plugin = _plugin_in(folder.absolute(), vendor)
    if plugin is None:
        raise RunError(
            f"${VARIABLE} says {str(folder)!r}, which holds no {vendor.plugin}; name the folder that a wheel is "
            "unpacked in, or unset it"
        )
    torch = release_of(find_torch().version)
    if not plugin.fits(torch):
        raise RunError(
            f"${VARIABLE} names {vendor.plugin} {plugin.version}, which is made for torch {release_of(plugin.version)}; "
            f"installed is torch {torch}"
        )
    return plugin


def _plugin_in(folder: Path, vendor: Vendor, is_kept: bool = False) -> Plugin | None:
    if not (folder / vendor.plugin / "__init__.py").is_file():
        return None
    return Plugin(folder, wheels.version_in(folder, vendor.plugin), is_kept)


def _installed(vendor: Vendor) -> Plugin | None:
    """In the user's environment. The simulator's stand-in for it is not on the path that is asked here, or has no
    version."""
    spec = PathFinder.find_spec(vendor.plugin)
    if spec is None or not spec.origin:
        return None
    plugin = _plugin_in(Path(spec.origin).parent.parent, vendor)
    return plugin if plugin is not None and plugin.version else None


def set_up(vendor: Vendor, wheel: Path | None, say: Callable[[str], None]) -> Plugin:
    """Put the plugin into our folder: from a wheel that the user has, or fetched as pip is set up to fetch. It is
    there whole or not at all."""
    refuse_without_emulation(vendor)
    torch = release_of(find_torch().version)
    package = load_machine(Path(vendor.folder)).plugin.package or vendor.plugin.replace("_", "-")
    cache = build_cache.writable_folder(CACHE)
    place = cache / kept_folder(vendor).name
    wanted = wheels.Wanted(vendor.plugin, package, torch)
    with build_cache.locked(
        place.with_name(f"{place.name}.lock"), lambda: say("waiting for another process")
    ):
        remove_leftovers(cache)
        if wheel is None:
            there = _plugin_in(place, vendor, is_kept=True)
            if there is not None and there.fits(torch):
                return there
        with folder_aside(cache) as aside:
            if wheel is None:
                say(f"fetching {package} for torch {torch}, once")
                wheel = fetching.fetch(wanted, aside.path / "fetched", vendor.name)
            unpacked = aside.path / "unpacked"
            wheels.unpack(wheel, wanted, unpacked)
            aside.replace(unpacked, place, lambda old: True)
    made = _plugin_in(place, vendor, is_kept=True)
    assert made is not None
    return made


def remove(vendor: Vendor) -> list[Path]:
    """Take away what we keep of a vendor's plugin, for every PyTorch; answers what was there."""
    refuse_without_emulation(vendor)
    cache = build_cache.folder(CACHE)
    gone = []
    for folder in sorted(cache.glob(f"{vendor.plugin}-*")):
        if folder.is_dir() and not folder.is_symlink():
            build_cache.remove(folder)
            gone.append(folder)
    return gone
