"""`ferry bundle`: what is in the archive, what is not, and that its test runs where it is unpacked."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import h5py
import pytest

from tests.accuracy.compare.records import MINE, Writing, write_network, zero_tail
from torchferry.accuracy.file.reader import open_record
from torchferry.cli.main import main

LOG = """{filler}[2026-11-19 10:00:00] host gpu-node-17 start for wangwu@corp.example
Traceback (most recent call last):
  File "/home/wangwu/moonshot/train.py", line 31, in <module>
    main()
RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 0; 29.50 GiB total capacity)
"""
PRIVATE = ("gpu-node-17", "wangwu", "moonshot", "corp.example", "10.9.8.7", "s3cr3ts3cr3t")


def ferry(*arguments: object) -> int:
    try:
        return main([*map(str, arguments)])
    except SystemExit as end:
        assert isinstance(end.code, int)
        return end.code


def unpacked(archive: Path, folder: Path) -> Path:
    """The one folder of an archive."""
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(folder)
    else:
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
    (root,) = folder.iterdir()
    return root


def contents(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()))


def write_wrong(folder: Path) -> Path:
    """A record of a run whose program lies in somebody's home; its fourth call is wrong."""
    header = MINE.__class__(**{**vars(MINE), "program": "/home/wangwu/moonshot/train.py --key s3cr3ts3cr3t"})
    write_network(folder / "npu.h5", header, {"aten::exp": zero_tail})
    return folder / "npu.h5"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORCHFERRY_LANG", "en")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("TEAM_API_KEY", "s3cr3ts3cr3t")
    return tmp_path


@pytest.fixture
def record(here: Path) -> Path:
    return write_wrong(here)


def test_the_whole_way(record: Path, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "train.log").write_text(LOG.format(filler="connect 10.9.8.7:29500\n" * 200))
    words = ("npu.h5", "train.log", "--call", 4, "--to", "ascend", "-o", "issue.zip", "-q")
    assert ferry("bundle", *words, "--hide", "moonshot") == 0
    said = capsys.readouterr().out
    assert "issue.zip: 8 files" in said and "--hide WORD removes a word" in said
    assert "gpu-node-17" in said and "s3cr" not in said.replace("s3c…", "")
    record.unlink()
    (here / "train.log").unlink()
    root = unpacked(here / "issue.zip", here / "fresh")
    assert root.name == "issue-ascend-exp"
    assert sorted(path.name for path in root.iterdir()) == [
        "README.md", "log_excerpt.txt", "machine.md", "manifest.json", "record.h5", "test_exp.pt", "test_exp.py",
        "versions.json",
    ]  # fmt: skip
    data = contents(root)
    assert [word for word in PRIVATE if word.encode() in data] == []
    _check_manifest(root)
    _check_readme((root / "README.md").read_text())
    _check_excerpt((root / "log_excerpt.txt").read_text())
    _check_record(root / "record.h5")


def _check_manifest(root: Path) -> None:
    manifest = json.loads((root / "manifest.json").read_text())
    assert manifest["operator"] == "aten::exp" and manifest["run"] == "python test_exp.py"
    assert {each["name"] for each in manifest["files"]} == {path.name for path in root.iterdir()} - {
        "manifest.json"
    }
    for each in manifest["files"]:
        found = (root / each["name"]).read_bytes()
        assert (len(found), hashlib.sha256(found).hexdigest()) == (each["bytes"], each["sha256"])


def _check_readme(text: str) -> None:
    assert text.startswith("# aten::exp on ascend\n")
    assert "aten::exp computes wrong results: wrong from some element to the end" in text
    assert "```sh\npython test_exp.py\n```" in text and "equal: ascend's simulated device" in text
    assert "device memory is exhausted" in text and "| torch |" in text


def _check_excerpt(text: str) -> None:
    lines = text.splitlines()
    assert lines[0] == "--- train.log, lines 145 to 205 of 205, > is the decisive one"
    assert lines[1] == "  connect <address-1>:29500" and lines[-1].startswith(
        "> RuntimeError: NPU out of memory"
    )
    assert '  File "<path-' in text and "<word-1>" not in text  # a whole folder went, not only the word in it


