"""Real projects, converted for every vendor: nothing crashes, everything compiles, and the audit finds nothing wrong.

These take minutes, so they run in `make test-all` only.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from tests.corpus.checks import assert_compiles, assert_loads, assert_only_hunks_changed
from tests.corpus.fetch import fetch, projects
from torchferry.vendors.registry import get_vendor, vendor_names

FERRY = Path(sys.executable).parent / "ferry"
PROJECTS = {project.name: project for project in projects()}
# The audit knows what a plugin's import line looks like; a vendor whose device is in torch has none.
AUDITED = [name for name in vendor_names() if get_vendor(name).plugin]
OPT_INS = (
    *("--similar", "--amp", "--channels-last", "--fixed-shape", "--float32-data", "--blocking-copies"),
    *("--drop-cudnn-flags", "--no-pin-memory", "--specify-device"),
)
# Entry scripts of programs that run on several cards already.
DISTRIBUTED = [
    ("fairseq", "fairseq_cli/train.py"),
    ("espnet", "espnet2/bin/asr_train.py"),
    ("ultralytics", "ultralytics/models/yolo/detect/train.py"),
    ("mmdet", "mmdet/.mim/tools/train.py"),
]
pytestmark = pytest.mark.long


def convert(source: Path, out: Path, *options: str) -> dict[str, Any]:
    result = subprocess.run(
        [FERRY, "convert", source, "-o", out, "-j", "1", "-q", *options], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    report = json.loads((out / "findings.json").read_text())
    assert isinstance(report, dict)
    return report


def python_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if path.is_file())


def check_project(source: Path, folder: Path, *options: str) -> None:
    """Converted, every file is as it must be, and a second conversion changes nothing."""
    out = folder / "out"
    report = convert(source, out, *options)
    assert not [item for item in report["files"] if item["status"] == "failed"]
    added = {Path(item["path"]) for item in report["files"] if item["status"] == "added"}
    assert {path.relative_to(out) for path in python_files(out)} - added == {
        path.relative_to(source) for path in python_files(source)
    }
    for path in python_files(out):
        assert_compiles(path)
    for item in report["files"]:
        if item["status"] == "changed":
            before, after = source / item["path"], out / item["path"]
            assert_loads(before, after)
            is_notebook = after.suffix == ".ipynb"
            assert_only_hunks_changed(before.read_bytes(), after.read_bytes(), item["hunks"], is_notebook)
    second = convert(out, folder / "again", *options)
    assert not [item for item in second["files"] if item["status"] in ("changed", "added")]


@pytest.mark.parametrize("vendor", [*vendor_names(), "portable"])
@pytest.mark.parametrize("name", PROJECTS)
def test_project(name: str, vendor: str, tmp_path: Path) -> None:
    check_project(fetch(PROJECTS[name]), tmp_path, "--to", vendor)


@pytest.mark.parametrize(("name", "vendor"), list(zip(PROJECTS, cycle(vendor_names()), strict=False)))
def test_all_opt_in_rules(name: str, vendor: str, tmp_path: Path) -> None:
    check_project(fetch(PROJECTS[name]), tmp_path, "--to", vendor, *OPT_INS)


@pytest.mark.parametrize("name", PROJECTS)
def test_all_opt_in_rules_for_no_vendor(name: str, tmp_path: Path) -> None:
    check_project(fetch(PROJECTS[name]), tmp_path, "--to", "portable", *OPT_INS)


@pytest.mark.parametrize(("name", "vendor"), list(zip(PROJECTS, cycle(vendor_names()[::-1]), strict=False)))
def test_cuda_kept(name: str, vendor: str, tmp_path: Path) -> None:
    check_project(fetch(PROJECTS[name]), tmp_path, "--to", vendor, "--keep-cuda", *OPT_INS)


@pytest.mark.parametrize(("name", "main"), DISTRIBUTED)
def test_a_program_for_several_cards_stays_one(name: str, main: str, tmp_path: Path) -> None:
    source, out = fetch(PROJECTS[name]), tmp_path / "out"
    report = convert(source, out, "--to", "ascend", "--distributed", "--main", main)
    assert not [item for item in report["files"] if item["status"] == "failed"]
    kinds = [item["kind"] for item in report["findings"] if item["rule"] == "TF710"]
    assert set(kinds) == {"info"}


@pytest.mark.parametrize("vendor", AUDITED)
@pytest.mark.parametrize("name", PROJECTS)
def test_audit_finds_nothing_wrong(name: str, vendor: str, tmp_path: Path) -> None:
    source, out = fetch(PROJECTS[name]), tmp_path / "out"
    convert(source, out, "--to", vendor)
    data = get_vendor(vendor)
    names = ["--device", data.device_type, "--backend", data.dist_backend, "--plugin", data.plugin]
    command = [sys.executable, "-m", "tools.audit", source, out, out / "findings.json", *names]
    result = subprocess.run(
        command, capture_output=True, text=True, cwd=Path(__file__).parents[2], env={**os.environ}
    )
    assert result.returncode == 0, result.stdout + result.stderr
