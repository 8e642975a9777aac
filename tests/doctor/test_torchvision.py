"""torchvision of another build than torch."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.doctor.stations import shared_object, station
from torchferry.doctor.device.checks.torchvision import check
from torchferry.doctor.model import Status

PACKAGES = {"torch": "2.7.0+cpu", "torchvision": "0.22.0"}


def installed(root: Path, needed: list[str], of_torch: list[str]) -> None:
    (root / "site/torchvision").mkdir(parents=True)
    (root / "site/torchvision/_C.so").write_bytes(shared_object([*needed, "libc.so.6"]))
    (root / "site/torch/lib").mkdir(parents=True)
    for name in of_torch:
        (root / "site/torch/lib" / name).write_bytes(b"")


@pytest.mark.parametrize(
    ("needed", "status"),
    [
        (["libc10.so", "libtorch_cpu.so"], Status.FINE),
        (["libc10.so", "libtorch_cpu.so", "libc10_cuda.so", "libtorch_cuda.so"], Status.DOUBT),
    ],
)
def test_what_its_compiled_part_needs(needed: list[str], status: Status, tmp_path: Path) -> None:
    installed(tmp_path, needed, ["libc10.so", "libtorch_cpu.so"])
    (result,) = check(station(tmp_path, packages=PACKAGES))
    assert result.status is status
    if status is Status.DOUBT:
        assert "libc10_cuda.so, libtorch_cuda.so" in result.why.en and "torchvision::nms" in result.why.en
        assert result.commands[0].line.endswith("--index-url https://download.pytorch.org/whl/cpu")


def test_where_it_is_not_installed_nothing_is_said(tmp_path: Path) -> None:
    assert not list(check(station(tmp_path)))
