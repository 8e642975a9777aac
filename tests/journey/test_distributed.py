"""Programs for one card, converted for many: trained by two and four processes on simulated devices, their gradients
are those of one process that trains the original on the joined batches."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).parents[2]
SINGLE = ROOT / "examples" / "single_gpu"
RECORDING = Path(__file__).parent / "programs" / "recording.py"
FERRY = str(Path(sys.executable).parent / "ferry")


# Starts a launch script where the simulated devices are.
START = "import subprocess, sys; sys.exit(subprocess.call(['bash', *sys.argv[1:]]))"


@dataclass(frozen=True)
class Example:
    """A training program, and how it is converted and started."""

    folder: Path
    main: str
    vendor: str  # whose device it is converted to
    device: str  # on whose simulated device that runs
    options: tuple[str, ...]  # of the conversion
    arguments: tuple[str, ...]  # of the program
    checkpoint: str
    script: str = ""  # the launch script, where that starts it
    alone: tuple[str, ...] = ()  # further arguments of the original
    environment: tuple[tuple[str, str], ...] = ()


MNIST = Example(
    SINGLE / "mnist", "train.py", "ascend", "ascend", ("--sync-batchnorm",),
    ("--samples", "128", "--batch-size", "8", "--epochs", "1"), "checkpoints/last.pt",
    script="run_distributed_npu.sh",
)  # fmt: skip
GAN = Example(
    SINGLE / "gan", "gan.py", "cambricon", "cambricon", ("--sync-batchnorm",),
    ("--samples", "128", "--batchSize", "8", "--niter", "1"), "out/netG.pth",
)  # fmt: skip
LANGUAGE_MODEL = Example(
    SINGLE / "lm", "main.py", "portable", "moorethreads", ("--batch", "split"),
    ("--sentences", "40", "--batch-size", "8", "--epochs", "1"), "lm.pt",
)  # fmt: skip
# Distributed already: it is left as it is, and starts its processes itself. Its BatchNorm layers, which the script
# does not synchronize, are made to do so for the comparison.
IMAGENET = Example(
    ROOT / "examples" / "imagenet", "main.py", "tecorigin", "tecorigin", (),
    ("--dummy", "-a", "resnet_tiny", "--dummy-batches", "12", "-b", "8", "--image-size", "32", "--classes", "10",
     "-j", "0", "--epochs", "1", "--seed", "1"),
    "checkpoint.pth.tar", script="run_distributed_sdaa.sh", alone=("--gpu", "0"), environment=(("SYNC_BATCHNORM", "1"),),
)  # fmt: skip


def run(command: list[str], folder: Path, **environment: str) -> str:
    """The output of a command that must succeed."""
    settings = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    ended = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=folder, env=settings, timeout=400
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def recorded_copy(folder: Path, main: str) -> Path:
    """Let a script import what notes its batches and gradients."""
    shutil.copy(RECORDING, folder / "recording.py")
    script = folder / main
    script.write_text(f"import recording\n{script.read_text('utf-8')}", "utf-8")
    return script


def convert(example: Example, folder: Path) -> Path:
    out = folder / "converted"
    options = ["--to", example.vendor, "--distributed", "--main", example.main, *example.options]
    run([FERRY, "convert", str(example.folder), "-o", str(out), "-q", *options], folder)
    return out


def free_port() -> str:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


def train_together(example: Example, out: Path, processes: int, notes: Path) -> str:
    """Train the converted program with several processes, each on a simulated card of its own."""
    options = ["--to", example.device, "--devices", str(processes), "--sim", "--converted", "-q"]
    settings = {"RECORDING": str(notes), "PYTHON": sys.executable, "MASTER_PORT": free_port()}
    if example.script:
        (out / "start.py").write_text(START, "utf-8")
        options += ["start.py", example.script]
    else:
        options += ["--nproc", str(processes), "--master-port", free_port(), example.main]
    return run([FERRY, "run", *options, *example.arguments], out, **settings, **dict(example.environment))


def train_alone(example: Example, folder: Path, processes: int, notes: Path) -> None:
    """Train the original on one simulated card, with the batches of all processes joined."""
    original = folder / "original"
    shutil.copytree(example.folder, original)
    recorded_copy(original, example.main)
    command = [FERRY, "run", "--to", example.device, "--sim", "-q", example.main]
    run([*command, *example.arguments, *example.alone], original, RECORDING=str(notes), REPLAY=str(processes))


def load(file: Path) -> Any:
    return torch.load(file, map_location="cpu", weights_only=False)


def tensors(batch: Any) -> list[torch.Tensor]:
    return [batch] if isinstance(batch, torch.Tensor) else list(batch)


def check_shares(ranks: list[dict[str, Any]]) -> None:
    """Every process trained on samples of its own, in as many steps."""
    assert len({len(notes["batches"]) for notes in ranks}) == 1
    for step in zip(*(notes["batches"] for notes in ranks), strict=True):
        samples = torch.cat([tensors(batch)[0] for batch in step]).flatten(1)
        assert len(samples.unique(dim=0)) == len(samples)


def check_gradients(ranks: list[dict[str, Any]], alone: dict[str, Any]) -> None:
    """The processes agree with each other and with the one that had all the samples."""
    assert len(alone["gradients"]) == len(ranks[0]["gradients"]) >= 2
    for step, expected in enumerate(alone["gradients"]):
        assert any(gradient.abs().max() > 1e-4 for gradient in expected)
        for notes in ranks:
            torch.testing.assert_close(notes["gradients"][step], expected, rtol=2e-3, atol=2e-5)


def check_checkpoint(example: Example, out: Path, folder: Path) -> None:
    """What was saved has the names and shapes of what the original saves."""
    ours, theirs = load(out / example.checkpoint), load(folder / "original" / example.checkpoint)
    for name in ("model", "state_dict"):
        ours, theirs = ours.get(name, ours), theirs.get(name, theirs)
    strip = "module." if example is IMAGENET else ""  # which saves the wrapped model, as it always did
    shapes = {name.removeprefix(strip): value.shape for name, value in ours.items()}
    assert shapes == {name: value.shape for name, value in theirs.items()}


def prove(example: Example, processes: int, folder: Path) -> None:
    out = convert(example, folder)
    recorded_copy(out, example.main)
    notes = folder / "notes"
    notes.mkdir()
    train_together(example, out, processes, notes)
    train_alone(example, folder, processes, notes)
    ranks = [load(notes / f"{rank}.pt") for rank in range(processes)]
    check_shares(ranks)
    check_gradients(ranks, load(notes / "joined.pt"))
    assert ranks[0]["saved"]
    assert not any(notes["saved"] for notes in ranks[1:])
    check_checkpoint(example, out, folder)


def test_a_trainer_by_two_processes_that_the_launch_script_starts(tmp_path: Path) -> None:
    prove(MNIST, 2, tmp_path)


def test_a_language_model_by_two_processes(tmp_path: Path) -> None:
    prove(LANGUAGE_MODEL, 2, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize(
    ("example", "processes"),
    [(MNIST, 4), (GAN, 2), (GAN, 4), (LANGUAGE_MODEL, 4), (IMAGENET, 2), (IMAGENET, 4)],
    ids=lambda value: value.folder.name if isinstance(value, Example) else str(value),
)
def test_by_several_processes(example: Example, processes: int, tmp_path: Path) -> None:
    prove(example, processes, tmp_path)


SMALL = ["--samples", "64", "--batch-size", "8", "--epochs"]


@pytest.mark.long
def test_a_checkpoint_goes_back_and_forth(tmp_path: Path) -> None:
    out = convert(MNIST, tmp_path)
    original = tmp_path / "original"
    shutil.copytree(MNIST.folder, original)
    together = [
        FERRY,
        "run",
        "--to",
        "ascend",
        "--sim",
        "--converted",
        "--nproc",
        "2",
        "-q",
        "train.py",
        *SMALL,
    ]
    alone = [FERRY, "run", "--to", "ascend", "--sim", "-q", "train.py", *SMALL]
    run([*together, "1"], out)
    resumed = run([*alone, "2", "--resume", str(out / MNIST.checkpoint)], original)
    assert "Train Epoch: 1" in resumed
    assert "Train Epoch: 0" not in resumed
    resumed = run([*together, "3", "--resume", str(original / MNIST.checkpoint)], out)
    assert "Train Epoch: 2" in resumed
    assert "Train Epoch: 1" not in resumed


@pytest.mark.long
def test_without_torchrun_one_process_trains_alone(tmp_path: Path) -> None:
    out = convert(MNIST, tmp_path)
    command = [FERRY, "run", "--to", "ascend", "--sim", "--converted", "-q", "train.py", *SMALL, "1"]
    assert run(command, out).count("Train Epoch: 0") == 2


@pytest.mark.long
def test_the_first_process_speaks_for_all(tmp_path: Path) -> None:
    out = convert(LANGUAGE_MODEL, tmp_path)
    options = ["--to", "cambricon", "--sim", "--converted", "--nproc", "2", "-q"]
    output = run([FERRY, "run", *options, "main.py", "--sentences", "40", "--epochs", "1"], out)
    assert output.count("sample:") == 1
