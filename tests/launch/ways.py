"""Starting an unchanged CUDA program in every way that there is, with and without a vendor's plugin."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.cli.commands import command, environment, make
from torchferry import variables

# Stands for the vendor's own package, which only the vendor's machines can load: it brings the device when imported.
PLUGIN = """\
import sys
import torchferry.sim
path = list(sys.path)
torchferry.sim.activate("ascend", devices=2, memory="1GiB")
sys.path[:] = path  # without the simulator's own stand-in
FROM = "the vendor"
def _autoload():
    pass
"""
ENTRY_POINT = "[torch.backends]\ntorch_npu = torch_npu:_autoload\n"


def with_plugin(folder: Path, code: str = PLUGIN) -> str:
    """A PYTHONPATH on which a vendor's plugin is installed, as pip installs it."""
    plugin = folder / "torch_npu"
    plugin.mkdir(parents=True)
    (plugin / "__init__.py").write_text(code)
    make(folder / "torch_npu-2.13.0.dist-info", **{"entry_points.txt": ENTRY_POINT})
    return str(folder)


def ferry_run(
    *arguments: object, cwd: Path | None = None, **settings: str
) -> subprocess.CompletedProcess[str]:
    return _run(command("ferry", "run", *arguments), cwd, settings)


def python(*arguments: object, cwd: Path | None = None, **settings: str) -> subprocess.CompletedProcess[str]:
    return _run(command("python", *arguments), cwd, settings)


def _run(words: list[str], cwd: Path | None, settings: dict[str, str]) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in environment().items() if name not in variables.ALL}
    return subprocess.run(
        words,
        cwd=cwd,
        env={
            **inherited,
            variables.EMULATE: "0",
            "OMP_NUM_THREADS": "1",
            "PYTHONUNBUFFERED": "1",
            **settings,
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,  # the first run compiles the device
    )
