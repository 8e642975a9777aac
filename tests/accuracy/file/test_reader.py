"""What is read: records of others, several ranks, and files that are none."""

from __future__ import annotations

import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from tests.accuracy.file.making import HEADER, put, write_calls, write_statistics
from torchferry.accuracy import case_inputs
from torchferry.accuracy.file.chunks import START
from torchferry.accuracy.file.reader import open_record, open_records, repair
from torchferry.accuracy.file.writer import RecordWriter
from torchferry.accuracy.model import Call, Kept, TensorRecord, TensorRef
from torchferry.errors import InputError
from torchferry.readiness.cases.building import CaseRequest, build, listed


def test_ranks_together(tmp_path: Path) -> None:
    for rank in (0, 1, 10, 2):
        write_calls(tmp_path / f"gpu.rank{rank}.h5", rank + 1)
    write_calls(tmp_path / "npu.rank0.h5", 9)
    assert [len(record.calls) for record in open_records(tmp_path / "gpu.h5")] == [1, 2, 3, 11]
    write_calls(tmp_path / "gpu.h5", 5)
    assert [len(record.calls) for record in open_records(tmp_path / "gpu.h5")] == [5]
    with pytest.raises(InputError, match="no such file"):
        open_records(tmp_path / "cpu.h5")


def test_what_is_no_record(tmp_path: Path) -> None:
    write_calls(tmp_path / "whole.h5")
    whole = (tmp_path / "whole.h5").read_bytes()
    files = {
        "empty.h5": (b"", "empty, nothing was recorded"),
        "text.h5": (b"hello", "not a readable HDF5 recording"),
        "start.h5": (whole[:START], "cut off before anything was recorded"),
        "less.h5": (whole[: START - 1], "not a readable HDF5 recording"),
        "zeros.h5": (bytes(1000), "not a readable HDF5 recording"),
        "newer.h5": (whole[: START - 24] + b"\x09" + whole[START - 23 :], "newer TorchFerry"),
    }
    for name, (data, said) in files.items():
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(InputError, match=said) as error:
            open_record(path)
        assert "\n" not in str(error.value) and name in str(error.value)
    with pytest.raises(InputError, match="a folder without"):
        open_record(tmp_path)
    with pytest.raises(InputError, match="No such file"):
        open_record(tmp_path / "none.h5")
    with pytest.raises(InputError, match="only those can be repaired"):
        repair(tmp_path / "text.h5")


@pytest.mark.parametrize("kept", [Kept.TENSORS, Kept.STATISTICS])
def test_damage_is_said_and_never_a_crash(tmp_path: Path, kept: Kept) -> None:
    path = tmp_path / "gpu.h5"
    if kept is Kept.TENSORS:
        write_calls(path)
    else:
        write_statistics(path, 5)
    whole = path.read_bytes()
    used = [place for place in range(START - 32, len(whole) - 16, 8) if any(whole[place : place + 16])]
    rng = np.random.default_rng(0)
    outcomes = set()
    for _ in range(150):
        damaged = bytearray(whole)
        start = int(rng.choice(used))
        damaged[start : start + 16] = rng.bytes(16)
        path.write_bytes(damaged)
        try:
            with open_record(path) as record:
                for call in record.calls:
                    for tensor in (*call.inputs, *call.outputs):
                        if tensor.offset is not None:
                            record.tensor(tensor)
            outcomes.add("read")
        except InputError as error:
            assert "\n" not in str(error)
            outcomes.add("said")
    assert outcomes == {"read", "said"}


def test_contents_that_were_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "gpu.h5"
    write_calls(path, 1)
    with open_record(path) as record:
        with pytest.raises(InputError, match="were not recorded"):
            record.raw(TensorRecord("input/x", "float32", (2,), (1,), "cpu"))
        with pytest.raises(InputError, match="is not in the file; record it again"):
            record.raw(TensorRecord("input/x", "float32", (2,), (1,), "cpu", offset=1 << 50))


def test_a_part_of_a_large_memory_becomes_contiguous(tmp_path: Path) -> None:
    path = tmp_path / "gpu.h5"
    writer = RecordWriter(path, HEADER)
    offset = writer.append(np.arange(3, dtype="float32"))
    wide = TensorRecord("input/self", "float32", (3,), (1 << 30,), "cpu", offset=offset, is_dense=False)
    writer.write(Call(1, "aten::relu", 1, "forward", inputs=(wide,)))
    writer.close()
    with open_record(path) as record:
        assert record.tensor(wide).tolist() == [0, 1, 2]
        unfolded = TensorRecord("input/self", "float32", (2, 2), (1, 1), "cpu", offset=offset, is_dense=False)
        assert record.tensor(unfolded).stride() == (1, 1)


