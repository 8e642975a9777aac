"""The script that starts a converted program on all cards."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conversion.distributed.programs import script
from tests.conversion.rewriting import VENDORS, target, vendor
from torchferry.cli.main import main
from torchferry.conversion.added import script_name

ROOT = Path(__file__).parents[2]

# Stands for the interpreter: prints what it is started with and the variables that the guide names.
FAKE = """\
#!/bin/bash
if [[ "$1" == -c ]]; then echo 4; exit; fi
printf '%s\\n' "$@"
env | grep -E '^(MASTER_|RANK_SIZE|HCCL_|ASCEND_|COMBINED_|TASK_QUEUE|.*VISIBLE|ZE_)' | sort
"""


def converted(folder: Path, to: str, source: str = "", name: str = "train.py") -> Path:
    project = folder / "project"
    (project / name).parent.mkdir(parents=True)
    (project / name).write_text(source or script(), "utf-8")
    out = folder / "out"
    code = main(["convert", str(project), "-o", str(out), "--to", to, "--distributed", "--main", name, "-q"])
    assert code == 0
    return out


def started(launch: Path, *arguments: str, **environment: str) -> list[str]:
    """What the script starts, word by word, and the variables that it sets."""
    python = launch.parent / "fake python"
    python.write_text(FAKE, "utf-8")
    python.chmod(0o755)
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("MASTER_", "TORCHFERRY"))
    }
    settings = {**kept, "PYTHON": str(python), **environment}
    ended = subprocess.run(
        ["bash", str(launch), *arguments], capture_output=True, text=True, check=False, env=settings
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


@pytest.mark.parametrize("to", [*VENDORS, "portable"])
def test_every_target_has_one_that_bash_understands(to: str, tmp_path: Path) -> None:
    launch = converted(tmp_path, to) / script_name(target(to))
    assert os.access(launch, os.X_OK)
    subprocess.run(["bash", "-n", str(launch)], check=True)
    if shutil.which("shellcheck"):
        subprocess.run(["shellcheck", str(launch)], check=True)
    assert started(launch)[:2] == ["-m", "torch.distributed.run"]


def test_the_names_of_the_scripts() -> None:
    names = {name: script_name(target(name)) for name in ("ascend", "cambricon", "portable")}
    assert names == {
        "ascend": "run_distributed_npu.sh",
        "cambricon": "run_distributed_mlu.sh",
        "portable": "run_distributed.sh",
    }


def test_one_node_and_the_variables_of_the_guide(tmp_path: Path) -> None:
    launch = converted(tmp_path, "ascend") / "run_distributed_npu.sh"
    assert started(launch, "--name", "two words") == [
        "-m", "torch.distributed.run",
        "--nnodes", "1", "--node_rank", "0", "--nproc_per_node", "4",
        "--master_addr", "127.0.0.1", "--master_port", "29688",
        str(launch.parent / "train.py"), "--name", "two words",
        "ASCEND_GLOBAL_EVENT_ENABLE=0", "ASCEND_GLOBAL_LOG_LEVEL=3", "ASCEND_SLOG_PRINT_TO_STDOUT=0",
        "COMBINED_ENABLE=1", "HCCL_WHITELIST_DISABLE=1", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=29688",
        "RANK_SIZE=4", "TASK_QUEUE_ENABLE=1",
    ]  # fmt: skip


def test_several_nodes_and_chosen_cards(tmp_path: Path) -> None:
    launch = converted(tmp_path, "ascend") / "run_distributed_npu.sh"
    words = started(launch, NPUS="2,3", NNODES="3", NODE_RANK="1", MASTER_ADDR="node0", MASTER_PORT="5000")
    assert words[2:12] == [
        "--nnodes", "3", "--node_rank", "1", "--nproc_per_node", "2",
        "--master_addr", "node0", "--master_port", "5000",
    ]  # fmt: skip
    assert set(words[13:]) >= {
        "ASCEND_RT_VISIBLE_DEVICES=2,3", "HCCL_WHITELIST_DISABLE=1", "MASTER_ADDR=node0", "MASTER_PORT=5000",
        "RANK_SIZE=6",
    }  # fmt: skip


def test_the_users_own_variables_stay(tmp_path: Path) -> None:
    launch = converted(tmp_path, "ascend") / "run_distributed_npu.sh"
    assert "TASK_QUEUE_ENABLE=2" in started(launch, TASK_QUEUE_ENABLE="2")


@pytest.mark.parametrize("name", VENDORS)
def test_the_cards_that_are_visible_are_used(name: str, tmp_path: Path) -> None:
    launch = converted(tmp_path, name) / script_name(target(name))
    words = started(launch, **{vendor(name).visible_devices_env: "1,4,5"})
    assert words[words.index("--nproc_per_node") + 1] == "3"
    words = started(launch, NPROC="2")
    assert f"{vendor(name).visible_devices_env}=0,1" in words


def test_no_card(tmp_path: Path) -> None:
    launch = converted(tmp_path, "ascend") / "run_distributed_npu.sh"
    ended = subprocess.run(
        ["bash", str(launch)], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHON": "echo"},
    )  # fmt: skip
    assert ended.returncode == 1
    assert "no card was found" in ended.stderr


def test_a_script_with_an_odd_name(tmp_path: Path) -> None:
    out = converted(tmp_path, "ascend", name="my scripts/it's train.py")
    assert str(out / "my scripts" / "it's train.py") in started(out / "run_distributed_npu.sh")


def test_a_program_that_starts_its_processes_itself(tmp_path: Path) -> None:
    source = (ROOT / "examples" / "imagenet" / "main.py").read_text("utf-8")
    out = converted(tmp_path, "ascend", source)
    assert started(out / "run_distributed_npu.sh", "--lr", "1", NNODES="2", NODE_RANK="1")[:10] == [
        str(out / "train.py"), "--multiprocessing-distributed", "--world-size", "2", "--rank", "1",
        "--dist-url", "tcp://127.0.0.1:29688", "--lr", "1",
    ]  # fmt: skip


def test_a_program_that_was_not_rewritten_has_none(tmp_path: Path) -> None:
    out = converted(tmp_path, "ascend", script(loader="loader = batches()"))
    assert not (out / "run_distributed_npu.sh").exists()


def test_converting_again_adds_nothing(tmp_path: Path) -> None:
    out = converted(tmp_path, "ascend")
    again = tmp_path / "again"
    options = ["--to", "ascend", "--distributed", "--main", "train.py", "-q"]
    assert main(["convert", str(out), "-o", str(again), *options]) == 0
    ours = {path.name: path.read_bytes() for path in out.iterdir() if path.suffix in (".py", ".sh")}
    theirs = {path.name: path.read_bytes() for path in again.iterdir() if path.suffix in (".py", ".sh")}
    assert ours == theirs


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--distributed"], "--distributed needs the training script; name it with --main FILE"),
        (["--distributed", "--main", "no.py"], "no such file in"),
        (["--distributed", "--main", "notes.txt"], "not a Python file"),
        (["--distributed", "--main", str(Path(__file__))], "not in"),
        (["--main", "train.py"], "--main needs --distributed"),
        (["--batch", "split"], "--batch needs --distributed"),
    ],
)
def test_options_that_do_not_fit(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text(script(), "utf-8")
    (tmp_path / "notes.txt").write_text("", "utf-8")
    assert main(["convert", str(tmp_path), "--dry-run", "--to", "ascend", *options]) == 2
    assert message in capsys.readouterr().err


def test_a_single_file_under_another_name(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(script(), "utf-8")
    out = tmp_path / "there" / "train_npu.py"
    options = ["--to", "ascend", "--distributed", "--main", str(tmp_path / "train.py"), "-q"]
    assert main(["convert", str(tmp_path / "train.py"), "-o", str(out), *options]) == 0
    launch = out.parent / "run_distributed_npu.sh"
    assert str(out) in started(launch)


def test_beside_cuda_the_added_module_counts_the_cards(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(script(), "utf-8")
    out = tmp_path / "out"
    options = ["--to", "ascend", "--keep-cuda", "--distributed", "--main", "train.py", "-q"]
    assert main(["convert", str(tmp_path), "-o", str(out), *options]) == 0
    text = (out / "run_distributed.sh").read_text("utf-8")
    assert 'import ferry_device; print(max(1, ferry_device.device_count()))\' "$here")' in text
    assert started(out / "run_distributed.sh")[7:8] == ["4"]


@pytest.mark.parametrize(
    "name", ["tr\ntouch PWNED\n.py", "tr\r\u2028touch PWNED.py", "@START@ @EXPORTS@.py", "a'b $(x).py"]
)
def test_the_name_of_the_script_is_never_a_command(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    launch = converted(tmp_path, "ascend", name=name) / script_name(target("ascend"))
    lines = started(launch)
    assert any(line.endswith(name.splitlines()[-1]) for line in lines)
    assert not list(tmp_path.rglob("PWNED*"))
    assert launch.read_text().count("exec ") == 1
