"""`ferry run --sim --converted` as users call it: converted programs on the simulated device, in one process and many."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests import schemas
from torchferry.errors import RunError
from torchferry.launch import program
from torchferry.launch.environment import child_environment
from torchferry.sim.environment import SimSettings, parse_memory, settings_for
from torchferry.vendors.model import Limits
from torchferry.vendors.registry import get_vendor

from .commands import command, environment, make, one_line

SIM = ("run", "--sim", "--converted", "--to", "ascend")
GIB = 1 << 30


def ferry_run(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command("ferry", *arguments),
        env=environment(OMP_NUM_THREADS="1", **variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,  # the first run compiles the device
    )


def summary_of(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text("utf-8"))
    assert schemas.wrong("torchferry-run", content) == []
    return content


SCRIPT = """\
import sys
import torch, torch_npu
x = torch.rand(8, 8, device="npu:1")
torch.geqrf(x)
torch.geqrf(x)
x.double()
try:
    torch.empty(GIB, device="npu:2")
except torch.OutOfMemoryError:
    pass
print(__name__, torch.npu.device_count(), *sys.argv[1:], sys.path[0])
sys.exit(7)
""".replace("GIB", str(GIB))


def test_a_script(tmp_path: Path) -> None:
    make(tmp_path / "program", train=SCRIPT)
    report = tmp_path / "summary.json"
    arguments = ["--lr", "0.1", "--to", "x", "--n", "3", "--", "-m"]  # --n could be short for some of ours
    result = ferry_run(
        *SIM,
        "--devices",
        3,
        "--memory",
        "1GiB",
        "-o",
        report,
        tmp_path / "program/train.py",
        *arguments,
    )
    assert result.returncode == 7, result.stderr
    assert result.stdout == f"__main__ 3 {' '.join(arguments)} {tmp_path / 'program'}\n"
    assert "npu:1" in result.stderr
    assert "2  aten::geqrf" in result.stderr
    assert "out-of-memory errors: 1" in result.stderr
    content = summary_of(report)
    assert (content["vendor"], content["device_type"], content["exit_code"]) == ("ascend", "npu", 7)
    assert [device["index"] for device in content["devices"]] == [1, 2]
    assert content["devices"][0]["limit"] == GIB
    assert {"name": "aten::geqrf", "calls": 2, "support": "falls_back"} in content["operators"]
    assert list(content["dtypes"].values()) == [1]
    assert (len(content["processes"]), content["unreported"]) == (1, 0)
    assert sorted(os.listdir(tmp_path)) == ["program", "summary.json"]


def test_strict_and_quiet(tmp_path: Path) -> None:
    make(tmp_path, train=SCRIPT)
    result = ferry_run(*SIM, "--strict", "--quiet", tmp_path / "train.py")
    assert result.returncode == 1
    assert "aten::geqrf" in result.stderr.splitlines()[-1]
    assert "torchferry:" not in result.stderr


CHILDREN = """\
import subprocess, sys
import torch
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.tensor(float(index * index))


class Answer:
    def __init__(self, value):
        self.value = value


def work(index, queue):
    queue.put(Answer((torch.ones(2, device=f"npu:{index}") + index).sum().item()))


def main():
    queue = mp.get_context("spawn").SimpleQueue()
    mp.spawn(work, (queue,), nprocs=2)
    print(sorted(queue.get().value for _ in range(2)))
    loader = DataLoader(Squares(), batch_size=4, num_workers=1, multiprocessing_context="spawn")
    print([batch.to("npu").sum().item() for batch in loader])
    forked = DataLoader(Squares(), batch_size=4, num_workers=1, multiprocessing_context="fork")
    print([batch.to("npu").sum().item() for batch in forked])
    code = "import torch_npu, torch; print(torch.ones(3, device='npu:3').sum().item())"
    subprocess.run([sys.executable, "-c", code], check=True)


if __name__ == "__main__":
    main()
