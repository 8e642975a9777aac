"""Lightning as a user of the layer: its CUDA accelerator drives every vendor's device."""

from __future__ import annotations

from pathlib import Path

import pytest

from .running import DEVICES, Run, device_type, half_precision, on_cpu, on_device

PROGRAM = "lightning_train.py"
MIXED = {"float16": "16-mixed", "bfloat16": "bf16-mixed"}


def check_place(run: Run, vendor: str) -> None:
    assert run.report["accelerator"] == "CUDAAccelerator"
    assert run.report["device"] == f"{device_type(vendor)}:0"
    assert run.calls("addmm") > 0


def check_training(vendor: str, folder: Path) -> None:
    cpu = on_cpu(PROGRAM, "{folder}", "--accelerator", "cpu")
    run = on_device(vendor, PROGRAM, folder)
    check_place(run, vendor)
    assert run.report["parameters"] == [f"{device_type(vendor)}:0"] and run.report["on_gpu"]
    assert run.report["peak"] > 0
    for name in ("losses", "validated", "tested", "predicted", "steps"):
        assert run.report[name] == cpu.report[name]
    assert cpu.report["tested"]["test_accuracy"] > 0.9
    assert (folder / "checkpoints" / "last.ckpt").exists()


def test_trains_as_on_the_cpu(tmp_path: Path) -> None:
    check_training("tecorigin", tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("vendor", DEVICES)
def test_every_vendor_trains_as_on_the_cpu(vendor: str, tmp_path: Path) -> None:
    check_training(vendor, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("vendor", DEVICES)
def test_mixed_precision_and_resuming(vendor: str, tmp_path: Path) -> None:
    cpu = on_cpu(PROGRAM, "{folder}", "--accelerator", "cpu", "--workers", 2)
    options = ["--precision", MIXED[half_precision(vendor)], "--workers", 2]
    mixed = on_device(vendor, PROGRAM, tmp_path, *options)
    assert mixed.losses != cpu.losses
    assert mixed.losses == pytest.approx(cpu.losses, rel=0.1)
    resumed = on_device(vendor, PROGRAM, tmp_path, *options, "--epochs", 3, "--resume")
    assert resumed.report["steps"] == 24 and len(resumed.losses) == 16
    assert sum(resumed.losses) < sum(mixed.losses[16:])


@pytest.mark.long
@pytest.mark.parametrize("vendor", DEVICES)
@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_two_devices(vendor: str, strategy: str, tmp_path: Path) -> None:
    run = on_device(vendor, PROGRAM, tmp_path, "--devices", 2, "--strategy", strategy, "--fit-only")
    check_place(run, vendor)
    assert run.report["processes"] == len([part for part in run.summary["processes"] if part["devices"]]) == 2
    assert run.losses[-1] < run.losses[0]


@pytest.mark.long
@pytest.mark.parametrize(
    ("vendor", "strategy"), [("moorethreads", "ddp_spawn"), ("cambricon", "ddp_notebook")]
)
def test_processes_that_are_spawned_or_forked(vendor: str, strategy: str, tmp_path: Path) -> None:
    started = on_device(vendor, PROGRAM, tmp_path / "started", "--devices", 2, "--strategy", "ddp")
    others = on_device(vendor, PROGRAM, tmp_path / "others", "--devices", 2, "--strategy", strategy)
    assert others.report["tested"] == started.report["tested"]


@pytest.mark.long
@pytest.mark.parametrize("vendor", DEVICES)
@pytest.mark.parametrize("profiler", ["pytorch", "nvtx"])
def test_profilers(vendor: str, profiler: str, tmp_path: Path) -> None:
    run = on_device(vendor, PROGRAM, tmp_path, "--profiler", profiler)
    check_place(run, vendor)
