"""Faults in a training on a simulated device are named; runs that compute the same raise no alarm."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.forking import run_module_forked
from torchferry.proof.model import Cause, OperatorDifference
from torchferry.proof.operators import first_difference

from .names import CPU, EQUAL, FAULTS, ZOO

VENDORS = ["ascend", "cambricon"]
ZOO_VENDOR = "tecorigin"
Folders = dict[str, Path]


def record(program: str, vendors: tuple[str, ...], factory: pytest.TempPathFactory) -> Folders:
    """What a program has recorded, in one process for each vendor."""
    folders = {}
    for vendor in vendors:
        folders[vendor] = factory.mktemp(vendor)
        run = run_module_forked(f"tests.proof.operators.{program}", vendor, str(folders[vendor]))
        assert run.returncode == 0, run.stderr
    return folders


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """All trainings and faults."""
    return record("programs", (CPU, *VENDORS), tmp_path_factory)


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """Layers and optimizers that run differently on a device."""
    return record("zoo", (CPU, ZOO_VENDOR), tmp_path_factory)


def difference(recorded: Folders, vendor: str, training: str, fault: str = "") -> OperatorDifference:
    reference = recorded[CPU] / f"{training}.operators"
    found = first_difference(reference, recorded[vendor] / f"{fault or training}.operators")
    assert found is not None
    return found


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("training", EQUAL)
def test_equal_runs(recorded: Folders, vendor: str, training: str) -> None:
    found = difference(recorded, vendor, training)
    assert (found.cause, found.migrated, found.reference) == (Cause.NONE, None, None)


@pytest.mark.parametrize("name", ZOO)
def test_no_false_alarm(zoo: Folders, name: str) -> None:
    """Foreach optimizers, recurrent layers in one piece, other attention: the results are the same."""
    found = difference(zoo, ZOO_VENDOR, name)
    assert (found.cause, found.migrated, found.reference) == (Cause.NONE, None, None)


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("fault", FAULTS)
def test_fault(recorded: Folders, vendor: str, fault: str) -> None:
    expected = FAULTS[fault]
    found = difference(recorded, vendor, expected.training, fault)
    assert found.cause is expected.cause
    names = (found.reference and found.reference.name, found.migrated and found.migrated.name)
    assert names == (expected.reference, expected.migrated)
    call = found.migrated or found.reference
    assert call is not None
    assert (call.phase, call.module) == (expected.phase, expected.module)
    assert "programs.py:" in call.place
    if found.output >= 0:
        assert found.distance > 0


def test_float64_that_is_narrowed(recorded: Folders) -> None:
    """One vendor casts to float32 instead, another computes in it: the cast is named, or the computation."""
    cast = difference(recorded, "ascend", "Doubles")
    assert cast.cause is Cause.RESULT and cast.reference and cast.migrated
    assert (cast.reference.outputs[0].dtype, cast.migrated.outputs[0].dtype) == ("float64", "float32")
    computed = difference(recorded, "cambricon", "Doubles")
    assert computed.migrated and computed.migrated.name == "aten::exp"
    assert 0 < computed.relative < 1e-6


def test_an_optimizer_that_rounds_differently_on_a_device(zoo: Folders) -> None:
    """On the CPU it divides, then takes the root; its form for many tensors at once does it the other way round."""
    found = difference(zoo, ZOO_VENDOR, "NAdam")
    assert found.cause is Cause.CALLS and found.reference and found.migrated
    assert (found.reference.name, found.migrated.name) == ("aten::div.Tensor", "aten::_foreach_sqrt")
    assert found.migrated.phase == "optimizer"


def test_how_far_apart(recorded: Folders) -> None:
    """The fault changes one element of 384: 0.1 % of itself, and 0.001."""
    found = difference(recorded, "ascend", "ConvNet", "wrong convolution")
    assert found.reference and found.migrated
    assert 0.0005 < found.distance < 0.005
    assert found.relative == pytest.approx(found.distance / found.reference.outputs[0].norm)


def test_the_line_of_the_forward_pass_is_named_for_the_backward_pass(recorded: Folders) -> None:
    forward = difference(recorded, "ascend", "ConvNet", "wrong convolution").migrated
    backward = difference(recorded, "ascend", "ConvNet", "wrong convolution backward").migrated
    assert forward and backward
    assert (backward.place, backward.module) == (forward.place, forward.module)
    assert backward.node == "ConvolutionBackward0"


def test_nothing_was_recorded(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    assert first_difference(tmp_path / "empty", tmp_path / "none") is None
    assert first_difference(tmp_path / "empty", tmp_path / "empty") is None
