"""`ferry explain` as a command, and what `ferry run` says about a crash."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from torchferry import variables
from torchferry.cli.main import main
from torchferry.explanation.explaining import explain_exception, explain_exit
from torchferry.launch import crash
from torchferry.vendors.registry import get_vendor

OOM = "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB"


def run(capfd: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main(["explain", *map(str, arguments)])
    return code, *capfd.readouterr()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / "train.log"
    file.write_text(f"step 1\n{OOM}\n")
    return file


def test_text(log: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capfd, log, "--lang", "en")
    assert code == 0
    assert out.startswith("cause: device memory is exhausted\nwhat to do: smaller batch")
    assert f"{log}:2" in out
    assert "原因：设备内存不足" in run(capfd, log, "--lang", "zh")[1]


def test_check(log: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    fine = tmp_path / "fine.log"
    fine.write_text("step 1\n")
    assert run(capfd, fine, "--check")[0] == 0
    assert run(capfd, log, "--check")[0] == 1


def test_json(log: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = json.loads(run(capfd, log, "--format", "json")[1])
    assert data["cause"] == 0
    assert data["findings"][0] | {"rule": "ascend.oom", "line": 2, "text": OOM} == data["findings"][0]
    assert data["logs"][0]["lines"] == 2


def test_markdown_shows_hostile_text_as_text(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.log"
    file.write_text("ValueError: <script>alert(1)</script> | \x1b]0;title\x07 \u202e done\n")
    out = run(capfd, file, "--format", "md")[1]
    assert "<script>" not in out and "\x1b" not in out and "\u202e" not in out


def test_a_message(capfd: pytest.CaptureFixture[str]) -> None:
    assert "device memory is exhausted" in run(capfd, OOM, "--lang", "en")[1]


def test_codes(capfd: pytest.CaptureFixture[str]) -> None:
    assert (
        "cause: this thread has no context: the device was not set on it\n"
        in run(capfd, "--code", "107002", "--lang", "en")[1]
    )
    several = run(capfd, "--code", "207007", "--lang", "en")[1]  # its rule holds for two more
    assert "cause: streams, events or other resources of the runtime are used up (out of events)\n" in several
    assert "任务调度器心跳丢失" in run(capfd, "--code", "507010", "--lang", "zh")[1]
    assert (
        json.loads(run(capfd, "--code", "EI0006", "--format", "json")[1])["findings"][0]["rule"]
        == "ascend.hccl-connect"
    )
    code, _, err = run(capfd, "--code", "999999")
    assert code == 2 and "unknown error code" in err


def test_list(capfd: pytest.CaptureFixture[str]) -> None:
    rules = json.loads(run(capfd, "--list", "--format", "json")[1])["rules"]
    assert len(rules) > 150 and all(rule["source"] for rule in rules)
    some = json.loads(run(capfd, "--list", "--to", "intel", "--format", "json")[1])["rules"]
    assert {rule["id"].partition(".")[0] for rule in some} == {"any", "intel"}


@pytest.mark.parametrize("tee", [False, True])
def test_a_pipe(tee: bool, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    text = f"step 1\r\n{OOM}\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(text.encode()))))
    code, out, err = run(capfd, "--lang", "en", "--check", *(["--pass-through"] if tee else []))
    assert code == 1
    assert "cause: device memory is exhausted" in (err if tee else out)
    if tee:
        assert out == text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["no-such.log"], "no such file or folder"),
        (["--code", "1", "--list"], "leave all but one out"),
        (["x.log", "--pass-through"], "--pass-through passes standard input on"),
        (["a b c", "--to", "acme"], "unknown vendor 'acme'"),
    ],
)
def test_bad_usage(arguments: list[str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capfd, *arguments)
    assert (code, out) == (2, "") and said in err


def test_a_log_that_cant_be_read(
    log: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    refused = log.with_name("other.log")
    refused.write_text("x\n")
    real = open

    def refusing(file: object, *rest: object) -> object:
        if file == refused:
            raise PermissionError(13, "Permission denied", str(file))
        return real(file, *rest)  # type: ignore[call-overload]

    monkeypatch.setattr("torchferry.logs.open", refusing, raising=False)
    code, out, _ = run(capfd, log.parent, "--lang", "en")
    assert code == 3
    assert "other.log can't be read: Permission denied" in out and "device memory is exhausted" in out


def test_a_crash_of_a_program_is_explained() -> None:
    vendor = get_vendor("ascend")
    said = explain_exception(
        f'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n{OOM}\n', vendor
    )
    assert said is not None and "(rule ascend.oom)" in said.en and "设备内存不足" in said.zh
    assert explain_exception("ValueError: mine\n", vendor) is None


def test_what_the_launcher_saw_is_said() -> None:
    summary = (
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\nRoot Cause (first observed failure):\n"
        "[0]:\n  time      : 2024-05-06_10:11:12\n  rank      : 3 (local_rank: 3)\n  exitcode  : 1 (pid: 45)\n"
    )
    said = explain_exception(summary, get_vendor("ascend"))
    assert said is not None and said.en.startswith("rank 3 failed first; the launcher reports")


def test_a_signal_is_explained() -> None:
    vendor = get_vendor("ascend")
    killed, fault = explain_exit(137, vendor), explain_exit(139, vendor)
    assert killed is not None and "any.killed" in killed.en
    assert fault is not None and "any.segfault" in fault.en
    assert [explain_exit(code, vendor) for code in (0, 1, 130, 143)] == [None] * 4


@pytest.mark.parametrize("switch", [None, "0"])
def test_the_hook_of_a_process(
    switch: str | None, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    monkeypatch.setenv("TORCHFERRY_LANG", "en")
    if switch is not None:
        monkeypatch.setenv(variables.DIAGNOSIS, switch)
    crash.explain_in_future(get_vendor("ascend"))
    sys.excepthook(KeyError, KeyError("LOCAL_RANK"), None)
    err = capfd.readouterr().err
    assert err.startswith("KeyError: 'LOCAL_RANK'\n")
    assert ("torchferry: the program expects the variables of torchrun" in err) is (switch is None)
