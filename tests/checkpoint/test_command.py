"""`ferry checkpoint`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checkpoint import samples
from tests.checkpoint.test_reading import Hostile, save_zip
from torchferry.cli.main import main


def test_info_says_what_is_inside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = samples.nested(tmp_path / "a.pth.tar", args=True)
    assert main(["checkpoint", "info", str(file)]) == 0
    text = capsys.readouterr().out
    for expected in (
        "weights: state_dict, 7 tensors; every name begins with module.",
        "needs classes whose code would run: tests.checkpoint.samples.Settings",
        "saved on npu:0",
        "--part state_dict --strip module. --map npu:cpu",
    ):
        assert expected in text


def test_info_in_chinese_and_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = samples.nested(tmp_path / "a.pth.tar")
    assert main(["checkpoint", "info", str(file), "--lang", "zh"]) == 0
    assert "权重：state_dict" in capsys.readouterr().out
    assert main(["checkpoint", "info", str(file), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["state_dicts"] == [{"name": "state_dict", "tensors": 7, "prefixes": ["module."]}]
    assert data["tensors"]["state_dict.module.0.bias"] == {
        "shape": [4], "dtype": "float32", "device": "npu:0", "bytes": 16,
    }  # fmt: skip


def test_check_fails_for_a_dangerous_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_zip({"x": Hostile("true")}, tmp_path / "a.pth")
    assert main(["checkpoint", "info", str(tmp_path / "a.pth"), "--check"]) == 1
    assert "posix.system" in capsys.readouterr().out


def test_fix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, output = samples.nested(tmp_path / "a.pth.tar"), tmp_path / "clean.pth"
    command = [
        "checkpoint",
        "fix",
        str(file),
        "-o",
        str(output),
        "--part",
        "state_dict",
        "--strip",
        "module.",
        "--map",
        "npu:cpu",
    ]
    assert main(command) == 0
    assert "removed module. from 7 names" in capsys.readouterr().out
    assert main(command) == 2
    assert "already exists" in capsys.readouterr().err


@pytest.mark.parametrize("devices", ["npu", "npu:", "1:cpu", "npu:0:1"])
def test_a_map_must_name_two_devices(devices: str, tmp_path: Path) -> None:
    assert main(["checkpoint", "fix", "a", "-o", "b", "--map", devices]) == 2


def test_info_without_torch(tmp_path: Path) -> None:
    file = samples.nested(tmp_path / "a.pth.tar")
    code = "import sys; sys.modules['torch'] = sys.modules['numpy'] = None\nfrom torchferry.cli.main import main\nsys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, "checkpoint", "info", str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "weights" in done.stdout, done.stderr
    done = subprocess.run(
        [sys.executable, "-c", code, "checkpoint", "fix", str(file), "-o", "b"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        2,
        "ferry: ferry checkpoint fix needs torch; pip install torch\n",
    )
