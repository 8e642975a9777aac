"""The vendor tables of TorchFerry agree with the running plugin."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tools.read_plugin.plugin import Plugin
from tools.read_plugin.running import operators_that_differ
from tools.read_plugin.wheel import differences, read_wheel

from torchferry.emulate import plugins
from torchferry.vendors.ops import load_ops
from torchferry.vendors.registry import get_vendor

ROOT = Path(__file__).parents[2]
ASCEND = get_vendor("ascend")


def _as_the_table_says() -> Plugin:
    ops = load_ops(Path(ASCEND.folder))
    listed = tuple(name for name in ops.kernels if ops.has_kernel(name, "2.13"))
    return Plugin("2.13.0", "2.13.0", listed, (), (), (), ())


def test_operators_that_only_one_side_has_are_named() -> None:
    plugin = _as_the_table_says()
    assert list(operators_that_differ(ASCEND, plugin)) == []
    fewer = replace(plugin, operators=tuple(name for name in plugin.operators if name != "add.Tensor"))
    assert list(operators_that_differ(ASCEND, fewer)) == ["add.Tensor: in the table, not registered"]
    more = replace(plugin, operators=(*plugin.operators, "special_bessel_j0.out", "npu_only_here"))
    assert list(operators_that_differ(ASCEND, more)) == [
        "special_bessel_j0.out: registered, not in the table"
    ]


@pytest.mark.usefixtures("emulation")
def test_the_running_plugin_has_what_the_tables_say(tmp_path: Path) -> None:
    file = tmp_path / "plugin.json"
    command = [sys.executable, "-m", "tools.read_plugin", "--to", "ascend", "--check", "-o", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    plugin = json.loads(file.read_text("utf-8"))
    assert len(plugin["operators"]) > 1000
    assert "npu::npu_rms_norm" in plugin["custom"]
    assert "set_device" in plugin["names"]
    check_the_wheel_says_the_same(plugin)


def check_the_wheel_says_the_same(running: dict[str, Any]) -> None:
    """All of PyTorch's operators; of the names the classes of tensors are set at the import."""
    found = differences(read_wheel(plugins.needed(ASCEND).folder, ASCEND), running)
    alone = [line.partition(" is in ")[0] for line in found]
    assert [name for name in alone if name.startswith("operators")] == []
    names = [name for name in alone if name.startswith("names")]
    assert len(names) == 10 and all(name.endswith("Tensor") for name in names)