"""


def test_every_python_process_below_has_the_device(tmp_path: Path) -> None:
    make(tmp_path, children=CHILDREN)
    report = tmp_path / "summary.json"
    result = ferry_run(*SIM, "-o", report, tmp_path / "children.py", PYTHONUNBUFFERED="1")
    assert result.returncode == 0, result.stderr
    assert result.stdout == "[2.0, 4.0]\n[14.0]\n[14.0]\n3.0\n"
    content = summary_of(report)
    used = sorted([device["index"] for device in process["devices"]] for process in content["processes"])
    assert used == [
        [0],
        [0],
        [1],
        [3],
    ]  # the program, two of mp.spawn, the subprocess: no data loader's worker
    assert content["unreported"] == 0


# As before PyTorch 2.5, or where a vendor's real plugin is installed: it must not load beside the simulator.
# The user's own sitecustomize, which ours hides, still runs.
@pytest.mark.parametrize("plugin", [False, True], ids=["switched off", "real plugin"])
def test_where_pytorch_does_not_call_us(tmp_path: Path, plugin: bool) -> None:
    code = "import torch_npu, torch; print(torch.ones(3, device='npu:3').sum().item())"
    make(
        tmp_path,
        train=f"import os, subprocess, sys\nimport torch\nprint(os.environ['USERS_OWN'])\n"
        f"torch.ones(1).npu()\nsubprocess.run([sys.executable, '-c', {code!r}], check=True)\n",
        user__sitecustomize="import os\nos.environ['USERS_OWN'] = 'seen'\n",
    )
    variables = {"PYTHONPATH": str(tmp_path / "user"), "PYTHONUNBUFFERED": "1"}
    if plugin:
        entry = "[torch.backends]\ntorch_npu = nowhere:_autoload\n"
        make(tmp_path / "user/torch_npu-2.13.0.dist-info", **{"entry_points.txt": entry})
    else:
        variables["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    result = ferry_run(*SIM, tmp_path / "train.py", **variables)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "seen\n3.0\n"
    assert "processes that used it: 2" in result.stderr


RANKS = """\
import os
import torch, torch_npu
import torch.distributed as dist
rank = int(os.environ["LOCAL_RANK"])
torch.npu.set_device(rank)
dist.init_process_group("hccl")
x = torch.full((2,), rank + 1.0, device="npu")
dist.all_reduce(x)
if rank == 0:
    print(x.tolist(), dist.get_backend(), os.environ["WORLD_SIZE"])
dist.destroy_process_group()
"""


def test_a_module_in_two_processes(tmp_path: Path) -> None:
    make(tmp_path / "package", ranks=RANKS)
    report = tmp_path / "summary.json"
    result = ferry_run(
        *SIM, "--nproc", 2, "-o", report, "-m", "package.ranks", "-x", PYTHONPATH=str(tmp_path)
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "[3.0, 3.0] hccl 2\n"
    content = summary_of(report)
    assert [process["rank"] for process in content["processes"]] == [0, 1]
    assert [device["index"] for device in content["devices"]] == [0, 1]
    assert "processes that used it: 2" in result.stderr


RESTARTED = """\
import os, signal, sys
import torch
torch.ones(2, device="npu")
restarts = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
print("attempt", restarts, flush=True)
if restarts == 0:
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_elastic_restart_after_a_killed_process(tmp_path: Path) -> None:
    make(tmp_path, train=RESTARTED)
    report = tmp_path / "summary.json"
    options = ["--nproc_per_node", 1, "--max_restarts", 1, "--monitor-interval", "0.1"]
    result = ferry_run(*SIM, *options, "-o", report, tmp_path / "train.py")
    assert result.returncode == 0, result.stderr
    assert result.stdout == "attempt 0\nattempt 1\n"
    content = summary_of(report)
    assert [process["restart"] for process in content["processes"]] == [1]
    assert content["unreported"] == 1
    assert "processes killed before they could report, not counted here: 1" in result.stderr


WAITING = """\
import os, time
import torch
torch.ones(2, device="npu")
open(os.environ["READY"] + "-" + os.environ["LOCAL_RANK"], "w").write(str(os.getpid()))
time.sleep(120)
"""


