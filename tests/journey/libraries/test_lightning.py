"""Lightning as a user of the layer: its CUDA accelerator drives every vendor's device."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchferry.cli.main import main

from .running import DEVICES, PROGRAMS, UNKNOWN_DATA, Run, device_type, half_precision, on_cpu, on_device

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


def converted(vendor: str, folder: Path) -> str:
    """The program after `ferry convert`, which adds a module that teaches Lightning the device."""
    where = ["--to", vendor, "--vendor-path", str(UNKNOWN_DATA), "-o", str(folder / "copy")]
    assert main(["convert", str(PROGRAMS), *where, "-q"]) in (0, 3)
    return str(folder / "copy" / PROGRAM)


def check_converted(vendor: str, folder: Path, *options: object) -> Run:
    run = on_device(vendor, converted(vendor, folder), folder, *options, options=("--converted",))
    assert run.report["device"] == f"{device_type(vendor)}:0"
    assert run.report["parameters"] == [f"{device_type(vendor)}:0"]
    assert run.calls("addmm") > 0
    return run


def test_a_converted_program_trains_on_the_device(tmp_path: Path) -> None:
    cpu = on_cpu(PROGRAM, "{folder}", "--accelerator", "cpu")
    assert check_converted("ascend", tmp_path).report["losses"] == cpu.report["losses"]


@pytest.mark.long
@pytest.mark.parametrize("vendor", DEVICES)
@pytest.mark.parametrize("accelerator", ["gpu", "auto"])
def test_converted_programs_of_every_vendor(vendor: str, accelerator: str, tmp_path: Path) -> None:
    precision = MIXED[half_precision(vendor)]
    plain = check_converted(vendor, tmp_path, "--accelerator", accelerator)
    mixed = on_device(
        vendor,
        str(tmp_path / "copy" / PROGRAM),
        tmp_path,
        *("--accelerator", accelerator, "--precision", precision),
        options=("--converted",),
    )
    assert mixed.losses != plain.losses
    assert mixed.losses == pytest.approx(plain.losses, rel=0.1)


@pytest.mark.long
@pytest.mark.parametrize("vendor", DEVICES)
def test_a_converted_program_on_two_devices(vendor: str, tmp_path: Path) -> None:
    program = converted(vendor, tmp_path)
    words = ("--devices", 2, "--strategy", "ddp", "--fit-only")
    run = on_device(vendor, program, tmp_path, *words, options=("--converted",))
    assert run.report["device"].startswith(f"{device_type(vendor)}:")
