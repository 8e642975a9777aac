"""The kinds of programs that people write today: each runs unchanged, runs converted, and computes the same."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.cli.commands import command, environment
from tests.forked_ferry import ferry_forked

HERE = Path(__file__).parent
PROGRAMS = HERE / "modern_programs"
VENDORS = ("ascend", "cambricon")
_MINUTES = 15


@dataclass(frozen=True)
class Program:
    """One of them."""

    name: str
    options: tuple[str, ...] = ()  # of `ferry prove`
    steps: int = 3  # of all processes in total

    def __str__(self) -> str:
        return self.name


TABLE = (
    Program("accelerate_bf16", steps=4),
    Program("amp"),
    Program("autograd_function"),
    Program("bf16"),
    Program("checkpointing"),
    Program("collate"),
    Program("compiled", steps=4),
    Program("dcp", ("--nproc", "2"), 6),
    Program("ddp_spawn", ("--devices", "2"), 6),
    Program("ddp_torchrun", ("--nproc", "2"), 4),
    Program("fsdp1", ("--nproc", "2"), 6),
    Program("fsdp2", ("--nproc", "2"), 6),
    Program("graphs", steps=5),
    Program("hf_trainer", steps=4),
    Program("json_config"),
    Program("lightning_auto", steps=4),
    Program("lightning_gpu", steps=4),
    Program("lora"),
    Program("prefetcher"),
    Program("saveload", steps=10),
    Program("streams"),
    Program("subclass"),
)
QUICK = ("amp", "json_config", "lora", "saveload", "subclass")


def test_the_table_has_every_program() -> None:
    assert [program.name for program in TABLE] == sorted(path.stem for path in PROGRAMS.glob("*.py"))
    assert set(QUICK) <= {program.name for program in TABLE}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """For a vendor, a folder with the programs as they are, and the converted ones beside them."""

    @cache
    def folder(vendor: str) -> Path:
        made = tmp_path_factory.mktemp(vendor)
        shutil.copytree(PROGRAMS, made / "original", ignore=shutil.ignore_patterns("__pycache__"))
        ended = subprocess.run(
            command("ferry", "convert", "original", "--to", vendor, "-o", "converted", "-q"),
            env=environment(),
            cwd=made,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (made / "converted").is_dir(), ended.stderr
        return made

    return folder


def _free_port() -> str:
    with socket.socket() as asking:
        asking.bind(("127.0.0.1", 0))
        return str(asking.getsockname()[1])


def _proved(program: Program, vendor: str, folder: Path, *scripts: str, forked: bool = False) -> None:
    arguments = ("prove", "--to", vendor, "--steps", "all", *program.options, *scripts)
    variables = {"HF_HUB_OFFLINE": "1", "PORT": _free_port()}
    if forked:
        ended = ferry_forked(*arguments, folder=folder, **variables)
    else:
        ended = subprocess.run(
            command("ferry", *arguments),
            env=environment(OMP_NUM_THREADS="1", TORCHFERRY_LANG="en", **variables),
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=_MINUTES * 60,
        )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"equal bit for bit, {program.steps} steps compared" in ended.stdout


def _pair(program: Program) -> tuple[str, ...]:
    return ("--before", f"original/{program}.py", "--after", f"converted/{program}.py")


@pytest.mark.parametrize("program", [each for each in TABLE if each.name in QUICK], ids=str)
def test_quick_ones_run_converted_and_compute_the_same(
    program: Program, folders: Callable[[str], Path]
) -> None:
    _proved(program, "ascend", folders("ascend"), *_pair(program), forked=True)


@pytest.mark.long
@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("program", TABLE, ids=str)
def test_it_runs_unchanged_and_computes_the_same(
    program: Program, vendor: str, folders: Callable[[str], Path]
) -> None:
    _proved(program, vendor, folders(vendor) / "original", "--", f"{program}.py")


@pytest.mark.long
@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("program", TABLE, ids=str)
def test_it_runs_converted_and_computes_the_same(
    program: Program, vendor: str, folders: Callable[[str], Path]
) -> None:
    _proved(program, vendor, folders(vendor), *_pair(program))
