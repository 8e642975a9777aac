"""From the checkpoint that an unchanged CUDA program saves on a vendor's device to an ONNX model that runs elsewhere."""

from __future__ import annotations

import os
import runpy
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.forking import run_forked
from torchferry.cli.main import main

PROGRAM = Path(__file__).parent / "programs" / "digits.py"
VENDORS = {"ascend": "npu", "cambricon": "mlu", "tecorigin": "sdaa"}


def trained(vendor: str, folder: Path) -> Path:
    """The checkpoint that the program leaves where CUDA's names mean the vendor's simulated device."""
    environment = {**os.environ, "TORCHFERRY_TO": vendor, "TORCHFERRY_SIM": "1"}
    ended = run_forked(PROGRAM, environment, folder)
    assert ended.returncode == 0, ended.stderr
    return folder / "checkpoint.pth.tar"


def model_with(weights: dict[str, Any]) -> Any:
    model = runpy.run_path(str(PROGRAM))["Digits"]()
    model.load_state_dict(weights)
    return model.eval()


def following(printed: str, command: str) -> list[str]:
    """The next command, as the last one has named it."""
    (line,) = [line for line in printed.splitlines() if f"ferry {command}" in line]
    return shlex.split(line[line.index("ferry ") :])[1:]


@pytest.mark.parametrize(
    "vendor", ["ascend", *(pytest.param(name, marks=pytest.mark.long) for name in ("cambricon", "tecorigin"))]
)
def test_a_devices_checkpoint_becomes_an_onnx_model(
    vendor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    torch = pytest.importorskip("torch")
    onnxruntime = pytest.importorskip("onnxruntime")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORCHFERRY_LANG", "en")
    monkeypatch.setenv("COLUMNS", "400")
    checkpoint = trained(vendor, tmp_path)

    with pytest.raises(RuntimeError, match=f"restore data location.*{VENDORS[vendor]}:0"):
        torch.load(checkpoint)
    assert main(["checkpoint", "info", checkpoint.name]) == 0
    told = capsys.readouterr().out
    assert f"saved on {VENDORS[vendor]}:0" in told
    assert main(following(told, "checkpoint fix")) == 0
    weights = torch.load("clean.pth", weights_only=True)
    assert {weight.device.type for weight in weights.values()} == {"cpu"}

    model = model_with(weights)
    shape = ["--model", f"{PROGRAM}:Digits", "--input", "1x1x8x8", "--dynamic", "batch", "--to", vendor]
    for source in ("clean.pth", checkpoint.name):  # the export mends what it is given by itself, too
        assert main(["export", source, *shape, "-o", "digits.onnx", "--force"]) == 0
        session = onnxruntime.InferenceSession("digits.onnx", providers=["CPUExecutionProvider"])
        images = torch.randn(4, 1, 8, 8)
        (made,) = session.run(None, {session.get_inputs()[0].name: images.numpy()})
        with torch.no_grad():
            assert torch.allclose(torch.from_numpy(made), model(images), atol=1e-5)
