"""`ferry analyze`: what is printed and written, exit codes, choices of detectors, bad input."""

from __future__ import annotations

import io
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.perf.building import TraceBuilder
from tests.perf.oplog.making import training
from tests.perf.real_traces import (
    FAST_LOADER,
    LANGUAGE_MODEL,
    LANGUAGE_MODEL_ELSEWHERE,
    SLOW_LOADER,
    VENDORS_TIMELINE,
    real_trace,
)
from torchferry.cli.main import main
from torchferry.perf import analysis, ranks
from torchferry.perf.detect import registry
from torchferry.perf.detect.model import Detector


def trace(
    folder: Path, waits: float, name: str = "trace.json", rank: int | None = None, works: float = 40
) -> Path:
    """Two steps of 100 µs in which the program waits for data, then computes and communicates."""
    builder = TraceBuilder()
    if rank is not None:
        builder.about = {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2}}
    for number in (1, 2):
        start = 1000.0 + number * 100
        builder.step(number, start, 100)
        builder.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", start, waits)
        builder.op("aten::mm", start + waits, 10, dims=[[8, 8], [8, 8]], types=["c10::Half", "c10::Half"])
        builder.kernel("gemm", start + waits + 2, works, launched=start + waits + 1)
        builder.kernel(
            "ncclKernel_AllReduce", start + waits + 2 + works, 98 - waits - works, launched=start + waits + 1
        )
    return builder.write(folder / name)


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    return trace(tmp_path, 40)


def test_a_pipe_is_not_waited_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipe = tmp_path / "trace.json"
    os.mkfifo(pipe)
    assert main(["analyze", str(pipe)]) == 2
    assert "is a pipe or a device; save its content to a file first" in capsys.readouterr().err


def test_names_keep_their_capital_in_the_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    built = TraceBuilder()
    built.step(1, 0, 1000)
    built.op("aten::mm", 0, 100)
    assert main(["analyze", str(built.write(tmp_path / "t.json")), "--lang", "en"]) == 0
    assert capsys.readouterr().out.startswith("Bottleneck: Python takes much of the time")


