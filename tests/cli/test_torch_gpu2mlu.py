"""torch_gpu2mlu: the lines and the table of Cambricon's guide, and a way past every mishap."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from torchferry.cli.torch_gpu2mlu import escape

from .commands import (
    TRAIN,
    command,
    contents,
    environment,
    make,
    names,
    one_line,
    run,
    tree,
    wait_until_at_work,
)

MAIN = """\
import os

import torch

if not torch.cuda.is_available():
    raise SystemExit(f"`no` | {os.name}")
torch.cuda.set_device(0)
model = torch.nn.DataParallel(torch.nn.Linear(1, 1)).cuda()  # a | b `c` __x__ *y*
"""


def test_the_guide(tmp_path: Path) -> None:
    project = make(tmp_path / "imagenet", main=MAIN, plain="x = 1\n")
    before = tree(project)
    result = run("torch_gpu2mlu", "-i", project)
    out = tmp_path / "imagenet_mlu"
    assert result.returncode == 0
    assert result.stdout == (
        f"Official PyTorch model scripts: {project}\n"
        f"Cambricon PyTorch model scripts: {out}\n"
        f"Migration Report: {out}/report.md\n"
    )
    assert f"need you: 1; {out}/report.md lists them" in result.stderr
    assert names(out) == ["findings.json", "main.py", "plain.py", "report.html", "report.md"]
    assert "import torch_mlu" in (out / "main.py").read_text()
    assert tree(project) == before


def test_the_report(tmp_path: Path) -> None:
    run("torch_gpu2mlu", "-i", make(tmp_path / "imagenet", main=MAIN))
    lines = (tmp_path / "imagenet_mlu" / "report.md").read_text().splitlines()
    assert lines[:8] == [
        "# Cambricon PyTorch Model Migration Report",
        "## Cambricon PyTorch Changes",
        "| No. |  File  |  Description  |",
        "| --- | --- | --- |",
        '| 1 | main.py:3 | add "import torch_mlu" |',
        '| 2 | main.py:5 | change "if not torch.cuda.is_available():" to "if not torch.mlu.is_available():" |',
        '| 3 | main.py:7 | change "torch.cuda.set_device(0)" to "torch.mlu.set_device(0)" |',
        '| 4 | main.py:8 | change "model = torch.nn.DataParallel(torch.nn.Linear(1, 1)).cuda()  '
        '# a \\| b \\`c\\` \\_\\_x\\_\\_ \\*y\\*" to "model = torch.nn.DataParallel(torch.nn.Linear(1, 1)).mlu()  '
        '# a \\| b \\`c\\` \\_\\_x\\_\\_ \\*y\\*" |',
    ]
    rest = lines[8:]
    assert rest[:6] == [
        "",
        "## Not Changed",
        "",
        "These places need you; each says what and why.",
        "",
        "| No. | File | Kind | Description |",
    ]
    assert rest[7].startswith(
        '| 1 | main.py:8 | to decide | "torch.nn.DataParallel": Cambricon does not support'
    )


def test_the_report_in_chinese(tmp_path: Path) -> None:
    project = make(tmp_path / "imagenet", main=MAIN)
    run("torch_gpu2mlu", "-i", project, env=environment(TORCHFERRY_LANG="zh"))
    report = (tmp_path / "imagenet_mlu" / "report.md").read_text()
    assert report.startswith("# Cambricon PyTorch Model Migration Report\n## Cambricon PyTorch Changes\n")
    assert "## 未修改" in report


@pytest.mark.parametrize("text", ["a\\|b", "`|`", "new\nline", "<b>", "f[x](y)", "~~x~~", "__init__"])
def test_a_cell_stays_a_cell(text: str) -> None:
    markdown = pytest.importorskip("markdown_it")
    table = f"| a | b |\n| --- | --- |\n| {escape(text)} | x |\n"
    tokens = markdown.MarkdownIt("gfm-like", {"linkify": False}).parse(table)
    cells = [token.children for token in tokens if token.type == "inline"]
    assert len(cells) == 4
    shown = "".join(child.content for child in cells[2])
    assert shown == text.replace("\n", "\\n")


def test_a_single_file(tmp_path: Path) -> None:
    project = make(tmp_path / "project", main=TRAIN)
    result = run("torch_gpu2mlu", "-i", "main.py", cwd=project)
    assert result.returncode == 0
    assert f"Cambricon PyTorch model scripts: {project}/main_mlu\n" in result.stdout
    assert names(project / "main_mlu") == ["findings.json", "main.py", "report.html", "report.md"]


def test_the_folder_one_is_in(tmp_path: Path) -> None:
    project = make(tmp_path / "project", main=TRAIN)
    assert run("torch_gpu2mlu", "-i", ".", cwd=project).returncode == 0
    assert run("torch_gpu2mlu", "-i", f"{project}/").returncode == 0
    assert names(tmp_path) == ["project", "project_mlu"]


def test_its_own_output_is_replaced_and_no_other(tmp_path: Path) -> None:
    project = make(tmp_path / "project", main=TRAIN)
    assert run("torch_gpu2mlu", "-i", project).returncode == 0
    (project / "main.py").rename(project / "train.py")
    assert run("torch_gpu2mlu", "-i", project).returncode == 0
    first = contents(tmp_path / "project_mlu")
    assert "train.py" in first
    assert "main.py" not in first
    (tmp_path / "project_mlu" / "findings.json").unlink()
    before = tree(tmp_path)
    one_line(run("torch_gpu2mlu", "-i", project), "project_mlu: exists and was not made by TorchFerry")
    assert tree(tmp_path) == before


def test_mishaps(tmp_path: Path) -> None:
    one_line(run("torch_gpu2mlu", "-i", tmp_path / "none"), "torch_gpu2mlu: ", "no such file or folder")
    one_line(run("torch_gpu2mlu", "-i", "/"), "has no name to put _mlu after")
    assert run("torch_gpu2mlu").returncode == 2
    project = make(tmp_path / "project", old="import torch\nprint 'x'.cuda()\n", main=TRAIN)
    result = run("torch_gpu2mlu", "-i", project)
    assert result.returncode == 3
    assert "files that could not be processed: 1" in result.stderr
    assert "| old.py:2 | not processed |" in (tmp_path / "project_mlu" / "report.md").read_text()


def test_a_name_that_is_no_utf8(tmp_path: Path) -> None:
    project = make(tmp_path / os.fsdecode(b"caf\xe9"), main=TRAIN)
    result = run("torch_gpu2mlu", "-i", project)
    assert result.returncode == 0, result.stderr
    assert f"Official PyTorch model scripts: {project}\n" in result.stdout


def test_interrupted(slow_project: Path) -> None:
    process = subprocess.Popen(
        command("torch_gpu2mlu", "-i", slow_project), stderr=subprocess.PIPE, text=True, env=environment()
    )
    wait_until_at_work(process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, "torch_gpu2mlu: interrupted; nothing was written\n")
    assert not (slow_project.parent / "project_mlu").exists()


def test_help_points_to_ferry() -> None:
    result = run("torch_gpu2mlu", "--help")
    assert result.returncode == 0
    assert "ferry convert X --to cambricon" in result.stdout


def test_findings_are_the_usual_ones(tmp_path: Path) -> None:
    run("torch_gpu2mlu", "-i", make(tmp_path / "project", main=TRAIN))
    findings = json.loads((tmp_path / "project_mlu" / "findings.json").read_text())
    assert (findings["vendor"], findings["command"]) == ("cambricon", "convert")
