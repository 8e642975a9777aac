"""Real projects, converted for every vendor: nothing crashes, everything compiles, and the audit finds nothing wrong.

These take minutes, so they run in `make test-all` only.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.corpus.fetch import fetch, projects
from torchferry.vendors.registry import get_vendor, vendor_names

FERRY = Path(sys.executable).parent / "ferry"
PROJECTS = {project.name: project for project in projects()}
# The audit knows what a plugin's import line looks like; a vendor whose device is in torch has none.
AUDITED = [name for name in vendor_names() if get_vendor(name).plugin]
pytestmark = pytest.mark.long


def convert(source: Path, out: Path, vendor: str) -> dict[str, object]:
    result = subprocess.run(
        [FERRY, "convert", source, "-o", out, "--to", vendor, "-j", "1", "-q"], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    report = json.loads((out / "findings.json").read_text())
    assert isinstance(report, dict)
    return report


def python_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*.py") if path.is_file())


@pytest.mark.parametrize("vendor", [*vendor_names(), "portable"])
@pytest.mark.parametrize("name", PROJECTS)
def test_project(name: str, vendor: str, tmp_path: Path) -> None:
    source, out, again = fetch(PROJECTS[name]), tmp_path / "out", tmp_path / "again"
    report = convert(source, out, vendor)
    assert not [item for item in report["files"] if item["status"] == "failed"]  # type: ignore[attr-defined]
    assert {path.relative_to(source) for path in python_files(source)} == {
        path.relative_to(out) for path in python_files(out)
    }
    for path in python_files(out):
        assert_compiles(path)
    for item in report["files"]:  # type: ignore[attr-defined]
        if item["status"] == "changed":
            assert_loads(source / item["path"], out / item["path"])
    second = convert(out, again, vendor)
    assert not [item for item in second["files"] if item["status"] == "changed"]  # type: ignore[attr-defined]


def assert_compiles(path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compile(path.read_bytes(), str(path), "exec", dont_inherit=True)


def assert_loads(before: Path, after: Path) -> None:
    """What could be read before can be read now."""
    readers: dict[str, Callable[[str], object]] = {
        ".json": json.loads,
        ".yaml": lambda text: list(yaml.compose_all(text, Loader=yaml.SafeLoader)),
        ".yml": lambda text: list(yaml.compose_all(text, Loader=yaml.SafeLoader)),
    }
    read = readers.get(after.suffix)
    if read is None:
        return
    try:
        read(before.read_text("utf-8"))
    except (ValueError, yaml.YAMLError):
        return
    read(after.read_text("utf-8"))


@pytest.mark.parametrize("vendor", AUDITED)
@pytest.mark.parametrize("name", PROJECTS)
def test_audit_finds_nothing_wrong(name: str, vendor: str, tmp_path: Path) -> None:
    source, out = fetch(PROJECTS[name]), tmp_path / "out"
    convert(source, out, vendor)
    data = get_vendor(vendor)
    names = ["--device", data.device_type, "--backend", data.dist_backend, "--plugin", data.plugin]
    command = [sys.executable, "-m", "tools.audit", source, out, out / "findings.json", *names]
    result = subprocess.run(
        command, capture_output=True, text=True, cwd=Path(__file__).parents[2], env={**os.environ}
    )
    assert result.returncode == 0, result.stdout + result.stderr
