"""A program that uses all of CUDA's common names, converted for every device: it runs on the CPU and on each
simulated device, with the losses of the original. So do the ImageNet trainer and the fine-tuning example."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.forked_ferry import printed_by_ferry as ferry
from tests.forking import run_forked
from torchferry.cli.main import main

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "examples" / "every_device" / "every_api.py"
FERRY = str(Path(sys.executable).parent / "ferry")
DEVICES = {"ascend": "npu", "cambricon": "mlu", "moorethreads": "musa", "tecorigin": "sdaa"}
ON_A_DEVICE = {"properties", "streams", "random"}
IMAGENET = [
    "--dummy", "-a", "resnet_tiny", "--dummy-batches", "2", "-b", "4", "--image-size", "32", "--classes", "5",
    "-j", "0", "--epochs", "1", "--gpu", "0",
]  # fmt: skip


def run(command: list[str], folder: Path) -> str:
    """Standard output of a command that must succeed."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=environment)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def converted(source: Path, folder: Path, *options: str) -> Path:
    """The converted copy of a project or a file."""
    out = folder / "out"
    assert main(["convert", str(source), "-o", str(out), "-q", *options]) == 0
    return out


def results(text: str) -> list[dict[str, Any]]:
    """What each process printed, for processes that print at once."""
    return [json.loads(part + "}") for part in text.replace("\n", "").split("}") if part]


@pytest.fixture(scope="module")
def losses(tmp_path_factory: pytest.TempPathFactory) -> list[float]:
    """Those of the original, with CUDA's names meaning the simulated device of some vendor."""
    folder = tmp_path_factory.mktemp("original")
    (result,) = results(ferry(folder, "run", "--to", "ascend", "--sim", "-q", PROGRAM))
    assert all(result[name] for name in ON_A_DEVICE)
    return list(result["losses"])


def check(result: dict[str, Any], device: str, losses: list[float]) -> None:
    assert result.pop("device") == device
    assert result.pop("losses") == losses
    assert all(result.values()), result
    assert (set(result) >= ON_A_DEVICE) is (device != "cpu")


@pytest.mark.parametrize(
    "options", [("--to", "ascend", "--keep-cuda"), ("--to", "intel", "--keep-cuda"), ("--to", "portable")]
)
def test_on_the_cpu(options: tuple[str, ...], losses: list[float], tmp_path: Path) -> None:
    out = converted(PROGRAM, tmp_path, *options)
    (result,) = results(run_forked(out / PROGRAM.name, os.environ, tmp_path).stdout)
    check(result, "cpu", losses)


@pytest.mark.parametrize(
    ("vendor", "options"),
    [
        ("ascend", ("--keep-cuda",)),
        ("ascend", ()),
        ("cambricon", ("--keep-cuda",)),
        *(
            pytest.param(vendor, options, marks=pytest.mark.long)
            for vendor in DEVICES
            for options in (("--keep-cuda",), ())
            if vendor not in ("ascend", "cambricon") or (vendor == "cambricon" and not options)
        ),
    ],
)
def test_on_the_device(vendor: str, options: tuple[str, ...], losses: list[float], tmp_path: Path) -> None:
    out = converted(PROGRAM, tmp_path, "--to", vendor if options else "portable", *options)
    command = ["run", "--to", vendor, "--sim", "--converted", "-q", str(out / PROGRAM.name)]
    (result,) = results(ferry(tmp_path, *command))
    check(result, DEVICES[vendor], losses)


def test_the_environment_chooses(losses: list[float], tmp_path: Path) -> None:
    """The vendor's device is there, and the user wants the CPU."""
    out = converted(PROGRAM, tmp_path, "--to", "ascend", "--keep-cuda")
    command = [FERRY, "run", "--to", "ascend", "--sim", "--converted", "-q", str(out / PROGRAM.name)]
    (result,) = results(run(["env", "FERRY_DEVICE=cpu", *command], tmp_path))
    check(result, "cpu", losses)


@pytest.mark.long
@pytest.mark.parametrize("options", [("--to", "ascend", "--keep-cuda"), ("--to", "portable")])
@pytest.mark.parametrize("on_device", [False, True])
def test_two_processes(
    options: tuple[str, ...], on_device: bool, losses: list[float], tmp_path: Path
) -> None:
    out = converted(PROGRAM, tmp_path, *options)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    if on_device:
        command = [FERRY, "run", "--to", "ascend", "--sim", "--converted", "-q", "--nproc", "2"]
    for result in results(run([*command, str(out / PROGRAM.name)], tmp_path)):
        check(result, "npu" if on_device else "cpu", losses)


@pytest.mark.long
@pytest.mark.parametrize("options", [("--to", "ascend", "--keep-cuda"), ("--to", "portable")])
def test_the_imagenet_trainer_is_proved(options: tuple[str, ...], tmp_path: Path) -> None:
    source = ROOT / "examples" / "imagenet"
    out = converted(source, tmp_path, *options)
    pair = ["--before", str(source / "main.py"), "--after", str(out / "main.py")]
    text = run([FERRY, "prove", "--to", "ascend", "--steps", "2", "-q", *pair, "--", *IMAGENET], tmp_path)
    assert "equal bit for bit" in text


@pytest.mark.long
def test_fine_tuning_is_that_of_a_conversion_for_the_vendor(tmp_path: Path) -> None:
    """Mixed precision, several modules, settings in a module of their own."""
    printed = []
    for name, options in {"vendor": (), "every": ("--keep-cuda",)}.items():
        (tmp_path / name).mkdir()
        out = converted(ROOT / "examples" / "finetune", tmp_path / name, "--to", "ascend", *options)
        command = [FERRY, "run", "--to", "ascend", "--sim", "--converted", "-q", str(out / "train.py")]
        printed.append(run([*command, "--steps", "6"], tmp_path))
    assert printed[0] == printed[1]
    assert printed[0].count("loss") == 2
