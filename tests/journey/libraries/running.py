"""Runs the programs of this folder: on the CPU, as they are, and on a simulated device through the layer."""

from __future__ import annotations

import functools
import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tests.forked_ferry import ferry_forked
from tests.forking import run_forked
from tests.sim.checking import ROOT, VENDORS
from torchferry.vendors.registry import get_vendor

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
# A vendor of whom no library has heard: all of them take their way for CUDA.
UNKNOWN = "acme"
UNKNOWN_DATA = ROOT / "examples" / "vendors" / UNKNOWN
DEVICES = [*VENDORS, UNKNOWN]
_ENVIRONMENT = {
    "PYTHONPATH": str(HERE / "beside_cpu_torch"),
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
}
_PICTURE_SIZE, _PICTURE_CLASSES = 32, 4


@dataclass(frozen=True)
class Run:
    """What a program reported at its end, and what the simulator saw of it."""

    report: dict[str, Any]
    summary: dict[str, Any]

    @property
    def losses(self) -> list[float]:
        """Of training, in order."""
        losses: list[float] = self.report["losses"]
        return losses

    def calls(self, operator: str) -> int:
        """How often an operator ran on the device, whichever of its overloads."""
        counts = ((entry["name"].partition(".")[0], entry["calls"]) for entry in self.summary["operators"])
        return sum(calls for name, calls in counts if name == f"aten::{operator}")


def device_type(vendor: str) -> str:
    """npu, mlu, ..."""
    return get_vendor(vendor, (UNKNOWN_DATA,)).device_type


def half_precision(vendor: str) -> str:
    """float16 where the vendor computes with it, as a CUDA program is used to; else bfloat16."""
    known = get_vendor(vendor, (UNKNOWN_DATA,)).amp_dtypes
    return "float16" if "float16" in known else "bfloat16"


def on_device(
    vendor: str, program: str, *arguments: object, options: tuple[str, ...] = (), **environment: str
) -> Run:
    """Run a program with `ferry run` on two simulated devices; it must succeed.

    `program` is a file of this folder, or a command line of `ferry run` that starts with -m.
    """
    with tempfile.TemporaryDirectory() as folder:
        summary = Path(folder) / "summary.json"
        command = [
            "run", "--sim", "--to", vendor, "--vendor-path", str(UNKNOWN_DATA), "--devices", "2", "-q",
            "-o", str(summary), *options, *_command(program, arguments),
        ]  # fmt: skip
        ended = ferry_forked(*command, folder=ROOT, **{**_ENVIRONMENT, **environment})
        assert ended.returncode == 0, f"{' '.join(command)}\n{ended.stdout}\n{ended.stderr}"
        return Run(_report(ended.stdout), json.loads(summary.read_text()))


def fails_on_device(vendor: str, program: str, *arguments: object, **environment: str) -> str:
    """Run a program that must fail, with what it says."""
    command = ["run", "--sim", "--to", vendor, "--devices", "2", "-q", *_command(program, arguments)]
    ended = ferry_forked(*command, folder=ROOT, **{**_ENVIRONMENT, **environment})
    assert ended.returncode == 1, ended.stdout
    return ended.stderr


@functools.cache
def on_cpu(program: str, *arguments: object) -> Run:
    """Run a program as it is; `{folder}` among its arguments is a folder for what it writes."""
    with tempfile.TemporaryDirectory() as folder:
        placed = [folder if argument == "{folder}" else argument for argument in arguments]
        script, *words = _command(program, placed)
        ended = run_forked(Path(script), {**os.environ, **_ENVIRONMENT}, arguments=words)
        assert ended.returncode == 0, f"{script}\n{ended.stdout}\n{ended.stderr}"
        return Run(_report(ended.stdout), {})


def make_pictures(folder: Path) -> Path:
    """Folders of pictures for training and validation: noise with a tint that tells the class."""
    made = np.random.default_rng(1)
    for split, count in (("train", 12), ("validation", 4)):
        for label in range(_PICTURE_CLASSES):
            place = folder / split / f"class{label}"
            place.mkdir(parents=True)
            tint = np.array([label & 1, label >> 1, 1]) * 160
            for number in range(count):
                noise = made.integers(0, 95, (_PICTURE_SIZE, _PICTURE_SIZE, 3))
                Image.fromarray((noise + tint).astype(np.uint8)).save(place / f"{number}.png")
    return folder


def _command(program: str, arguments: Sequence[object]) -> list[str]:
    words = program.split()
    return [*words[:-1], str(PROGRAMS / words[-1]), *map(str, arguments)]


def _report(stdout: str) -> dict[str, Any]:
    """The programs print it as their last line, in JSON."""
    lines = [line for line in stdout.splitlines() if line.startswith('{"device"')]
    assert len(lines) == 1, stdout
    report: dict[str, Any] = json.loads(lines[0])
    return report
