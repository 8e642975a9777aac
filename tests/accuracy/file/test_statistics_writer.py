"""Records of statistics: tables that our reader makes calls of, and that plain h5py reads."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
from pathlib import Path

import h5py
import pytest

from torchferry.accuracy.file import chunks
from torchferry.accuracy.file.reader import open_record, repair
from torchferry.accuracy.file.writer import StatisticsWriter, encoded_tensors
from torchferry.accuracy.model import ROW, Kept, RecordHeader, Statistics, TensorRecord, TensorRef

HEADER = RecordHeader(Kept.STATISTICS, "python train.py", "cuda", "2.13.0")
INPUT = TensorRecord("input/self", "float32", (2, 3), (3, 1), "cuda:0", role="parameter")
OUTPUT = TensorRecord("output/output_0", "float32", (2, 3), (3, 1), "cuda:0")


def _figures(number: int) -> Statistics:
    return Statistics(6, 0, 1, 2, -1.5, number / 2, 0.25, 1e300, (1 << 64) - number)


def _fill(writer: StatisticsWriter, count: int) -> None:
    """A chain: call n takes what call n - 1 answered."""
    site = writer.site("aten::relu", "forward", "Net", "act", "train.py:3", "")
    signature = writer.signature(
        (("self", TensorRef(0)),), encoded_tensors((INPUT,), (OUTPUT,)), TensorRef(0)
    )
    last = 0
    for index in range(1, count + 1):
        number, address = writer.row()
        figures = _figures(index)
        values = [getattr(figures, name) for name in Statistics.__slots__]
        ctypes.memmove(address, ROW.pack(*values), ROW.size)
        writer.call(1 + index // 1000, site, signature, (last, number))
        last = number


def test_plain_h5py_sees_whether_a_record_was_ended(tmp_path: Path) -> None:
    writer = StatisticsWriter(tmp_path / "run.h5", HEADER)
    with h5py.File(tmp_path / "run.h5") as file:
        assert not file.attrs["complete"]
    writer.close()
    with h5py.File(tmp_path / "run.h5") as file:
        assert file.attrs["complete"]


@pytest.mark.parametrize("count", [0, 1, 20_000, 40_000])
def test_what_is_written_is_read(tmp_path: Path, count: int) -> None:
    path = tmp_path / "run.h5"
    writer = StatisticsWriter(path, HEADER)
    _fill(writer, count)
    writer.close(["a note"])
    with open_record(path) as record:
        assert len(record.calls) == count
        assert record.header.complete and record.header.notes == ("a note",)
        for index in {0, 8191, 8192, count // 2, count - 1} & set(range(count)):
            call = record.calls[index]
            assert (call.number, call.step, call.module) == (index + 1, 1 + (index + 1) // 1000, "act")
            assert call.outputs[0].statistics == _figures(index + 1)
            assert call.inputs[0].statistics == (_figures(index) if index else None)
            assert (call.inputs[0].role, call.outputs[0].content) == ("parameter", index + 1)
            assert call.results == TensorRef(0) and call.arguments == (("self", TensorRef(0)),)
    with h5py.File(path) as file:
        assert file["statistics"].shape == file["calls"].shape == (count,)
        assert file["contents"].shape == (2 * count,)
        if count:
            assert file["statistics"]["maximum"][-1] == count / 2
            assert file["calls"]["step"][-1] == 1 + count // 1000
            assert file["sites"][()].startswith(b'["aten::relu"')


def test_calls_of_no_tensors_and_of_very_many(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    writer = StatisticsWriter(path, HEADER)
    site = writer.site("aten::f", "optimizer", "", "", "", "")
    none = writer.signature((), encoded_tensors((), ()), None)
    many = writer.signature((("x", True),), encoded_tensors([INPUT] * 70_000, ()), None)
    assert none != many == writer.signature((("x", True),), encoded_tensors([INPUT] * 70_000, ()), None)
    assert many != writer.signature((("x", 1),), encoded_tensors([INPUT] * 70_000, ()), None)
    writer.call(1, site, none, ())
    number, _ = writer.row()
    for _ in range(2):
        writer.call(1, site, many, [number] * 70_000)
        writer.call(1, site, none, ())
    writer.close()
    with open_record(path) as record:
        assert [len(call.inputs) for call in record.calls] == [0, 70_000, 0, 70_000, 0]
        assert {tensor.content for tensor in record.calls[3].inputs} == {1}


def test_a_killed_process_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    child = os.fork()
    if child == 0:
        writer = StatisticsWriter(path, HEADER)
        _fill(writer, 9000)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    with open_record(path) as record:
        assert len(record.calls) == 9000 and not record.header.complete
        assert record.calls[-1].outputs[0].statistics == _figures(9000)
    with h5py.File(path) as file:
        assert file["calls"].shape == (0,)
    assert repair(path)
    with h5py.File(path) as file, open_record(path) as record:
        assert file["calls"].shape == file["statistics"].shape == (9000,) == (len(record.calls),)
        assert file["contents"].shape == (18_000,)


def test_a_fork_leaves_the_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    writer = StatisticsWriter(path, HEADER)
    _fill(writer, 3)
    before = path.read_bytes()
    child = os.fork()
    if child == 0:
        number, address = writer.row()
        ctypes.memset(address, 255, ROW.size)
        writer.call(1, 1, 1, (1, 1))
        writer.site("another", "", "", "", "", "")
        writer.close()
        os._exit(number)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert path.read_bytes() == before
    writer.close()


def test_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.h5"
    writer = StatisticsWriter(path, HEADER)
    _fill(writer, 8000)

    def full(descriptor: int, offset: int, nbytes: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(chunks.os, "posix_fallocate", full)
    _fill(writer, 3000)
    writer.close()
    assert writer.failed and writer.row()[0] == 0
    assert capsys.readouterr().err.count("recording stops here, the program continues") == 1
    with open_record(path) as record, h5py.File(path) as file:
        assert len(record.calls) == 8192 == len(file["calls"]) and not record.header.complete
        assert record.calls[-1].outputs[0].statistics == _figures(192)


def test_after_the_end(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    writer = StatisticsWriter(path, HEADER)
    _fill(writer, 3)
    writer.close()
    before = path.read_bytes()
    _fill(writer, 3)
    writer.checkpoint()
    writer.close()
    assert path.read_bytes() == before