def _check_record(path: Path) -> None:
    with open_record(path) as record:
        (call,) = record.calls
        assert call.number == 4 and record.header.program.startswith("<path-")
    with h5py.File(path) as file:
        assert "4" in file["exp"]


@pytest.mark.long
def test_the_same_bytes_each_time_and_in_chinese(record: Path, here: Path) -> None:
    for name in ("a.tar.gz", "b.tar.gz"):
        assert ferry("bundle", record, "--call", 4, "--to", "ascend", "-q", "--lang", "zh", "-o", name) == 0
    assert (here / "a.tar.gz").read_bytes() == (here / "b.tar.gz").read_bytes()
    root = unpacked(here / "a.tar.gz", here / "fresh")
    assert "## 复现方法" in (root / "README.md").read_text()
    record.unlink()
    # as the vendor runs it, in a folder that knows nothing of the one where it was made
    ended = subprocess.run([sys.executable, "test_exp.py"], cwd=root, capture_output=True, check=False)
    assert ended.returncode == 0 and b"Ran 2 tests" in ended.stderr and b"OK" in ended.stderr
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_exp.py"]
    assert subprocess.run(tests, cwd=root, capture_output=True, check=False).returncode == 0
    with tarfile.open(here / "a.tar.gz") as tar:
        owners = {(each.uid, each.gid, each.uname, each.mtime, each.mode) for each in tar}
    assert owners == {(0, 0, "", 315532800, 0o644)}


def large_record(folder: Path) -> Path:
    import torch

    call = Writing(folder / "npu.h5", MINE)
    call("aten::exp", torch.randn(300, 100).clamp(-2, 2))
    call.close()
    return folder / "npu.h5"


