"""The classic ImageNet trainer: converted for each vendor, or migrated by hand as the Ascend guide does it, it
trains on the simulated device; unchanged as well, and every way is proved against the original on the CPU."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.forked_ferry import ferry_forked
from tests.forked_ferry import printed_by_ferry as ferry
from tests.forking import run_forked
from torchferry.cli.main import main

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "imagenet"
BY_HAND = Path(__file__).parent / "programs" / "by_hand.py"
FERRY = str(Path(sys.executable).parent / "ferry")
VENDORS = ["ascend", "cambricon", "tecorigin"]
SMALL = [
    "--dummy", "-a", "resnet_tiny", "--dummy-batches", "3", "-b", "8", "--image-size", "32", "--classes", "10",
    "-j", "0", "--epochs", "1", "--seed", "1", "-p", "1",
]  # fmt: skip
LOSS = re.compile(r"Loss (\d\.\d+e[+-]\d+)")
# Elsewhere in `make test` the other vendors' converted trainer is proved, and their collectives are checked.
ONE_VENDOR = pytest.mark.parametrize(
    "vendor", [VENDORS[0], *(pytest.param(name, marks=pytest.mark.long) for name in VENDORS[1:])]
)


def run(command: list[str], folder: Path, **environment: str) -> str:
    """Standard output of a command that must succeed."""
    ended = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=folder, env={**os.environ, **environment}
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def converted(vendor: str, folder: Path) -> Path:
    """The trainer, converted."""
    out = folder / f"out_{vendor}"
    assert main(["convert", str(EXAMPLE), "-o", str(out), "--to", vendor, "-q"]) == 0
    return out / "main.py"


def converted_run(vendor: str, folder: Path) -> list[str]:
    """The command that trains the converted program on two simulated cards."""
    options = ["--sim", "--converted", "--to", vendor, "--devices", "2", "-q"]
    return [FERRY, "run", *options, str(converted(vendor, folder)), *SMALL]


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The losses of the original on the CPU."""
    folder = tmp_path_factory.mktemp("original")
    ended = run_forked(EXAMPLE / "main.py", os.environ, folder, SMALL)
    assert ended.returncode == 0, ended.stderr
    return LOSS.findall(ended.stdout)


@ONE_VENDOR
def test_one_card_gives_the_losses_of_the_original_on_the_cpu(
    vendor: str, original: list[str], tmp_path: Path
) -> None:
    on_device = run([*converted_run(vendor, tmp_path), "--gpu", "1"], tmp_path)
    losses = LOSS.findall(on_device)
    assert len(losses) == 6  # three of training, three of validation
    assert losses == original


@ONE_VENDOR
def test_one_process_per_card(vendor: str, tmp_path: Path) -> None:
    options = ["--multiprocessing-distributed", "--world-size", "1", "--rank", "0"]
    address = ["--dist-url", f"tcp://127.0.0.1:{free_port()}"]
    output = run([*converted_run(vendor, tmp_path), *options, *address], tmp_path)
    assert "Use GPU: 0" in output and "Use GPU: 1" in output
    assert len(re.findall(r"Epoch: \[0\]\[\d/2\]", output)) == 4  # two steps of two processes
    assert (tmp_path / "checkpoint.pth.tar").exists()


def test_data_parallel_is_refused_and_the_message_says_what_to_use(tmp_path: Path) -> None:
    options = ["--sim", "--converted", "--to", "ascend", "--devices", "2"]
    script = converted("ascend", tmp_path)
    ended = ferry_forked("run", *options, script, *SMALL, folder=tmp_path)
    assert ended.returncode == 1
    assert "use torch.nn.parallel.DistributedDataParallel with backend 'hccl'" in ended.stderr


def by_hand(folder: Path, *options: str, devices: int = 1) -> list[float]:
    """The losses of the hand-migrated program."""
    sim = ["--sim", "--to", "ascend", "--devices", str(devices), "-q"]
    output = ferry(folder, "run", *sim, str(BY_HAND), *options, PYTHONPATH=str(EXAMPLE))
    return [float(loss) for loss in re.findall(r"loss (\d+\.\d{6})", output)]


def test_the_guides_program_with_apex(tmp_path: Path) -> None:
    plain = by_hand(tmp_path)
    assert len(plain) == 4
    for level in ("O1", "O2"):
        checkpoint = str(tmp_path / f"{level}.pth")
        mixed = by_hand(tmp_path, "--amp", "--opt-level", level, "--checkpoint", checkpoint)
        assert mixed != plain  # half precision was used
        assert mixed == pytest.approx(plain, rel=1e-2)
        assert Path(checkpoint).exists()


def test_the_guides_program_on_two_cards(tmp_path: Path) -> None:
    options = ["--device-list", "0,1", "--port", str(free_port()), "--amp"]
    losses = by_hand(tmp_path, *options, devices=2)
    assert len(losses) == 8


def test_the_unchanged_program_gives_the_losses_of_the_original_on_the_cpu(
    original: list[str], tmp_path: Path
) -> None:
    program = [str(EXAMPLE / "main.py"), *SMALL]
    unchanged = ferry(tmp_path, "run", "--sim", "--to", "tecorigin", "-q", *program, "--gpu", "0")
    assert "Use GPU: 0 for training" in unchanged
    assert LOSS.findall(unchanged) == original


def prove(folder: Path, *arguments: str) -> dict[str, str]:
    """Vendor -> verdict of a proof that must succeed."""
    ferry(
        folder, "prove", "--cwd", ".", "-o", "proof", *arguments
    )  # the checkpoints, too, go into this folder
    results = json.loads((folder / "proof" / "proof.json").read_text("utf-8"))["results"]
    return {result["vendor"]: result["verdict"] for result in results}


def test_converted_programs_are_proved_equal(tmp_path: Path) -> None:
    for vendor in VENDORS:
        converted(vendor, tmp_path)
    programs = ["--before", str(EXAMPLE / "main.py"), "--after", "out_{vendor}/main.py"]
    found = prove(tmp_path, "--to", ",".join(VENDORS), *programs, "--", *SMALL, "--gpu", "0")
    assert found == dict.fromkeys(VENDORS, "equal")


@ONE_VENDOR
def test_one_process_per_card_is_proved_equal_to_gloo_on_the_cpu(vendor: str, tmp_path: Path) -> None:
    distributed = ["--multiprocessing-distributed", "--world-size", "1", "--rank", "0"]
    address = ["--dist-url", f"tcp://127.0.0.1:{free_port()}"]
    options = ["--to", vendor, "--devices", "2", "--exact", "--"]
    found = prove(tmp_path, *options, str(EXAMPLE / "main.py"), *SMALL, *distributed, *address)
    assert found == {vendor: "equal"}
    assert {process["identity"]["rank"] for process in _processes(tmp_path)} == {0, 1}


def _processes(folder: Path) -> list[dict[str, Any]]:
    """The processes of the original that took steps."""
    content = json.loads((folder / "proof" / "proof.json").read_text("utf-8"))
    found: list[dict[str, Any]] = content["reference"]["processes"]
    return found
