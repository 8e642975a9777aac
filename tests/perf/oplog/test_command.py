"""`ferry oplog` as users run it: what it prints, writes, and how it ends."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path

import pytest

from tests.perf.oplog.making import LogWriter, tensor, training
from torchferry.cli.main import main


@pytest.fixture
def changing(tmp_path: Path) -> Path:
    return training(4, changing=True).write(tmp_path / "plog-4242_20240506101112000.log").parent


def run(capfd: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["oplog", *map(str, arguments)])
    return code, *capfd.readouterr()


def test_the_verdict_comes_first(changing: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capfd, changing, "--lang", "en")
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[0] == "4 compiles after the warm-up, 1.00 s: Cast 2, MatMul 2"
    assert lines[1].startswith("counting rule: compiles in the second half")
    assert "float16[11, 64] ND; float16[64, 10] ND" in out
    assert run(capfd, changing, "--lang", "zh")[1].startswith("预热之后有 4 次编译，共 1.00 s")


def test_check_fails_on_recompiles_only(
    changing: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(capfd, changing, "--check")[0] == 1
    steady = training(4).write(tmp_path / "steady/a.log")
    code, out, _ = run(capfd, steady, "--check", "--lang", "en")
    assert (code, out.splitlines()[0]) == (0, "no operator was compiled after the warm-up")


def test_json(changing: Path, capfd: pytest.CaptureFixture[str]) -> None:
    found = json.loads(run(capfd, changing, "--format", "json", "--warmup-seconds", 1.5)[1])
    assert (found["format"], found["basis"], found["calls"], found["compile_seconds"]) == (
        "torchferry-oplog", "warmup", 16, 2.5,
    )  # fmt: skip
    assert len(found["recompiles"]) == 6
    assert found["recompiles"][0]["signature"][0]["shape"] == [9, 64]
    assert {row["type"]: row["recompiles"] for row in found["operators"]} == {
        "MatMul": 3, "Cast": 3, "Conv2D": 0, "TransData": 0,
    }  # fmt: skip


def test_csv_runs_no_formulas(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = LogWriter()
    log.call("=cmd()", [tensor([2])], attributes="+1")
    out = run(capfd, log.write(tmp_path / "a.log"), "--format", "csv")[1]
    (row,) = csv.DictReader(io.StringIO(out.removeprefix("\ufeff")))
    assert (row["operator"], row["attributes"], row["calls"]) == ("'=cmd()", "'+1", "1")


def test_markdown_escapes_names(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = LogWriter()
    log.call("A|B\x1b[31m", [tensor([2])])
    out = run(capfd, log.write(tmp_path / "a.log"), "--format", "md", "--lang", "en")[1]
    assert "| `A\\|B\\x1b[31m` | 1 |" in out


def test_the_summary_is_written_whole(
    changing: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    summary = tmp_path / "out" / "ascend_op_info_summary.txt"
    assert run(capfd, changing, "--op-info", summary)[0] == 0
    assert len(summary.read_text().splitlines()) == 10
    code, _, err = run(capfd, changing, "--op-info", tmp_path)
    assert code == 2 and "can't be written" in err


def test_some_files_fail(
    changing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    refused = training(2).write(tmp_path / "plog-5.log")
    real = open

    def refusing(file: object, *rest: object) -> object:
        if file == refused:
            raise PermissionError(13, "Permission denied", str(file))
        return real(file, *rest)  # type: ignore[call-overload]

    monkeypatch.setattr("torchferry.logs.open", refusing, raising=False)
    code, out, _ = run(capfd, changing, "--lang", "en")
    assert code == 3
    assert "plog-5.log can't be read: Permission denied" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--to", "cambricon"], "the format of the host logs of cambricon is unknown"),
        (["--warmup-until", "noon"], "--warmup-until noon: not a time"),
        (["--warmup-until", "2024-99-06-10:00:00"], "not a time"),
    ],
)
def test_bad_usage(
    changing: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    code, out, err = run(capfd, changing, *arguments)
    assert (code, out) == (2, "")
    assert said in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--warmup-seconds", "-1"],
        ["--warmup-seconds", "nan"],
        ["--shapes", "1"],
        ["--shapes", "2", "--warmup-seconds", "1"],
    ],
)
def test_options_that_make_no_sense(changing: Path, arguments: list[str]) -> None:
    assert main(["oplog", str(changing), *arguments]) == 2


def test_a_pipe_among_the_logs_is_not_waited_for(changing: Path, capfd: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(changing / "plog-1.log")
    code, out, _ = run(capfd, changing, "--lang", "en")
    assert code == 3
    assert out.startswith("4 compiles after the warm-up") and "plog-1.log" in out
