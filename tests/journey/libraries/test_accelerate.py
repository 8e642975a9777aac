"""Accelerate as a user of the layer: a program written for GPUs trains on every vendor's device."""

from __future__ import annotations

from pathlib import Path

import pytest

from .running import DEVICES, UNKNOWN, VENDORS, device_type, half_precision, on_cpu, on_device

PROGRAM = "accelerate_train.py"
SHORT = {"float16": "fp16", "bfloat16": "bf16"}
# Accelerate has a way of its own for each vendor that it knows, and goes it: the plugin is there.
WAYS = {
    "ascend": "MULTI_NPU",
    "cambricon": "MULTI_MLU",
    "moorethreads": "MULTI_MUSA",
    "tecorigin": "MULTI_SDAA",
    UNKNOWN: "MULTI_GPU",
}


def check_training_and_resuming(vendor: str, folder: Path) -> None:
    cpu = on_cpu(PROGRAM, "{folder}", "--cpu")
    begun = on_device(vendor, PROGRAM, folder, "--epochs", 1)
    resumed = on_device(vendor, PROGRAM, folder, "--resume", "--workers", 2)
    assert begun.report["device"] == device_type(vendor)
    assert begun.report["parameters"] == resumed.report["parameters"] == [f"{device_type(vendor)}:0"]
    assert begun.report["peak"] > 0 and begun.calls("addmm") > 0
    assert begun.losses + resumed.losses == cpu.losses
    assert begun.report["accuracies"] + resumed.report["accuracies"] == cpu.report["accuracies"]
    assert resumed.report["weights"] == cpu.report["weights"]
    assert cpu.report["accuracies"][-1] > 0.9
    assert (folder / "model" / "model.safetensors").exists()


def test_trains_and_resumes_as_on_the_cpu(tmp_path: Path) -> None:
    check_training_and_resuming("ascend", tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("vendor", DEVICES)
def test_every_vendor_trains_and_resumes_as_on_the_cpu(vendor: str, tmp_path: Path) -> None:
    check_training_and_resuming(vendor, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("vendor", DEVICES)
def test_mixed_precision(vendor: str, tmp_path: Path) -> None:
    cpu = on_cpu(PROGRAM, "{folder}", "--cpu")
    mixed = on_device(vendor, PROGRAM, tmp_path, "--mixed-precision", SHORT[half_precision(vendor)])
    assert mixed.losses != cpu.losses
    assert mixed.losses == pytest.approx(cpu.losses, rel=0.1)


@pytest.mark.long
@pytest.mark.parametrize("vendor", DEVICES)
def test_two_processes(vendor: str, tmp_path: Path) -> None:
    run = on_device(vendor, PROGRAM, tmp_path, options=("--nproc", "2"))
    assert run.report["distributed"] == f"DistributedType.{WAYS[vendor]}"
    assert run.report["processes"] == len([part for part in run.summary["processes"] if part["devices"]]) == 2
    assert run.report["accuracies"][-1] > 0.9


@pytest.mark.long
@pytest.mark.parametrize("vendor", VENDORS)
def test_processes_of_its_own_launchers_have_the_device(vendor: str, tmp_path: Path) -> None:
    torchrun = on_device(vendor, PROGRAM, tmp_path, options=("--nproc", "2"))
    forked = on_device(vendor, PROGRAM, tmp_path, "--notebook-processes", 2)
    launcher = "-m accelerate.commands.launch --num_processes 2 --mixed_precision no " + PROGRAM
    launched = on_device(vendor, launcher, tmp_path)
    assert forked.losses == launched.losses == torchrun.losses
