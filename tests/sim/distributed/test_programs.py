"""Ways to start and to end: addresses, torchrun, spawn, restart, a rank that is killed."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.commands import command
from tests.sim.distributed.group import VENDORS, environment, run_ranks
from torchferry.vendors.registry import get_vendor

PROGRAMS = Path(__file__).parent / "programs"
VENDOR = get_vendor(VENDORS[0])


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def torchrun(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "torch.distributed.run", "--master-addr=127.0.0.1", *arguments]


def expected(rank: int, total: int) -> str:
    return f"rank {rank}: {VENDOR.dist_backend} {total} on {VENDOR.device_type}:{rank}\n"


@pytest.mark.parametrize("way", ["file", "tcp"])
def test_addresses(way: str, tmp_path: Path) -> None:
    url = f"file://{tmp_path / 'store'}" if way == "file" else f"tcp://127.0.0.1:{free_port()}"
    program = [sys.executable, str(PROGRAMS / "joins.py"), VENDOR.name, url]
    printed = run_ranks([[*program, str(rank), "2"] for rank in range(2)])
    for rank in range(2):
        assert expected(rank, 3) in printed[rank]


def test_torchrun_with_four_ranks() -> None:
    program = str(PROGRAMS / "joins.py")
    (printed,) = run_ranks(
        [torchrun(f"--master-port={free_port()}", "--nproc-per-node=4", program, VENDOR.name)]
    )
    for rank in range(4):
        assert expected(rank, 10) in printed


def test_spawn() -> None:
    (printed,) = run_ranks([[sys.executable, str(PROGRAMS / "spawns.py"), VENDOR.name, str(free_port())]])
    for rank in range(2):
        assert f"rank {rank}: 2 on {VENDOR.device_type}:{rank}\n" in printed


def test_restart_after_a_rank_died() -> None:
    program = str(PROGRAMS / "fails_once.py")
    port = f"--master-port={free_port()}"
    (printed,) = run_ranks([torchrun(port, "--nproc-per-node=2", "--max-restarts=1", program, VENDOR.name)])
    assert printed.count("attempt 1: 4\n") == 2, printed


def test_a_killed_rank_leaves_nothing_behind(tmp_path: Path) -> None:
    shared_before = set(os.listdir("/dev/shm"))
    program = [sys.executable, str(PROGRAMS / "loses_a_rank.py"), VENDOR.name, f"file://{tmp_path / 'store'}"]
    ranks = [
        subprocess.Popen(
            [*program, str(rank)],
            env=environment(TMPDIR=str(tmp_path)),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        for rank in range(2)
    ]
    printed = [rank.communicate(timeout=120)[0] for rank in ranks]
    assert "lost: completed True, success False, RuntimeError" in printed[0], printed[0]
    assert [rank.returncode for rank in ranks] == [0, -9], printed
    for rank in ranks:
        with pytest.raises(ProcessLookupError):
            os.killpg(rank.pid, 0)  # a session of each: not even a child lives on
    ours = {
        name for name in set(os.listdir("/dev/shm")) - shared_before if "torch" in name or "ferry" in name
    }
    assert not ours
    assert [file.name for file in tmp_path.iterdir() if file.name != "store"] == []


def test_ferry_run_with_two_processes() -> None:
    options = ["--sim", "--converted", "--to", VENDOR.name, "--nproc", "2", "--master-port", str(free_port())]
    (printed,) = run_ranks([command("ferry", "run", *options, PROGRAMS / "joins.py", VENDOR.name)])
    for rank in range(2):
        assert expected(rank, 3) in printed


def test_debugging_of_pytorch() -> None:
    """With this variable PyTorch puts a group of its own around ours, which compares what the ranks do."""
    url = f"tcp://127.0.0.1:{free_port()}"
    program = [
        "env",
        "TORCH_DISTRIBUTED_DEBUG=DETAIL",
        sys.executable,
        str(PROGRAMS / "joins.py"),
        VENDOR.name,
        url,
    ]
    printed = run_ranks([[*program, str(rank), "2"] for rank in range(2)])
    for rank in range(2):
        assert f"rank {rank}: {VENDOR.dist_backend} 3 on" in printed[rank]


@pytest.mark.parametrize("leave", ["yes", "no"])
def test_the_end_of_a_program_waits_for_its_collectives(leave: str, tmp_path: Path) -> None:
    program = [sys.executable, str(PROGRAMS / "ends_early.py"), VENDOR.name, f"file://{tmp_path / 'store'}"]
    for text in run_ranks([[*program, str(rank), leave] for rank in range(2)]):
        assert "terminate called" not in text
