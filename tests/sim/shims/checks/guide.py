"""The trainer that the Ascend guide migrates by hand, on the device it names."""

from __future__ import annotations

import importlib
import tempfile
from pathlib import Path
from typing import Any

import torch


def run(*arguments: str) -> Any:
    torch.npu.set_device("npu:1")  # type: ignore[attr-defined]
    try:
        return importlib.import_module("tests.sim.shims.guide_program").main(list(arguments))
    finally:
        torch.npu.set_device("npu:0")  # type: ignore[attr-defined]


def check_it_trains_at_each_level(device: str) -> None:
    if device == "cpu":
        return  # it asks for an NPU
    plain, _ = run()
    for level, precision in (("O2", torch.float16), ("O1", torch.float32)):
        losses, dtype = run("--amp", "--opt-level", level, "--loss-scale", "128")
        assert dtype == precision
        assert losses != plain
        torch.testing.assert_close(losses, plain, rtol=0.02, atol=0.0)


def check_it_resumes(device: str) -> None:
    if device == "cpu":
        return  # it asks for an NPU
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "checkpoint.pth.tar")
        whole, _ = run("--amp", "--epochs", "2")
        first, _ = run("--amp", "--epochs", "1", "--checkpoint", file)
        assert first == whole[:1]
        rest, _ = run("--amp", "--epochs", "2", "--resume", file)
        torch.testing.assert_close(rest, whole[1:], rtol=1e-3, atol=0.0)
