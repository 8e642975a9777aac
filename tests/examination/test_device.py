"""The checks of a machine with a vendor's device: a good server, and what is said of each thing that is wrong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.examination.checking import check, only
from tests.examination.stations import (
    ASCEND_PACKAGES,
    ASCEND_VARIABLES,
    CNMON,
    GMI,
    NPU_SMI,
    OLD_CNMON,
    TECO_SMI,
    TWO_CHIPS,
    ascend_files,
    put,
    station,
)
from torchferry.examination.device.station import Access, CommandOutput, this_station
from torchferry.examination.examine import examine_device, vendors_with_traces
from torchferry.examination.host.machine import Space, this_machine
from torchferry.report.checks import Status
from torchferry.vendors.machine import load_machine
from torchferry.vendors.registry import get_vendor, vendor_names


@pytest.fixture
def server(tmp_path: Path) -> Path:
    put(tmp_path, ascend_files())
    return tmp_path


def test_a_good_server_is_ready(server: Path) -> None:
    found = examine_device(station(server, smi=CommandOutput(0, NPU_SMI)))
    assert found.is_ready
    worst = [result for result in found.results if result.status in (Status.BLOCKS, Status.DOUBT)]
    assert not worst
    assert not [command for result in found.results for command in result.commands]


@pytest.mark.parametrize("vendor", vendor_names())
def test_an_empty_machine_is_not_ready_and_says_what_to_get(tmp_path: Path, vendor: str) -> None:
    empty = station(tmp_path, vendor, environment={}, packages={})
    found = examine_device(empty)
    assert {"torch"} <= {result.subject for result in found.of(Status.BLOCKS)}
    assert any(
        "https://" in result.why.en or "http://" in result.why.en for result in found.of(Status.BLOCKS)
    )
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
        (
            "2.15.0+cpu",
            "2.15.0",
            Status.INFO,
        ),  # newer than any table, and its name says that it is for this torch
        ("2.1.0", "2.1.0.post99", Status.INFO),
        ("2.1.0", "2.1.0.post7", Status.INFO),  # between two that are known
        ("2.9.1+cpu", "2.9.0", Status.DOUBT),
        ("2.9.0a0+git1234", "2.9.0", Status.FINE),
        ("2.10.0", "2.1.0.post99", Status.BLOCKS),
    ],
)
def test_plugin_and_torch(server: Path, torch: str, plugin: str, status: Status) -> None:
    packages = {**ASCEND_PACKAGES, "torch": torch, "torch-npu": plugin}
    assert only("plugin", station(server, packages=packages)).status is status


def test_an_absent_plugin_is_named_for_what_is_here(server: Path) -> None:
    result = only("plugin", station(server, packages={"torch": "2.8.0"}))
    assert result.commands[0].line == (
        "pip install torch==2.8.0 torch-npu==2.8.0.post2 --extra-index-url https://download.pytorch.org/whl/cpu"
    )
    assert "torch 2.8.0, CANN 8.5.0" in result.why.en


def test_python_for_which_nothing_is_published(server: Path) -> None:
    other = only("interpreter", station(server, python="3.12"))
    assert (other.status, "_C.cpython-311" in other.why.en) == (Status.BLOCKS, True)
    (server / "site/torch_npu/_C.cpython-311-x86_64-linux-gnu.so").unlink()
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
    assert result("") is result("-1") is result("0-1") is result("all\x1b[31m") is Status.DOUBT


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
        ("ascend", TWO_CHIPS, "24.1.rc3.7", "2 x Ascend910"),
        ("cambricon", CNMON, "5.10.22", "1 x MLU370-X8"),
        ("cambricon", OLD_CNMON, "4.20.11", "1 x MLU370-X4"),
        ("tecorigin", TECO_SMI, "3.2.0", "1 x TECO_AICARD_01"),
        ("moorethreads", GMI, "5.1.0-server", "1 x MTT S5000"),
    ],
)
def test_commands_of_the_vendors(tmp_path: Path, vendor: str, text: str, driver: str, found: str) -> None:
    machine = station(tmp_path, vendor, smi=CommandOutput(0, text), packages={})
    assert machine.driver == driver
    result = only("smi", machine)
    assert (result.status, result.found.en) == (Status.FINE, found)


def test_a_command_that_fails_hangs_or_warns(server: Path) -> None:
    failed = only("smi", station(server, smi=CommandOutput(87, "\ndcmi init failed {x}\n")))
    assert failed.status is Status.BLOCKS and "dcmi init failed {x}" in failed.found.en
    assert only("smi", station(server, smi=CommandOutput(None, ""))).status is Status.BLOCKS
    sick = only("smi", station(server, smi=CommandOutput(0, NPU_SMI.replace("OK   ", "Alarm", 1))))
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
    teco = only("processes", station(tmp_path, "tecorigin", smi=CommandOutput(0, TECO_SMI)))
    assert teco.commands[0].line == "kill 76262"
    put(tmp_path, {"dev/mtgpu.0": ""})
    musa = only("processes", station(tmp_path, "moorethreads", smi=CommandOutput(0, GMI)))
    assert musa.commands[0].line == "kill 1123"


def test_network(server: Path) -> None:
    nameless = check("network", station(server, address=None))["host name"]
    assert nameless.status is Status.DOUBT
    assert check("network", station(server, address="127.0.1.1"))["host name"].status is Status.INFO
    variables = {"MASTER_PORT": "4711", "HCCL_SOCKET_IFNAME": "ib0", "HCCL_IF_IP": "10.0.0.300"}
    found = check("network", station(server, environment=variables, taken_ports=[4711]))
    assert found["port"].found.en == "port 4711 is in use"
    assert found["HCCL_SOCKET_IFNAME"].found.en == "ib0: no such interface; choose one of eth0"
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
