"""Records of tensors: as plain h5py sees them, cut off at any place, on a full disk, from threads and forks."""

from __future__ import annotations

import errno
import os
import signal
import threading
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from tests.accuracy.file.making import HEADER, addition, put, write_calls
from torchferry.accuracy.file import chunks
from torchferry.accuracy.file.chunks import START
from torchferry.accuracy.file.reader import open_record, repair
from torchferry.accuracy.file.writer import RecordWriter
from torchferry.accuracy.model import Call, RandomState, TensorRecord, TensorRef
from torchferry.errors import InputError, OutputError


def test_layout_for_plain_h5py(tmp_path: Path) -> None:
    path = tmp_path / "gpu.h5"
    write_calls(path, 40)
    with h5py.File(path) as file:
        assert list(file) == ["add_Scalar"] and set(file["add_Scalar"]) == {str(n) for n in range(1, 41)}
        call = file["/add_Scalar/7"]
        assert list(call) == ["input", "output", "call"] and not call.attrs
        assert list(call["input"]) == ["self", "other"]
        assert call["input/self"][()].tolist() == np.full((4, 5), 7.0).tolist()
        attributes = {
            name: np.asarray(value).tolist() for name, value in call["output/output_0"].attrs.items()
        }
        assert attributes == {"DataType": 1, "DeviceType": 1, "Type": 0, "FormatType": 2, "Stride": [5, 1]}
        assert (call["input/other"][()], call["input/other"].attrs["Type"]) == (1, 3)
        assert file.attrs["kept"] == b"tensors" and file.attrs["complete"] == 1
        assert call["input/self"].id.get_offset() % 64 == 0


def test_bytes_are_stored_once(tmp_path: Path) -> None:
    path = tmp_path / "gpu.h5"
    writer = RecordWriter(path, HEADER)
    weight = put(writer, torch.ones(1000, 1000), "input/weight", 1)
    for number in range(1, 21):
        writer.write(Call(number, "aten::relu", 1, "forward", inputs=(weight,)))
    writer.close()
    assert path.stat().st_size < 1.05 * 4_000_000
    with h5py.File(path) as file:
        first, last = file["relu/1/input/weight"], file["relu/20/input/weight"]
        assert first == last and float(last[()].sum()) == 1_000_000


def test_many_calls_and_operators_in_trees_of_several_levels(tmp_path: Path) -> None:
    path = tmp_path / "gpu.h5"
    writer = RecordWriter(path, HEADER)
    scalar = put(writer, torch.tensor(2.5), "input/self")
    for number in range(1, 3001):
        name = "aten::add" if number % 2 else f"aten::op{number % 1500}"
        writer.write(Call(number, name, 1, "forward", inputs=(scalar,)))
    writer.close()
    with h5py.File(path) as file:
        assert len(file) == 751 and len(file["add"]) == 1500
        assert all(file[f"add/{number}/input/self"][()] == 2.5 for number in range(1, 3001, 2))
        assert sorted(map(int, file["op10"])) == [10, 1510]
        assert "add/2" not in file and "op1501" not in file


def test_large_lists_and_hostile_names(tmp_path: Path) -> None:
    path = tmp_path / "gpu.h5"
    writer = RecordWriter(path, HEADER)
    listed = [put(writer, torch.tensor([i]), f"input/tensors/tensors_{i}") for i in range(100)]
    names = [
        "input/.",
        "input/..",
        "input/",
        "/",
        "input/a\0b",
        "input/self",
        "input/self/x",
        "input/" + "n" * 70_000,
    ]
    hostile = [put(writer, torch.tensor([i]), name) for i, name in enumerate([*names, *names])]
    call = Call(
        1, "aten::cat", 1, "forward", inputs=(*listed, *hostile), arguments=(("self", "text" * 50_000),)
    )
    writer.write(call)
    writer.close()
    with open_record(path) as record, h5py.File(path) as file:
        assert record.calls[0] == call
        assert [int(file[f"cat/1/input/tensors/tensors_{i}"][0]) for i in range(100)] == list(range(100))
        found: list[int] = []
        file["cat/1"].visititems(
            lambda _, item: found.append(item.id.__hash__()) if hasattr(item, "dtype") else None
        )
        assert len(found) == 100 + 2 * len(names) + 2


def test_more_dimensions_than_hdf5_has(tmp_path: Path) -> None:
    path = tmp_path / "gpu.h5"
    writer = RecordWriter(path, HEADER)
    tensor = torch.arange(8.0).reshape(*[1] * 37, 2, 2, 2)
    call = Call(1, "aten::relu", 1, "forward", inputs=(put(writer, tensor, "input/self"),))
    writer.write(call)
    writer.close()
    with open_record(path) as record, h5py.File(path) as file:
        assert torch.equal(record.tensor(record.calls[0].inputs[0]), tensor)
        assert file["relu/1/input/self"][()].tolist() == tensor.flatten().tolist()


