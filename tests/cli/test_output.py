"""ferry convert: where the output may go, and what is said when it may not; nothing half-written, input untouched."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from .commands import CONVERTED, TRAIN, as_nobody, command, contents, ferry, make, names, one_line, run, tree


def refused(project: Path, output: object, *more: object, says: str, **options: object) -> None:
    """Convert to a place that can't be used; nothing may change anywhere."""
    before = tree(project.parent)
    one_line(ferry("convert", project, "-o", output, *more, **options), says)
    assert tree(project.parent) == before


def test_no_output_is_asked_for(project: Path) -> None:
    one_line(ferry("convert", project), "say where the converted copy goes: -o DIR")


def test_output_is_the_input(project: Path) -> None:
    refused(project, project, says="is the input itself")
    refused(project, project, "--force", says="is the input itself")
    refused(project, project.parent / "x" / ".." / "project", says="is the input itself")


def test_input_inside_output(project: Path) -> None:
    refused(project, project.parent, says="contains the input")
    refused(project, project.parent, "--force", says="contains the input")


def test_output_exists(project: Path, tmp_path: Path) -> None:
    make(tmp_path / "out", mine="x")
    refused(project, tmp_path / "out", says="not empty; choose another folder")
    refused(project, tmp_path / "out", "--force", says="was not made by TorchFerry")


