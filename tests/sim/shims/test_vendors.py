"""Each vendor's names, optimizers, converted example and own CUDA migration on its simulated device."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.forking import run_module_forked
from tests.sim.shims.run_vendor import PARTS
from torchferry.cli.main import main
from torchferry.vendors.registry import get_vendor, vendor_names

ROOT = Path(__file__).parents[3]
VENDORS = [name for name in vendor_names() if get_vendor(name).plugin]
Results = dict[str, str]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Results]:
    """What came of all parts for one vendor, from a process of its own."""
    known: dict[str, Results] = {}

    def ask(vendor: str) -> Results:
        if vendor not in known:
            known[vendor] = run_parts(vendor, tmp_path_factory.mktemp(vendor))
        return known[vendor]

    return ask


def run_parts(vendor: str, folder: Path) -> Results:
    example = folder / "converted"
    assert main(["convert", str(ROOT / "examples/finetune"), "-o", str(example), "--to", vendor, "-q"]) == 0
    if not get_vendor(vendor).marker_module:  # the converter leaves this line to the user
        program = example / "train.py"
        program.write_text(program.read_text().replace('torch.cuda.nvtx.mark("done")', "pass"))
    found = folder / "results.json"
    run = run_module_forked("tests.sim.shims.run_vendor", vendor, str(example), str(found))
    assert run.returncode == 0, run.stdout + run.stderr
    results: Results = json.loads(found.read_text())
    return results


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("vendor", VENDORS)
def test_vendor(results: Callable[[str], Results], vendor: str, part: str) -> None:
    failure = results(vendor)[part]
    assert not failure, failure