@pytest.mark.long
def test_what_is_too_large_is_left_out_step_by_step(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    large_record(here)

    def files(most: str) -> list[str]:
        words = ("npu.h5", "--to", "ascend", "-q", "--force", "--most", most)
        assert ferry("bundle", *words, "--format", "json") == 0
        made = json.loads(capsys.readouterr().out)
        (here / "said.json").write_text(json.dumps(made["notes"]))
        return [each["name"] for each in made["files"] if each["name"].startswith(("record", "test", "stat"))]

    assert files("10MB") == ["record.h5", "test_exp.pt", "test_exp.py"]
    assert files("200k") == ["test_exp.pt", "test_exp.py"]
    assert "the recording was left out" in (here / "said.json").read_text()
    assert files("30k") == ["statistics.json", "test_exp.py"]
    assert "draws others" in (here / "said.json").read_text()
    root = unpacked(here / "issue.zip", here / "fresh")
    (figures,) = json.loads((root / "statistics.json").read_text())
    assert figures["count"] == 30_000 and figures["minimum"] == -2.0 and figures["maximum"] == 2.0
    source = (root / "test_exp.py").read_text()
    assert ".uniform_(-2.0, 2.0, generator=random)" in source and "from record.h5" not in source
    assert subprocess.run([sys.executable, "test_exp.py"], cwd=root, check=False).returncode == 0
    assert ferry("bundle", "npu.h5", "--to", "ascend", "-q", "--force", "--most", "1k") == 2
    assert "more than --most 1.0 KiB: test_exp.py alone is" in capsys.readouterr().err
    assert (
        unpacked(here / "issue.zip", here / "again").name == "issue-ascend-exp"
    )  # the earlier one is still there


@pytest.mark.long
def test_a_test_of_ferry_case(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("torch.max", "--input", "3x4", "--to", "ascend", "--no-run", "-o", "test_of_wangwu.py")
    assert ferry("case", *words) == 0
    text = (here / "test_of_wangwu.py").read_text()
    (here / "test_of_wangwu.py").write_text(text.replace("# Made by:", "# Made in /home/wangwu/x by:"))
    assert ferry("bundle", "test_of_wangwu.py", "--to", "ascend", "-q", "--no-run") == 0
    root = unpacked(here / "issue.zip", here / "fresh")
    assert b"wangwu" not in contents(root)
    assert "python -m pytest test_max.py" in (root / "README.md").read_text()
    assert "was not run" in (root / "README.md").read_text()
    compile((root / "test_max.py").read_text(), "test_max.py", "exec")


def test_only_logs_and_a_dry_run(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "logs").mkdir()
    (here / "logs" / "rank0.log").write_text(LOG.format(filler="x\n" * 50_000))
    (here / "logs" / "rank1.log").write_bytes(bytes(range(256)) * 40)
    (here / "keys.txt").write_text("-----BEGIN RSA PRIVATE KEY-----")
    (here / "logs" / "link.log").symlink_to(here / "keys.txt")
    assert ferry("bundle", "logs", "--to", "ascend", "--dry-run", "-q") == 3
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("nothing was written; the archive would have 5 files")
    assert "link.log was left out: a link" in said and "rank1.log was left out: binary data" in said
    assert not (here / "issue.zip").exists()


def test_a_log_without_an_error_shows_its_end(here: Path) -> None:
    (here / "a.log").write_text("".join(f"step {number}\n" for number in range(5000)))
    assert ferry("bundle", "a.log", "--to", "ascend", "-q") == 0
    root = unpacked(here / "issue.zip", here / "fresh")
    lines = (root / "log_excerpt.txt").read_text().splitlines()
    assert lines[0] == "--- a.log, lines 4901 to 5000 of 5000" and lines[-1] == "  step 4999"


def _binary(folder: Path) -> Path:
    (folder / "core.log").write_bytes(bytes(range(256)) * 40)
    return folder / "core.log"


def _own_code(folder: Path) -> Path:
    lines = ('os.environ.get("TORCHFERRY_CASE_TO")', 'sys.path.insert(0, "/home/me")', "def inputs(): ...")
    (folder / "test_f.py").write_text("\n".join(lines))
    return folder / "test_f.py"


def _other_script(folder: Path) -> Path:
    (folder / "train.py").write_text("import torch\n")
    return folder / "train.py"


def _statistics(folder: Path) -> Path:
    from tests.accuracy.file.making import write_statistics

    write_statistics(folder / "stats.h5", 1)
    return folder / "stats.h5"


def _pipe(folder: Path) -> Path:
    os.mkfifo(folder / "pipe.log")
    return folder / "pipe.log"


@pytest.mark.parametrize(
    ("make", "options", "said"),
    [
        (write_wrong, [], "which of its 5 calls? Name one with --call N"),
        (write_wrong, ["--call", "9"], "no call 9; choose one of 1 to 5"),
        (write_wrong, ["--call", "4", "-o", "issue.rar"], "unknown archive format; end the name in .zip or .tar.gz"),
        (write_wrong, ["--call", "4", "-o", "none/issue.zip"], "can't be written there"),
        (write_wrong, ["--call", "4", "--most", "lots"], "'lots' is not a size"),
        (write_wrong, ["--call", "4", "--to", "asend"], "asend"),
        (write_wrong, ["--call", "4", "npu.h5"], "a second operator"),
        (_statistics, [], "holds only statistics"),
        (_binary, [], "core.log: can't be read: binary data, not a log"),
        (_binary, ["--call", "4"], "--call N needs a recording"),
        (_own_code, [], "tests your own code"),
        (_other_script, [], "not a test of `ferry case`"),
        (_pipe, [], "pipe.log: a pipe or a device"),
        (lambda folder: folder / "nothing.h5", [], "no such file"),
    ],
)  # fmt: skip
def test_what_is_refused(
    here: Path,
    make: Callable[[Path], Path],
    options: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = make(here)
    to = [] if "--to" in options else ["--to", "ascend"]
    more = [each for each in options if each.endswith(".h5")]  # sources stand together
    assert ferry("bundle", source, *more, *to, "-q", *(each for each in options if each not in more)) == 2
    assert said in capsys.readouterr().err
    assert not (here / "issue.zip").exists()


def test_what_is_there_is_not_replaced(record: Path, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "issue.zip").write_text("mine")
    assert ferry("bundle", record, "--call", 4, "--to", "ascend", "-q") == 2
    assert "issue.zip: exists already; --force replaces it" in capsys.readouterr().err
    assert (here / "issue.zip").read_text() == "mine"
