"""The checks of a host: a good server, and what is said of each thing that is wrong with one."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.examination.making import GIBIBYTE, GOOD, machine
from torchferry.examination.examine import examine_host
from torchferry.examination.host.machine import Machine, ProcessLimit, Space, this_machine
from torchferry.report.checks import CheckResult, Reach, Status


def check(name: str, host: Machine) -> list[CheckResult]:
    return list(importlib.import_module(f"torchferry.examination.host.checks.{name}").check(host))


def first(name: str, host: Machine) -> CheckResult:
    return check(name, host)[0]


def lines(results: Iterable[CheckResult], reach: Reach) -> list[str]:
    return [command.line for result in results for command in result.commands if command.reach is reach]


def test_a_good_server_has_nothing_to_fix(tmp_path: Path) -> None:
    found = examine_host(machine(tmp_path), None)
    assert not found.count(Status.COSTS) and not found.count(Status.COULD)
    assert all(not result.commands for result in found.results)
    # only a person can look at the firmware
    assert [result.subject for result in found.results if result.status is Status.UNSEEN] == [
        "BIOS Power Policy"
    ]


def test_nothing_can_be_seen(tmp_path: Path) -> None:
    empty = machine(tmp_path, dict.fromkeys(GOOD), processors=0, shared_memory=None, limits={}, packages={})
    found = examine_host(empty, None)
    assert not found.count(Status.COSTS) and not found.count(Status.COULD)
    assert found.count(Status.UNSEEN) == 8


def test_the_machine_that_we_run_on_can_be_examined() -> None:
    assert examine_host(this_machine(), None).results


@pytest.mark.parametrize("governor", ["powersave", "ondemand", "schedutil"])
def test_governor(tmp_path: Path, governor: str) -> None:
    one = {"sys/devices/system/cpu/cpu3/cpufreq/scaling_governor": governor, "etc/os-release": "ID=openEuler"}
    result = first("governor", machine(tmp_path, one))
    assert (result.status, result.found.en) == (Status.COSTS, f"performance (7), {governor} (1)")
    assert lines([result], Reach.ROOT) == [
        "yum install -y kernel-tools",
        "cpupower frequency-set -g performance",
    ]


def test_governor_of_a_driver_that_chooses_the_clock(tmp_path: Path) -> None:
    files = {
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave",
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_driver": "intel_pstate",
        "etc/os-release": "ID=ubuntu\nID_LIKE=debian",
    }
    result = first("governor", machine(tmp_path, files))
    assert result.status is Status.COSTS
    assert "powersave` is not the lowest clock" in result.why.en
    assert lines([result], Reach.ROOT)[0].startswith("apt-get install")


@pytest.mark.parametrize(
    ("architecture", "menu"), [("aarch64", "Performance Config"), ("x86_64", "Socket Configuration")]
)
def test_firmware(tmp_path: Path, architecture: str, menu: str) -> None:
    assert menu in check("governor", machine(tmp_path, architecture=architecture))[1].why.en


def test_instructions(tmp_path: Path) -> None:
    arm = {"proc/cpuinfo": "processor\t: 0\nFeatures\t: fp asimd sve\n"}
    assert first("processor", machine(tmp_path, arm)).found.en == "asimd, sve"


def test_pillow(tmp_path: Path) -> None:
    plain = {"Pillow": "11.0.0"}
    result = first("pillow", machine(tmp_path, packages=plain, turbo=True))
    assert (result.status, result.found.en) == (Status.COULD, "Pillow 11.0.0, with libjpeg-turbo")
    assert lines([result], Reach.INSTALL)[1].startswith('CC="cc -mavx2" pip install')
    assert first("pillow", machine(tmp_path, packages=plain, turbo=False)).status is Status.COSTS
    assert first("pillow", machine(tmp_path, packages=plain, architecture="aarch64")).status is Status.FINE
    assert first("pillow", machine(tmp_path, packages={})).status is Status.INFO
    old = {"proc/cpuinfo": "flags : sse4_2\n"}
    assert "avx2" not in str(first("pillow", machine(tmp_path, old, packages=plain)).commands)


@pytest.mark.parametrize(
    ("pillow", "answer"),
    [
        ("check_feature = {'libjpeg_turbo': True}.get", True),
        ("check_feature = {'libjpeg_turbo': False}.get", False),
        ("import os; os.abort()", None),
    ],
)
def test_a_pillow_that_crashes_ends_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pillow: str, answer: bool | None
) -> None:
    (tmp_path / "PIL").mkdir()
    (tmp_path / "PIL/__init__.py").write_text("")
    (tmp_path / "PIL/features.py").write_text(pillow)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert this_machine().has_turbo_jpeg() is answer


def test_opencv(tmp_path: Path) -> None:
    one = first("opencv", machine(tmp_path, packages={"opencv-python": "4.10.0"}))
    assert (one.status, one.found.en) == (Status.INFO, "opencv-python 4.10.0")
    assert "3.4.10" in one.why.en and "setNumThreads(0)" in one.why.en
    both = {"opencv-python": "4.10.0", "opencv-python-headless": "4.9.0"}
    assert first("opencv", machine(tmp_path, packages=both)).status is Status.COULD


@pytest.mark.parametrize(
    "files",
    [
        {"sys/fs/cgroup/cpu.max": "200000 100000"},
        {
            "proc/self/cgroup": "0::/pod/box",
            "sys/fs/cgroup/pod/box/cpu.max": "max 100000",
            "sys/fs/cgroup/pod/cpu.max": "200000 100000",
        },
        {"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "200000", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000"},
    ],
    ids=["cgroup 2", "cgroup 2, of the group above", "cgroup 1"],
)
def test_a_quota_below_the_processors(tmp_path: Path, files: dict[str, str]) -> None:
    host = machine(tmp_path, files)
    processors, workers = check("processors", host)
    assert (processors.status, processors.found.en) == (
        Status.COSTS,
        "8 allowed by affinity, but a quota of 2",
    )
    assert workers.found.en.startswith("1 for each process")
    threads = first("threads", host)
    assert (threads.status, threads.commands[0].line) == (Status.COSTS, "export OMP_NUM_THREADS=2")


def test_no_quota_in_an_old_container(tmp_path: Path) -> None:
    files = {"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000"}
    assert first("processors", machine(tmp_path, files)).status is Status.FINE


def test_processes_share_the_processors(tmp_path: Path) -> None:
    _, workers = check("processors", machine(tmp_path, nproc=4))
    assert (workers.status, workers.found.en[:2]) == (Status.INFO, "1 ")
    _, workers = check("processors", machine(tmp_path, nproc=8))
    assert workers.status is Status.COSTS


@pytest.mark.parametrize(
    ("value", "nproc", "status"),
    [
        ("", 1, Status.FINE),
        ("", 2, Status.COULD),  # torchrun sets it
        ("4", 2, Status.FINE),
        ("8", 2, Status.COSTS),
        ("16", 1, Status.COSTS),
        ("many", 1, Status.COSTS),
        ("4,2", 1, Status.FINE),
    ],
)
def test_threads(tmp_path: Path, value: str, nproc: int, status: Status) -> None:
    environment = {"OMP_NUM_THREADS": value} if value else {}
    assert first("threads", machine(tmp_path, None, environment, nproc=nproc)).status is status


def test_numa(tmp_path: Path) -> None:
    files = {"sys/devices/system/node/node0/cpulist": "0-3", "sys/devices/system/node/node1/cpulist": "4-7"}
    assert first("numa", machine(tmp_path, files)).status is Status.COULD
    assert first("numa", machine(tmp_path, files, processors=4)).status is Status.FINE
    memory_only = {"sys/devices/system/node/node1/cpulist": ""}
    assert first("numa", machine(tmp_path, memory_only)).status is Status.FINE


def test_shared_memory(tmp_path: Path) -> None:
    docker = first("shared_memory", machine(tmp_path, shared_memory=Space(64 << 20, 64 << 20)))
    assert (docker.status, docker.found.en) == (Status.COSTS, "64.0 MiB, 64.0 MiB free")
    assert (
        first("shared_memory", machine(tmp_path, shared_memory=Space(16 * GIBIBYTE, 0))).status
        is Status.COSTS
    )


def test_memory(tmp_path: Path) -> None:
    def status(available: int, swapped: int) -> Status:
        text = f"MemTotal: 1000 kB\nMemAvailable: {available} kB\nSwapTotal: 500 kB\nSwapFree: {500 - swapped} kB\n"
        return first("memory", machine(tmp_path, {"proc/meminfo": text})).status

    assert status(500, 0) is Status.FINE
    assert status(500, 100) is Status.COULD
    assert status(20, 0) is Status.COSTS


@pytest.mark.parametrize(("cached", "status"), [(0, Status.COSTS), (5 * GIBIBYTE, Status.FINE)])
def test_memory_of_a_container(tmp_path: Path, cached: int, status: Status) -> None:
    files = {
        "proc/meminfo": f"MemTotal: {64 << 20} kB\nMemAvailable: {60 << 20} kB\n",
        "sys/fs/cgroup/memory.max": str(8 * GIBIBYTE),
        "sys/fs/cgroup/memory.current": str(8 * GIBIBYTE),
        "sys/fs/cgroup/memory.stat": f"anon 1\nfile {cached}\nfile_mapped 3",
    }
    result = first("memory", machine(tmp_path, files))
    assert result.status is status
    assert "of 8.0 GiB available" in result.found.en


def test_limits(tmp_path: Path) -> None:
    low = {"nofile": ProcessLimit(1024, 4096), "memlock": ProcessLimit(65536, None)}
    files, locked = check("limits", machine(tmp_path, limits=low))
    assert (files.status, files.commands[0].line) == (Status.COULD, "ulimit -n 4096")
    assert (locked.status, locked.commands[0].line) == (Status.INFO, "ulimit -l unlimited")
    stuck = {"nofile": ProcessLimit(1024, 1024), "memlock": ProcessLimit(65536, 65536)}
    assert not any(result.commands for result in check("limits", machine(tmp_path, limits=stuck)))


def test_huge_pages(tmp_path: Path) -> None:
    never = {"sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]"}
    result = first("huge_pages", machine(tmp_path, never))
    assert (result.status, result.commands[0].reach) == (Status.COULD, Reach.ROOT)


def test_allocator(tmp_path: Path) -> None:
    library = {"usr/lib/x86_64-linux-gnu/libtcmalloc.so.4": "x"}
    result = first("allocator", machine(tmp_path, library))
    assert result.status is Status.COULD
    assert result.commands[0].line.startswith(
        'export LD_PRELOAD=/usr/lib/x86_64-linux-gnu/libtcmalloc.so.4"$'
    )
    hostile = {"usr/lib/x86_64-linux-gnu/libjemalloc$(touch x).so.4": "x"}
    other = first("allocator", machine(tmp_path / "other", hostile))
    assert other.commands[0].line.startswith(
        "export LD_PRELOAD='/usr/lib/x86_64-linux-gnu/libjemalloc$(touch x)"
    )
    preloaded = {"LD_PRELOAD": "/usr/lib/libjemalloc.so.2"}
    assert first("allocator", machine(tmp_path, library, preloaded)).status is Status.FINE


def test_flags_of_python(tmp_path: Path) -> None:
    environment = {"PYTHONDEVMODE": "1", "PYTHONMALLOC": "pymalloc_debug", "PYTHONTRACEMALLOC": "0"}
    results = check("python_flags", machine(tmp_path, None, environment))
    assert [(result.subject, result.status) for result in results] == [
        ("PYTHONDEVMODE", Status.COSTS),
        ("PYTHONMALLOC", Status.COSTS),
    ]
    assert lines(results, Reach.SHELL) == ["unset PYTHONDEVMODE", "unset PYTHONMALLOC"]
