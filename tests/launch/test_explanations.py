"""What a user is told: what is redirected, and why a program that asked for CUDA itself has crashed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.commands import make
from tests.forking import run_forked
from torchferry import variables
from torchferry.launch.environment import child_environment
from torchferry.runtime.settings import REFERENCE, LayerSettings

from .ways import ferry_run


def test_explain_needs_no_program(tmp_path: Path) -> None:
    result = ferry_run("--list-redirects", "--to", "ascend")
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["the", "program", "writes", "it", "now", "means"]
    rows = dict(line.split("  ", 1) for line in lines if "  " in line)
    assert "torch.npu" in rows["torch.cuda.is_available"]
    assert len(lines) == len(set(lines))


def test_explain_leaves_stdout_to_the_program(tmp_path: Path) -> None:
    make(tmp_path, train="print('ran')\n")
    result = ferry_run("--list-redirects", "-q", "--to", "ascend", tmp_path / "train.py")
    assert result.stdout == "ran\n"
    assert "torch.cuda.is_available" in result.stderr


CRASHES = {
    "about CUDA": ("torch._C._cuda_setDevice(0)", True),
    "about CUDA, wrapped": (
        "torch._C._cuda_init()\nexcept Exception as e:\n    raise ValueError('no') from e",
        True,
    ),
    "about something else": ("raise ValueError('no')", False),
}


@pytest.mark.parametrize("case", CRASHES)
def test_a_crash_shows_the_programs_traceback_first(tmp_path: Path, case: str) -> None:
    statement, explained = CRASHES[case]
    body = f"try:\n    {statement}\n" if "except" in statement else f"{statement}\n"
    make(tmp_path, train=f"import torch\n{body}")
    result = ferry_run("-q", "--to", "ascend", tmp_path / "train.py")
    assert result.returncode == 1
    lines = result.stderr.splitlines()
    assert lines[0].startswith("Traceback")
    ours = [line for line in lines if line.startswith("torchferry:")]
    assert ours == (lines[-1:] if explained else [])
    if explained:
        assert "train.py:" in ours[0]
        assert "--list-redirects" in ours[0]


def test_no_explanation_once_the_layer_is_off(tmp_path: Path) -> None:
    make(
        tmp_path,
        train="import torch, torchferry.runtime\ntorchferry.runtime.deactivate()\ntorch.ones(1, device='cuda')\n",
    )
    result = ferry_run("-q", "--to", "ascend", tmp_path / "train.py")
    assert result.returncode == 1
    assert "torchferry:" not in result.stderr


LIBRARIES = {
    "a library for CUDA": ("import flash_attn", "flash_attn is made for CUDA; Huawei Ascend offers"),
    "a part of one": ("from flash_attn.layers import rotary", "flash_attn is made for CUDA; "),
    "its own CUDA kernels": (
        "from torch.utils.cpp_extension import load_inline\n"
        "load_inline('k', cpp_sources='', cuda_sources='__global__ void k() {}', functions=[])",
        "train.py:3 compiles its own CUDA kernels",
    ),
    "any other library": ("import no_such_library", ""),
}


@pytest.mark.parametrize("case", LIBRARIES)
def test_a_library_that_only_cuda_has_is_named(tmp_path: Path, case: str) -> None:
    statement, said = LIBRARIES[case]
    make(tmp_path, train=f"import torch\n{statement}\n")
    result = ferry_run("-q", "--to", "ascend", tmp_path / "train.py")
    assert result.returncode == 1
    ours = [line for line in result.stderr.splitlines() if line.startswith("torchferry:")]
    assert len(ours) == bool(said)
    assert said in "".join(ours)


@pytest.mark.parametrize(("wanted", "explained"), [("1", True), ("0", False)])
def test_a_crash_where_the_cpu_stands_for_cuda(tmp_path: Path, wanted: str, explained: bool) -> None:
    layer = LayerSettings(REFERENCE)
    environment = {**child_environment(os.environ, None, None, layer), variables.DIAGNOSIS: wanted}
    for name in ("RANK", "WORLD_SIZE"):
        environment.pop(name, None)
    body = "try:\n    torch.distributed.init_process_group('nccl')\nexcept ValueError as error:\n"
    uncaught = "    sys.excepthook(ValueError, error, error.__traceback__)\n"
    ended = run_forked(f"import sys, torch\n{body}{uncaught}", environment, tmp_path)
    assert "environment variable RANK expected" in ended.stderr
    assert ("torchferry: the program expects the variables of torchrun" in ended.stderr) == explained


def test_a_program_that_was_interrupted_has_not_crashed(tmp_path: Path) -> None:
    layer = LayerSettings(REFERENCE)
    environment = child_environment(os.environ, None, None, layer)
    body = "try:\n    raise {0}('CUDA out of memory')\nexcept {0} as error:\n"
    uncaught = "    sys.excepthook(type(error), error, error.__traceback__)\n"
    crashed, interrupted = (
        run_forked(f"import sys, torch\n{body.format(kind)}{uncaught}", environment, tmp_path).stderr
        for kind in ("RuntimeError", "KeyboardInterrupt")
    )
    assert "torchferry: device memory is exhausted" in crashed
    assert "KeyboardInterrupt" in interrupted
    assert "torchferry:" not in interrupted