def test_records_of_the_dumper(tmp_path: Path) -> None:
    path = tmp_path / "theirs.h5"
    with h5py.File(path, "w") as file:
        item = file.create_dataset("/Addmm/4/input/mat1", data=np.arange(6.0, dtype="float32").reshape(2, 3))
        item.attrs.update({"DataType": 10, "DeviceType": 1, "Type": 0, "FormatType": 0, "Stride": [1, 2]})
        file.create_dataset("/Addmm/4/input/alpha", data=2.0).attrs["Type"] = 5
        for index in range(11):
            item = file.create_dataset(f"/Addmm/4/input/list/list_{index}", data=np.int64([index]))
            item.attrs.update({"DataType": 7, "DeviceType": 10, "Type": 0})
        item = file.create_dataset("/Addmm/4/output/0", data=np.ones(2, ">f4"), compression="gzip")
        item.attrs.update({"DataType": 1, "DeviceType": 1, "Type": 0})
        file.create_group("/relu/3/input")
    with open_record(path) as record:
        first, second = record.calls
        assert [first.operator, second.operator] == ["aten::relu", "aten::Addmm"]
        assert second.results == TensorRef(0) and dict(second.arguments)["alpha"] == 2.0
        (mat,) = [tensor for tensor in second.inputs if tensor.name == "input/mat1"]
        assert (mat.dtype, mat.stride, mat.device, mat.offset) == ("float16", (1, 2), "cuda:0"[:4], 0)
        assert record.tensor(mat).tolist() == torch.arange(6.0).as_strided((2, 3), (1, 2)).tolist()
        assert record.array(second.outputs[0]).tolist() == [1, 1] and record.array(mat).dtype == np.float16
        listed_tensors = dict(second.arguments)["list"]
        assert isinstance(listed_tensors, tuple)
        values = [record.tensor(second.inputs[each.index]).item() for each in listed_tensors]  # type: ignore[union-attr]
        assert values == list(range(11))


def test_one_of_ours_that_another_tool_copied(tmp_path: Path) -> None:
    path, copy = tmp_path / "gpu.h5", tmp_path / "copy.h5"
    writer = RecordWriter(path, HEADER)
    tensors = [
        put(writer, torch.randn(3, 4).to(torch.bfloat16).t(), "input/a"),
        put(writer, torch.arange(4.0).expand(3, 4), "input/b"),
        put(writer, torch.tensor([True, False]), "input/c"),
        put(writer, torch.randn(3).to(torch.float8_e4m3fn), "input/d"),
        put(writer, torch.zeros(0, 2), "output/output_0"),
    ]
    writer.write(Call(1, "aten::f.x", 2, "backward", inputs=tuple(tensors[:4]), outputs=(tensors[4],)))
    writer.close()
    with h5py.File(path) as source, h5py.File(copy, "w") as target:
        for name in source:
            source.copy(name, target)
        target.attrs.update(source.attrs)
    with open_record(path) as ours, open_record(copy) as theirs:
        mine, other = ours.calls[0], theirs.calls[0]
        assert (mine.operator, mine.step, mine.phase) == (other.operator, other.step, other.phase)
        assert theirs.header == ours.header
        for left, right in zip((*mine.inputs, *mine.outputs), (*other.inputs, *other.outputs), strict=True):
            assert bytes(ours.raw(left)) == bytes(theirs.raw(right))
            assert torch.equal(ours.tensor(left).float(), theirs.tensor(right).float())


def test_cases_from_our_records(tmp_path: Path) -> None:
    path = tmp_path / "gpu.h5"
    writer = RecordWriter(path, HEADER)
    original = torch.randn(4, 6).to(torch.bfloat16).t()
    repeated = torch.randn(1, 4).expand(6, 4)
    tensors = (put(writer, original, "input/self"), put(writer, repeated, "input/other"))
    arguments = (("self", TensorRef(0)), ("other", TensorRef(1)), ("alpha", 2))
    writer.write(Call(1, "aten::add.Tensor", 1, "forward", arguments=arguments, inputs=tensors))
    writer.write(Call(2, "aten::add.Scalar", 1, "forward", arguments=(("self", TensorRef(0)), ("other", 3)), inputs=tensors[:1]))  # fmt: skip
    writer.close()
    case = build(CaseRequest("aten::add", source=path, call=1), case_inputs)
    assert case.callee.expression == "torch.ops.aten.add.Tensor" and dict(case.kwargs) == {"alpha": 2}
    for tensor, wanted in zip(case.tensors, (original, repeated), strict=True):
        memory = case.stored[tensor.contents.key]
        made = memory.as_strided(tensor.shape, tensor.stride or ())
        assert torch.equal(made, wanted) and made.stride() == wanted.stride()
    assert (
        build(CaseRequest("add", source=path, call=2), case_inputs).callee.expression
        == "torch.ops.aten.add.Scalar"
    )
    assert [line.split("(")[0].split() for line in listed(path, "", "", case_inputs)] == [
        ["1", "add.Tensor"],
        ["2", "add.Scalar"],
    ]
    damaged = tmp_path / "cut.h5"
    shutil.copy(path, damaged)
    with damaged.open("r+b") as file:
        file.truncate(path.stat().st_size - 10)
    assert len(listed(damaged, "add", "", case_inputs)) == 2