def test_states_of_generators(tmp_path: Path) -> None:
    path = tmp_path / "gpu.h5"
    writer = RecordWriter(path, HEADER)
    state = torch.get_rng_state().numpy().tobytes()
    random = RandomState("cpu", writer.append(state), len(state))
    writer.write(Call(1, "aten::bernoulli", 1, "forward", random=random))
    writer.close()
    with open_record(path) as record:
        assert record.calls[0].random == random and record.state(random) == state


def test_read_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "gpu.h5"
    writer = write_calls(path, 5, close=False)
    with pytest.raises(InputError, match="still being recorded"):
        _in_fork(lambda: repair(path))
    with open_record(path) as record:
        assert len(record.calls) == 5 and not record.header.complete
    writer.checkpoint()
    with h5py.File(path) as file:
        assert len(file["add_Scalar"]) == 5
    writer.close(["compiled: f"])
    with open_record(path) as record:
        assert len(record.calls) == 5 and record.header.complete and record.header.notes == ("compiled: f",)


def _in_fork(action: object) -> None:
    """Do something in another process; raise what it raised."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            action()  # type: ignore[operator]
        except InputError as error:
            os.write(writing, error.to_json().encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as said:
        text = said.read()
    if text:
        raise InputError.from_json(text)


def test_a_file_cut_off_anywhere_is_read_to_its_last_complete_call(tmp_path: Path) -> None:
    path, cut = tmp_path / "gpu.h5", tmp_path / "cut.h5"
    writer = write_calls(path, 6, close=False)
    whole = path.read_bytes()
    counts = []
    for size in (*range(START, len(whole), 97), len(whole)):
        cut.write_bytes(whole[:size])
        try:
            with open_record(cut) as record:
                counts.append(len(record.calls))
                assert all(record.tensor(call.outputs[0])[0, 0] == call.number + 1 for call in record.calls)
                assert not record.header.complete
        except InputError as error:
            assert "before anything was recorded" in str(error) and not counts
    assert counts == sorted(counts) and set(counts) == set(range(7))
    writer.close()


@pytest.mark.parametrize("lost", [1, 1000, 5000])
def test_repair(tmp_path: Path, lost: int) -> None:
    path = tmp_path / "gpu.h5"
    writer = write_calls(path, 20, close=False)
    cut = tmp_path / "cut.h5"
    cut.write_bytes(path.read_bytes()[:-lost])
    with open_record(cut) as record:
        calls = list(record.calls)
    assert 15 < len(calls) < 20
    assert repair(cut) and not repair(cut)
    with open_record(cut) as record:
        assert list(record.calls) == calls and not record.header.complete
    with h5py.File(cut) as file:
        assert sorted(map(int, file["add_Scalar"])) == [call.number for call in calls]
        assert file[f"add_Scalar/{len(calls)}/output/output_0"][0, 0] == len(calls) + 1
    writer.close()


def test_a_killed_process_leaves_a_readable_file(tmp_path: Path) -> None:
    path = tmp_path / "gpu.h5"
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        writer = RecordWriter(path, HEADER)
        number = 0
        while True:
            number += 1
            writer.write(addition(writer, number))
            os.write(writing, b"%d\n" % number)
    os.close(writing)
    with os.fdopen(reading) as numbers:
        for line in numbers:
            if int(line) == 200:
                os.kill(child, signal.SIGKILL)
            last = int(line)
    os.waitpid(child, 0)
    with h5py.File(path) as file:
        assert all(item["call"] for item in file.get("add_Scalar", {}).values())
    repair(path)
    with open_record(path) as record, h5py.File(path) as file:
        assert len(record.calls) >= last and record.calls[-1].number == len(record.calls)
        assert len(file["add_Scalar"]) == len(record.calls)


def test_a_fork_leaves_the_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "gpu.h5"
    writer = write_calls(path, 2, close=False)

    def in_child() -> None:
        writer.append(b"x" * 1_000_000)
        writer.write(Call(3, "aten::relu", 1, "forward"))
        writer.checkpoint()
        writer.close()

    size = path.stat().st_size
    _in_fork(in_child)
    assert path.stat().st_size == size
    writer.write(addition(writer, 3))
    writer.close()
    with open_record(path) as record:
        assert [call.operator for call in record.calls] == ["aten::add.Scalar"] * 3


def test_threads(tmp_path: Path) -> None:
    path = tmp_path / "gpu.h5"
    writer = RecordWriter(path, HEADER)

    def work(first: int) -> None:
        for number in range(first, first + 200):
            writer.write(addition(writer, number))

    threads = [threading.Thread(target=work, args=(first,)) for first in (1, 201, 401)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.close()
    with open_record(path) as record:
        assert sorted(call.number for call in record.calls) == list(range(1, 601))
        assert all(record.tensor(call.outputs[0])[3, 4] == call.number + 1 for call in record.calls)


@pytest.mark.parametrize("nbytes", [1000, 1_000_000])
def test_a_full_disk_ends_the_record_and_not_the_program(
    tmp_path: Path, nbytes: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "gpu.h5"
    writer = write_calls(path, 5, close=False)
    real = os.writev
    limit = path.stat().st_size + 20_000

    def full(descriptor: int, pieces: list[bytes]) -> int:
        room = limit - os.lseek(descriptor, 0, os.SEEK_CUR)
        if room <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, [b"".join(pieces)[:room]])

    monkeypatch.setattr(chunks.os, "writev", full)
    for number in range(6, 100):
        offset = writer.append(bytes(nbytes))
        tensor = TensorRecord("input/self", "uint8", (nbytes,), (1,), "cuda:0", offset=offset)
        writer.write(Call(number, "aten::relu", 1, "forward", inputs=(tensor,)))
    writer.close()
    assert writer.failed == "No space left on device"
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "recording stops here, the program continues" in said
    monkeypatch.undo()
    repair(path)  # there was no room for it, or nothing to do
    with open_record(path) as record, h5py.File(path) as file:
        assert len(record.calls) >= 5 and not record.header.complete
        assert sum(map(len, file.values())) == len(record.calls)
        for call in record.calls:
            for tensor in (*call.inputs, *call.outputs):
                assert len(record.raw(tensor)) == tensor.nbytes


def test_what_may_be_replaced(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text("print()\n")
    for path, said in (
        (program, "is not a recording"),
        (tmp_path, "is a folder"),
        (Path("/dev/null"), "not a regular file"),
    ):
        with pytest.raises(OutputError, match=said):
            RecordWriter(path, HEADER)
    assert program.read_text() == "print()\n"
    old = tmp_path / "new" / "gpu.h5"
    write_calls(old, 2)
    with open_record(old) as record:
        write_calls(old, 4)
        assert record.tensor(record.calls[1].outputs[0])[0, 0] == 3
    with open_record(old) as record:
        assert len(record.calls) == 4
    assert [file.name for file in old.parent.iterdir()] == ["gpu.h5"]


def test_checkpoints_are_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step's end asks for one each time; together they must not write more than the calls."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    writer = RecordWriter(tmp_path / "gpu.h5", HEADER)
    tensor = put(writer, torch.ones(2), "input/self")
    for number in range(1, 2001):
        writer.write(Call(number, "aten::relu", number, "forward", inputs=(tensor,)))
        writer.checkpoint()
    size = writer.nbytes
    writer.close()
    once = tmp_path / "once.h5"
    writer = RecordWriter(once, HEADER)
    tensor = put(writer, torch.ones(2), "input/self")
    for number in range(1, 2001):
        writer.write(Call(number, "aten::relu", number, "forward", inputs=(tensor,)))
    writer.close()
    assert size < 2 * once.stat().st_size


def test_results_and_arguments_of_every_sort(tmp_path: Path) -> None:
    path = tmp_path / "gpu.h5"
    writer = RecordWriter(path, HEADER)
    tensor = put(writer, torch.ones(2), "input/indices/indices_1")
    arguments = (
        ("indices", (None, TensorRef(0))),
        ("size", (2, 3)),
        ("scales", (0.5, float("inf"))),
        ("mask", (True, False)),
        ("mixed", (1, None, ("a", 2.0))),
        ("empty", ()),
        ("large", 1 << 65),
        ("nan", float("-inf")),
    )
    call = Call(
        1, "aten::f", 1, "forward", arguments=arguments, inputs=(tensor,), results=(TensorRef(0), None)
    )
    writer.write(call)
    writer.close()
    with open_record(path) as record, h5py.File(path) as file:
        assert record.calls[0] == call
        inputs = file["f/1/input"]
        assert list(inputs["indices"]) == ["indices_1", "indices_0"] or set(inputs["indices"]) == {
            "indices_0",
            "indices_1",
        }
        assert inputs["indices/indices_0"].shape is None
        assert inputs["size"][()].tolist() == [2, 3] and inputs["mask"][()].tolist() == [True, False]
        assert inputs["scales"][()].tolist() == [0.5, float("inf")] and inputs["empty"].shape == (0,)
        assert inputs["large"][()] == str(1 << 65).encode()
