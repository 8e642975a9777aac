"""The checks of a machine with a vendor's device: a good server, and what is said of each thing that is wrong."""

from __future__ import annotations

import importlib
import os
from pathlib import Path

import pytest

from tests.doctor.stations import (
    ASCEND_PACKAGES,
    ASCEND_VARIABLES,
    CANN,
    CNMON,
    GMI,
    NPU_SMI,
    TECO_SMI,
    ascend_files,
    put,
    shared_object,
    station,
)
from torchferry.doctor.device.elf import read_shared_object
from torchferry.doctor.device.examine import examine_device, vendors_with_traces
from torchferry.doctor.device.station import Access, Output, Station, this_station
from torchferry.doctor.device.versions import advised, fits, release_of
from torchferry.doctor.host.machine import Space, this_machine
from torchferry.doctor.model import Result, Status
from torchferry.vendors.machine import load_machine
from torchferry.vendors.registry import get_vendor, vendor_names


def check(name: str, found: Station) -> dict[str, Result]:
    module = importlib.import_module(f"torchferry.doctor.device.checks.{name}")
    return {result.subject: result for result in module.check(found)}


def only(name: str, found: Station) -> Result:
    (result,) = check(name, found).values()
    return result


@pytest.fixture
def server(tmp_path: Path) -> Path:
    put(tmp_path, ascend_files())
    return tmp_path


def test_a_good_server_is_ready(server: Path) -> None:
    found = examine_device(station(server, smi=Output(0, NPU_SMI)))
    assert found.is_ready
    worst = [result for result in found.results if result.status in (Status.BLOCKS, Status.DOUBT)]
    assert not worst
    assert not [command for result in found.results for command in result.commands]


@pytest.mark.parametrize("vendor", vendor_names())
def test_an_empty_machine_is_not_ready_and_says_what_to_get(tmp_path: Path, vendor: str) -> None:
    empty = station(tmp_path, vendor, environment={}, packages={})
    found = examine_device(empty)
    assert {"torch"} <= {result.subject for result in found.obstacles}
    assert any("https://" in result.why.en or "http://" in result.why.en for result in found.obstacles)
    assert all(result.why.en and result.found.en for result in found.results)


def test_this_machine_is_examined_without_harm() -> None:
    vendor = get_vendor("ascend")
    machine = this_machine()
    assert examine_device(this_station(machine, vendor, load_machine(Path(vendor.folder)))).results


# versions


@pytest.mark.parametrize(
    ("torch", "plugin", "status"),
    [
        ("2.9.0+cpu", "2.9.0", Status.FINE),
        ("2.8.0+cpu", "2.9.0", Status.BLOCKS),
        ("2.13.0+cpu", "2.13.0", Status.FINE),  # in no table, but its name says so
        ("2.1.0", "2.1.0.post99", Status.FINE),
        ("2.10.0", "2.1.0.post99", Status.BLOCKS),
    ],
)
def test_plugin_and_torch(server: Path, torch: str, plugin: str, status: Status) -> None:
    packages = {**ASCEND_PACKAGES, "torch": torch, "torch-npu": plugin}
    assert only("plugin", station(server, packages=packages)).status is status


def test_an_absent_plugin_is_named_for_what_is_here(server: Path) -> None:
    result = only("plugin", station(server, packages={"torch": "2.8.0"}))
    assert result.commands[0].line == "pip install torch==2.8.0 torch-npu==2.8.0.post2"
    assert "torch 2.8.0, CANN 8.5.0" in result.why.en


def test_toolkit_of_another_release(server: Path) -> None:
    packages = {**ASCEND_PACKAGES, "torch-npu": "2.9.0.post2"}
    result = only("toolkit", station(server, packages=packages))
    assert (result.status, result.why.en) == (
        Status.DOUBT,
        "the vendor's table names 9.0.0 for torch-npu 2.9.0.post2",
    )


def test_python_for_which_nothing_is_published(server: Path) -> None:
    assert only("interpreter", station(server, python="3.14")).status is Status.DOUBT
    absent = only("interpreter", station(server, python="3.15", packages={}))
    assert absent.status is Status.BLOCKS
    assert "3.10, 3.11" in absent.why.en
    assert only("interpreter", station(server, architecture="riscv64")).status is Status.DOUBT
    # where the matrix does not say for which Pythons a release is, none is refused
    assert only("interpreter", station(server, "moorethreads", packages={})).status is Status.INFO


