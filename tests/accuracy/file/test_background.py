"""Records that a thread writes while the program continues: order, a small ring, a full disk, kills, forks, interrupts."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import h5py
import pytest
import torch

from tests.accuracy.file.making import HEADER, addition
from torchferry.accuracy.file import background
from torchferry.accuracy.file.background import BackgroundWriter
from torchferry.accuracy.file.reader import open_record, repair
from torchferry.accuracy.file.writer import RecordWriter
from torchferry.accuracy.model import Call, TensorRecord


@dataclass(frozen=True)
class Ring:
    """Memory for the bytes on their way."""

    memory: ctypes.Array[ctypes.c_char]

    @property
    def address(self) -> int:
        """Where it begins."""
        return ctypes.addressof(self.memory)

    @property
    def nbytes(self) -> int:
        """How large it is."""
        return len(self.memory)


def ring(nbytes: int = 1 << 16) -> Ring:
    """A ring of so many bytes."""
    return Ring((ctypes.c_char * nbytes)())


class Arrival:
    """A copy that has come when the test says so."""

    def __init__(self) -> None:
        self.came = threading.Event()

    def query(self) -> bool:
        """Whether it has."""
        return self.came.is_set()

    def synchronize(self) -> None:
        """Wait for it."""
        assert self.came.wait(30)


def in_background(path: Path, memory: Ring | None = None) -> tuple[RecordWriter, Ring]:
    """A record that is written in the background."""
    memory = memory or ring()
    writer = RecordWriter(path, HEADER)
    writer.write_in_background(memory)
    assert writer.is_in_background
    return writer, memory


def copied(
    writer: RecordWriter, memory: Ring, tensor: torch.Tensor, arrival: Arrival | None = None
) -> TensorRecord:
    """A tensor whose bytes a copy puts into the ring."""

    def copy(place: int, start: int, stop: int) -> Arrival | None:
        ctypes.memmove(memory.address + place, tensor.data_ptr() + start, stop - start)
        return arrival

    offset = writer.append_copied(tensor.nbytes, copy)
    return TensorRecord(
        "input/self", "float32", tuple(tensor.shape), tuple(tensor.stride()), "cuda:0", offset=offset
    )


def test_all_that_is_put_in_comes_out_in_order(tmp_path: Path) -> None:
    path = tmp_path / "gpu.h5"
    writer, memory = in_background(path)
    tensors = [torch.randn(size) for size in (3, 100_000, 0, 5_000, 70_000)]  # some are larger than the ring
    for number, tensor in enumerate(tensors, 1):
        given = copied(writer, memory, tensor)
        writer.write(Call(number, "aten::relu", 1, "forward", inputs=(given,)))
        writer.write(addition(writer, 100 + number))
    writer.close()
    with open_record(path) as record, h5py.File(path) as file:
        found = [record.tensor(call.inputs[0]) for call in record.calls if call.operator == "aten::relu"]
        assert all(torch.equal(*pair) for pair in zip(found, tensors, strict=True))
        assert record.header.complete and len(record.calls) == 10
        assert all(call.inputs[0].offset % 64 == 0 for call in record.calls)
        assert file["add_Scalar/103/output/output_0"][0, 0] == 104
    assert not any(each.name == "torchferry record" for each in threading.enumerate())


def test_nothing_is_written_before_its_copy_has_come(tmp_path: Path) -> None:
    path = tmp_path / "gpu.h5"
    writer, memory = in_background(path)
    arrival, tensor = Arrival(), torch.zeros(100)
    given = copied(writer, memory, tensor, arrival)
    writer.write(Call(1, "aten::relu", 1, "forward", inputs=(given,)))
    time.sleep(0.1)
    with open_record(path) as record:
        assert len(record.calls) == 0
    data = torch.arange(100.0)
    assert given.offset is not None
    ctypes.memmove(memory.address + given.offset % memory.nbytes, data.data_ptr(), data.nbytes)
    arrival.came.set()
    writer.drain()
    with open_record(path) as record:
        assert torch.equal(record.tensor(record.calls[0].inputs[0]), data)
    writer.close()


def test_a_disk_that_fills_up_behind_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "gpu.h5"
    writer, _ = in_background(path, ring(1 << 20))
    write, room = os.pwrite, 40_000

    def until_full(descriptor: int, data: bytes, position: int) -> int:
        if position >= room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data[: room - position], position)

    monkeypatch.setattr(os, "pwrite", until_full)
    for number in range(1, 200):
        writer.write(addition(writer, number))
    monkeypatch.setattr(os, "pwrite", write)
    writer.close()
    assert "No space" in writer.failed
    assert capsys.readouterr().err.count("the program continues") == 1
    with open_record(path) as record, h5py.File(path) as file:
        count = len(record.calls)
        assert 10 < count < 40 and len(file["add_Scalar"]) == count
        assert all(record.tensor(call.outputs[0])[0, 0] == call.number + 1 for call in record.calls)
        assert record.header.notes == ("cut off: No space left on device",)


def test_a_device_that_fails_ends_the_record_alone(tmp_path: Path) -> None:
    class Failure(Arrival):
        def query(self) -> bool:
            raise RuntimeError("CUDA error: an illegal memory access was encountered\nmore")

    path = tmp_path / "gpu.h5"
    writer, memory = in_background(path)
    writer.write(addition(writer, 1))
    writer.drain()
    copied(writer, memory, torch.zeros(100), Failure())
    writer.close()
    assert writer.failed == "RuntimeError: CUDA error: an illegal memory access was encountered"
    with open_record(path) as record:
        assert len(record.calls) == 1


def test_an_interrupt_in_the_middle_of_a_tensor(tmp_path: Path) -> None:
    path = tmp_path / "gpu.h5"
    writer, memory = in_background(path)
    writer.write(addition(writer, 1))
    tensor, pieces = torch.zeros(100_000), []

    def copy(place: int, start: int, stop: int) -> None:
        pieces.append(start)
        if len(pieces) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        writer.append_copied(tensor.nbytes, copy)
    writer.write(addition(writer, 2))
    writer.close()
    with open_record(path) as record, h5py.File(path) as file:
        assert [call.number for call in record.calls] == [1, 2] and record.header.complete
        assert file["add_Scalar/2/output/output_0"][0, 0] == 3
    assert memory.nbytes


def test_a_killed_process_leaves_what_has_reached_the_file(tmp_path: Path) -> None:
    path = tmp_path / "gpu.h5"
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        writer, _ = in_background(path)
        for number in range(1, 10_000):
            writer.write(addition(writer, number))
            if number == 300:
                writer.drain()
                os.write(writing, b"x")
        os._exit(0)
    os.close(writing)
    os.read(reading, 1)
    os.close(reading)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    repair(path)
    with open_record(path) as record, h5py.File(path) as file:
        assert len(record.calls) >= 300 and len(file["add_Scalar"]) == len(record.calls)
        assert all(record.tensor(call.outputs[0])[0, 0] == call.number + 1 for call in record.calls)


def test_a_fork_does_not_wait_for_a_thread_that_it_does_not_have(tmp_path: Path) -> None:
    path = tmp_path / "gpu.h5"
    writer, _ = in_background(path)
    writer.write(addition(writer, 1))
    child = os.fork()
    if child == 0:
        writer.append(b"x" * 1_000_000)
        writer.drain()
        writer.close()
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    writer.write(addition(writer, 2))
    writer.close()
    with open_record(path) as record:
        assert len(record.calls) == 2


def test_where_no_thread_can_be_started_it_is_written_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    writer = RecordWriter(tmp_path / "gpu.h5", HEADER)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    writer.write_in_background(ring())
    assert not writer.is_in_background
    writer.write(addition(writer, 1))
    writer.close()
    with open_record(tmp_path / "gpu.h5") as record:
        assert len(record.calls) == 1


def test_whoever_puts_in_waits_while_there_is_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "_AT_ONCE", 1000)
    with (tmp_path / "plain").open("wb") as file:
        writer = BackgroundWriter(file.fileno(), 0, ring(4096))
        arrival = Arrival()
        writer.fill(1000, lambda *_: arrival)
        done = threading.Event()

        def put_more() -> None:
            writer.put(b"y" * 10_000)
            done.set()

        threading.Thread(target=put_more).start()
        assert not done.wait(0.1)
        arrival.came.set()
        assert done.wait(30)
        writer.drain()
        writer.close()
    assert (tmp_path / "plain").read_bytes() == bytes(1000) + b"y" * 10_000
