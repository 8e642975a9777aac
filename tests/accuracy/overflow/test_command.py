"""`ferry overflow`: verdict first, the record, the case, exit codes."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests import schemas
from torchferry.accuracy.model import Statistics
from torchferry.accuracy.overflow.launching import Checked
from torchferry.accuracy.overflow.model import (
    CallFigures,
    End,
    Largest,
    OverflowEvent,
    OverflowFindings,
    OverflowKind,
    Standing,
    TensorFigures,
    Underflow,
    load,
)
from torchferry.accuracy.overflow.report import to_json, to_text
from torchferry.cli.main import main
from torchferry.launch.supervise import Ending
from torchferry.settings import encode

PROGRAM = """\
import sys, torch
model = torch.nn.Linear(4, 4).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    y = model(torch.ones(3, 4, device="cuda"))
    (y - {shift}).log().sum().backward()
    optimizer.step()
    print("step", step)
"""


def seen(operator: str = "aten::log", nans: int = 0, **fields: Any) -> CallFigures:
    given = TensorFigures("input/self", "float32", (2, 3), Statistics(6, 0, 0, 0, -1.5, 2.0, 0.1, 1.0, 7))
    made = TensorFigures(
        "output/output_0", "float32", (2, 3), Statistics(6, nans, 0, 0, 0.0, 0.5, 0.1, 0.2, 8)
    )
    place: dict[str, Any] = {"module": "head", "place": "train.py:9", **fields}
    return CallFigures(5, operator, 2, "backward", "Net", inputs=(given,), outputs=(made,), **place)


FOUND = OverflowEvent(
    OverflowKind.NAN, seen(nans=2), before=(seen("aten::sub.Tensor"),), record="/x/overflow.h5", time=5.0
)


def checked(*findings: OverflowFindings, code: int = 0) -> Checked:
    return Checked("train.py", Ending(code, 0), findings)


def process(*events: OverflowEvent, **fields: Any) -> OverflowFindings:
    return OverflowFindings(
        "train.py", "npu", "2.9", events=events, **{"steps": 1, "operators": 10, "end": End.FOUND, **fields}
    )


def test_the_verdict_comes_first_in_both_languages() -> None:
    english, chinese = (to_text(checked(process(FOUND)), language, "ascend") for language in ("en", "zh"))
    assert english.splitlines()[0] == (
        "overflow: aten::log produces NaN (step 2, backward pass, module head, train.py:9)"
    )
    assert chinese.splitlines()[0] == "溢出：aten::log 产生 NaN（第 2 步，反向，模块 head，train.py:9）"
    assert "  output/output_0  float32 2x3  [0, 0.5] rms 0.2, 2 of 6 NaN" in english
    assert "ferry case aten::log --to ascend --from" in english
    assert len(english.splitlines()) == len(chinese.splitlines())


def test_no_overflow() -> None:
    text = to_text(checked(process(end=End.STEPS)), "en", "")
    assert text == "no overflow: 10 operator calls were checked on npu, steps: 1\n"
    assert "stopped: 10 operator calls" in to_text(checked(process(end=End.PROGRAM), code=9), "en", "")


def test_the_rank_that_made_it_comes_before_those_that_got_it() -> None:
    given = OverflowEvent(OverflowKind.NAN, seen("aten::add"), why="given", time=1.0)
    found = checked(process(given, rank=0, world=2), process(FOUND, rank=1, world=2))
    assert found.first is not None and found.first[0].rank == 1
    assert "rank 1 of 2 was first" in to_text(found, "en", "")


def test_notes() -> None:
    events = (
        OverflowEvent(OverflowKind.INFINITE, seen("aten::mm"), Standing.SKIPPED, scale=65536.0),
        OverflowEvent(OverflowKind.INFINITE, seen("aten::log"), Standing.INTENDED, why="table"),
    )
    findings = process(
        *events,
        end=End.STEPS,
        skipped_steps=1,
        largest=Largest(6e4, seen("aten::bmm")),
        underflow=(Underflow(0.25, seen("aten::mul")),),
        notes=("compiled",),
    )
    text = to_text(checked(findings), "en", "")
    for part in (
        "1 steps overflowed",
        "scale 65536 in aten::mm",
        "considered intended: aten::log at train.py:9",
    ):
        assert part in text
    for part in ("60000, aten::bmm", "25.0% of the values of aten::mul", "torch.compile"):
        assert part in text


def test_hostile_names_stay_on_their_line() -> None:
    event = OverflowEvent(OverflowKind.NAN, seen(module="a\nb\x1b[2J", nans=1))
    text = to_text(checked(process(event)), "en", "")
    assert "\x1b" not in text and "a\\nb" in text.splitlines()[0]


def test_json_holds_everything_and_comes_back(tmp_path: Path) -> None:
    endless = TensorFigures(
        "output/x", "float16", (), Statistics(1, 0, 1, 0, float("-inf"), float("inf"), 0.0, 1.0, 0)
    )
    findings = process(
        OverflowEvent(
            OverflowKind.INFINITE,
            seen(),
            before=(CallFigures(1, "aten::mm", 1, "forward", outputs=(endless,)),),
        )
    )
    file = tmp_path / "one.json"
    file.write_text(encode(findings), "utf-8")
    assert load(file) == findings
    data = json.loads(to_json(checked(findings), "ascend"))
    assert schemas.wrong("torchferry-overflow", data) == []
    assert data["overflow"] is True and data["first"]["call"]["operator"] == "aten::log"
    assert data["processes"][0]["events"][0]["before"][0]["outputs"][0]["statistics"]["maximum"] == "inf"


def test_the_whole_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.py").write_text(PROGRAM.format(shift=9))
    monkeypatch.chdir(tmp_path)
    assert (
        main(["overflow", "-q", "--to", "ascend", "--sim", "-o", "bad.h5", "--format", "json", "bad.py"]) == 1
    )
    found = json.loads(capsys.readouterr().out)
    assert schemas.wrong("torchferry-overflow", found) == []
    assert (found["first"]["call"]["operator"], found["first"]["call"]["place"]) == ("aten::log", "bad.py:6")
    assert found["processes"][0]["device"] == "npu" and found["case_file"] == "test_log.py"
    assert "aten::log" in Path("test_log.py").read_text("utf-8")
    case = ["ferry", "case", "aten::log", "--to", "ascend", "--from", "bad.h5"]
    assert shlex.split(found["case"]) == [
        *case,
        "--force",
    ]  # in the place of the test that is written already


@pytest.mark.long
def test_a_program_without_overflow_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "good.py").write_text(PROGRAM.format(shift=-9))
    monkeypatch.chdir(tmp_path)
    assert main(["overflow", "-q", "--steps", "2", "--lang", "en", "good.py"]) == 0
    assert capsys.readouterr().out.startswith("no overflow: ")
    assert [path.name for path in tmp_path.iterdir()] == ["good.py"]


def test_a_file_of_somebody_else_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "good.py").write_text("")
    (tmp_path / "notes.h5").write_text("mine")
    monkeypatch.chdir(tmp_path)
    assert main(["overflow", "-o", "notes.h5", "good.py"]) == 2
    assert (
        "not a recording of TorchFerry" in capsys.readouterr().err and Path("notes.h5").read_text() == "mine"
    )
