"""`ferry export`."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from torchferry.cli.main import main

_MODEL = ["--model", "tests.onnx_export.networks:Pair", "--input", "2x3x4", "--input", "2x5x4"]


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "pair.onnx"
    assert main(["export", *_MODEL, "--to", "ascend", "-o", str(output)]) == 0
    text = capsys.readouterr().out
    assert (
        "opset 11" in text and "atc --model=" in text and "operators are supported by atc of ascend" in text
    )
    assert output.exists()
    assert main(["export", *_MODEL, "-o", str(output)]) == 2
    assert "already exists" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--run"], "--run needs a vendor; add --to"),
        (["--run", "--to", "tecorigin"], "the converter of tecorigin is unknown"),
        (["--to", "ascent"], "did you mean"),
        (["--dynamic", "0"], "--dynamic 0: write a name"),
    ],
)
def test_bad_usage(options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", *_MODEL, "-o", str(tmp_path / "a.onnx"), *options]) == 2
    assert said in capsys.readouterr().err


def test_the_output_is_no_file_or_the_checkpoint_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = tmp_path / "a.pth"
    checkpoint.write_bytes(b"weights")
    assert main(["export", str(checkpoint), *_MODEL, "-o", str(checkpoint), "--force"]) == 2
    assert "this is the checkpoint itself" in capsys.readouterr().err
    assert main(["export", *_MODEL, "-o", "/dev/null", "--force"]) == 2
    assert "/dev/null: not a regular file" in capsys.readouterr().err
    assert main(["export", *_MODEL, "-o", str(checkpoint / "a.onnx")]) == 2
    assert "can't be written: Not a directory" in capsys.readouterr().err
    assert checkpoint.read_bytes() == b"weights" and list(tmp_path.iterdir()) == [checkpoint]


def test_names_that_a_converter_would_take_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["export", *_MODEL, "-o", str(tmp_path / "a.onnx"), "--input-names", "a;b:1,c"]
    assert main(command) == 2
    assert "is not a list of different names" in capsys.readouterr().err


def test_without_onnx(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *_: None if name == "onnx" else found(name))
    assert main(["export", *_MODEL, "-o", str(tmp_path / "a.onnx")]) == 2
    assert "ferry export needs onnx; pip install 'torchferry[export]'" in capsys.readouterr().err
