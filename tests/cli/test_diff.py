"""ferry convert --diff: writes nothing, and what it prints makes the converted tree when it is applied."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from torchferry.report.diff import unified_diff

from .commands import TRAIN, command, contents, environment, ferry, make, names, tree

ODD = {
    "train": TRAIN,
    "last_line": "import torch\nx.cuda()",
    "added_at_the_end": "x.cuda('cuda:0')\nimport torch",
    "crlf": b"import torch\r\nx.cuda()\r\ny = 1\r\n",
    "crlf_last_line": b"import torch\r\nx.cuda()",
    "lone_cr": b"import torch\rx = 1\ry.cuda()\rz = 1\r",
    "mixed": b"import torch\r\nx.cuda()\ny.cuda()\rz = 1\n",
    "form_feed": b"import torch\n\x0cx = '\x1c\x85'\ny.cuda()\n".replace(b"\x85", b""),
    "gbk": "# coding: gbk\nimport torch\nx = '汉字'  # 注\ny.cuda()\n".encode("gbk"),
    "deep__er__train": TRAIN,
    "with space": TRAIN,
    "untouched": "x = 1\n",
    "far_apart": "import torch\n" + "y = 1\n" * 50 + "x.cuda()\n" + "y = 1\n" * 50 + "z.cuda()\n",
}


@pytest.fixture
def odd_project(tmp_path: Path) -> Path:
    return make(tmp_path / "project", **ODD)  # type: ignore[arg-type]


def printed(project: Path, *options: str) -> bytes:
    call = command("ferry", "convert", project, "--to", "ascend", "--diff", *options)
    result = subprocess.run(call, capture_output=True, env=environment())
    assert (result.returncode, result.stderr) == (0, b"")
    return result.stdout


def converted(project: Path, out: Path) -> dict[str, bytes]:
    assert ferry("convert", project, "-o", out).returncode == 0
    files = contents(out)
    del files["findings.json"], files["report.html"]
    return files


@pytest.mark.parametrize(
    "tool", [["git", "apply", "-"], ["patch", "-p1", "--binary", "--quiet"]], ids=["git", "patch"]
)
def test_it_applies(odd_project: Path, tmp_path: Path, tool: list[str]) -> None:
    before = tree(odd_project)
    diff = printed(odd_project)
    assert tree(odd_project) == before
    expected = converted(odd_project, tmp_path / "out")
    assert expected != contents(odd_project)
    result = subprocess.run(tool, cwd=odd_project, input=diff, capture_output=True)
    assert result.returncode == 0, result.stderr
    assert contents(odd_project) == expected


def test_git_takes_names_that_need_quotes(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    for name in (b'quo"te\\.py', b"new\nline.py", b"caf\xe9.py", "汉字.py".encode(), b"-o.py"):
        (project / os.fsdecode(name)).write_text(TRAIN)
    expected = converted(project, tmp_path / "out")
    subprocess.run(["git", "apply", "-"], cwd=project, input=printed(project), check=True)
    assert contents(project) == expected


def test_with_output_both_are_made(project: Path, tmp_path: Path) -> None:
    assert printed(project) in ferry("convert", project, "-o", tmp_path / "out", "--diff").stdout.encode()
    assert (tmp_path / "out" / "report.html").exists()


def test_of_a_single_file(project: Path) -> None:
    assert printed(project / "train.py").startswith(
        b"--- a/train.py\n+++ b/train.py\n@@ -1,4 +1,5 @@\n import torch\n"
    )


def test_dry_run_writes_nothing(project: Path, tmp_path: Path) -> None:
    before = tree(tmp_path)
    result = ferry("convert", project, "--dry-run")
    assert result.returncode == 0
    assert "2 places done" in result.stdout
    assert tree(tmp_path) == before
    assert ferry("convert", project, "--dry-run", "-o", tmp_path / "out").returncode == 2
    assert names(tmp_path) == ["project"]


def test_no_newline_at_the_end_is_said() -> None:
    assert unified_diff("a", b"x\ny", b"x\nz") == (
        b"--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n x\n-y\n\\ No newline at end of file\n+z\n\\ No newline at end of file\n"
    )
    assert unified_diff("a", b"same", b"same") == b""
    assert unified_diff("a", b"", b"x\n") == b"--- a/a\n+++ b/a\n@@ -0,0 +1,1 @@\n+x\n"
