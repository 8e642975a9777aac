"""The vendor's variable says which devices a process sees; it is read when a device is first used."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from tests.forking import run_forked
from tests.sim.checking import VENDORS
from torchferry.vendors.registry import get_vendor

MACHINE = 4  # devices

# value -> how many devices are visible, as with CUDA_VISIBLE_DEVICES
LISTS = {
    "0": 1,
    "1,3": 2,
    "3,1,0,2": 4,
    "0, 2": 2,
    "0,4,1": 1,  # there is no device 4: the list ends before it
    "2,-1,1": 1,
    "1,x": 1,
    "1x": 1,
    "0,0": 0,  # a device that comes twice
    "4": 0,
    "-1": 0,
    "": 0,
    "GPU-0": 0,
    "99999999999999999999": 0,
}


def _run(vendor_name: str, code: str, value: str | None = None) -> Any:
    """What a process leaves in `found`; `kind`, `module` and `variable` are the vendor's."""
    vendor = get_vendor(vendor_name)
    variable = vendor.visible_devices_env
    head = (
        f"import os, json, torch, torchferry.sim as sim\nvariable, kind = {variable!r}, {vendor.device_type!r}\n"
        f"sim.activate({vendor_name!r}, devices={MACHINE}, memory='1GiB')\n"
        "module, found = getattr(torch, kind), []\n"
    )
    environment = {name: text for name, text in os.environ.items() if name not in vendor.env}
    environment.pop(variable, None)
    if value is not None:
        environment[variable] = value
    script = head + code + "\nprint(json.dumps(found))"
    run = run_forked(script, environment)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.parametrize("vendor", VENDORS)
def test_the_variable_is_read_as_cuda_reads_its_own(vendor: str) -> None:
    code = (
        f"found.append(module.device_count())\nfor value in {list(LISTS)!r}:\n"
        "    os.environ[variable] = value\n"
        "    torch.manual_seed(0); module.manual_seed(1); module.manual_seed_all(1)\n"  # no use of a device yet
        "    assert module.is_available() is (module.device_count() > 0)\n"
        "    found.append(module.device_count())"
    )
    assert _run(vendor, code) == [MACHINE, *LISTS.values()]


@pytest.mark.parametrize(
    "first_use",
    [
        "torch.ones(1, device=kind)",
        "torch.ones(1).to(kind)",
        "module.set_device(0)",
        "module.current_device()",
        "torch.nn.Linear(2, 2).to(kind)",
        "module.synchronize()",
    ],
)
def test_after_the_first_use_the_number_stays(first_use: str) -> None:
    code = (
        "os.environ[variable] = '1,3'\n"
        f"{first_use}\n"
        "os.environ[variable] = '0'\n"
        "found += [module.device_count(), len(module.default_generators), torch.ones(1, device=kind + ':1').device.index]\n"
        "for use in (lambda: torch.ones(1, device=kind + ':2'), lambda: module.set_device(2)):\n"
        "    try:\n        use()\n    except RuntimeError as error:\n        found.append(str(error).split(';')[0])"
    )
    assert _run("ascend", code) == [2, 2, 1, *["invalid device ordinal: 2"] * 2]


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_process_that_sees_no_device(vendor: str) -> None:
    code = (
        "found += [module.is_available(), module.device_count(), len(module.default_generators)]\n"
        "module.manual_seed(0); module.manual_seed_all(0); found.append(torch.manual_seed(3).initial_seed())\n"
        "def error(use):\n    try:\n        use()\n    except RuntimeError as error:\n        return type(error).__name__\n"
        "found += [error(use) for use in (module.current_device, lambda: module.set_device(0),\n"
        "    lambda: torch.ones(1, device=kind), lambda: torch.ones(1).to(kind), module.get_device_name)]\n"
        "found.append(torch.ones(2).sum().item())"
    )
    assert _run(vendor, code, value="") == [False, 0, 0, 3, *["RuntimeError"] * 5, 2.0]


def test_the_variable_of_another_vendor_is_no_matter() -> None:
    assert _run(
        "ascend", "os.environ['CUDA_VISIBLE_DEVICES'] = '0'; found.append(module.device_count())"
    ) == [MACHINE]
