"""Every opt-in for data types and loaders at once, executed: the program trains as before, in the device's terms."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.forked_ferry import printed_by_ferry as ferry

PROGRAM = Path(__file__).parent / "programs" / "data_habits.py"
HABITS = ["--drop-last", "--int32-labels", "--float32-data", "--blocking-copies", "--no-pin-memory"]
HABITS.append("--drop-cudnn-flags")


def trained(vendor: str, folder: Path, *options: str) -> str:
    """What the converted program prints on the simulated device."""
    folder.mkdir()
    script = folder / "converted.py"
    ferry(folder, "convert", str(PROGRAM), "-o", str(script), "--to", vendor, "-q", *options)
    return ferry(folder, "run", "--sim", "--converted", "--to", vendor, "-q", str(script))


def loss_in(output: str) -> float:
    return float(re.findall(r"loss (\S+)", output)[0])


@pytest.mark.parametrize("vendor", ["ascend", pytest.param("cambricon", marks=pytest.mark.long)])
def test_before_and_after(vendor: str, tmp_path: Path) -> None:
    before = trained(vendor, tmp_path / "before")
    after = trained(vendor, tmp_path / "after", *HABITS)
    assert "steps 5 evaluated 70" in before and "dtypes torch.float64 torch.int64 shape (6, 8)" in before
    assert "steps 4 evaluated 70" in after and "dtypes torch.float32 torch.int32 shape (16, 8)" in after
    assert "pinned True" in before and "pinned False" in after
    assert loss_in(before) < 0.45 and loss_in(after) < 0.45
