"""How to add a vendor, as docs/en/how-it-works/architecture.md says it, followed to the letter in a copy of the sources."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
COPIED = ("src", "docs", "examples/vendors", "tools", "tests/vendors")
FILES = ("README.md", "README.zh.md", "pyproject.toml", "Makefile", "tests/__init__.py")
HERE = Path(__file__).name


def commands(page: str, heading: str) -> list[str]:
    """The lines of the block below a heading."""
    text = (ROOT / page).read_text("utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    block = re.search(r"```console copied\n(.*?)```", text, re.DOTALL)
    assert block
    return [line.removeprefix("$ ") for line in block[1].splitlines()]


def in_words_of_this_machine(command: str) -> str:
    """The same with this Python: make docs without a virtual environment, and of the tests those of the new vendor."""
    python = sys.executable
    if command == "make docs":
        recipe = (ROOT / "Makefile").read_text("utf-8").split("\ndocs:")[1].split("\n\n")[0]
        tools = re.findall(r"tools/\w+\.py", recipe)
        return " && ".join(f"{python} {tool}" for tool in tools)
    if command.startswith("pytest"):
        return f"{python} -m pytest -q -p no:cacheprovider -n 0 tests/vendors -k zeta --deselect tests/vendors/{HERE}"
    return command.replace("ferry ", f"{python} -m torchferry ", 1)


def test_a_vendor_is_added_without_python(tmp_path: Path) -> None:
    for name in COPIED:
        ignored = shutil.ignore_patterns("__pycache__", "*.so", "csrc")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    for name in FILES:
        shutil.copy(ROOT / name, tmp_path / name)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path / 'src'}:{tmp_path}", "TORCHFERRY_LANG": "en"}
    steps = commands("docs/en/how-it-works/architecture.md", "How to add a vendor")
    assert steps == commands("docs/zh/how-it-works/architecture.md", "如何添加厂商") and len(steps) == 5
    for step in steps:
        command = in_words_of_this_machine(step)
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"$ {command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    assert "[100%]" in done.stdout, "the tests of the new vendor"
    assert "| `zeta` | Acme Ltd |" in (tmp_path / "README.md").read_text("utf-8")
    listed = [sys.executable, "-m", "torchferry", "vendors"]
    assert "zeta" in subprocess.check_output(listed, cwd=tmp_path, env=environment, text=True)
    assert not (ROOT / "src" / "torchferry" / "vendors" / "zeta").exists()
