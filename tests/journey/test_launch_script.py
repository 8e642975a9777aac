"""The launch script of an example runs for real: as it is under the layer, and converted, on simulated cards."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from torchferry.launch.environment import child_environment
from torchferry.runtime.settings import LayerSettings
from torchferry.sim.environment import settings_for
from torchferry.vendors.registry import get_vendor

EXAMPLE = Path(__file__).parents[2] / "examples" / "finetune"
BIN = Path(sys.executable).parent
pytestmark = pytest.mark.skipif(not shutil.which("sh"), reason="needs a shell")


def launched(folder: Path, vendor: str, tool: str, is_converted: bool) -> list[str]:
    """The losses that two processes printed; `tool` is the vendor's own, which this machine does not have."""
    data = get_vendor(vendor)
    stand_in = folder / "bin" / tool.split()[0]
    stand_in.parent.mkdir()
    stand_in.write_text('#!/bin/sh\necho "tool: $0 $*"\n')
    stand_in.chmod(0o755)
    ours = {
        **os.environ,
        "PATH": os.pathsep.join([str(stand_in.parent), str(BIN), os.environ["PATH"]]),
        "OMP_NUM_THREADS": "1",
        "PET_MASTER_PORT": str(_free_port()),
    }
    layer = None if is_converted else LayerSettings(vendor)
    environment = child_environment(ours, data, settings_for(data, devices=2), layer)
    command = ["sh", "launch.sh", "--steps", "6"]
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert re.search(rf"tool: \S*/{re.escape(tool)} ?$", ended.stdout, re.MULTILINE)
    # Two processes write to one stream: a line of one may begin before that of the other has ended.
    return sorted(re.findall(r"step +\d+ +loss \d+\.\d{6}", ended.stdout))


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port


def test_the_launch_script_trains_before_and_after(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    shutil.copytree(EXAMPLE, before, ignore=shutil.ignore_patterns("__pycache__"))
    script = before / "launch.sh"
    text = script.read_text("utf-8")
    for eight, two in (("=0,1,2,3,4,5,6,7", "=0,1"), ("nproc_per_node=8", "nproc_per_node=2")):
        assert eight in text
        text = text.replace(eight, two)
    script.write_text(text, "utf-8")
    subprocess.run([BIN / "ferry", "convert", before, "-o", after, "--to", "ascend", "-q"], check=True)
    losses = launched(before, "ascend", "nvidia-smi", is_converted=False)
    assert len(losses) == 2 * 2  # two processes, steps 0 and 5
    assert launched(after, "ascend", "npu-smi info", is_converted=True) == losses
