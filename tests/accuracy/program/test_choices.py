"""What of a program is recorded: up to a limit, modules alone, some of the steps, slices of what is large."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from torchferry.accuracy.file.reader import open_record
from torchferry.cli.main import main

from .recording import TRAINING, recorded

THREE_STEPS = f"{TRAINING}for _ in range(3):\n    step()\nprint('went on')\n"


def test_a_limit_ends_the_record_and_not_the_program(tmp_path: Path) -> None:
    run = recorded(THREE_STEPS, tmp_path, limit=120_000, steps=3, keep_going=True)
    assert run.ended.returncode == 0 and run.ended.stdout == "went on\n"
    assert "so 3 steps take" in run.ended.stderr or "ends within this step" in run.ended.stderr
    assert run.ended.stderr.count("recording stops here, the program continues") == 1
    (outcome,) = run.outcomes
    assert outcome.is_over and outcome.problem == "limit reached: 117.2 KiB"
    assert run.paths[0].stat().st_size <= 120_000
    with run.record as record:
        assert len(record.calls) > 10 and record.calls[-1].number == len(record.calls)


def test_the_limit_is_for_all_processes_of_a_machine(tmp_path: Path) -> None:
    ranks = f"import os\nos.environ.update(LOCAL_WORLD_SIZE='4')\n{THREE_STEPS}"
    run = recorded(ranks, tmp_path, limit=400_000, steps=3)
    assert run.outcomes[0].problem == "limit reached: 97.7 KiB"


def test_modules_and_some_steps(tmp_path: Path) -> None:
    run = recorded(THREE_STEPS, tmp_path, modules_only=True, every=3, steps=3)
    assert run.ended.returncode == 0, run.ended.stderr
    with run.record as record:
        assert Counter(call.step for call in record.calls) == {1: 11, 3: 11}
        assert Counter(call.operator for call in record.calls) == {
            "module": 10, "input_gradient": 6, "output_gradient": 6,
        }  # fmt: skip
        assert record.header.modules_only and record.header.selected == "one step in 3, from step 1 on"


def test_the_first_module_that_differs_is_named_and_how_to_record_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    norm = "class Norm(nn.BatchNorm2d):\n    def forward(self, x):\n        return super().forward(x) * 1.01\n\n\nclass Net"
    wrong = THREE_STEPS.replace("class Net", norm).replace("nn.BatchNorm2d(4)", "Norm(4)")
    for name, code in (("mine", wrong), ("golden", THREE_STEPS)):
        (tmp_path / name).mkdir()
        run = recorded(code, tmp_path / name, modules_only=True)
        assert run.ended.returncode == 0, run.ended.stderr
        run.paths[0].rename(tmp_path / f"{name}.h5")
    monkeypatch.chdir(tmp_path)
    assert main(["compare", "mine.h5", "golden.h5", "-q"]) == 1
    printed = capsys.readouterr().out
    assert "the runs diverge at step 1, Net: norm: its output" in printed
    assert "--first-step 1 --steps 1 --in-module norm -o mine.step1.h5 train.py" in printed


def test_a_record_of_modules_is_not_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded(THREE_STEPS, tmp_path, modules_only=True)
    monkeypatch.chdir(tmp_path)
    assert main(["replay", "out.h5", "--device", "cpu"]) == 2
    assert "holds only modules, no operators to replay" in capsys.readouterr().err


def test_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    run = recorded(THREE_STEPS, tmp_path, slices=2, slice_over=2000)
    assert run.ended.returncode == 0, run.ended.stderr
    with run.record as record:
        parts = [each.part for call in record.calls for each in call.outputs if each.part]
        assert parts and {part.slices for part in parts} == {2}
    monkeypatch.chdir(tmp_path)
    assert main(["record", "info", "out.h5"]) == 0
    assert "in part    2 slices of tensors over 2.0 KiB" in capsys.readouterr().out
    assert main(["record", "info", "out.h5", "--lang", "zh"]) == 0
    said = capsys.readouterr().out
    assert "  完整       是\n" in said and "calls" not in said and "device" not in said
    main(["replay", "out.h5", "--device", "cpu", "-o", "replay.h5", "-q"])
    assert main(["compare", "replay.h5", "out.h5", "-q"]) == 0
    with open_record(tmp_path / "replay.h5") as replayed:
        assert replayed.calls


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--modules-only", "--op", "mm"], "modules have no operators"),
        (["--slice-over", "1MB"], "say how many to keep with --slice N"),
    ],
)
def test_choices_that_do_not_go_together(
    tmp_path: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text(THREE_STEPS)
    assert main(["record", *words, str(tmp_path / "train.py")]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("size", ["3XB", "0", "", "-1GB"])
def test_sizes_that_are_none(size: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["record", f"--limit={size}", "train.py"]) == 2
    assert "write 50GB" in capsys.readouterr().err
