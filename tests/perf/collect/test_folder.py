"""What `ferry profile` leaves, and what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from torchferry.cli.main import main
from torchferry.errors import OutputError, RunError
from torchferry.launch.place import DeviceKind, Place
from torchferry.launch.program import Program
from torchferry.launch.supervise import Ending
from torchferry.perf.collect import launching
from torchferry.perf.collect.settings import CollectOutcome, ProfileSettings, sentences, write_outcome
from torchferry.text import Text

PROGRAM = Program("train.py", False, ("--lr", "1"), None)
SETTINGS = ProfileSettings("", 10, 12)


def whole(rank: int = 0, last: int = 12) -> CollectOutcome:
    return CollectOutcome(
        rank, 2, last, 10, last, f"trace.{rank}7.json.gz", 10, 0.3, device="npu", torch="2.9.0"
    )


def left(
    monkeypatch: pytest.MonkeyPatch, output: Path, told: list[CollectOutcome], ending: Ending
) -> launching.Profiled:
    """As if processes had left this."""

    def run(_command: object, environment: dict[str, str], **_more: object) -> Ending:
        folder = Path(json.loads(environment["TORCHFERRY_PROFILE"])["folder"])
        for number, each in enumerate(told):
            if each.trace:
                (folder / each.trace).write_bytes(b"trace")
            monkeypatch.setattr("os.getpid", lambda number=number: number)
            write_outcome(folder, each)
        monkeypatch.undo()
        return ending

    monkeypatch.setattr(launching, "run_supervised", run)
    return launching.run_profiled(PROGRAM, SETTINGS, Place(DeviceKind.AS_IS, as_is="cpu"), output)


def test_each_rank_has_a_trace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    output = tmp_path / "prof"
    profiled = left(monkeypatch, output, [whole(1), whole(0), CollectOutcome(made=3)], Ending(0, 0))
    assert sorted(path.name for path in output.iterdir()) == [
        "run.json",
        "trace.rank0.json.gz",
        "trace.rank1.json.gz",
    ]
    run = json.loads((output / "run.json").read_text())
    assert (run["format"], run["version"], run["command"]) == (
        "torchferry-profile",
        1,
        ["train.py", "--lr", "1"],
    )
    assert [(each["rank"], each["trace"]) for each in run["ranks"]] == [
        (0, "trace.rank0.json.gz"),
        (1, "trace.rank1.json.gz"),
    ]
    assert run["steps"] == [10, 12] and run["device"] == "npu"
    said = [text.en for text in sentences(output, SETTINGS, profiled.traces, 0)]
    assert "steps 10 to 12, 100.0 ms each" in said[0] and said[-1].startswith("next: ferry analyze")
    again = left(monkeypatch, output, [whole(0)], Ending(0, 0))  # it replaces a profile
    assert again.is_written and not (output / "trace.rank1.json.gz").exists()


def test_processes_that_take_themselves_for_one_rank_have_a_trace_each(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    other = CollectOutcome(0, 1, 12, 10, 12, "trace.99.json.gz", 10, 0.3)
    profiled = left(monkeypatch, tmp_path / "prof", [whole(0), other], Ending(0, 0))
    assert [told.trace for told in profiled.traces] == ["trace.rank0.json.gz", "trace.rank0.2.json.gz"]


@pytest.mark.parametrize(
    ("told", "ending", "is_kept"),
    [
        ([whole()], Ending(130, 0, signal=2), True),  # Ctrl-C after the steps
        ([whole(last=11)], Ending(130, 0, signal=2), False),  # within them
        ([whole(last=11)], Ending(1, 0), True),  # the program failed
        ([CollectOutcome(made=4)], Ending(0, 0), False),
        ([], Ending(0, 0), False),
    ],
)
def test_it_comes_whole_or_not_at_all(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, told: list[CollectOutcome], ending: Ending, is_kept: bool
) -> None:
    assert left(monkeypatch, tmp_path / "prof", told, ending).is_written is is_kept
    assert [path.name for path in tmp_path.iterdir()] == (["prof"] if is_kept else [])


@pytest.mark.parametrize("content", [None, b""])
def test_a_trace_that_was_not_written_is_no_success(
    content: bytes | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As after a full disk: the process says that it has written, and nothing is there."""

    def run(_command: object, environment: dict[str, str], **_more: object) -> Ending:
        folder = Path(json.loads(environment["TORCHFERRY_PROFILE"])["folder"])
        if content is not None:
            (folder / whole().trace).write_bytes(content)
        write_outcome(folder, whole())
        return Ending(0, 0)

    monkeypatch.setattr(launching, "run_supervised", run)
    profiled = launching.run_profiled(
        PROGRAM, SETTINGS, Place(DeviceKind.AS_IS, as_is="cpu"), tmp_path / "prof"
    )
    assert not profiled.is_written and not (tmp_path / "prof").exists()
    assert RunError.from_json(profiled.outcomes[0].problem).text == launching.TRACE_LOST


