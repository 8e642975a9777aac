"""The tables on disk are what the tool makes from the facts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FACTS = ROOT.parent / "shared" / "facts"
TOOL = ROOT / "tools" / "build_vendor_data.py"

needs_facts = pytest.mark.skipif(not FACTS.is_dir(), reason="no fact tables beside this checkout")


def run_tool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TOOL), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@needs_facts
def test_tables_are_up_to_date() -> None:
    done = run_tool(FACTS, "--check")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


@needs_facts
def test_check_notices_a_difference_and_writes_nothing(tmp_path: Path) -> None:
    assert run_tool(FACTS, "--target", tmp_path).returncode == 0
    files = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    changed = files[0]
    changed.write_text("x")
    done = run_tool(FACTS, "--target", tmp_path, "--check")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [f"differs: {changed.relative_to(tmp_path).as_posix()}"]
    assert changed.read_text() == "x"


def test_folder_without_facts(tmp_path: Path) -> None:
    done = run_tool(tmp_path)
    assert done.returncode == 2
    assert "has no index.json" in done.stderr