def test_findings_of_a_scan_do_not_make_a_folder_ours(project: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    ferry("scan", project, "--format", "json", "-o", tmp_path / "out" / "findings.json")
    assert names(tmp_path / "out") == ["findings.json"]
    refused(project, tmp_path / "out", "--force", says="was not made by TorchFerry")


def test_an_empty_folder_will_do(project: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    assert ferry("convert", project, "-o", tmp_path / "out").returncode == 0
    assert (tmp_path / "out" / "train.py").read_text() == CONVERTED


def test_force_replaces_what_a_run_has_made(project: Path, tmp_path: Path) -> None:
    assert ferry("convert", project, "-o", tmp_path / "out").returncode == 0
    (project / "train.py").rename(project / "renamed.py")
    refused(project, tmp_path / "out", says="add --force to replace it")
    assert ferry("convert", project, "-o", tmp_path / "out", "--force").returncode == 0
    assert names(tmp_path / "out") == ["README.md", "findings.json", "pkg", "renamed.py", "report.html"]
    assert names(tmp_path) == ["out", "project"]


def _added(out: Path) -> None:
    (out / "mine.txt").write_text("mine")


def _edited(out: Path) -> None:
    (out / "train.py").write_text("decided by hand\n")


def _linked(out: Path) -> None:
    (out / "README.md").unlink()
    (out / "README.md").symlink_to("train.py")


def _annotated(out: Path) -> None:
    findings = out / "findings.json"
    findings.write_text(findings.read_text().replace('"vendor": "ascend"', '"vendor": "ascend "', 1))


def _of_an_older_version(out: Path) -> None:
    """Without a list of what was written."""
    findings = out / "findings.json"
    findings.write_text(findings.read_text().partition(',\n  "written"')[0] + "\n}\n")


@pytest.mark.parametrize("change", [_added, _edited, _linked, _annotated, _of_an_older_version])
def test_force_keeps_what_is_not_ours(project: Path, tmp_path: Path, change: Callable[[Path], None]) -> None:
    out = tmp_path / "out"
    assert ferry("convert", project, "-o", out).returncode == 0
    change(out)
    before = tree(out)
    for number in (1, 2):
        result = ferry("convert", project, "-o", out, "--force")
        assert result.returncode == 0
        assert ("note: what was there is kept as" in result.stderr) == (number == 1)
        assert tree(tmp_path / "out.1") == before
        assert (out / "train.py").read_text() == CONVERTED
        assert names(tmp_path) == ["out", "out.1", "project"]


def test_force_needs_no_copy_of_what_it_wrote_itself(project: Path, tmp_path: Path) -> None:
    (project / "link").symlink_to("train.py")
    (project / os.fsdecode(b"\xff.py")).write_text(TRAIN)
    out = tmp_path / "out"
    assert ferry("convert", project, "-o", out, "--lists").returncode == 0
    (out / "pkg" / "__pycache__").mkdir()
    (out / "pkg" / "__pycache__" / "util.cpython-311.pyc").write_bytes(b"x")
    (out / "train.py").unlink()
    assert ferry("convert", project, "-o", out, "--force").returncode == 0
    assert names(tmp_path) == ["out", "project"]
    assert (out / "train.py").read_text() == CONVERTED


def test_force_of_one_file_keeps_the_others_beside_it(tmp_path: Path) -> None:
    from tests.conversion.distributed.programs import script

    launcher = tmp_path / "run_distributed_npu.sh"
    launcher.write_text("mine")
    source = make(tmp_path / "in", train=script()) / "train.py"
    one = ("convert", source, "-o", tmp_path / "new.py", "--distributed", "--main", "train.py", "-q")
    one_line(ferry(*one), "already exists, but the conversion writes this file")
    result = ferry(*one, "--force")
    assert result.returncode == 0 and launcher.read_text() != "mine"
    assert (tmp_path / "run_distributed_npu.sh.1").read_text() == "mine"
    assert f"is kept as {launcher}.1" in result.stderr
    assert ferry(*one, "--force").returncode == 0
    assert names(tmp_path) == ["in", "new.py", "run_distributed_npu.sh", "run_distributed_npu.sh.1"]


def test_a_file_that_goes_away_during_the_run_is_named(project: Path, tmp_path: Path) -> None:
    """Between the look at the project and the copy."""
    from tests.conversion.test_project import examined
    from torchferry.conversion.write import Replace, write_project

    outcome = examined(project)
    (project / "README.md").unlink()
    done = write_project(outcome, tmp_path / "out", {}, Replace.NOTHING)
    assert done.vanished == ["README.md"]
    assert names(tmp_path / "out") == ["pkg", "train.py"]


def test_output_is_a_file_or_a_link(project: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    refused(project, tmp_path / "file", says="is a file, but the output is a folder")
    refused(project, tmp_path / "file" / "out", says="is not a folder")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    refused(project, tmp_path / "link", says="is a link")
    refused(project, tmp_path / "new.py", says="looks like a file")


def test_a_single_file_to_a_file(project: Path, tmp_path: Path) -> None:
    (project / "train.py").chmod(0o755)
    before = tree(project)
    result = ferry("convert", project / "train.py", "-o", tmp_path / "deep" / "new.py")
    assert result.returncode == 0
    assert (tmp_path / "deep" / "new.py").read_text() == CONVERTED
    assert (tmp_path / "deep" / "new.py").stat().st_mode & 0o777 == 0o755
    assert names(tmp_path / "deep") == ["new.py"]
    again = ferry("convert", project / "train.py", "-o", tmp_path / "deep" / "new.py")
    one_line(again, "already exists; choose another name, or add --force")
    forced = ferry("convert", project / "train.py", "-o", tmp_path / "deep" / "new.py", "--force")
    assert forced.returncode == 0
    one_line(
        ferry("convert", project / "train.py", "-o", project / "train.py", "--force"), "the input itself"
    )
    unchanged = ferry("convert", project / "pkg" / "util.py", "-o", tmp_path / "util.py")
    assert unchanged.returncode == 0
    assert (tmp_path / "util.py").read_text() == "x = 1\n"
    assert tree(project) == before


def test_output_inside_input_is_not_converted_again(project: Path) -> None:
    before = tree(project)
    assert ferry("convert", project, "-o", project / "out").returncode == 0
    assert ferry("convert", project, "-o", project / "out", "--force").returncode == 0
    assert run("ferry", "convert", project, "-o", project / "mlu", "--to", "cambricon").returncode == 0
    expected = ["README.md", "findings.json", "pkg", "report.html", "train.py"]
    assert names(project / "out") == names(project / "mlu") == expected
    shutil.rmtree(project / "out")
    shutil.rmtree(project / "mlu")
    assert tree(project) == before


def test_no_permission_to_write(open_folder: Path) -> None:
    project = make(open_folder / "project", train=TRAIN)
    (open_folder / "closed").mkdir(mode=0o555)
    refused(project, open_folder / "closed" / "out", says="no permission to write in", prefix=as_nobody())
    refused(project, open_folder / "closed" / "a" / "b", says="no permission to write in", prefix=as_nobody())


def test_an_empty_folder_in_a_closed_one_is_filled(open_folder: Path) -> None:
    project = make(open_folder / "project", pkg__train=TRAIN)
    out = open_folder / "closed" / "out"
    out.mkdir(parents=True)
    prefix = as_nobody(out)
    out.parent.chmod(0o555)
    assert ferry("convert", project, "-o", out, prefix=prefix).returncode == 0
    assert names(out) == ["findings.json", "pkg", "report.html"]
    assert (out / "pkg" / "train.py").read_text() == CONVERTED


def test_a_report_does_not_hide_a_file_silently(project: Path, tmp_path: Path) -> None:
    make(project, **{"report.html": "mine", "findings.json": "{}"})
    result = ferry("convert", project, "-o", tmp_path / "out")
    assert result.returncode == 0
    for name in ("report.html", "findings.json"):
        assert f"note: the project's own {name} was not copied" in result.stderr
    assert json.loads((tmp_path / "out" / "findings.json").read_text())["command"] == "convert"
    again = ferry("convert", tmp_path / "out", "-o", tmp_path / "out2")
    assert "findings.json" not in again.stderr


def test_disk_full(tmp_path: Path) -> None:
    project = make(tmp_path / "project", train=TRAIN, **{"data.bin": b"x" * 200_000})
    before = tree(project)
    disk = tmp_path / "disk"
    disk.mkdir()
    namespace = (
        ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    )
    mount = f"mount -t tmpfs -o size=100k none '{disk}'"
    if shutil.which("unshare") is None or subprocess.run([*namespace, "sh", "-c", mount]).returncode:
        pytest.skip("no small file system can be mounted here")
    call = command("ferry", "convert", project, "-o", disk / "a" / "out", "--to", "ascend")
    script = f"{mount} && \"$@\"; echo code $?; ls -A '{disk}'"
    result = subprocess.run([*namespace, "sh", "-c", script, "sh", *call], capture_output=True, text=True)
    assert result.stdout == "code 2\n"
    assert result.stderr == f"ferry: {disk}/a/out: the disk is full; nothing was written\n"
    assert tree(project) == before


def test_a_limit_on_file_size(tmp_path: Path) -> None:
    project = make(tmp_path / "project", train=TRAIN, **{"data.bin": b"x" * 200_000})
    call = command("ferry", "convert", project, "-o", tmp_path / "out", "--to", "ascend")
    limited = ["sh", "-c", 'ulimit -f 100; exec "$@"', "sh", *call]
    result = subprocess.run(limited, capture_output=True, text=True)
    one_line(result, "File too large", "nothing was written")
    assert names(tmp_path) == ["project"]


def test_standard_output_on_a_full_disk(project: Path) -> None:
    with open("/dev/full", "w") as full:
        call = command("ferry", "scan", project, "--to", "ascend")
        result = subprocess.run(call, stdout=full, stderr=subprocess.PIPE, text=True)
    assert result.returncode == 2
    assert result.stderr == "ferry: No space left on device\n"


def test_two_runs_and_any_number_of_processes_write_the_same(project: Path, tmp_path: Path) -> None:
    for number in range(130):  # enough that processes are used
        (project / f"big{number}.py").write_text(TRAIN + f"text = '{'x' * 25_000}'\n")
    outputs = []
    for number, jobs in enumerate((1, 2, 2)):
        assert ferry("convert", project, "-o", tmp_path / str(number), "-j", jobs).returncode == 0
        made = contents(tmp_path / str(number))
        del made["report.html"]  # it names the command, which differs
        findings = json.loads(made.pop("findings.json"))
        del findings["written"]["report.html"]
        outputs.append((made, findings))
    assert outputs[0] == outputs[1] == outputs[2]