def test_sigterm_ends_all_ranks_and_leaves_nothing(tmp_path: Path) -> None:
    make(tmp_path, train=WAITING)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    process = subprocess.Popen(
        command("ferry", *SIM, "--nproc", 2, tmp_path / "train.py"),
        env=environment(READY=str(tmp_path / "ready"), TMPDIR=str(scratch)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    ranks = [tmp_path / f"ready-{rank}" for rank in range(2)]
    until = time.monotonic() + 120
    while not all(path.exists() and path.read_text() for path in ranks):
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < until
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode not in (0, None)
    for path in ranks:
        assert not Path(f"/proc/{path.read_text()}").exists()
    assert not [name for name in os.listdir(scratch) if name.startswith("torchferry-")]


def test_folders_of_killed_runs_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    abandoned = tmp_path / "torchferry-run-abandoned"
    abandoned.mkdir()
    (abandoned / "lock").touch()
    with program._summary_folder() as first:
        assert not abandoned.exists()
        with program._summary_folder():
            assert first.exists()  # in use
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--sim", "x.py", "--to", "ascend"], ["--to VENDOR", "before the script"]),
        (["--sim", "--to", "ascnd", "x.py"], ["ascnd", "did you mean 'ascend'"]),
        (["--sim", "--to", "intel", "x.py"], ["xpu", "can't be simulated"]),
        (["--sim", "--to", "ascend", "nowhere.py"], ["nowhere.py", "no such script"]),
        (["--sim", "--to", "ascend", "--memory", "lots", "x.py"], ["lots", "32GiB"]),
        (["--sim", "--to", "ascend", "--devices", "65", "x.py"], ["1 to 64", "65"]),
        (["--sim", "--to", "ascend", "-o", "nowhere/s.json", "x.py"], ["nowhere/s.json", "folder"]),
        (["--sim", "--to", "ascend"], ["which program?", "SCRIPT"]),
        (["--to", "intel", "--devices", "2", "x.py"], ["--devices", "simulated"]),
        (["--to", "ascend", "--capability", "eight", "x.py"], ["'eight'", "8.0"]),
        (["--to", "ascend", "--cuda-version", "new", "x.py"], ["'new'", "12.4"]),
        (["--to", "ascend", "--converted", "--list-redirects"], ["--list-redirects", "--converted"]),
        (["--to", "ascend", "--converted", "--type-checks", "vendor", "x.py"], ["--type-checks"]),
    ],
)
def test_bad_usage_is_one_line(tmp_path: Path, arguments: list[str], words: list[str]) -> None:
    make(tmp_path, x="print('ran')\n")
    result = subprocess.run(
        command("ferry", "run", *arguments), cwd=tmp_path, env=environment(), capture_output=True, text=True
    )
    one_line(result, *words)
    assert result.stderr.startswith("ferry: ")


def test_there_is_at_least_one_device() -> None:
    result = ferry_run(*SIM, "--devices", "0", "x.py")
    assert result.returncode == 2
    assert "'0' is not a number from 1 on" in result.stderr


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("32GiB", 32 * GIB),
        ("512MB", 512 << 20),
        ("1.5G", 3 * GIB // 2),
        (" 2 tib ", 2 << 40),
        ("4096", 4096),
        ("1k", 1024),
        (7, 7),
    ],
)
def test_sizes_of_memory(text: str | int, size: int) -> None:
    assert parse_memory(text) == size


@pytest.mark.parametrize("text", ["", "GiB", "-1GiB", "0", "1.2.3G", "5 parsecs", "1e3", "8388608T"])
def test_what_is_no_size_of_memory(text: str) -> None:
    with pytest.raises(RunError, match="not a memory size"):
        parse_memory(text)


def test_settings_survive_the_environment() -> None:
    settings = SimSettings("acme", 3, 5 * GIB, True, ("/a b/ü",), summary_folder="/somewhere")
    ours = {"PYTHONPATH": "/mine", "HOME": "/h"}
    given = child_environment(ours, get_vendor("ascend"), settings, None)
    assert SimSettings.read(given) == settings
    assert given["HOME"] == "/h"
    assert given["PYTHONPATH"].split(os.pathsep)[-1] == "/mine"
    assert SimSettings.read({}) is None


def test_the_launcher_stays_light(tmp_path: Path) -> None:
    make(tmp_path, train="print('ran')\n")
    code = (
        "import sys\n"
        "from torchferry.cli.main import main\n"
        f"code = main(['run', '--sim', '--to', 'ascend', '-q', {str(tmp_path / 'train.py')!r}])\n"
        "heavy = {'torch', 'rich', 'openpyxl', 'torchferry.conversion', 'torchferry.report.html'}\n"
        "print(code, heavy & set(sys.modules))\n"
    )
    python = command("python", "-c", code)
    assert subprocess.check_output(python, env=environment(), text=True, timeout=300) == "ran\n0 set()\n"


def test_without_numbers_the_machine_is_a_typical_server() -> None:
    vendor = get_vendor("ascend")
    settings = settings_for(vendor)
    assert (settings.devices, settings.memory) == (vendor.limits.device_count, 64 * GIB)
    assert settings_for(vendor, 2, "1GiB").devices == 2
    unknown = replace(vendor, limits=Limits())
    assert (settings_for(unknown).devices, settings_for(unknown).memory) == (8, 32 * GIB)


def test_a_program_may_activate_the_device_itself_before_it_imports_torch(tmp_path: Path) -> None:
    code = (
        "import torchferry.sim\ntorchferry.sim.activate('ascend')\nimport torch\n"
        "print(torch.ones(1, device='npu').device, torch.npu.device_count())\n"
    )
    run = ferry_run(*SIM, "--devices", "3", make(tmp_path, program=code) / "program.py")
    assert run.stdout == "npu:0 3\n", run.stderr
