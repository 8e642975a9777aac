"""Dump files of a runtime, as the simulated device writes them, are records: they are read, converted and compared."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from torchferry.accuracy.dump.message import DumpedTensor, dump_file
from torchferry.accuracy.file.convert import Form, convert
from torchferry.accuracy.file.dumps import open_dump
from torchferry.accuracy.file.reader import open_record
from torchferry.cli import msaccucmp
from torchferry.cli.main import main
from torchferry.errors import InputError


def dumped(tensor: torch.Tensor) -> DumpedTensor:
    data = tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
    return DumpedTensor(str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape), data)


def write(
    folder: Path, name: str, task: int, inputs: list[torch.Tensor], outputs: list[torch.Tensor]
) -> Path:
    place = folder / "20261116000000" / "0" / "0"
    place.mkdir(parents=True, exist_ok=True)
    file = place / f"{name}.{name}.{task}.0.{1000 + task}"
    file.write_bytes(dump_file(name, 1000 + task, list(map(dumped, inputs)), list(map(dumped, outputs))))
    return file


def write_program(folder: Path, *, is_wrong: bool = False) -> Path:
    x = torch.arange(64.0).reshape(8, 8)
    write(folder, "relu", 1, [x], [x.relu()])
    result = (x @ x).bfloat16()
    if is_wrong:
        result[-1] = 0
    write(folder, "mm", 0, [x, x], [result])
    return folder


def test_files_are_calls_in_the_order_of_their_times(tmp_path: Path) -> None:
    with open_record(write_program(tmp_path / "dump")) as record:
        assert [call.operator for call in record.calls] == ["aten::mm", "aten::relu"]
        (mm, _) = record.calls
        assert [each.name for each in (*mm.inputs, *mm.outputs)] == [
            "input/input_0", "input/input_1", "output/output_0",
        ]  # fmt: skip
        assert torch.equal(record.tensor(mm.inputs[1]), torch.arange(64.0).reshape(8, 8))
        assert record.tensor(mm.outputs[0]).dtype == torch.bfloat16


def test_one_file_and_a_folder_are_converted(tmp_path: Path) -> None:
    file = write(tmp_path / "dump", "add", 0, [torch.tensor([1, 2])], [torch.tensor([3.5, -1.0])])
    assert convert(file, tmp_path / "npy", Form.NPY) == 2
    assert np.load(tmp_path / "npy/1_add/output/output_0.npy").tolist() == [3.5, -1.0]
    assert convert(tmp_path / "dump", tmp_path / "txt", Form.TXT) == 2
    assert (tmp_path / "txt/1_add/input/input_0.txt").read_text().splitlines()[2:] == ["1", "2"]


def test_two_folders_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    golden = write_program(tmp_path / "golden")
    assert main(["compare", "--mine", str(write_program(tmp_path / "same")), "--golden", str(golden)]) == 0
    assert capsys.readouterr().out.startswith("all 2 calls are equal bit for bit")
    wrong = write_program(tmp_path / "mine", is_wrong=True)
    assert main(["compare", str(wrong), str(golden)]) in (1, 3)
    assert "aten::mm" in capsys.readouterr().out.splitlines()[0]


def test_the_vendors_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    golden, out = write_program(tmp_path / "golden"), tmp_path / "out"
    out.mkdir()
    assert msaccucmp.main(["convert", "-d", str(golden), "-out", str(out), "-v", "2"]) == 0
    names = sorted(file.name for file in out.iterdir())
    assert names == [
        "mm.mm.0.0.1000.input.0.npy", "mm.mm.0.0.1000.input.1.npy", "mm.mm.0.0.1000.output.0.npy",
        "relu.relu.1.0.1001.input.0.npy", "relu.relu.1.0.1001.output.0.npy",
    ]  # fmt: skip
    assert np.load(out / names[0]).shape == (8, 8)
    assert msaccucmp.main(["compare", "-m", str(golden), "-g", str(golden), "-out", str(out)]) == 0
    (table,) = out.glob("result_*.csv")
    assert "CosineSimilarity" in table.read_text("utf-8-sig").splitlines()[0]
    assert msaccucmp.main(["convert", "-d", str(table), "-out", str(out)]) == 2
    assert msaccucmp.main(["convert", "-d", str(golden), "-out", str(tmp_path / "no")]) == 2


def test_what_is_no_dump_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="a folder without a runtime's dump files"):
        open_record(tmp_path / "empty")
    (tmp_path / "text").write_text("no dump, and no HDF5 either, but long enough")
    with pytest.raises(InputError, match="HDF5"):
        open_record(tmp_path / "text")
    write_program(tmp_path / "dump")
    link = tmp_path / "other"
    link.mkdir()
    (link / "mm.mm.0.0.1000").symlink_to(next((tmp_path / "dump").rglob("mm.*")))
    assert open_dump(link) is None  # links are not followed


def test_damaged_files_are_refused_or_read_and_never_more(tmp_path: Path) -> None:
    """Heads that claim huge sizes are no reason to take memory."""
    file = write(tmp_path / "dump", "mm", 0, [torch.ones(4, 4)], [torch.ones(4, 4)])
    whole, source = file.read_bytes(), random.Random(0)
    claims = [struct.pack("<Q", 1 << 62) + whole[8:], whole[:40], whole + b"x", b"\0" * 64]
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(source.randrange(1, 4)):
            data[source.randrange(len(data))] = source.randrange(256)
        claims.append(bytes(data))
    for changed in claims:
        file.write_bytes(changed)
        record = open_dump(file)
        for call in record.calls if record is not None else ():
            for tensor in (*call.inputs, *call.outputs):
                if tensor.offset is not None:
                    assert record is not None and record.array(tensor).nbytes <= len(changed)


def _varint(value: int) -> bytes:
    parts = []
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


def _field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _described(values: np.ndarray[Any, Any], data: bytes = b"", size_field: int = 6) -> bytes:
    shape = _field(3, b"".join(_field(1, length) for length in values.shape))
    return (
        _field(1, 1) + _field(2, 2) + shape + (_field(4, data) if data else _field(size_field, values.nbytes))
    )


X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_files_whose_header_holds_the_tensors_are_read(tmp_path: Path) -> None:
    """As runtimes wrote them at first: all of it is one message."""
    file = tmp_path / "Mul.Mul_1.7.1673383728093447"  # without a stream
    parts = [_field(3, _described(X, (X * 2).tobytes())), _field(4, _described(X, X.tobytes()))]
    file.write_bytes(b"".join([_field(1, b"1.0"), _field(2, 5), *parts, _field(6, b"Mul_1")]))
    with open_record(file) as record:
        (call,) = record.calls
        assert (call.operator, call.node) == ("aten::Mul", "Mul_1")
        assert record.tensor(call.outputs[0]).tolist() == (X * 2).tolist()
        assert record.tensor(call.inputs[0]).tolist() == X.tolist()


def test_names_of_newer_runtimes_and_names_that_are_too_long(tmp_path: Path) -> None:
    head = b"".join([_field(1, b"2.0"), _field(2, 5), _field(3, _described(X)), _field(6, b"partition0_Add")])
    data = struct.pack("<Q", len(head)) + head + X.tobytes()
    (tmp_path / "Add.partition0_Add.9.3.1673383728093446.4.1.0.0").write_bytes(data)
    (tmp_path / "8173").write_bytes(data)
    (tmp_path / "mapping.csv").write_text(f"8173,Sub.{'long_' * 60}.2.3.1673383728093440\n")
    (tmp_path / "Opdebug.Node_OpDebug.0.3.1673383728094391").write_bytes(data)
    with open_record(tmp_path) as record:
        assert [call.operator for call in record.calls] == ["aten::Sub", "aten::Add"]  # by their times
        assert record.tensor(record.calls[1].outputs[0]).tolist() == X.tolist()
