"""The operators and names of a plugin's release, read from its wheel without the PyTorch that it needs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest
from tools.read_plugin.__main__ import main
from tools.read_plugin.wheel import WheelError, differences, read_wheel

from tests.emulate.wheels import wheel
from torchferry.vendors.registry import get_vendor

ASCEND = get_vendor("ascend")
FILES = {
    "torch_npu/csrc/aten/npu_native_functions_by_codegen.yaml": """\
backend: NPU
custom:
- device_check: NoCheck
  func: npu_swiglu(Tensor self, int dim=-1) -> Tensor
supported:
- add.Tensor
- func: abs(Tensor self) -> Tensor
  impl_ns: op_api
  sparse: op_api
- func: _coalesce(Tensor self) -> Tensor
  sparse: op_api
quant:
- func: int_repr(Tensor self) -> Tensor
  impl_ns: op_api
""",
    "torch_npu/npu/__init__.py": """\
import torch
from .memory import *
from .streams import Stream as Queue, _hidden
try:
    from torch_npu import utils
except ImportError:
    utils = None
LIMIT: int = 3
def set_device(device):
    inner = 1
""",
    "torch_npu/npu/memory.py": "__all__ = ['empty_cache']\ndef empty_cache(): ...\ndef helper(): ...\n",
    "torch_npu/npu/streams.py": "class Stream: ...\n_hidden = 1\n",
    "torch_npu/npu/amp/__init__.py": "",
}


def test_what_a_wheel_holds(tmp_path: Path) -> None:
    plugin = read_wheel(wheel(tmp_path, "2.12.0.post1", files=FILES), ASCEND)
    assert (plugin.version, plugin.operators, plugin.custom) == (
        "2.12.0.post1",
        ("abs", "add.Tensor"),
        ("npu::npu_swiglu",),
    )
    assert set(plugin.names) == {
        *("LIMIT", "Queue", "amp", "empty_cache", "memory", "set_device", "streams", "torch", "utils"),
    }


def test_a_folder_is_read_as_its_wheel_is(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    info = tmp_path / "torch_npu-2.10.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Version: 2.10.0.post7\nRequires-Dist: torch ==2.10.0+cpu\n")
    plugin = read_wheel(tmp_path, ASCEND)
    assert (plugin.version, plugin.torch, plugin.operators) == (
        "2.10.0.post7",
        "2.10.0",
        ("abs", "add.Tensor"),
    )


def test_what_is_no_plugin_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(WheelError, match=r"has no torch_npu/csrc.*; give a wheel of torch_npu"):
        read_wheel(wheel(tmp_path), ASCEND)
    (tmp_path / "torn.whl").write_text("x")
    assert main(["--wheel", str(tmp_path / "torn.whl"), "-o", str(tmp_path / "plugin.json")]) == 2
    assert "torn.whl" in capsys.readouterr().err


def test_what_only_one_side_has_is_named(tmp_path: Path) -> None:
    plugin = read_wheel(wheel(tmp_path, files=FILES), ASCEND)
    running = asdict(plugin) | {"operators": ["add.Tensor", "mul.Tensor"], "names": list(plugin.names)}
    assert differences(plugin, running) == [
        "operators: abs is in the wheel alone",
        "operators: mul.Tensor is in the running plugin alone",
    ]
