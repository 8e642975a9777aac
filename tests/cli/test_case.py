"""`ferry case`: a test of one operator, written, run, and made smaller."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from torchferry.cli.main import main
from torchferry.readiness.cases.bench import Bench
from torchferry.readiness.cases.model import TrialFacts
from torchferry.vendors.registry import get_vendor

# A kernel of the device that is wrong for rows of more than seven integers.
FAULT = """
import torch

def kernel(tensor):
    host = tensor.cpu()
    wrong = host.dtype == torch.int64 and host.ndim > 0 and host.shape[-1] > 7
    return (torch.abs(host) + wrong).to(tensor.device)

library = torch.library.Library("aten", "IMPL")
library.impl("abs", kernel, "PrivateUse1")
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORCHFERRY_LANG", "en")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setattr(sys, "argv", ["ferry", "case", "..."])
    return tmp_path


def _pytest(file: Path, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", str(file)]
    environment = {**os.environ, **variables}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def test_the_guide_s_example(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["case", "torch.max", "--input", "10x20:int64", "--to", "ascend", "--check"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "wrote test_max.py",
        "equal: ascend's simulated device computes the same as the CPU",
    ]
    before = (folder / "test_max.py").read_bytes()
    assert main(["case", "torch.max", "--input", "3x4", "--to", "ascend"]) == 2
    assert "test_max.py: exists already; --force replaces it" in capsys.readouterr().err
    assert (folder / "test_max.py").read_bytes() == before


@pytest.fixture
def record(folder: Path) -> Path:
    """A call of max_pool2d's backward: the indices are those that its forward has found."""
    import torch

    x = torch.randn(2, 3, 8, 8)
    y, indices = torch.nn.functional.max_pool2d(x, 2, return_indices=True)
    tensors = {"grad_output": (torch.randn_like(y), 1), "self": (x, 1), "indices": (indices, 7)}
    lists = {"kernel_size": [2, 2], "stride": [2, 2], "padding": [0, 0], "dilation": [1, 1]}
    with h5py.File(folder / "record.h5", "w") as file:
        group = file.create_group("/max_pool2d_with_indices_backward/7/input")
        for name, (tensor, dtype) in tensors.items():
            dataset = group.create_dataset(name, data=tensor.numpy())
            dataset.attrs.update({"DataType": dtype, "DeviceType": 0, "Type": 0, "FormatType": 0})
            dataset.attrs["Stride"] = np.array(tensor.stride())
        for name, values in lists.items():
            group.create_dataset(name, data=np.array(values)).attrs["Type"] = 2
        group.create_dataset("ceil_mode", data=np.int8(0)).attrs["Type"] = 4
    return folder / "record.h5"


def test_from_a_record_and_on_another_device(
    record: Path, folder: Path, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    operator = "aten::max_pool2d_with_indices_backward"
    assert main(["case", operator, "--from", str(record), "--to", "ascend", "-o", "test_pool.py"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "wrote test_pool.py, and its recorded tensors to test_pool.pt"
    assert out[1].startswith("equal: ")
    record.unlink()  # the case does not need it any more
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    run = _pytest(folder / "test_pool.py", elsewhere, TORCHFERRY_CASE_TO="cambricon")
    assert run.returncode == 0 and "2 passed" in run.stdout, run.stdout


def test_list(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["case", "--from", str(record), "--list"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("   7  max_pool2d_with_indices_backward(") and "kernel_size=[2, 2]" in line


def test_shrink(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "wrong_kernels.py").write_text(FAULT)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    call = ["case", "torch.abs", "--input", "10x20:int64:ones:transposed", "--to", "ascend"]
    rest = ["--import", "wrong_kernels", "--shrink", "--check", "-o", "test_abs.py"]
    assert main([*call, *rest]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[1].startswith(
        "differs on ascend's simulated device, forward: output: the values differ: 200 of 200"
    )
    assert out[2].startswith("the smallest case with the same failure (") and out[2].endswith(
        ": torch.abs(8:int64:full(0))"
    )
    assert "max abs error 1, max rel error inf, worst at [0]" in out[3]
    assert out[4] == "wrote test_abs.py"
    assert "torch.full((8,), 0, dtype=torch.int64)" in (folder / "test_abs.py").read_text()


def test_a_module_of_the_user_s_to_stdout(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "import torch\n\nclass Net(torch.nn.Linear):\n    def forward(self, x):\n        return super().forward(x).relu()\n"
    (folder / "nets_of_mine.py").write_text(text)
    arguments = [
        "nets_of_mine:Net",
        "--init",
        "4,out_features=3",
        "--input",
        "5x4",
        "--to",
        "ascend",
        "--lang",
        "zh",
    ]
    assert main(["case", *arguments, "-o", "-", "--style", "unittest"]) == 0
    shown = capsys.readouterr()
    assert "return Net(4, out_features=3)" in shown.out and "def npu_op_exec(" in shown.out
    assert shown.err == "一致：模拟的 ascend 设备与 CPU 的结果相同\n"
    assert sorted(os.listdir(folder)) in (["nets_of_mine.py"], ["__pycache__", "nets_of_mine.py"])


def test_interrupted_when_the_file_is_there(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Bench, "probe", lambda *_: TrialFacts())
    monkeypatch.setattr(Bench, "run", interrupted)
    assert main(["case", "torch.abs", "--input", "3x4", "--to", "ascend"]) == 130
    assert capsys.readouterr().err == "ferry: interrupted; test_abs.py was not changed\n"
    assert os.listdir(folder) == ["test_abs.py"]


def test_fallback(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An operator that the vendor's table does not list, on a device whose adapter computes such on the CPU."""
    assert get_vendor("cambricon").limits.missing_operator.value == "falls_back"
    assert main(["case", "aten::special_bessel_j0", "--input", "3x4", "--to", "cambricon", "--check"]) == 0
    line = capsys.readouterr().out.splitlines()[1]
    assert line.startswith(
        "falls back to the CPU: cambricon's simulated device has no kernel for aten::special_bessel_j0"
    )
    assert line.endswith("; results are equal")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "which operator, for which device?"),
        (["max"], "which operator, for which device?"),
        (["max", "--to", "nobody"], "nobody"),
        (["max", "--to", "ascend", "--from", "no.h5"], "no such file: no.h5"),
        (["--list"], "--list lists the calls of a file"),
        (["aten::maxx", "--to", "ascend"], "did you mean aten::max"),
        (["max", "--to", "ascend", "--input", "3x4", "-o", "case.txt"], "a test's file ends in .py"),
        (["max", "--to", "ascend", "--input", "3x4", "-o", "no/test_x.py"], "no such folder: no"),
        (["max", "--to", "ascend", "--input", "3x4", "--init", "3"], "max: not a module"),
        (["max", "--to", "ascend", "--input", "3x4:flaot16"], "did you mean `float16`?"),
    ],
)
def test_mistakes(arguments: list[str], said: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["case", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.count("\n") == 1 and said in shown.err, shown.err
    assert os.listdir(folder) == []


def test_what_the_cpu_refuses(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = ["--input", "5x5", "--input", "1", "--input", "5x5"]
    assert main(["case", "torch.gather", *inputs, "--to", "ascend"]) == 2
    assert "the CPU refuses it: RuntimeError: gather(): Expected dtype" in capsys.readouterr().err
    assert os.listdir(folder) == []


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["case", "--help"])
    shown = capsys.readouterr().out
    for word in ("--shrink", "--import", "10x20:int64", "uniform(0,1)", "channels_last", "--style"):
        assert word in shown
