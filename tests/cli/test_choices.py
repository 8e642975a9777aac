"""Exit codes, choices of rules and files, formats in pipes, languages."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from .commands import TRAIN, command, environment, ferry, make, names, one_line, run


def test_check(project: Path, tmp_path: Path) -> None:
    assert ferry("scan", project).returncode == 0
    assert ferry("scan", project, "--check").returncode == 1
    assert ferry("convert", project, "--check").returncode == 1
    assert ferry("convert", project, "--check", "-q", "-o", tmp_path / "out").returncode == 1
    assert ferry("scan", tmp_path / "out", "--check", "-q").returncode == 0
    assert ferry("convert", tmp_path / "out", "--check").returncode == 0


def test_a_file_that_cant_be_read_hides_nothing(project: Path) -> None:
    """1 comes before 3: something to do in the files that were read, whatever else could not be read."""
    make(project, old="import torch\nprint 1 .cuda()\n")
    assert ferry("scan", project, "--check").returncode == 1
    assert ferry("convert", project, "--check").returncode == 1
    assert ferry("scan", project).returncode == 3
    (project / "train.py").write_text("import torch\n")
    assert ferry("scan", project, "--check").returncode == 3
    assert ferry("scan", project, "--check", "--exclude", "old.py").returncode == 0


def test_several_paths_and_patterns(project: Path) -> None:
    def found(*paths: object) -> list[str]:
        printed = ferry("scan", *paths, "--json", cwd=project.parent).stdout
        return sorted({finding["path"] for finding in json.loads(printed)["findings"]})

    make(project.parent / "other", tool=TRAIN)
    assert found("project") == ["train.py"]
    assert found("project", "other/tool.py") == ["other/tool.py", "project/train.py"]
    assert found("*/t*.py") == ["other/tool.py", "project/train.py"]
    assert found("project", "project/train.py") == ["train.py"]
    assert found() == ["other/tool.py", "project/train.py"]
    one_line(ferry("scan", "no/*.py"), "no/*.py: no file or folder matches")


def test_quiet_leaves_the_result(project: Path) -> None:
    result = ferry("scan", project, "-q")
    assert "2 places are automatic" in result.stdout and "next:" not in result.stdout and result.stderr == ""


def test_select_and_ignore(project: Path) -> None:
    def rules(*options: str) -> set[str]:
        findings = json.loads(ferry("scan", project, "--format", "json", *options).stdout)["findings"]
        return {finding["rule"] for finding in findings}

    everything = rules()
    assert {"TF101", "TF103"} <= everything
    assert rules("--select", "TF103") == {"TF101", "TF103"}  # a change brings the import that it needs
    assert rules("--select", "tf103", "--ignore", "TF101") == {"TF103"}
    assert rules("--select", "tf103,TF101") == {"TF101", "TF103"}
    assert rules("--ignore", "TF103") == set()
    assert rules("--select", "TF1", "--ignore", "TF101") == everything - {"TF101"}
    one_line(ferry("scan", project, "--select", "TF9999"), "no rule begins with 'TF9999'", "ferry rules")


@pytest.mark.parametrize("pattern", ["pkg", "pkg/", "./pkg", "pkg/*", "*/more.py"])
def test_exclude(project: Path, tmp_path: Path, pattern: str) -> None:
    make(project, pkg__more=TRAIN)
    assert ferry("convert", project, "-o", tmp_path / "out", "--exclude", pattern).returncode == 0
    assert (tmp_path / "out" / "train.py").exists()
    assert not (tmp_path / "out" / "pkg" / "more.py").exists()


def test_bad_usage(project: Path) -> None:
    one_line(run("ferry", "scan", project, "--to", "asend"), "asend")
    one_line(
        ferry("scan", project, "--rules", project / "none.json"),
        f"no such rule file: {project / 'none.json'}; check the path",
    )
    assert run("ferry", "scan", project).returncode == 2
    assert ferry("scan", project, "-j", "0").returncode == 2
    one_line(run("ferry", "cnvert"), "did you mean `convert`?")


@pytest.mark.parametrize("form", ["github", "sarif", "json"])
def test_formats_in_a_pipe(project: Path, form: str) -> None:
    call = f"{command('ferry')[0]} scan '{project}' --to ascend --format {form} | cat"
    result = subprocess.run(["sh", "-c", call], capture_output=True, text=True, env=environment())
    assert (result.returncode, result.stderr) == (0, "")
    if form == "github":
        assert "::notice title=TorchFerry::Nothing to decide; 2 places are automatic" in result.stdout
    else:
        assert json.loads(result.stdout)


@pytest.mark.parametrize("form", ["html", "xlsx"])
def test_a_page_or_a_workbook_needs_a_file(project: Path, tmp_path: Path, form: str) -> None:
    one_line(ferry("scan", project, "--format", form), "name a file: -o report." + form)
    assert ferry("scan", project, "--format", form, "-o", tmp_path / "r").returncode == 0
    assert names(tmp_path) == ["project", "r"]


def test_a_reader_that_leaves(project: Path) -> None:
    for number in range(300):
        (project / f"old{number}.py").write_text("import torch\ntorch.nn.DataParallel(x).cuda()\n")
    for options, code in (("", 0), ("--check", 1)):
        call = f"{command('ferry')[0]} scan '{project}' --to ascend --verbose {options} | head -1"
        script = ["bash", "-c", f"set -o pipefail; {call}"]
        result = subprocess.run(script, capture_output=True, text=True, env=environment())
        assert (result.returncode, result.stderr) == (code, "")
        assert result.stdout.count("\n") == 1


def test_chinese(project: Path, tmp_path: Path) -> None:
    env = environment(TORCHFERRY_LANG="zh")
    assert "自动完成" in ferry("scan", project, env=env).stdout
    assert "已完成 2 处" in ferry("convert", project, "-o", tmp_path / "out", env=env).stdout
    assert "2 places are automatic" in ferry("scan", project, "--lang", "en", env=env).stdout
    latin = environment(TORCHFERRY_LANG="zh", PYTHONIOENCODING="ascii")
    assert ferry("scan", project, env=latin).returncode == 0


def test_quiet(project: Path, tmp_path: Path) -> None:
    result = ferry("convert", project, "-o", tmp_path / "out", "-q")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_closed_streams(project: Path) -> None:
    for closed in (">&-", "2>&-", ">&- 2>&-", "<&-"):
        call = f"{command('ferry')[0]} scan '{project}' --to ascend --check {closed}"
        result = subprocess.run(["sh", "-c", call], capture_output=True, text=True, env=environment())
        assert (result.returncode, result.stderr) == (1, ""), closed
