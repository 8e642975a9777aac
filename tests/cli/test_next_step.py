"""Each command hands over to the next one: the line that it prints can be typed as it is."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.cli.commands import TRAIN
from torchferry.cli.commands import STAGES
from torchferry.cli.main import main
from torchferry.cli.next_step import training_scripts
from torchferry.cli.overview import overview


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORCHFERRY_LANG", "en")
    folder = tmp_path / "my project"
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    return folder


def handed_over(printed: str) -> list[str]:
    (line,) = [line for line in printed.splitlines() if line.startswith(("next: ", "下一步："))]
    return shlex.split(line.partition("ferry ")[2])


def test_from_the_scan_to_the_proof(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scan", "my project", "--to", "ascend"]) == 0
    following = handed_over(capsys.readouterr().out)
    assert following == ["convert", "my project", "--to", "ascend", "-o", "my project_npu"]
    assert main(following) == 0
    assert "import torch_npu" in (tmp_path / "my project_npu/train.py").read_text()
    following = handed_over(capsys.readouterr().err)
    pair = ["--before", "my project/train.py", "--after", "my project_npu/train.py"]
    assert following == ["prove", "--to", "ascend", *pair]


@pytest.mark.parametrize(
    ("files", "scripts"),
    [
        pytest.param({"a.py": "", "fit.py": "loss.backward()\n"}, ["fit.py"], id="the one that trains"),
        pytest.param(
            {"step.py": "loss.backward()\n", "go.py": "m.fit()\nif __name__ == '__main__': go()\n"},
            ["go.py"],
            id="the one that is started",
        ),
        pytest.param(
            {"x.py": "loss.backward()\n", "main.py": "loss.backward()\n"}, ["main.py"], id="by its name"
        ),
        pytest.param(
            {"x.py": "loss.backward()\n", "y.py": "loss.backward()\n"}, ["x.py", "y.py"], id="unclear"
        ),
        pytest.param({"x.py": "", "y.py": ""}, [], id="none"),
    ],
)
def test_the_script_that_trains(files: dict[str, str], scripts: list[str], tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert training_scripts(tmp_path, files) == scripts


def test_of_several_scripts_each_has_its_command(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("train me.py", "数据.py"):
        (project / name).write_text(f"{TRAIN}loss.backward()\n")
    main(["convert", "my project", "--to", "ascend", "-o", "out", "-q"])
    main(["convert", "my project", "--to", "ascend", "-o", "out", "--force"])
    printed = capsys.readouterr().err
    lines = printed.splitlines()
    at = lines.index("next, one of these:")
    assert lines[at + 1 : at + 3] == [
        "  ferry prove --to ascend --before 'my project/train me.py' --after 'out/train me.py'",
        "  ferry prove --to ascend --before 'my project/数据.py' --after 'out/数据.py'",
    ]


def test_a_scan_from_within(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    main(["scan", ".", "--to", "cambricon", "--lang", "zh"])
    assert handed_over(capsys.readouterr().out)[-2:] == ["-o", "../my project_mlu"]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(("scan", "my project_npu"), id="nothing is left to do"),
        pytest.param(("scan", "my project", "--format", "json"), id="read by a program"),
        pytest.param(("scan", "my project", "-q"), id="quiet"),
        pytest.param(("convert", "my project", "-o", "other", "-q"), id="quiet conversion"),
        pytest.param(("convert", "my project", "--dry-run"), id="nothing was written"),
    ],
)
def test_no_next_step(options: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    main(["convert", "my project", "--to", "ascend", "-o", "my project_npu", "-q"])
    main([*options, "--to", "ascend"])
    printed = capsys.readouterr()
    assert "next:" not in printed.out + printed.err


def test_the_portable_copy_has_no_device_to_be_proved_on(capsys: pytest.CaptureFixture[str]) -> None:
    main(["convert", "my project", "--to", "portable", "-o", "out"])
    assert "next:" not in capsys.readouterr().err


def test_what_a_conversion_says_is_chinese(capsys: pytest.CaptureFixture[str]) -> None:
    main(["convert", "my project", "--to", "ascend", "-o", "out", "--lang", "zh"])
    assert capsys.readouterr().err.splitlines()[0] == "已写入 out；详情见 out/report.html"


def test_help_lists_the_commands_stage_by_stage() -> None:
    lines = overview("en", 200).splitlines()
    for stage, commands in STAGES.items():
        at = lines.index(f"{stage[0]}:")
        assert [line.split()[0] for line in lines[at + 1 : at + 1 + len(commands)]] == list(commands)
