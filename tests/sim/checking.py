"""Checks that need a simulated device: one process activates a vendor and runs all checks of a package; each result
is a test. A process can simulate one vendor only, so pytest's own processes never do.

The first vendor's process is started as users start one; those of the others are forks, which have PyTorch already.
"""

from __future__ import annotations

import ast
import fcntl
import importlib
import inspect
import json
import os
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.forking import run_module_forked
from torchferry.vendors.model import Vendor
from torchferry.vendors.registry import get_vendor, vendor_names

ROOT = Path(__file__).parents[2]
VENDORS = [name for name in vendor_names() if get_vendor(name).plugin]
DEVICE = "device"  # the usual place to run checks in
Results = dict[str, str]  # check -> traceback, "" when it held


@dataclass(frozen=True)
class Target:
    """One vendor's device in this process."""

    vendor: Vendor
    module: Any  # torch.<type>

    @property
    def type(self) -> str:
        """npu, mlu, ..."""
        return self.vendor.device_type


def loader_pinning(target: Target) -> dict[str, Any]:
    """What a DataLoader needs to pin for the device: older releases of torch pin for CUDA unless told otherwise."""
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    asks_for_the_accelerator = "torch.accelerator" in inspect.getsource(_BaseDataLoaderIter)
    return {"pin_memory": True} | ({} if asks_for_the_accelerator else {"pin_memory_device": target.type})


def check_names(package: str) -> list[str]:
    """file::function of every check of a package, without importing it."""
    return [
        f"{file.stem}::{node.name}"
        for file in _files(package)
        for node in ast.parse(file.read_text("utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("check_")
    ]


def results(package: str, vendor: str, shared: pytest.TempPathFactory, place: str = DEVICE) -> Results:
    """What a process found for a vendor; it runs once, whichever of pytest's processes asks first."""
    own = shared.getbasetemp()
    folder = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    file = folder / f"{package}-{vendor}-{place}.json"
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            file.write_text(json.dumps(_run_process(package, vendor, place, file.with_suffix(".part"))))
    found: Results = json.loads(file.read_text())
    return found


def _run_process(package: str, vendor: str, place: str, file: Path) -> Results:
    arguments, environment = (package, vendor, str(file), place), _environment(vendor)
    if vendor == VENDORS[0]:
        command = [sys.executable, "-m", "tests.sim.checking", *arguments]
        run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    else:
        run = run_module_forked("tests.sim.checking", *arguments, environment=environment)
    if run.returncode or not file.exists():
        return {"": f"exit {run.returncode}\n{run.stdout}\n{run.stderr}"}
    found: Results = json.loads(file.read_text())
    return found


def _environment(vendor: str) -> dict[str, str]:
    """Without the vendor's own variables, which would change what the device does; one thread for each process."""
    ours = {name: value for name, value in os.environ.items() if name not in get_vendor(vendor).env}
    return {**ours, "OMP_NUM_THREADS": "1"}


def verdict(found: Results, check: str) -> None:
    """Fail as the check failed."""
    assert "" not in found, found[""]
    assert found[check] == "", found[check]


def main() -> None:
    """Run the checks of a package: python -m tests.sim.checking PACKAGE VENDOR RESULTS.json [PLACE]

    A package may say in checks/__init__.py how to prepare the process, and what to do after each check.
    """
    package, vendor, file, *rest = sys.argv[1:]
    habits = importlib.import_module(f"{package}.checks")
    target = getattr(habits, "prepare", activated)(vendor, *(rest or [DEVICE]))
    after_each = getattr(habits, "after_each", lambda: None)
    found = {}
    for check_file in _files(package):
        module = importlib.import_module(f"{package}.checks.{check_file.stem}")
        for name in [name for name in vars(module) if name.startswith("check_")]:
            found[f"{check_file.stem}::{name}"] = _failure(getattr(module, name), target)
            after_each()
    Path(file).write_text(json.dumps(found))


def activated(vendor_name: str, place: str = DEVICE) -> Target:
    """The vendor's device, simulated in this process."""
    from torchferry.sim import activate

    activate(vendor_name, devices=2, memory="1GiB")
    import torch

    vendor = get_vendor(vendor_name)
    return Target(vendor, getattr(torch, vendor.device_type))


def _files(package: str) -> list[Path]:
    """The names first: another check may use up the warning of a name that warns once."""
    folder = ROOT.joinpath(*package.split("."), "checks")
    return sorted(folder.glob("[a-z]*.py"), key=lambda file: (file.stem != "surface", file.stem))


def _failure(check: Callable[[Any], None], target: Any) -> str:
    try:
        with warnings.catch_warnings():
            check(target)
    except BaseException:
        return traceback.format_exc()
    return ""


if __name__ == "__main__":
    main()