def test_evidence_without_a_name_is_told_in_the_readers_language(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    built = TraceBuilder()
    built.step(1, 0, 1000)
    built.op("aten::mm", 0, 100)
    path = str(built.write(tmp_path / "t.json"))
    for style in ("text", "md"):
        assert main(["analyze", path, "--lang", "zh", "--format", style, "--select", "host_bound"]) == 0
        out = capsys.readouterr().out
        assert "算子之间的 Python" in out and "between operators" not in out
    assert main(["analyze", path, "--format", "html", "--select", "host_bound"]) == 0
    out = capsys.readouterr().out
    assert ">Python between operators</span>" in out and ">算子之间的 Python</span>" in out
    assert main(["analyze", path, "--lang", "zh", "--format", "json", "--select", "host_bound"]) == 0
    (diagnosis,) = json.loads(capsys.readouterr().out)["runs"][0]["diagnoses"]
    assert diagnosis["evidence"][0]["what"] == "Python between operators"


def test_the_bottleneck_is_named(slow: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", str(slow), "--lang", "en", "--select", "data_loader"]) == 0
    assert capsys.readouterr().out.startswith("Bottleneck: the program waits for data.\n")
    assert main(["analyze", str(trace(slow.parent, 1)), "--lang", "en", "--select", "data_loader"]) == 0
    assert capsys.readouterr().out.startswith("No bottleneck stands out")
    assert main(["analyze", str(trace(slow.parent, 40)), "--lang", "zh", "--select", "data_loader"]) == 0
    assert capsys.readouterr().out.startswith("瓶颈：程序在等待数据。\n")


def test_check(slow: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    only = ["--select", "data_loader"]
    assert main(["analyze", str(slow), "--check", *only]) == 1
    assert main(["analyze", "--check", str(slow), *only]) == 1  # the file is not taken for a severity
    assert main(["analyze", str(slow), "--check", "--ignore", "data_loader,communication"]) == 0
    medium = trace(tmp_path, 8, "medium.json")
    assert main(["analyze", str(medium), "--check", *only]) == 0
    assert main(["analyze", str(medium), "--check", "medium", *only]) == 1


def test_a_detector_that_breaks_down_is_no_success(
    slow: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(run: object) -> list[object]:
        raise KeyError("stream")

    broken_one = Detector("broken", lambda run: None, broken)  # type: ignore[arg-type]
    monkeypatch.setattr(registry, "DETECTORS", (*registry.DETECTORS, broken_one))
    assert main(["analyze", str(slow), "--lang", "en"]) == 3
    printed = capsys.readouterr().out
    assert "Bottleneck: the program waits for data" in printed and "Detector broken failed" in printed


def test_files_and_formats(slow: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [tmp_path / f"out.{suffix}" for suffix in ("txt", "json", "md", "html")]
    outputs = [word for name in names for word in ("-o", str(name))]
    assert main(["analyze", str(slow), *outputs, "--format", "json"]) == 0
    printed = capsys.readouterr().out
    assert json.loads(printed)["format"] == "torchferry-analysis"
    text, written, markdown, page = (name.read_text("utf-8") for name in names)
    assert written == printed and markdown.startswith("# Bottleneck") and page.startswith("<!DOCTYPE html>")
    assert text.startswith("Bottleneck")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [*(name.name for name in names), slow.name]
    )


def test_several_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for rank, works in enumerate((20, 60)):
        trace(tmp_path, 10, f"worker{rank}.pt.trace.json", rank, works)
    assert main(["analyze", str(tmp_path), "--lang", "en"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Rank 1 holds up the others") and "unbalanced_ranks" in printed
    assert main(["analyze", str(tmp_path), "--rank", "0", "--format", "json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["rank"] == 0
    assert main(["analyze", str(tmp_path), "--rank", "7"]) == 2
    assert "no rank 7 in the given profiles; choose one of 0, 1" in capsys.readouterr().err


def test_a_baseline(slow: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quick = trace(tmp_path, 40, "gpu.json", works=20)
    assert main(["analyze", "--baseline", str(quick), str(slow), "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["comparisons"]
    (pair,) = [each for each in found["pairs"] if each["operator"] == "aten::mm"]
    assert pair["match"] == "exact" and found["ratio"] == pytest.approx(1.0)


@pytest.mark.parametrize("form", ["text", "json", "md", "html"])
def test_host_logs_alone(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a trace there are no steps, no operators and no timeline: the page and the texts do without."""
    training(8, changing=True).write(tmp_path / "plog" / "plog-4242_20240506.log")
    assert main(["analyze", str(tmp_path / "plog"), "--format", form, "--lang", "en"]) == 0
    printed = capsys.readouterr().out
    assert "recompiles" in printed and "compiled after the warm-up" in printed


def test_normalize(slow: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = slow.read_text()
    slow.write_text(text[: int(len(text) * 0.7)])
    fixed = tmp_path / "fixed.json"
    assert main(["analyze", "--normalize", str(slow), "-o", str(fixed)]) == 0
    assert min(event["ts"] for event in json.loads(fixed.read_text())["traceEvents"]) == 0
    assert "the end was cut off and has been repaired" in capsys.readouterr().err
    assert main(["analyze", "--normalize", str(slow)]) == 2
    assert "-o fixed.json" in capsys.readouterr().err


def test_detectors_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", "--list-detectors"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == len(registry.DETECTORS) + 1 and printed[0].startswith("data_loader ")
    assert all(len(line.split(maxsplit=1)) == 2 for line in printed)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_detector_is_explained(language: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / language / "how-to/analyze.md").read_text("utf-8")
    known = [*(detector.id for detector in registry.DETECTORS), ranks.ID]
    assert not [name for name in known if f"| `{name}` |" not in page]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "nothing to analyze"),
        (["missing.json"], "no such file or folder: 'missing.json'"),
        (["trace.json", "--select", "data_loade"], "did you mean data_loader?"),
        (["trace.json", "--ignore", "zzz"], "--list-detectors"),
        (["trace.json", "-o", "report.pdf"], "unknown kind of report"),
        (["trace.json", "-o", "nowhere/report.html"], "can't be written there"),
        (["notes.txt"], "'notes.txt' can't be analyzed"),
    ],
)
def test_bad_input_is_one_line(
    slow: Path,
    words: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(slow.parent)
    Path("notes.txt").write_text("hello")
    assert main(["analyze", *words]) == 2
    printed = capsys.readouterr()
    assert said in printed.err and len(printed.err.splitlines()) == 1 and not printed.out


def test_without_the_libraries(
    slow: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "msgspec" else find(name))
    assert main(["analyze", str(slow)]) == 2
    assert "not installed: msgspec" in capsys.readouterr().err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_on_a_terminal(slow: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    analyze = analysis.analyze_paths

    def slowly(*arguments: Any) -> Any:
        found = analyze(*arguments)
        while "trace.json" not in terminal.getvalue():
            time.sleep(0.01)
        return found

    monkeypatch.setattr(analysis, "analyze_paths", slowly)
    assert main(["analyze", str(slow), "--format", "json"]) == 0
    assert "reading profiles" in terminal.getvalue() and terminal.getvalue().endswith("\r\x1b[K")
    quiet = Terminal()
    monkeypatch.setattr(sys, "stderr", quiet)
    assert main(["analyze", str(slow), "--format", "json", "-q"]) == 0
    assert quiet.getvalue() == ""


def test_real_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """The run that waits for its loader is named so, with its share; its twin is not. A vendor's timeline is read."""
    assert main(["analyze", str(real_trace(SLOW_LOADER)), "--lang", "en"]) == 0
    first = capsys.readouterr().out
    assert first.startswith(
        "Bottleneck: the program waits for data.\nThe data loader takes 39.6% of the time"
    )
    assert main(["analyze", str(real_trace(FAST_LOADER)), "--format", "json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert "data_loader" in run["checked"] and all(each["id"] != "data_loader" for each in run["diagnoses"])
    assert main(["analyze", str(real_trace(VENDORS_TIMELINE)), "--format", "html"]) == 0
    assert "aclnnMm" in capsys.readouterr().out


def test_two_vendors_are_matched(capsys: pytest.CaptureFixture[str]) -> None:
    baseline, mine = real_trace(LANGUAGE_MODEL), real_trace(LANGUAGE_MODEL_ELSEWHERE)
    assert main(["analyze", "--baseline", str(baseline), str(mine), "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["comparisons"]
    assert min(found["matched"].values()) > 0.99
