"""Checkpoint -> ONNX -> onnxruntime for architectures of the guide's table, as saved by a training on several devices."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.onnx_export.architectures import ARCHITECTURES, Architecture, calibrated
from tests.onnx_export.exports import exported_here
from torchferry.checkpoint.writing import write_torch
from torchferry.onnx_export.model import ExportRequest
from torchferry.readiness.models.request import ModelRequest
from torchferry.readiness.models.step import make_model

_QUICK = ("ResNet18", "SqueezeNet1_1", "LPRNet")


@pytest.mark.parametrize(
    "architecture",
    [
        pytest.param(each, id=each.name, marks=() if each.name in _QUICK else pytest.mark.long)
        for each in ARCHITECTURES
    ],
)
def test_checkpoint_computes_the_same_with_onnxruntime(architecture: Architecture, tmp_path: Path) -> None:
    request = ModelRequest(architecture.factory, (architecture.input,), architecture.init)
    torch.manual_seed(0)
    shape = tuple(map(int, architecture.input.split("x")))
    weights = calibrated(make_model(request), shape).state_dict()
    wrapped = {f"module.{name}": tensor for name, tensor in weights.items()}
    devices = {tensor.untyped_storage()._cdata: "npu:0" for tensor in wrapped.values()}
    checkpoint = tmp_path / "checkpoint.pth.tar"
    write_torch(checkpoint, {"epoch": 3, "state_dict": wrapped, "best_acc1": 71.5}, devices)

    output = tmp_path / "model.onnx"
    exported = exported_here(ExportRequest(request, str(output), 11, str(checkpoint), dynamic=("batch",)))

    assert {check.sizes["batch"] for check in exported.checks} == {1, 4}
    assert all(check.is_good and check.scale > 1e-3 for check in exported.checks), exported.checks
    assert max(check.error for check in exported.checks) <= 1e-4
    assert output.stat().st_size > sum(tensor.nbytes for tensor in weights.values()) * 0.9
