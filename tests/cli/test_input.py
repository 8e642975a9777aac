"""ferry scan and convert: whatever the input is, a clear answer, and the input stays as it was."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from .commands import CONVERTED, TRAIN, as_nobody, ferry, make, many_files, names, one_line, run, tree


@pytest.mark.parametrize("name", ["scan", "convert"])
def test_missing(tmp_path: Path, name: str) -> None:
    output = ["-o", tmp_path / "out"] if name == "convert" else []
    one_line(ferry(name, tmp_path / "none", *output), "none: no such file or folder")
    assert names(tmp_path) == []


def test_a_device_is_no_project(tmp_path: Path) -> None:
    one_line(
        ferry("scan", "/dev/null"), "/dev/null: neither a file nor a folder; give a Python file or a folder"
    )


def test_not_readable(open_folder: Path) -> None:
    project = make(open_folder / "project", train=TRAIN)
    prefix = as_nobody()
    project.chmod(0o700 if prefix else 0)
    one_line(
        ferry("convert", project, "-o", open_folder / "out", "--verbose", prefix=prefix),
        "no permission to read it",
    )
    project.chmod(0o755)
    (project / "train.py").chmod(0o600 if prefix else 0)
    one_line(ferry("scan", project / "train.py", prefix=prefix), "no permission to read it")
    assert names(open_folder) == ["project"]


def test_unreadable_parts_are_reported_and_the_others_done(open_folder: Path) -> None:
    project = make(
        open_folder / "project", a=TRAIN, b=TRAIN, c=TRAIN, closed__d=TRAIN, **{"weights.bin": b"\0"}
    )
    prefix = as_nobody()
    for name in ("b.py", "weights.bin", "closed"):
        (project / name).chmod(0o600 if prefix else 0)
    result = ferry("convert", project, "-o", open_folder / "out", "--verbose", prefix=prefix)
    (project / "closed").chmod(0o755)
    assert result.returncode == 3
    for name in ("b.py: no permission", "weights.bin: no permission", "closed: Permission denied"):
        assert name in result.stdout
    out = open_folder / "out"
    assert (out / "a.py").read_text() == (out / "c.py").read_text() == CONVERTED
    assert names(out) == ["a.py", "c.py", "closed", "findings.json", "report.html"]


def test_empty_folder_and_empty_file(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = ferry("convert", tmp_path / "empty", "-o", tmp_path / "out")
    assert result.returncode == 0
    assert "note: no Python files in" in result.stderr
    assert names(tmp_path / "out") == ["findings.json", "report.html"]
    make(tmp_path / "project", nothing="")
    assert ferry("convert", tmp_path / "project", "-o", tmp_path / "out2").returncode == 0
    assert (tmp_path / "out2" / "nothing.py").read_bytes() == b""


def test_a_single_file(project: Path, tmp_path: Path) -> None:
    before = tree(project)
    assert ferry("convert", project / "train.py", "-o", tmp_path / "out").returncode == 0
    assert (tmp_path / "out" / "train.py").read_text() == CONVERTED
    assert names(tmp_path / "out") == ["findings.json", "report.html", "train.py"]
    assert tree(project) == before


def test_links_stay_links(tmp_path: Path) -> None:
    outside = make(tmp_path / "outside", other=TRAIN)
    project = make(tmp_path / "project", pkg__train=TRAIN)
    links = {
        "loop": ".",
        "pkg/up": "..",
        "self": "self",
        "dangling.py": "nowhere.py",
        "other.py": str(outside / "other.py"),
        "far": str(outside),
    }
    for name, target in links.items():
        (project / name).symlink_to(target)
    before, outside_before = tree(project), tree(outside)
    result = ferry("convert", project, "-o", tmp_path / "out")
    assert result.returncode == 0, result.stderr
    assert {name: os.readlink(tmp_path / "out" / name) for name in links} == links
    assert (tmp_path / "out" / "pkg" / "train.py").read_text() == CONVERTED
    assert (tree(project), tree(outside)) == (before, outside_before)


def test_a_link_as_input(project: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(project)
    assert ferry("convert", tmp_path / "link", "-o", tmp_path / "out").returncode == 0
    assert (tmp_path / "out" / "train.py").read_text() == CONVERTED


def test_ten_thousand_files(tmp_path: Path) -> None:
    project = many_files(tmp_path / "project", folders=100)
    result = ferry("convert", project, "-o", tmp_path / "out")
    assert result.returncode == 0
    assert "10,000 files" in result.stdout
    assert sum(len(files) for _, _, files in os.walk(tmp_path / "out")) == 10_002


def test_odd_names(tmp_path: Path) -> None:
    odd = [b"caf\xe9.py", "汉字.py".encode(), b"with space.py", b"-o.py", b"new\nline.py", b'quo"te\\.py']
    project = tmp_path / "-project"
    project.mkdir()
    for name in odd:
        (Path(os.fsdecode(os.fsencode(project) + b"/" + name))).write_text(TRAIN)
    before = tree(project)
    for lang in ("C", "C.UTF-8"):
        env = {**os.environ, "LC_ALL": lang, "TORCHFERRY_LANG": "en"}
        out = tmp_path / f"out-{lang}"
        dashed = run("ferry", "scan", "-q", "--to", "ascend", "--", "-project", cwd=tmp_path, env=env)
        assert dashed.returncode == 0
        result = ferry("convert", "./-project", "-o", out, "--verbose", cwd=tmp_path, env=env)
        assert result.returncode == 0, result.stderr
        for name in odd:
            assert (out / os.fsdecode(name)).read_text() == CONVERTED
        for form in ("json", "sarif", "github", "md", "csv") if lang == "C" else ():
            assert ferry("scan", "./-project", "--format", form, cwd=tmp_path, env=env).returncode == 0, form
    assert tree(project) == before


def test_pipes_and_sockets_are_left_out_and_named(project: Path, tmp_path: Path) -> None:
    os.mkfifo(project / "pipe.py")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(project)
        server.bind("socket")
        os.chdir(here)
        result = ferry("convert", project, "-o", tmp_path / "out", "--verbose")
    assert result.returncode == 3
    assert "pipe.py: not a regular file" in result.stdout
    assert "socket: not a regular file" in result.stdout
    assert names(tmp_path / "out") == ["README.md", "findings.json", "pkg", "report.html", "train.py"]


def test_python_2_is_copied_and_reported(tmp_path: Path) -> None:
    old = 'import torch\nprint "x.cuda()"\n'
    project = make(tmp_path / "project", old=old, train=TRAIN)
    result = ferry("convert", project, "-o", tmp_path / "out")
    assert result.returncode == 3
    assert "old.py" in result.stdout
    assert (tmp_path / "out" / "old.py").read_text() == old
    assert (tmp_path / "out" / "train.py").read_text() == CONVERTED


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("import torch\r\nx = 1 # 注\t \r\ny.cuda()\r\n".encode(), id="CRLF"),
        pytest.param("# coding: gbk\nimport torch\nx = '汉'\ny.cuda()".encode("gbk"), id="GBK"),
        pytest.param("import torch\nx = '汉字'\ny.cuda()\n".encode("gbk"), id="GBK not declared"),
        pytest.param(b"\xef\xbb\xbfimport torch\n\x0c\ny.cuda()", id="byte order mark"),
    ],
)
def test_bytes_outside_edits_stay(tmp_path: Path, text: bytes) -> None:
    project = make(tmp_path / "project", train=text)
    assert ferry("convert", project, "-o", tmp_path / "out").returncode == 0
    newline = b"\r\n" if b"\r\n" in text else b"\n"
    expected = text.replace(b".cuda()", b".npu()")
    expected = expected.replace(
        b"import torch" + newline, b"import torch" + newline + b"import torch_npu" + newline
    )
    assert (tmp_path / "out" / "train.py").read_bytes() == expected


def test_permissions_and_times(project: Path, tmp_path: Path) -> None:
    (project / "train.py").chmod(0o755)
    script = project / "run.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o744)
    os.utime(script, ns=(10**18, 10**18 + 5))
    assert ferry("convert", project, "-o", tmp_path / "out").returncode == 0
    out = tmp_path / "out"
    assert (out / "train.py").stat().st_mode & 0o777 == 0o755
    assert tree(out)["run.sh"] == tree(project)["run.sh"]
    assert tree(out)["pkg/util.py"] == tree(project)["pkg/util.py"]


def test_very_deep_folders(tmp_path: Path) -> None:
    here = os.getcwd()
    os.chdir(tmp_path)
    for _ in range(1100):
        os.mkdir("d")
        os.chdir("d")
    os.chdir(here)
    try:
        result = ferry("scan", tmp_path)
    finally:
        subprocess.run(["rm", "-rf", tmp_path / "d"], check=True)  # too deep for Python's own
    assert result.returncode == 0, result.stderr[-500:]
