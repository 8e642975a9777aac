"""timm as a user of the layer: a program in the manner of its own trainer runs on every vendor's device."""

from __future__ import annotations

from pathlib import Path

import pytest

from .running import DEVICES, device_type, half_precision, on_cpu, on_device

PROGRAM = "timm_train.py"


def check_training(vendor: str, folder: Path, pictures: Path, *options: object) -> None:
    cpu = on_cpu(PROGRAM, "{folder}", pictures, "--device", "cpu", *options)
    run = on_device(vendor, PROGRAM, folder, pictures, *options)
    assert run.report["device"] == f"{device_type(vendor)}:0"
    assert run.report["parameters"] == [f"{device_type(vendor)}:0"]
    assert run.report["peak"] > 0 and run.calls("addmm") > 0
    for name in ("losses", "results", "averaged"):
        assert run.report[name] == cpu.report[name]
    assert run.losses[-1] < run.losses[0]
    assert (folder / "model_best.pth.tar").exists()


def test_trains_as_on_the_cpu(tmp_path: Path, pictures: Path) -> None:
    check_training("moorethreads", tmp_path, pictures)


@pytest.mark.long
@pytest.mark.parametrize("vendor", DEVICES)
@pytest.mark.parametrize("model", ["resnet10t", "vit_tiny_patch16_224"])
def test_every_vendor_trains_as_on_the_cpu(vendor: str, model: str, tmp_path: Path, pictures: Path) -> None:
    check_training(vendor, tmp_path, pictures, "--model", model)


@pytest.mark.long
@pytest.mark.parametrize("vendor", DEVICES)
def test_mixed_precision_augmented_pictures_and_resuming(vendor: str, tmp_path: Path, pictures: Path) -> None:
    options = ["--amp", half_precision(vendor), "--augment", "--workers", 2, "--channels-last"]
    run = on_device(vendor, PROGRAM, tmp_path, pictures, *options)
    assert run.report["results"][-1]["loss"] < run.report["results"][0]["loss"]
    resumed = on_device(vendor, PROGRAM, tmp_path, pictures, *options, "--epochs", 3, "--resume")
    assert resumed.report["first"] == 2 and len(resumed.losses) == 6
    assert resumed.report["results"][-1]["loss"] < run.report["results"][0]["loss"]


@pytest.mark.long
@pytest.mark.parametrize("vendor", DEVICES)
def test_two_processes(vendor: str, tmp_path: Path, pictures: Path) -> None:
    run = on_device(vendor, PROGRAM, tmp_path, pictures, "--sync-bn", options=("--nproc", "2"))
    assert run.report["processes"] == len([part for part in run.summary["processes"] if part["devices"]]) == 2
    assert run.losses[-1] < run.losses[0]