@pytest.mark.parametrize("has_trace", [False, True])
def test_a_vendors_folder_without_a_trace_is_no_success(
    has_trace: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As where the vendor's analysis has failed: its raw data are there."""
    told = replace(whole(), trace="rank0.7_host_ascend_pt")

    def run(_command: object, environment: dict[str, str], **_more: object) -> Ending:
        folder = Path(json.loads(environment["TORCHFERRY_PROFILE"])["folder"])
        output = folder / told.trace / "ASCEND_PROFILER_OUTPUT"
        output.mkdir(parents=True)
        (output / "analyse.done").touch()
        if has_trace:
            (output / "trace_view.json").write_text(
                '[{"ph": "X", "name": "add", "pid": 1, "ts": 1, "dur": 1}]'
            )
        write_outcome(folder, told)
        return Ending(0, 0)

    monkeypatch.setattr(launching, "run_supervised", run)
    profiled = launching.run_profiled(
        PROGRAM, SETTINGS, Place(DeviceKind.AS_IS, as_is="cpu"), tmp_path / "prof"
    )
    assert profiled.is_written == has_trace
    problem = profiled.outcomes[0].problem
    assert problem == ("" if has_trace else RunError(launching.TRACE_LOST).to_json())


def test_what_is_no_profile_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "prof").mkdir()
    launching.check_output(tmp_path / "prof")  # an empty folder may be filled
    (tmp_path / "prof" / "mine.txt").write_text("precious")
    with pytest.raises(OutputError, match="not empty, and not a profile"):
        launching.check_output(tmp_path / "prof")
    with pytest.raises(OutputError, match="not a folder"):
        launching.check_output(tmp_path / "prof" / "mine.txt")
    with pytest.raises(OutputError, match="can't be written there"):
        launching.check_output(tmp_path / "none" / "prof")


@pytest.mark.parametrize(
    ("told", "ending", "said"),
    [
        ([CollectOutcome(made=7)], Ending(0, 0), "ended after 7 steps, before step 10"),
        ([], Ending(0, 0), "no optimizer made a step"),
        ([CollectOutcome(made=7)], Ending(1, 0), "ended with exit code 1 after 7 steps"),
        ([], Ending(137, 0), "exit code 137 before its first step"),
        (
            [CollectOutcome(made=7)],
            Ending(143, 0, out_of_time=True),
            "exceeded --timeout after 7 steps",
        ),
        (
            [CollectOutcome(problem=RunError(Text("two at once", "同时两个")).to_json())],
            Ending(0, 0),
            "two at once",
        ),
        (
            [CollectOutcome(problem=RunError(launching.TRACE_LOST).to_json())],
            Ending(0, 0),
            "its trace is missing or empty",
        ),
    ],
)
def test_who_gets_nothing_is_told_why(told: list[CollectOutcome], ending: Ending, said: str) -> None:
    profiled = launching.Profiled(ending, tuple(told), False)
    assert said in launching.nothing_profiled(PROGRAM, SETTINGS, profiled).en


@pytest.mark.parametrize("steps", ["0:2", "3:2", "a:b", "-1", "1:2:3"])
def test_steps_that_are_none(steps: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", f"--window={steps}", "train.py"]) == 2
    assert "is no range of steps from 1 on" in capsys.readouterr().err