def test_a_device_in_tree_needs_its_build_of_torch(tmp_path: Path) -> None:
    plain = only("torch_build", station(tmp_path, "intel", packages={"torch": "2.9.0+cpu"}))
    assert (plain.status, plain.commands[0].line[-4:]) == (Status.BLOCKS, "/xpu")
    right = only("torch_build", station(tmp_path, "intel", packages={"torch": "2.9.0+xpu"}))
    assert right.status is Status.FINE
    assert not check("plugin", station(tmp_path, "intel"))


@pytest.mark.parametrize(
    ("version", "entries", "answer"),
    [
        ("8.1.RC1.beta1", ["8.1.RC1"], True),
        ("8.10.0", ["8.1"], False),
        ("8.1.rc1", ["8.1.RC1"], True),
        ("5.2.0-server", [">=5.1"], True),
        ("4.3.5", [">=5.1"], False),
        ("4.3.5", [], False),
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


@pytest.mark.parametrize("name", vendor_names())
def test_every_matrix_has_sources(name: str) -> None:
    table = load_machine(Path(get_vendor(name).folder))
    assert table.releases and table.sources and table.get.en != table.get.zh


# files and variables


def test_the_script_was_not_sourced(server: Path) -> None:
    result = check("environment", station(server, environment={}))["ASCEND_HOME_PATH"]
    line = "source /usr/local/Ascend/ascend-toolkit/set_env.sh"
    assert (result.status, result.commands[0].line) == (Status.BLOCKS, line)
    gone = {**ASCEND_VARIABLES, "ASCEND_OPP_PATH": "/gone"}
    assert check("environment", station(server, environment=gone))["ASCEND_OPP_PATH"].status is Status.BLOCKS


def test_visible_devices_that_are_not_there(server: Path) -> None:
    def result(value: str) -> Status:
        variables = {**ASCEND_VARIABLES, "ASCEND_RT_VISIBLE_DEVICES": value}
        return check("environment", station(server, environment=variables))[
            "ASCEND_RT_VISIBLE_DEVICES"
        ].status

    assert result("0,1") is Status.INFO
    assert result("2") is Status.BLOCKS


def test_libraries_that_the_loader_does_not_find(server: Path) -> None:
    variables = {**ASCEND_VARIABLES, "LD_LIBRARY_PATH": ""}
    result = only("libraries", station(server, environment=variables))
    assert result.status is Status.BLOCKS
    assert result.found.en.startswith("not found: libhccl.so")
    assert result.commands[0].line.startswith(f"export LD_LIBRARY_PATH=/{CANN}/lib64")
    put(server, {"etc/ld.so.conf.d/cann.conf": f"/{CANN}/lib64\n"})
    assert only("libraries", station(server, environment=variables)).status is Status.FINE


def test_libraries_for_another_processor(server: Path) -> None:
    put(server, {f"{CANN}/lib64/libhccl.so": shared_object(machine=183)})
    result = only("libraries", station(server))
    assert (result.status, result.found.en) == (Status.BLOCKS, "not found: libhccl.so")
    assert result.why.en == f"/{CANN}/lib64/libhccl.so is made for another processor"


def test_heads_of_shared_objects(tmp_path: Path) -> None:
    import _ctypes

    real = read_shared_object(Path(_ctypes.__file__))
    assert real is not None and "libc.so.6" in real.needed
    for name, data in {
        "text": b"INPUT ( libm.so.6 )" * 8,
        "cut": shared_object(["liba.so"])[:100],
        "empty": b"",
        "huge": shared_object(["liba.so"])[:32] + b"\xff" * 64,
    }.items():
        (tmp_path / name).write_bytes(data)
        assert read_shared_object(tmp_path / name) is None, name
    (tmp_path / "good").write_bytes(shared_object(["liba.so"], "$ORIGIN:/opt/b"))
    good = read_shared_object(tmp_path / "good")
    assert good is not None and (good.needed, good.search) == (("liba.so",), ("$ORIGIN", "/opt/b"))


def test_device_files(server: Path) -> None:
    closed = station(server, access=lambda path: Access(False, "HwHiAiUser", 0o660))
    result = check("nodes", closed)["devices"]
    assert (result.status, result.commands[0].line) == (
        Status.BLOCKS,
        'usermod -aG HwHiAiUser "$USER"',
    )
    (server / "dev/hisi_hdc").unlink()
    assert check("nodes", station(server))["control files"].found.en == "missing: /dev/hisi_hdc"
    assert check("nodes", station(server))["devices"].status is Status.FINE


# what runs


@pytest.mark.parametrize(
    ("vendor", "text", "driver", "found"),
    [
        ("ascend", NPU_SMI, "25.2.0", "2 x 910B3"),
        ("cambricon", CNMON, "5.10.22", "1 x MLU370-X8"),
        ("tecorigin", TECO_SMI, "3.2.0", "1 x TECO_AICARD_01"),
        ("moorethreads", GMI, "5.1.0-server", "1 x MTT S5000"),
    ],
)
def test_commands_of_the_vendors(tmp_path: Path, vendor: str, text: str, driver: str, found: str) -> None:
    machine = station(tmp_path, vendor, smi=Output(0, text), packages={})
    assert machine.driver == driver
    result = only("smi", machine)
    assert (result.status, result.found.en) == (Status.FINE, found)


def test_a_command_that_fails_hangs_or_warns(server: Path) -> None:
    failed = only("smi", station(server, smi=Output(87, "\ndcmi init failed {x}\n")))
    assert failed.status is Status.BLOCKS and "dcmi init failed {x}" in failed.found.en
    assert only("smi", station(server, smi=Output(124, ""))).status is Status.BLOCKS
    sick = only("smi", station(server, smi=Output(0, NPU_SMI.replace("OK   ", "Alarm", 1))))
    assert (sick.status, sick.found.en) == (Status.DOUBT, "not healthy: 0 910B3 (Alarm)")
    assert only("smi", station(server)).status is Status.INFO


def test_processes_that_were_left_behind(server: Path, tmp_path: Path) -> None:
    (server / "proc/42/fd").mkdir()
    os.symlink("/dev/davinci1", server / "proc/42/fd/7")
    os.symlink("/dev/null", server / "proc/42/fd/8")
    result = only("processes", station(server))
    assert (result.status, result.found.en, result.commands[0].line) == (
        Status.DOUBT,
        "42 python",
        "kill 42",
    )
    put(tmp_path, {"dev/tcaicard0": ""})
    teco = only("processes", station(tmp_path, "tecorigin", smi=Output(0, TECO_SMI)))
    assert teco.commands[0].line == "kill 76262"


def test_network(server: Path) -> None:
    nameless = check("network", station(server, address=None))["host name"]
    assert nameless.status is Status.DOUBT
    assert check("network", station(server, address="127.0.1.1"))["host name"].status is Status.INFO
    variables = {"MASTER_PORT": "4711", "HCCL_SOCKET_IFNAME": "ib0", "HCCL_IF_IP": "10.0.0.300"}
    found = check("network", station(server, environment=variables, taken_ports=[4711]))
    assert found["port"].found.en == "port 4711 is taken"
    assert found["HCCL_SOCKET_IFNAME"].found.en == "ib0: no such interface; there are eth0"
    assert found["HCCL_IF_IP"].status is Status.DOUBT
    right = check("network", station(server, environment={"HCCL_SOCKET_IFNAME": "=eth0"}))
    assert right["HCCL_SOCKET_IFNAME"].status is Status.FINE


def test_a_full_disk(server: Path) -> None:
    full = check("disk", station(server, space=Space(100 << 30, 1 << 30)))
    assert full["work folder"].status is Status.DOUBT


def test_whose_device_it_may_be(server: Path, tmp_path: Path) -> None:
    assert [vendor.name for vendor in vendors_with_traces(station(server, packages={}).machine, [])] == [
        "ascend"
    ]
    put(tmp_path, {"dev/dri/renderD128": ""})
    names = [vendor.name for vendor in vendors_with_traces(station(tmp_path, packages={}).machine, [])]
    assert "intel" not in names  # any graphics card has such a file
