"""Stand-ins for the vendors' own packages, importable while the simulator is active, and only then.

`plugins/` is no package: each folder in it goes on sys.path (and PYTHONPATH for child processes) as a whole, so
that a converted program's `import torch_npu` finds what it would find on the real machine. What the stand-ins
share (optimizers, migration, combining of tensors) are ordinary modules here.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from torchferry.sim.shims.in_tree import accept_profiler_arguments, add_old_methods
from torchferry.vendors.model import Vendor

_PLUGINS = Path(__file__).parent / "plugins"
_APEX = "apex"
# variables of the vendors -> the value that asks for a migration without a line in the program, and its module
_ASKED_FOR: Mapping[str, tuple[str, str]] = {
    "TORCH_TRANSFER_TO_NPU": ("1", "torch_npu.contrib.transfer_to_npu"),
    "TORCH_SDAA_AUTOLOAD": ("cuda_migrate", "torch_sdaa.utils.cuda_migrate"),
}
_active: list[Vendor] = []  # at most one: a process simulates one vendor for all its life


def shim_folders(vendor: Vendor) -> list[Path]:
    """The folders that must be on sys.path for a vendor: that of its plugin, and that of apex if it has a build."""
    names = [vendor.plugin] if vendor.plugin else []
    if vendor.has_apex:
        names.append(_APEX)
    return [
        folder for folder in sorted(_PLUGINS.iterdir()) if any((folder / name).is_dir() for name in names)
    ]


def install(vendor: Vendor) -> list[Path]:
    """Make a vendor's stand-ins importable in this process; answers the folders, for a child's PYTHONPATH.

    They come right after the program's own folder, so that they win over an installed plugin, but not over what
    the program brings itself. Doing it again does nothing.
    """
    folders = shim_folders(vendor)
    if vendor in _active:
        return folders
    if _active:
        raise RuntimeError(
            f"this process already simulates '{_active[0].name}'; start another one for '{vendor.name}'"
        )
    _active.append(vendor)
    for folder in reversed(folders):
        if str(folder) not in sys.path:
            sys.path.insert(1, str(folder))
    if vendor.plugin and not any((folder / vendor.plugin).is_dir() for folder in folders):
        from torchferry.sim.shims.modules import register_plugin

        register_plugin(vendor)
    accept_profiler_arguments(vendor)
    add_old_methods(vendor)
    for variable, (value, migration) in _ASKED_FOR.items():
        if os.environ.get(variable) == value and migration.partition(".")[0] == vendor.plugin:
            importlib.import_module(migration)
    return folders


def begin_plugin(package: str) -> Vendor:
    """What importing a vendor's plugin does first: it takes the simulated device for its own."""
    vendor = require_simulator(package)
    from torchferry.sim.shims.modules import adopt_device

    adopt_device(vendor, package)
    return vendor


def require_simulator(package: str) -> Vendor:
    """The vendor that is simulated; a stand-in that is imported by anything else than the simulator refuses."""
    import torch  # noqa: F401  a child process activates the simulator when torch is first imported

    if not _active:
        raise ImportError(
            f"this {package} stands in for the real package on the simulated device and does nothing by itself: run the program "
            "with `ferry run --sim`, or call torchferry.sim.activate(...) first",
            name=package,
        )
    return _active[0]
