"""`ferry record` as users call it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.cli.commands import command, environment, run
from torchferry.accuracy.file.reader import open_record
from torchferry.accuracy.record.launching import options_again
from torchferry.accuracy.record.outputs import WrittenRecord, sentences
from torchferry.accuracy.record.settings import RecordSettings
from torchferry.cli.main import main
from torchferry.launch.place import DeviceKind, Place
from torchferry.launch.program import Program

from .recording import TRAINING, recorded

CRASHING = f"{TRAINING}print('began')\nstep()\nraise ValueError('oh no')\n"


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record of one step."""
    return recorded(f"{TRAINING}step()\n", tmp_path_factory.mktemp("example")).paths[0]


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one line that a command answers with."""
    assert main(["record", *map(str, arguments)]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.count("\n") == 1
    return printed.err


def test_a_program_that_fails_half_way(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(CRASHING)
    (tmp_path / "gpu.rank3.h5").write_bytes(b"")  # of an earlier run
    ended = run("ferry", "record", "--steps", "all", "-o", "gpu.h5", "train.py", cwd=tmp_path)
    assert ended.returncode == 3
    assert ended.stdout == "began\n"
    assert "ValueError: oh no" in ended.stderr
    assert "ferry record: gpu.h5: step 1, " in ended.stderr
    with open_record(tmp_path / "gpu.h5") as record:
        assert record.header.program == "train.py" and record.header.device == "cpu"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["gpu.h5", "train.py"]


def test_ctrl_c_keeps_what_was_recorded(tmp_path: Path) -> None:
    waiting = f"{TRAINING}step()\nopen('ready', 'w').close()\ntime.sleep(100)\n"
    (tmp_path / "train.py").write_text(waiting)
    process = subprocess.Popen(
        command("ferry", "record", "--steps", "all", "train.py"),
        cwd=tmp_path,
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + 60
    while not (tmp_path / "ready").exists() and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, printed = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "ferry record: record.h5: step 1, " in printed
    assert "interrupted; what was recorded until then is kept" in printed
    with open_record(tmp_path / "record.h5") as record:
        assert record.header.complete and {call.step for call in record.calls} == {1}


@pytest.mark.long
def test_two_ranks_recorded_and_replayed_on_a_simulated_device(tmp_path: Path) -> None:
    ranks = TRAINING.replace(
        "net = Net().to(device)",
        "import torch.distributed as dist\n"
        "dist.init_process_group('nccl' if device == 'cuda' else 'gloo')\n"
        "net = nn.parallel.DistributedDataParallel(Net().to(device))",
    )
    (tmp_path / "train.py").write_text(f"{ranks}step()\nstep()\n")
    first = run("ferry", "record", "--nproc", 2, "-o", "gpu.h5", "train.py", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    sim = ("--to", "ascend", "--sim", "--replay", "gpu.h5", "-o", "npu.h5")
    second = run("ferry", "record", *sim, "--nproc", 2, "train.py", cwd=tmp_path)
    assert second.returncode == 0, second.stderr
    for rank in range(2):
        with open_record(tmp_path / f"npu.rank{rank}.h5") as record:
            assert (record.header.rank, record.header.device) == (rank, "npu")
            assert record.header.replayed == str(tmp_path / f"gpu.rank{rank}.h5")
    assert second.stderr.count("recorded calls supplied inputs to operators here") == 2


def test_what_is_in_a_record(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["record", "info", str(example)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"{example}: ")
    assert "train.py" in printed and "complete   yes" in printed and "step 1" in printed
    assert "       1  aten::convolution\n" in printed


def test_tensors_as_files(example: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arrays, texts = tmp_path / "arrays", tmp_path / "texts"
    assert main(["record", "convert", str(example), "--npy", str(arrays)]) == 0
    assert main(["record", "convert", str(example), "--txt", str(texts), "-q"]) == 0
    assert f"{arrays}: " in capsys.readouterr().err
    with open_record(example) as record:
        call = record.calls[0]
        tensor = call.inputs[1]
        name = f"{call.number:0{len(str(len(record.calls)))}}_{call.group}/input/weight"
        array = np.load(arrays / f"{name}.npy")
        assert array.shape == tensor.shape and array.dtype == np.float32
        assert np.array_equal(array, record.tensor(tensor).numpy())
        assert np.array_equal(np.loadtxt(texts / f"{name}.txt").astype("f4"), array.reshape(-1))
        kept = [
            each for call in record.calls for each in (*call.inputs, *call.outputs) if each.offset is not None
        ]
    assert len(list(arrays.rglob("*.npy"))) == len(list(texts.rglob("*.txt"))) == len(kept)


def test_a_folder_that_is_not_empty_is_left_alone(
    example: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert "not empty" in refused(capsys, "convert", example, "--npy", tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


def test_bad_input_is_said_before_the_program_runs(
    example: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "train.py"
    script.write_text("raise SystemExit('was run')")
    statistics = recorded(f"{TRAINING}step()\n", tmp_path, kept="statistics").paths[0]
    mine = tmp_path / "notes.h5"
    mine.write_text("my notes")
    ok = tmp_path / "new.h5"
    cases: list[tuple[tuple[object, ...], str]] = [
        ((), "which program?"),
        (("gone.py",), "no such script: gone.py; use -m to run a module by name"),
        (("-o", tmp_path / "none" / "a.h5", script), "name a file in a folder that exists"),
        (("-o", tmp_path, script), "name a file in a folder that exists"),
        (("-o", mine, script), "not a recording of TorchFerry; choose another name"),
        (("--sim", "-o", ok, script), "--sim needs a device"),
        (("--converted", "-o", ok, script), "--converted needs a target"),
        (("--to", "ascend", "--device", "cpu", "-o", ok, script), "can't be used together"),
        (("--to", "intel", "--sim", "-o", ok, script), "it can't be simulated"),
        (("--to", "nobody", "-o", ok, script), "nobody"),
        (("--whole", "--first-step", 2, "-o", ok, script), "--whole and --first-step"),
        (("--replay", tmp_path / "none.h5", "-o", ok, script), "none.h5; give a recording"),
        (("--replay", mine, "-o", ok, script), "notes.h5"),
        (("--replay", statistics, "-o", ok, script), "holds only statistics"),
        (("--replay", example, "-o", example, script), "can't be replayed and overwritten at once"),
        (("convert", statistics, "--txt", tmp_path / "texts"), "holds statistics but no tensors"),
        (("info", mine), "notes.h5"),
    ]
    for arguments, words in cases:
        assert words in refused(capsys, *arguments), arguments
    assert mine.read_text() == "my notes" and not ok.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--stats", "--tensors", "train.py"), "--tensors and --stats exclude each other"),
        (("--steps", "0", "train.py"), "is not a number from 1 on"),
        (("--first-step", "x", "train.py"), "is not a number from 1 on"),
        (("--phase", "loss", "train.py"), "'loss' is not one of"),
        (("--rank", "-1", "train.py"), "is not a number from 0 on"),
        (("convert", "a.h5"), "one of these is missing: --npy --txt --msprobe -o/--output"),
    ],
)
def test_options_that_make_no_sense(
    arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["record", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_help_says_all(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["record", "--help"], ["record", "convert", "--help"], ["record", "info", "--help"]):
        with pytest.raises(SystemExit) as end:
            main(words)
        assert end.value.code == 0
        printed = capsys.readouterr().out
        assert "(default: None)" not in printed
        if len(words) == 2:
            options = (
                "--steps",
                "--first-step",
                "--stats",
                "--tensors",
                "--inputs",
                "--in-module",
                "--op",
                "--phase",
                "--rank",
            )
            options += (
                "--to",
                "--sim",
                "--converted",
                "--device",
                "--keep-going",
                "--replay",
                "--timeout",
                "--seed",
            )
            assert all(
                f"{option} " in printed or f"{option}," in printed for option in (*options, "-o", "-q", "-m")
            )


@pytest.mark.parametrize(
    ("settings", "code", "words"),
    [
        pytest.param(
            "",
            "import torch\ntorch.ones(1) + 1\n",
            "called no module with parameters",
            marks=pytest.mark.long,
        ),
        pytest.param("--first-step 4", f"{TRAINING}step()\n", "ended before step 4", marks=pytest.mark.long),
        ("", "raise SystemExit(7)\n", "ended with exit code 7 before anything was recorded"),
    ],
)
def test_why_nothing_was_recorded(settings: str, code: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(code)
    ended = run(
        "ferry", "record", *settings.split(), "--device", "cpu", "-o", "a.h5", "train.py", cwd=tmp_path
    )
    assert ended.returncode == 2 and words in ended.stderr
    assert not (tmp_path / "a.h5").exists()


def test_a_script_called_info_is_run(tmp_path: Path) -> None:
    (tmp_path / "info").write_text("print('the script')\n")
    ended = run("ferry", "record", "--", "info", cwd=tmp_path)
    assert ended.stdout == "the script\n" and os.listdir(tmp_path) == ["info"]


def test_a_selection_that_nothing_fits_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "train.py"
    script.write_text(f"{TRAINING}step()\n")
    output = tmp_path / "none.h5"
    assert main(["record", "--op", "no_such_operator", "-o", str(output), str(script)]) == 2
    assert "none.h5: holds no call; no operator of these steps matches" in capsys.readouterr().err


def test_a_file_of_a_strange_name_is_told_of_in_one_line(example: Path, tmp_path: Path) -> None:
    strange = tmp_path / "a\n\x1b[31m.h5"
    (said,) = (
        each.en
        for each in sentences(WrittenRecord(str(strange), 1, calls=1, problem="p\nq"), False)
        if "p\\nq" in each.en
    )
    assert "\n" not in said and "\x1b" not in said
    strange.write_bytes(example.read_bytes())
    shown = run("ferry", "record", "info", strange.name, cwd=tmp_path)
    assert shown.stdout.startswith("a\\n\\x1b[31m.h5: ")


def test_a_record_knows_how_its_run_was_made() -> None:
    program = Program("my train.py", False, ("--lr", "a b"), ("--standalone", "--nproc-per-node", "2"))
    settings = RecordSettings("a.h5", seed=3)
    assert program.shown() == "'my train.py' --lr 'a b'"
    assert (
        options_again(program, settings, Place(DeviceKind.REFERENCE, devices=2))
        == "--seed 3 --nproc-per-node 2"
    )
    alone = replace(program, torchrun=None)
    assert (
        options_again(alone, settings, Place(DeviceKind.AS_IS, as_is="cuda", devices=2))
        == "--seed 3 --device=cuda --devices 2"
    )
