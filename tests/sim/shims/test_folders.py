"""Which stand-ins a vendor has, that only they can be imported, and that they refuse to be used alone."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from torchferry.sim.shims import shim_folders
from torchferry.sim.shims.optim import by_name
from torchferry.vendors.registry import get_vendor, vendor_names

VENDORS = [name for name in vendor_names() if get_vendor(name).plugin]


def run_python(source: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    return subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, env=environment)


@pytest.mark.parametrize("name", VENDORS)
def test_a_vendor_sees_its_own_plugin_and_no_other(name: str) -> None:
    vendor = get_vendor(name)
    found = {entry.name for folder in shim_folders(vendor) for entry in folder.iterdir()}
    assert vendor.plugin in found
    assert ("apex" in found) is not vendor.apex.startswith("none")
    others = {get_vendor(other).plugin for other in VENDORS if other != name}
    assert not found & others


def test_a_device_of_torchs_own_has_no_stand_in() -> None:
    in_tree = [get_vendor(name) for name in vendor_names() if name not in VENDORS]
    assert in_tree
    assert all(shim_folders(vendor) == [] for vendor in in_tree)


@pytest.mark.parametrize("name", VENDORS)
def test_every_fused_optimizer_of_the_table_is_there(name: str) -> None:
    vendor = get_vendor(name)
    assert vendor.fused_optimizers
    assert all(by_name(optimizer) is not None for optimizer in vendor.fused_optimizers)
    place = vendor.fused_optimizer_module.replace(".", "/")
    files = [folder / place / "__init__.py" for folder in shim_folders(vendor)]
    (file,) = filter(Path.is_file, files)
    assert runpy.run_path(str(file)).keys() >= set(vendor.fused_optimizers)


@pytest.mark.parametrize(
    "package", ["torch_npu", "apex", "torch_mlu", "torch_sdaa", "torch_musa", "torchada"]
)
def test_alone_they_say_what_to_do(package: str) -> None:
    import torchferry.sim.shims

    plugins = Path(torchferry.sim.shims.__file__).parent / "plugins"
    folder = next(path.parent for path in plugins.glob(f"*/{package}"))
    source = f"import sys; sys.path.insert(0, {str(folder)!r})\ntry: import {package}\nexcept ImportError as e: print(e)"
    # without torch: the refusal must not wait for it
    stub = "import types, sys; sys.modules['torch'] = types.ModuleType('torch')\n"
    run = run_python(stub + source)
    assert f"this {package} stands in for the real package" in run.stdout, run.stderr
    assert "ferry run --sim" in run.stdout and "torchferry.sim.activate" in run.stdout


def test_a_vendor_of_the_users_own_gets_a_plugin_from_its_data() -> None:
    source = """
from dataclasses import replace
from torchferry.sim import shims
from torchferry.vendors.registry import get_vendor
acme = replace(get_vendor("ascend"), name="acme", device_type="acme", plugin="torch_acme", torch_module="torch.acme",
    fused_optimizer_module="torch_acme.optim", fused_optimizers=("FusedAdam", "NoSuchThing"), apex="none")
assert shims.install(acme) == []
import torch_acme
from torch_acme.optim import FusedAdam
assert torch_acme.__version__ and not hasattr(torch_acme.optim, "NoSuchThing")
try: import torch_npu
except ImportError: pass
else: raise AssertionError("another vendor's plugin")
shims.install(acme)
try: shims.install(get_vendor("cambricon"))
except RuntimeError as error: assert "already simulates 'acme'" in str(error)
else: raise AssertionError("two vendors in one process")
"""
    run = run_python(source)
    assert run.returncode == 0, run.stderr


def test_they_come_after_the_programs_own_folder(tmp_path: Path) -> None:
    (tmp_path / "apex.py").write_text("mine = True\n")
    (tmp_path / "program.py").write_text(
        "from torchferry.sim import shims\n"
        "from torchferry.vendors.registry import get_vendor\n"
        "shims.install(get_vendor('ascend'))\n"
        "import apex\n"
        "assert apex.mine\n"
    )
    run = subprocess.run([sys.executable, str(tmp_path / "program.py")], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_unknown_apex_is_no_apex() -> None:
    vendor = replace(get_vendor("ascend"), apex="")
    assert [folder.name for folder in shim_folders(vendor)] == ["ascend"]


ASKED_FOR = [("ascend", "TORCH_TRANSFER_TO_NPU", "1"), ("tecorigin", "TORCH_SDAA_AUTOLOAD", "cuda_migrate")]


@pytest.mark.parametrize(("vendor", "variable", "value"), ASKED_FOR, ids=[entry[0] for entry in ASKED_FOR])
def test_a_variable_asks_for_the_migration(vendor: str, variable: str, value: str) -> None:
    source = (
        f"import torchferry.sim; torchferry.sim.activate({vendor!r}, devices=1)\n"
        "import torch; print(torch.ones(1).cuda().device.type)"
    )
    assert run_python(source, **{variable: value}).stdout.strip() == get_vendor(vendor).device_type


def test_old_methods_of_tensors_work_until_the_program_imports_the_plugin() -> None:
    """The guide of the changed PyTorch calls them; today's plugin refuses them, as a program that imports it sees."""
    source = """
import warnings
import torchferry.sim
torchferry.sim.activate("ascend", devices=1)
import torch
x = torch.arange(4.0).to("npu")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    y = x.npu_format_cast(29)
    z = y.data.npu_format_cast_(2)
assert torch.equal(x.cpu(), y.cpu()) and y.data_ptr() != x.data_ptr()
assert z.npu_format_cast_(29) is z
messages = [str(item.message) for item in caught]
assert len(messages) == 2 and "write torch_npu.npu_format_cast(tensor, ...)" in messages[0], messages
assert [item.filename for item in caught] == ["<string>"] * 2
import torch_npu
assert torch_npu.get_npu_format(y) == 29
print("done")
"""
    run = run_python(source)
    assert run.stdout == "done\n", run.stderr
    refused = run_python(
        "import torchferry.sim; torchferry.sim.activate('ascend', devices=1)\n"
        "import torch, torch_npu; torch.ones(1).npu_format_cast(29)"
    )
    assert "Use torch_npu.npu_format_cast instead" in refused.stderr
    others = run_python(
        "import torchferry.sim; torchferry.sim.activate('cambricon', devices=1)\n"
        "import torch; print(hasattr(torch.Tensor, 'npu_format_cast'))"
    )
    assert others.stdout == "False\n", others.stderr
