"""transformers' Trainer as a user of the layer: BERT and GPT-2, tiny and random, train on every vendor's device."""

from __future__ import annotations

from pathlib import Path

import pytest

from .running import DEVICES, device_type, fails_on_device, half_precision, on_cpu, on_device

PROGRAM = "transformers_train.py"
SHORT = {"float16": "fp16", "bfloat16": "bf16"}
# Where the library takes its way for CUDA it would use both devices in one process, which vendors refuse.
ONE = {"CUDA_VISIBLE_DEVICES": "0"}
COUNTED = [[3, 4, 5, 6, 7, 8, 9], [20, 21, 22, 23, 24, 25, 26]]


def check_training_and_generating(vendor: str, folder: Path) -> None:
    cpu = on_cpu(PROGRAM, "{folder}", "--model", "gpt2", "--cpu")
    run = on_device(vendor, PROGRAM, folder, "--model", "gpt2", **ONE)
    assert run.report["device"] == f"{device_type(vendor)}:0"
    assert run.report["parameters"] == [f"{device_type(vendor)}:0"]
    assert run.report["peak"] > 0 and run.calls("addmm") > 0
    assert run.losses == cpu.losses
    assert run.report["eval_losses"] == cpu.report["eval_losses"]
    assert run.report["generated"] == cpu.report["generated"] == COUNTED
    assert (folder / "final" / "model.safetensors").exists()


def test_trains_and_generates_as_on_the_cpu(tmp_path: Path) -> None:
    check_training_and_generating("cambricon", tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("vendor", DEVICES)
def test_every_vendor_trains_and_generates_as_on_the_cpu(vendor: str, tmp_path: Path) -> None:
    check_training_and_generating(vendor, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("vendor", DEVICES)
def test_mixed_precision_and_resuming(vendor: str, tmp_path: Path) -> None:
    cpu = on_cpu(PROGRAM, "{folder}", "--cpu", "--workers", 2)
    options = ["--precision", SHORT[half_precision(vendor)], "--workers", 2]
    mixed = on_device(vendor, PROGRAM, tmp_path, *options, **ONE)
    assert mixed.losses != cpu.losses
    assert mixed.losses == pytest.approx(cpu.losses, rel=0.02)
    resumed = on_device(vendor, PROGRAM, tmp_path, *options, "--resume", "checkpoint-6", **ONE)
    assert resumed.losses == mixed.losses
    assert resumed.calls("addmm") < mixed.calls("addmm")


@pytest.mark.long
@pytest.mark.parametrize("vendor", DEVICES)
def test_two_processes(vendor: str, tmp_path: Path) -> None:
    run = on_device(vendor, PROGRAM, tmp_path, options=("--nproc", "2"))
    assert run.report["processes"] == len([part for part in run.summary["processes"] if part["devices"]]) == 2
    assert run.losses[-1] < run.losses[0]


@pytest.mark.long
@pytest.mark.parametrize("vendor", DEVICES)
def test_compiled_model_and_cache_of_a_fixed_size(vendor: str, tmp_path: Path) -> None:
    cpu = on_cpu(PROGRAM, "{folder}", "--model", "gpt2", "--cpu")
    run = on_device(vendor, PROGRAM, tmp_path, "--model", "gpt2", "--compile", **ONE)
    assert run.losses == cpu.losses
    assert run.report["generated"] == COUNTED


@pytest.mark.long
def test_a_version_of_cuda_for_checks_that_want_one(tmp_path: Path) -> None:
    assert "--tf32 requires Ampere" in fails_on_device("ascend", PROGRAM, tmp_path, "--tf32")
    run = on_device("ascend", PROGRAM, tmp_path, "--tf32", options=("--cuda-version", "12.4"))
    assert run.losses[-1] < run.losses[0]


@pytest.mark.long
def test_two_devices_in_one_process_are_refused_where_the_vendor_refuses_them(tmp_path: Path) -> None:
    """transformers has no way of its own for this vendor; for the others it uses one device."""
    said = fails_on_device("tecorigin", PROGRAM, tmp_path)
    assert "use torch.nn.parallel.DistributedDataParallel" in said
