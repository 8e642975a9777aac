"""What a conversion imports: nothing that it does not need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import torchferry

_RUN = """
import sys
from torchferry.cli.main import main
code = main(sys.argv[1:])
print(code, *sorted(name for name in sys.modules if name.startswith("torchferry.conversion.")))
"""
_OPTIONAL = (
    "amp",
    "distributed",
    "similar",
    "texts.configs",
    "texts.notebook",
    "texts.shell",
    "custom.engine",
)


def imported(source: Path, out: Path, *options: str) -> set[str]:
    command = ["convert", str(source), "-o", str(out), "--to", "ascend", "-q", *options]
    result = subprocess.run(
        [sys.executable, "-c", _RUN, *command], capture_output=True, text=True, check=True
    )
    code, *names = result.stdout.split()
    assert code == "0"
    return {name.removeprefix("torchferry.conversion.") for name in names}


def test_optional_parts_are_imported_when_they_are_needed(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    (source / "a.py").write_text("import torch\nx = torch.ones(1).cuda()\nloss(x).backward()\n")
    plain = imported(source, tmp_path / "plain")
    parts = {name for name in plain if name.startswith(_OPTIONAL)}
    assert parts <= {"distributed", "distributed.words"}
    (source / "a.yaml").write_text("device: cuda\n")
    more = imported(source, tmp_path / "more", "--amp", "--similar")
    assert {"amp.restructure", "similar.engine", "texts.configs"} <= more


def test_help_imports_next_to_nothing() -> None:
    code = (
        "import os, sys; before = set(sys.modules); from torchferry.cli.main import main; main(['--help'])\n"
    )
    code += "print(*sorted(set(sys.modules) - before))"
    result = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True,
        env={"PYTHONPATH": str(Path(torchferry.__file__).parents[1])},
    )  # fmt: skip
    names = set(result.stdout.splitlines()[-1].split())
    ours = {f"torchferry.cli.{name}" for name in ("main", "commands", "overview", "layout")}
    assert {name for name in names if name.startswith("torchferry")} <= {
        *ours, "torchferry", "torchferry.cli", "torchferry.text",
    }  # fmt: skip
    assert not names & {"argparse", "dataclasses", "inspect", "rich", "torch", "numpy"}
