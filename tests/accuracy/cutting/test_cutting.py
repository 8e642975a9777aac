"""`ferry record cut`: calls of a record as a record of their own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import h5py
import pytest
import torch

from tests.accuracy.compare.records import MINE, write_network, zero_tail
from tests.accuracy.file.making import HEADER, put, write_calls, write_statistics
from torchferry.accuracy import cutting
from torchferry.accuracy.case_inputs import calls, read
from torchferry.accuracy.cutting import CutRequest, NumberRange, number_ranges
from torchferry.accuracy.file.reader import open_record
from torchferry.accuracy.file.writer import RecordWriter
from torchferry.accuracy.model import Call, RandomState, TensorRef
from torchferry.accuracy.record.settings import Selection
from torchferry.cli.main import main
from torchferry.errors import InputError


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORCHFERRY_LANG", "en")
    return tmp_path


def ferry(*arguments: str) -> int:
    try:
        return main([*arguments])
    except SystemExit as end:
        assert isinstance(end.code, int)
        return end.code


def numbers(path: str) -> list[int]:
    with open_record(Path(path)) as record:
        return [call.number for call in record.calls]


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        (["--call", "12"], [12]),
        (["--call", "3,18-20", "--call", "12"], [3, 12, 18, 19, 20]),
        (["--step", "2", "--op", "add"], list(range(10, 20))),
        (["--step", "3", "--call", "19-21"], [20, 21]),
        (
            ["--in-module", "layer", "--call", "5"],
            [],
        ),  # of no model: --in-module fits none, as in `ferry record`
    ],
)
def test_which_calls(here: Path, options: list[str], kept: list[int]) -> None:
    write_calls(here / "gpu.h5", 25)
    assert ferry("record", "cut", "gpu.h5", "-q", *options) == (0 if kept else 2)
    assert (numbers("gpu.cut.h5") if kept else []) == kept


def test_a_call_keeps_all_that_is_known_of_it(here: Path) -> None:
    write_calls(here / "gpu.h5", 5)
    assert ferry("record", "cut", "gpu.h5", "--call", "3", "-o", "small.h5", "-q") == 0
    with open_record(here / "gpu.h5") as whole, open_record(here / "small.h5") as small:
        before, after = whole.calls[2], small.calls[0]
        assert torch.equal(small.tensor(after.inputs[0]), torch.full((4, 5), 3.0))
        assert torch.equal(small.tensor(after.outputs[0]), torch.full((4, 5), 4.0))
        tensors = {
            "inputs": (replace(after.inputs[0], offset=before.inputs[0].offset),),
            "outputs": (replace(after.outputs[0], offset=before.outputs[0].offset),),
        }
        assert replace(after, **tensors) == before
        assert small.header == replace(whole.header, selected="calls 3")
    with h5py.File(here / "small.h5") as file:
        assert list(file["add_Scalar"]) == ["3"] and file["add_Scalar/3/input/self"][0, 0] == 3.0


def test_a_content_is_written_once_and_views_share_it(here: Path) -> None:
    writer = RecordWriter(here / "gpu.h5", HEADER)
    whole = put(writer, torch.arange(1000.0), "input/self", 7)
    unused = put(writer, torch.zeros(5000), "input/self", 8)
    tail = replace(whole, name="input/other", shape=(500,), offset=(whole.offset or 0) + 2000)
    empty = put(writer, torch.zeros(0, 3), "input/empty")
    state = RandomState("cpu", writer.append(b"s" * 16), 16)
    for number in (1, 2, 3):
        inputs = (whole, tail, empty) if number < 3 else (unused,)
        writer.write(Call(number, "aten::f", 1, "forward", inputs=inputs, random=state))
    writer.close()
    assert ferry("record", "cut", "gpu.h5", "--call", "1-2", "-q") == 0
    with open_record(here / "gpu.cut.h5") as record:
        first, second = record.calls
        assert first.inputs[:2] == second.inputs[:2]
        assert torch.equal(record.tensor(first.inputs[1]), torch.arange(500.0, 1000.0))
        assert record.tensor(first.inputs[2]).shape == (0, 3)
        assert first.random is not None and record.state(first.random) == b"s" * 16
    data = (here / "gpu.cut.h5").read_bytes()
    assert data.count(torch.arange(500.0, 1000.0).numpy().tobytes()) == 1
    assert bytes(5000) not in data and bytes(5000) in (here / "gpu.h5").read_bytes()


def test_the_same_bytes_each_time(here: Path) -> None:
    write_calls(here / "gpu.h5", 40)
    for name in ("a.h5", "b.h5"):
        assert ferry("record", "cut", "gpu.h5", "--call", "2-39", "-o", name, "-q") == 0
    assert (here / "a.h5").read_bytes() == (here / "b.h5").read_bytes()


def test_of_statistics(here: Path) -> None:
    write_statistics(here / "gpu.h5", 30)
    assert ferry("record", "cut", "gpu.h5", "--call", "5,29", "-o", "small.h5", "-q") == 0
    with open_record(here / "small.h5") as small, open_record(here / "gpu.h5") as whole:
        assert list(small.calls) == [whole.calls[4], whole.calls[28]]
        assert small.header.kept is whole.header.kept
    assert ferry("record", "info", "small.h5") == 0
    assert ferry("compare", "small.h5", "gpu.h5", "-q") == 0
    assert ferry("record", "cut", "small.h5", "--call", "29", "-o", "one.h5", "-q") == 0
    assert numbers("one.h5") == [29]


def test_of_a_record_that_was_cut_off(here: Path) -> None:
    write_calls(here / "gpu.h5", 9, close=False)
    data = (here / "gpu.h5").read_bytes()
    (here / "gpu.h5").write_bytes(data[: len(data) - 700])
    left = numbers("gpu.h5")
    assert 0 < len(left) < 9
    assert ferry("record", "cut", "gpu.h5", "--call", "2", "-q") == 0
    with open_record(here / "gpu.cut.h5") as record:
        assert record.header.complete and "cut off" in record.header.notes[0]
        assert [call.number for call in record.calls] == [2]


def test_of_a_file_that_another_tool_has_written(here: Path) -> None:
    write_calls(here / "gpu.h5", 4)
    with h5py.File(here / "gpu.h5") as ours, h5py.File(here / "other.h5", "w") as other:
        for name in ours:
            ours.copy(name, other)
    assert ferry("record", "cut", "other.h5", "--call", "3", "-q") == 0
    with open_record(here / "other.cut.h5") as record:
        (call,) = record.calls
        assert call.number == 3 and torch.equal(record.tensor(call.inputs[0]), torch.full((4, 5), 3.0))


def test_of_all_ranks(here: Path) -> None:
    for rank in (0, 1):
        writer = RecordWriter(here / f"gpu.rank{rank}.h5", replace(HEADER, rank=rank, world=2))
        for number in range(1, 4 + rank):
            tensor = put(writer, torch.full((2,), float(rank)), "input/self", number)
            writer.write(Call(number, "aten::f", 1, "forward", inputs=(tensor,), results=TensorRef(0)))
        writer.close()
    assert ferry("record", "cut", "gpu.h5", "--call", "2", "-o", "small.h5", "-q") == 0
    assert sorted(path.name for path in here.glob("small*")) == ["small.rank0.h5", "small.rank1.h5"]
    assert ferry("record", "cut", "gpu.rank1.h5", "--call", "4", "-o", "one.h5", "-q") == 0
    assert numbers("one.h5") == [4]


def test_nothing_is_written_where_one_rank_has_no_such_call(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    test_of_all_ranks(here)
    assert ferry("record", "cut", "gpu.h5", "--call", "4", "-o", "all.h5") == 2
    assert capsys.readouterr().err == "ferry: gpu.rank0.h5: no call 4; choose one of 1 to 3\n"
    assert not list(here.glob("all*"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--call", "26"], "ferry: gpu.h5: no call 26; choose one of 1 to 25"),
        (["--call", "20-30"], "no call 20-30; choose one of 1 to 25"),
        (["--step", "9"], "no call matches steps 9; it holds calls 1 to 25 of steps 1 to 3"),
        (["--op", "mul"], "no call matches operators mul"),
        ([], "which calls? name some with --call N"),
        (["--call", "1", "-o", "gpu.h5"], "gpu.h5: this is the recording to cut from"),
        (["--call", "1", "-o", "note.txt"], "note.txt: already exists and is not a recording"),
        (["--call", "1", "-o", "none/a.h5"], "can't be written there"),
        (["--call", "0"], "'0' is no list of numbers from 1 on"),
        (["--call", "9-3"], "write 12, 12-20 or 3,12-20"),
    ],
)
def test_what_is_refused(
    here: Path, options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_calls(here / "gpu.h5", 25)
    (here / "note.txt").write_text("mine")
    assert ferry("record", "cut", "gpu.h5", *options) == 2
    assert said in capsys.readouterr().err
    assert sorted(path.name for path in here.iterdir()) == ["gpu.h5", "note.txt"]


def test_a_gap_names_the_next_call(here: Path) -> None:
    write_calls(here / "gpu.h5", 25)
    assert ferry("record", "cut", "gpu.h5", "--call", "3,17", "-q") == 0
    with open_record(here / "gpu.cut.h5") as record, pytest.raises(InputError, match="the next one is 17"):
        cutting.chosen_calls(record, CutRequest((NumberRange(5, 9),)))


def test_texts_can_be_changed_on_the_way(here: Path) -> None:
    write_calls(here / "gpu.h5", 2)
    request = CutRequest(number_ranges("1"), selection=Selection(operators=("add",)))
    cutting.cut(here / "gpu.h5", here / "a.h5", request, lambda text: text.replace("train", "<file-1>"))
    assert b"train" in (here / "gpu.h5").read_bytes() and b"train" not in (here / "a.h5").read_bytes()
    with open_record(here / "a.h5") as record:
        assert record.header.program == "python <file-1>.py" and record.calls[0].place == "<file-1>.py:3"


def test_compare_names_the_commands_that_cut_both_sides(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_network(here / "gpu.h5")
    write_network(here / "npu.h5", MINE, {"aten::exp": zero_tail})
    assert ferry("compare", "npu.h5", "gpu.h5") == 1
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    commands = [line.split()[1:] for line in lines if line.startswith("ferry record cut")]
    assert [words[2] for words in commands] == ["npu.h5", "gpu.h5"]
    for words in commands:
        assert ferry(*words, "-q") == 0
    # the call alone is as wrong as it was among the others
    assert ferry("compare", "npu.call4.h5", "gpu.call4.h5") == 1
    assert "aten::exp computes wrong results" in capsys.readouterr().out
    (call,) = calls(here / "npu.call4.h5")
    assert call.number == 4 and read(here / "npu.call4.h5", call).stored
    assert ferry("replay", "gpu.call4.h5", "--device", "cpu", "-o", "replayed.h5", "-q") == 0
    assert ferry("compare", "replayed.h5", "gpu.call4.h5", "-q") == 0
