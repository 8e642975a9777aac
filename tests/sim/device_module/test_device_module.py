"""torch.<type> of every vendor with a plug-in. One process a vendor runs all checks; each result is a test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.sim.checking import VENDORS, check_names, results, verdict

PACKAGE = "tests.sim.device_module"


def test_a_vendor_of_the_users_own_has_every_name_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "vendor.toml").write_text(
        'name = "acme"\ncompany = "Acme"\ndevice_type = "acme"\nplugin = "torch_acme"\n'
        'torch_module = "torch.acme"\ndist_backend = "accl"\ntensor_method = "acme"\nis_attribute = "is_acme"\n'
    )
    script = (
        "import sys\n"
        "from torchferry.sim import activate\n"
        "activate('acme', devices=2, vendor_paths=(sys.argv[1],))\n"
        "import torch\n"
        "torch.acme.set_device(1)\n"
        "print(torch.ones(2).acme().device, torch.acme.get_device_name())\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.stdout == "acme:1 acme\n", run.stderr
    assert "torch.acme.set_device: whether Acme has it is unknown" in run.stderr


@pytest.mark.parametrize("check", check_names(PACKAGE))
@pytest.mark.parametrize("vendor", VENDORS)
def test_check(vendor: str, check: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    verdict(results(PACKAGE, vendor, tmp_path_factory), check)
