"""A plugin without its toolkit takes `import torch` with it; whether the emulated device is set up is a fact."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.examination.checking import check, only
from tests.examination.stations import ASCEND_PACKAGES, ASCEND_VARIABLES, CANN, ascend_files, put, station
from torchferry.report.checks import Status


def without_toolkit(folder: Path) -> Path:
    put(folder, {name: data for name, data in ascend_files().items() if not name.startswith(CANN)})
    return folder


def test_a_plugin_without_its_toolkit(tmp_path: Path) -> None:
    without_toolkit(tmp_path)
    result = only("emulation", station(tmp_path))
    assert (result.subject, result.status) == ("import torch", Status.BLOCKS)
    assert "Failed to load the backend extension: torch_npu" in result.why.en
    assert "ferry emulate setup --to ascend" in result.why.en
    lines = [command.line for command in result.commands]
    assert lines == ["pip uninstall torch-npu", "export TORCH_DEVICE_BACKEND_AUTOLOAD=0"]


@pytest.mark.parametrize(
    ("variables", "packages"),
    [
        ({"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}, {}),
        ({}, {"torch": "2.4.1"}),
    ],
)
def test_where_pytorch_does_not_load_it(
    tmp_path: Path, variables: dict[str, str], packages: dict[str, str]
) -> None:
    without_toolkit(tmp_path)
    machine = station(
        tmp_path, environment={**ASCEND_VARIABLES, **variables}, packages={**ASCEND_PACKAGES, **packages}
    )
    assert check("emulation", machine) == {}


def test_a_server_on_which_nothing_is_wrong(tmp_path: Path) -> None:
    put(tmp_path, ascend_files())
    assert check("emulation", station(tmp_path)) == {}


@pytest.mark.parametrize(
    ("version", "found"), [(None, "not set up"), ("2.9.0", "set up, with torch-npu 2.9.0")]
)
def test_the_emulated_device_is_a_fact(tmp_path: Path, version: str | None, found: str) -> None:
    put(tmp_path, ascend_files())
    result = only("emulation", replace(station(tmp_path), emulation=lambda: version))
    assert (result.status, result.found.en) == (Status.INFO, found)


def test_other_vendors_have_none(tmp_path: Path) -> None:
    assert check("emulation", station(tmp_path, "cambricon")) == {}
