"""What comes from outside: commands that hang or babble, programs in odd places, and what is shown to strangers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.examination.checking import check, only
from tests.examination.stations import ASCEND_VARIABLES, NPU_SMI, ascend_files, put, station
from torchferry.examination.device.station import CommandOutput, find_program, run_command
from torchferry.examination.examine import examine_device
from torchferry.examination.report import to_script, without_names
from torchferry.report.anonymous import Anonymiser, PrivateFacts
from torchferry.report.checks import CheckResult, Command, Reach, Status
from torchferry.text import Text


def program(folder: Path, name: str, text: str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def within_seconds(seconds: float, holds: Callable[[], bool]) -> bool:
    """Whether it comes to hold: on a busy machine a killed process takes its time to go."""
    end = time.monotonic() + seconds
    while not holds() and time.monotonic() < end:
        time.sleep(0.01)
    return holds()


def test_a_command_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    hanging = program(tmp_path, "npu-smi", f"echo begun; sleep 77 & echo $! > {tmp_path}/pid; wait")
    assert run_command([hanging], os.environ, 0.5) == CommandOutput(None, "begun\n")
    pid = int((tmp_path / "pid").read_text())
    status = Path(f"/proc/{pid}/status")
    assert within_seconds(5, lambda: not status.exists() or "State:\tZ" in status.read_text())


def test_a_command_that_never_stops_to_print(tmp_path: Path) -> None:
    output = run_command([program(tmp_path, "cnmon", "yes")], os.environ, 30)
    assert output is not None and (output.code, len(output.text)) == (None, 1 << 20)


def test_what_a_command_says(tmp_path: Path) -> None:
    chinese = program(tmp_path, "a", r"printf '\311\350\261\270\n'; exit 3")  # GBK
    assert run_command([chinese], os.environ) == CommandOutput(3, "设备\n")
    ended = run_command([program(tmp_path, "b", "kill -SEGV $$")], os.environ)
    assert ended is not None and ended.code == -signal.SIGSEGV
    assert run_command([str(tmp_path / "none")], os.environ) is None
    (tmp_path / "c").write_text("no program")
    (tmp_path / "c").chmod(0o755)
    assert run_command([str(tmp_path / "c")], os.environ) is None


def test_no_program_beside_the_user_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program(tmp_path, "npu-smi", "touch was-run")
    for path in (".", "", ":", "./:" + "relative"):
        assert find_program("npu-smi", {"PATH": path}) is None
    assert find_program("npu-smi", {"PATH": f".:{tmp_path}"}) == str(tmp_path / "npu-smi")
    assert find_program("sh", {}) == "/usr/bin/sh"  # without PATH, in the usual folders


def test_commands_whose_libraries_are_not_mounted(tmp_path: Path) -> None:
    put(tmp_path, ascend_files())
    folder = "usr/local/Ascend/driver/lib64/driver"
    put(tmp_path, {f"{folder}/libdrvdsmi_host.so": ""})
    said = "npu-smi: error while loading shared libraries: libdrvdsmi_host.so: cannot open shared object file"
    result = only("smi", station(tmp_path, smi=CommandOutput(127, said)))
    assert (result.status, result.commands[0].line.startswith(f"export LD_LIBRARY_PATH=/{folder}")) == (
        Status.BLOCKS,
        True,
    )
    # 124 is an exit code as any other
    assert "exit code 124" in only("smi", station(tmp_path, smi=CommandOutput(124, "busy"))).found.en


@pytest.mark.parametrize(
    ("output", "status", "found"),
    [
        (CommandOutput(0, "warning\ncomputed 0\ncomputed 1\n"), Status.FINE, "computed on 2 devices"),
        (CommandOutput(0, ""), Status.BLOCKS, "the import works, but no device is seen"),
        (CommandOutput(1, "Traceback\nImportError: libhccl.so\n"), Status.BLOCKS, "ImportError: libhccl.so"),
        (CommandOutput(-11, ""), Status.BLOCKS, "killed by SIGSEGV: -"),
        (CommandOutput(None, ""), Status.BLOCKS, "no response within 180 s"),
    ],
)
def test_a_trial(tmp_path: Path, output: CommandOutput, status: Status, found: str) -> None:
    result = only("trial", station(tmp_path, trial=output))
    assert (result.status, result.found.en) == (status, found)
    assert not check("trial", station(tmp_path))
    assert not check("trial", station(tmp_path, packages={}, trial=output))  # nothing to try


def test_the_network(tmp_path: Path) -> None:
    put(tmp_path, ascend_files())
    put(tmp_path, {"etc/ranks.json": '{"server_list": []}', "etc/broken.json": "{,"})
    put(tmp_path, {"proc/sys/net/ipv4/ip_local_port_range": "32768 60999\n"})

    def results(**variables: str) -> dict[str, CheckResult]:
        return check("network", station(tmp_path, environment=variables, address=None))

    assert results(RANK_TABLE_FILE="/etc/ranks.json")["RANK_TABLE_FILE"].status is Status.FINE
    assert "not valid JSON" in results(RANK_TABLE_FILE="/etc/broken.json")["RANK_TABLE_FILE"].found.en
    assert "not a readable file" in results(HCCL_WHITELIST_FILE="/etc/none")["HCCL_WHITELIST_FILE"].found.en
    assert results(MASTER_ADDR="node-1")["MASTER_ADDR"].status is Status.DOUBT
    assert "MASTER_ADDR" not in results(MASTER_ADDR="10.0.0.1")
    assert results(MASTER_PORT="99999")["MASTER_PORT"].status is Status.DOUBT
    assert results(HCCL_SOCKET_IFNAME="eth")["HCCL_SOCKET_IFNAME"].status is Status.FINE
    assert results(HCCL_SOCKET_IFNAME="=eth")["HCCL_SOCKET_IFNAME"].status is Status.DOUBT
    assert results(HCCL_SOCKET_IFNAME="")["HCCL_SOCKET_IFNAME"].status is Status.DOUBT
    assert results()["/etc/hccn.conf"].found.en == "addresses for 1 of 2 cards"
    assert results()["ports"].commands[0].line == "sysctl -w net.ipv4.ip_local_reserved_ports=60000-60015"
    assert "ports" not in results(HCCL_IF_BASE_PORT="17777")
    put(tmp_path, {"proc/sys/net/ipv4/ip_local_reserved_ports": "7000,60000-60015\n"})
    assert "ports" not in results()


def test_folders_that_nothing_can_be_written_to(tmp_path: Path) -> None:
    closed = station(tmp_path, environment={"HOME": "/home/me"}, writable=lambda path: path.name != "me")
    results = check("disk", closed)
    assert (results["home"].status, results["home"].found.en) == (
        Status.DOUBT,
        "/home/me: not writable",
    )
    assert results["work folder"].status is Status.FINE


def test_what_is_shown_to_strangers() -> None:
    def result(check_id: str, text: str) -> CheckResult:
        return CheckResult(
            check_id, "x", Status.INFO, Text(text, text), Text("", ""), (Command(text, Reach.SHELL),)
        )

    def shown(check_id: str, text: str) -> str:
        anonymiser = Anonymiser(PrivateFacts(hosts=("gpu-7",)))
        (hidden,) = without_names([result(check_id, text)], {"HOME": "/home/li"}, anonymiser)
        assert hidden.found.en == hidden.found.zh == hidden.commands[0].line
        return hidden.found.en

    assert shown("network", "gpu-7 is 10.1.2.3") == "<host-1> is <address-1>"
    assert shown("network", "127.0.0.1, fe80::1:2:3:4") == "127.0.0.1, <address-1>"
    assert shown("variable", "192.168.1.1") == "<address-1>"
    assert shown("driver", "24.1.0.3 in /home/li/Ascend") == "24.1.0.3 in ~/Ascend"
    assert shown("driver", "/home/lili/Ascend") == "/home/lili/Ascend"


def test_a_line_break_does_not_get_out_of_a_comment() -> None:
    evil = CheckResult(
        "nodes", "x", Status.BLOCKS, Text("", ""), Text("", ""), (Command("usermod a\ntouch /x", Reach.ROOT),)
    )
    assert "touch" not in to_script([evil], "en")


def test_a_real_process_with_a_command_in_its_path(tmp_path: Path) -> None:
    """All of it, as users run it: beside a command that answers, and without a home."""
    put(tmp_path, {"answer": NPU_SMI})
    program(tmp_path / "bin", "npu-smi", f"/bin/cat {tmp_path}/answer")
    environment = {
        **ASCEND_VARIABLES,
        "PATH": f"{tmp_path}/bin",
        "ASCEND_RT_VISIBLE_DEVICES": "0\x1b[31m\n| x",
    }
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from torchferry.cli.main import main; main(['doctor', '--to', 'ascend', '--json'])",
        ],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["versions"]["driver"] == "25.2.0"
    (smi,) = (result for result in found["results"] if result["id"] == "smi")
    assert (smi["status"], smi["found"]["en"]) == ("fine", "2 x 910B3")


def test_a_check_that_the_system_stops_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stale(found: object) -> list[CheckResult]:
        raise OSError(116, "Stale file handle")

    monkeypatch.setattr("torchferry.examination.device.checks.disk.check", stale)
    results = {result.id: result for result in examine_device(station(tmp_path)).results}
    assert (results["disk"].status, "Stale" in results["disk"].found.en) == (Status.UNSEEN, True)
    assert results["network"]
