"""The matrix of versions: what goes together, what does not, and what nobody knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.examination.checking import check, only
from tests.examination.stations import ASCEND_PACKAGES, CANN, ascend_files, put, station
from torchferry.examination.device.station import Station
from torchferry.examination.device.versions import VersionFit, advised, fit, fits, place, release_of
from torchferry.report.checks import Status
from torchferry.vendors.machine import load_machine
from torchferry.vendors.registry import get_vendor, vendor_names


@pytest.fixture
def server(tmp_path: Path) -> Path:
    put(tmp_path, ascend_files())
    return tmp_path


@pytest.mark.parametrize(
    ("version", "entries", "answer"),
    [
        ("8.1.RC1.beta1", ["8.1.RC1"], True),
        ("8.10.0", ["8.1"], False),
        ("8.1.rc1", ["8.1.RC1"], True),
        ("5.2.0-server", [">=5.1"], True),
        ("4.3.5", [">=5.1"], False),
        ("4.3.5", [], False),
        ("25.0.rc1.1", [">=25.0"], True),  # it is one of 25.0
        ("24.1.rc3", [">=24.1.RC2"], True),
        ("24.1.rc1", [">=24.1.RC2"], False),
    ],
)
def test_versions_fit(version: str, entries: list[str], answer: bool) -> None:
    assert fits(version, entries) is answer


def test_rows_of_the_matrix() -> None:
    table = load_machine(Path(get_vendor("tecorigin").folder))
    rows = {
        version: release_of(table, version) for version in ("3.2.0", "3.3.0b0+gitb716a30", "2.4.1", "0.9")
    }
    assert {version: row.torch if row else None for version, row in rows.items()} == {
        "3.2.0": "2.7.1",
        "3.3.0b0+gitb716a30": "2.12",
        "2.4.1": "2.4",
        "0.9": None,
    }
    ascend = load_machine(Path(get_vendor("ascend").folder))
    assert release_of(ascend, "2.1.0.post99") is None  # another package than 2.1.0
    newest = advised(ascend, None, None, "3.8", "aarch64")
    assert newest is not None and "3.8" in newest.python


def test_versions_in_their_order() -> None:
    drivers = [
        "24.1.rc2",
        "24.1.RC3",
        "24.1.rc3.7",
        "24.1.0",
        "24.1.0.1",
        "25.0.rc1",
        "25.0.rc1.1",
        "25.0.0",
        "25.2",
    ]
    assert [place(each) for each in drivers] == sorted(map(place, drivers))
    assert sorted(["2.1.0.post12", "2.1.0", "2.1.0.post3", "2.1.0rc1"], key=place) == [
        "2.1.0rc1",
        "2.1.0",
        "2.1.0.post3",
        "2.1.0.post12",
    ]
    assert place("9.1") == place("9.1.0") > place("9.1.0-beta.3")
    assert place("5.1.0-server") == place("5.1")


@pytest.mark.parametrize(
    ("version", "entries", "how"),
    [
        ("25.5.1", (">=25.2",), VersionFit.FITS),
        ("25.0.rc1", (">=25.2",), VersionFit.OLDER),
        ("25.3.rc1", ("25.3.RC1",), VersionFit.FITS),
        ("25.2.0", ("25.3.RC1",), VersionFit.BELOW),
        ("26.0.rc1", ("25.3.RC1",), VersionFit.NEWER),
        ("25.4.0", ("25.3", "25.5"), VersionFit.OTHER),
    ],
)
def test_how_a_version_stands_to_a_table(version: str, entries: tuple[str, ...], how: VersionFit) -> None:
    assert fit(version, entries) is how


def with_toolkit(server: Path, version: str, plugin: str, driver: str = "25.2.0") -> Station:
    put(
        server,
        {
            f"{CANN}/x86_64-linux/ascend_toolkit_install.info": f"version={version}\n",
            "usr/local/Ascend/driver/version.info": f"Version={driver}\n",
        },
    )
    return station(server, packages={**ASCEND_PACKAGES, "torch-npu": plugin})


@pytest.mark.parametrize(
    ("toolkit", "plugin", "status", "said"),
    [
        ("8.5.0", "2.9.0", Status.FINE, "matches the vendor's table"),
        ("9.0.0", "2.9.0", Status.FINE, "this version as compatible"),
        ("8.2.RC1", "2.9.0", Status.DOUBT, "the vendor's table lists 8.5.0 for torch-npu 2.9.0"),
        ("8.0.RC1.1", "2.1.0.post6", Status.DOUBT, "lists 8.0.RC2"),
        ("7.0.1", "2.1.0", Status.INFO, "a bugfix release of 7.0.0"),
        ("10.1.0", "2.9.0", Status.INFO, "newer than all known versions"),
        ("8.5.0", "2.9.0.post99", Status.INFO, "is unknown"),
    ],
)
def test_toolkit_and_plugin(server: Path, toolkit: str, plugin: str, status: Status, said: str) -> None:
    result = only("toolkit", with_toolkit(server, toolkit, plugin))
    assert (result.status, said in result.why.en) == (status, True), result.why.en


@pytest.mark.parametrize(
    ("toolkit", "driver", "status", "said"),
    [
        ("9.1.0", "25.5.2", Status.FINE, "compatible with CANN 9.1.0"),
        ("9.1.0", "25.0.rc1", Status.DOUBT, "CANN 9.1.0 needs >=25.2"),
        ("8.3.RC1", "24.1.rc3", Status.INFO, "nothing is known about older drivers"),
        ("8.3.RC1", "26.1.0", Status.INFO, "newer than the drivers known"),
        ("8.2.RC1", "23.0.3", Status.DOUBT, "CANN 8.2.RC1 needs >=24.1.RC2"),
        ("6.0.1", "23.0.3", Status.FINE, "the driver version that CANN 6.0.1 needs is unknown"),
    ],
)
def test_driver_and_toolkit(server: Path, toolkit: str, driver: str, status: Status, said: str) -> None:
    result = check("driver", with_toolkit(server, toolkit, "2.9.0", driver))["Ascend HDK driver"]
    assert (result.status, said in result.why.en) == (status, True), result.why.en
    assert bool(result.source) is (toolkit != "6.0.1")


def test_firmware_that_the_driver_does_not_name(server: Path) -> None:
    assert check("driver", station(server))["firmware"].status is Status.FINE
    put(server, {"usr/local/Ascend/firmware/version.info": "Version=7.8.0.2.212\n"})
    result = check("driver", station(server))["firmware"]
    assert (result.status, result.found.en) == (Status.DOUBT, "7.8.0.2.212")
    assert "6.4.0 - 6.4.99, 7.0.0 - 7.7.99" in result.why.en
    (server / "usr/local/Ascend/firmware/version.info").unlink()
    assert "firmware" not in check("driver", station(server))


def test_a_toolkit_for_another_processor(server: Path) -> None:
    (server / CANN / "x86_64-linux").rename(server / CANN / "aarch64-linux")
    result = only("toolkit", station(server))
    assert (result.status, result.found.en) == (Status.BLOCKS, f"in /{CANN}, built for aarch64")


def test_a_toolkit_without_operators_and_packages(server: Path) -> None:
    (server / CANN / "x86_64-linux/ascend_ops_install.info").unlink()
    packages = {name: version for name, version in ASCEND_PACKAGES.items() if name not in ("scipy", "attrs")}
    results = check("toolkit", station(server, packages=packages))
    assert results["CANN operators"].status is Status.DOUBT
    assert results["Python packages"].commands[0].line == "pip install attrs scipy"
    put(server, {f"{CANN}/opp_kernel/version.info": "Version=8.5.0\n"})  # as it was called until 8.3
    assert "CANN operators" not in check("toolkit", station(server))


@pytest.mark.parametrize(
    ("torch", "torchvision", "wanted"),
    [
        ("2.13.0+cpu", "0.28.0", "'torchvision==0.28.*' --index-url https://download.pytorch.org/whl/cpu"),
        ("2.13.0", "0.27.0", "'torchvision==0.28.*'"),
        ("2.13.0+cpu", "0.28.0+cpu", ""),
        ("2.13.0", "0.28.0", ""),
        ("2.13.0+cpu", "", ""),
    ],
)
def test_torchvision_of_another_build_or_release(
    tmp_path: Path, torch: str, torchvision: str, wanted: str
) -> None:
    packages = {"torch": torch, **({"torchvision": torchvision} if torchvision else {})}
    found = check("torch_build", station(tmp_path, packages=packages)).get("torchvision")
    lines = [command.line for command in found.commands] if found else []
    assert lines == ([f"pip install --force-reinstall --no-deps {wanted}"] if wanted else [])


def test_numpy_that_an_old_torch_was_not_made_for(tmp_path: Path) -> None:
    results = check("torch_build", station(tmp_path, packages={"torch": "2.1.0", "numpy": "2.2.6"}))
    assert (results["numpy"].status, results["numpy"].commands[0].line) == (
        Status.DOUBT,
        "pip install 'numpy<2'",
    )
    for torch, numpy in (("2.1.0", "1.26.4"), ("2.3.1", "2.2.6"), ("2.1.0", "")):
        assert "numpy" not in check(
            "torch_build", station(tmp_path, packages={"torch": torch, "numpy": numpy})
        )


@pytest.mark.parametrize("name", vendor_names())
def test_drivers_have_sources(name: str) -> None:
    assert all(row.driver and row.source for row in load_machine(Path(get_vendor(name).folder)).drivers)
