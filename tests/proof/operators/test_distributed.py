"""DistributedDataParallel: the reducer's work is seen, and a fault in another process is told from one in this."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.forking import run_module_forked
from torchferry.proof.model import Cause, OperatorDifference
from torchferry.proof.operators import first_difference, read_trace

from .names import CPU

VENDOR = "ascend"
Folders = dict[str, Path]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """Two processes on the CPU, two on the device, there once more with other data in rank 1."""
    folders = {name: tmp_path_factory.mktemp(name) for name in (CPU, VENDOR)}
    for name, folder in folders.items():
        run = run_module_forked("tests.proof.operators.ddp", name, str(folder))
        assert run.returncode == 0, run.stderr
    return folders


def difference(recorded: Folders, case: str, rank: int) -> OperatorDifference:
    reference = recorded[CPU] / f"equal-{rank}.operators"
    found = first_difference(reference, recorded[VENDOR] / f"{case}-{rank}.operators")
    assert found is not None
    return found


def test_equal_runs(recorded: Folders) -> None:
    assert [difference(recorded, "equal", rank).cause for rank in (0, 1)] == [Cause.NONE] * 2


def test_the_reducer_is_seen(recorded: Folders) -> None:
    calls = read_trace(recorded[VENDOR] / "equal-0.operators").calls
    (reduced,) = [call for call in calls if call.operator == "c10d::allreduce_"]
    assert reduced.phase == "backward"


def test_a_fault_in_another_process(recorded: Folders) -> None:
    bystander = difference(recorded, "other rank", rank=0)
    assert bystander.cause is Cause.COMMUNICATION
    assert bystander.migrated and bystander.migrated.name == "c10d::allreduce_"
    culprit = difference(recorded, "other rank", rank=1)
    assert culprit.cause is Cause.CALLS
    assert culprit.migrated and culprit.migrated.name == "aten::add.Tensor"
