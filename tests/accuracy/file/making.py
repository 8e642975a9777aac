"""Calls and tensors for the tests of records."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from pathlib import Path

import torch

from torchferry.accuracy.file.writer import RecordWriter, StatisticsWriter, encoded_tensors
from torchferry.accuracy.model import ROW, Call, Kept, RecordHeader, TensorRecord, TensorRef
from torchferry.accuracy.record.layout import TensorLayout

HEADER = RecordHeader(Kept.TENSORS, "python train.py", "cuda", "2.13.0")


def put(writer: RecordWriter, tensor: torch.Tensor, name: str, content: int = 0) -> TensorRecord:
    """A tensor's bytes in a record, as a recorder puts them there."""
    shape, stride = tuple(tensor.shape), tuple(tensor.stride())
    dtype = str(tensor.dtype).removeprefix("torch.")
    dense = TensorLayout(dtype, shape, stride, "cpu").is_dense
    once = tensor[
        tuple(
            slice(0, 1) if step == 0 and size else slice(None)
            for size, step in zip(shape, stride, strict=True)
        )
    ]
    if dense and once.numel():
        flat = once.as_strided((once.numel(),), (1,))
    else:
        flat = once.contiguous().reshape(-1)
    offset = writer.append_memory(flat.data_ptr(), flat.numel() * flat.element_size())
    return TensorRecord(name, dtype, shape, stride, "cuda:0", content=content, offset=offset, is_dense=dense)


def write_calls(path: Path, count: int = 3, *, close: bool = True) -> RecordWriter:
    """A record of additions: call n adds n and 1."""
    writer = RecordWriter(path, HEADER)
    for number in range(1, count + 1):
        writer.write(addition(writer, number))
    if close:
        writer.close()
    return writer


def addition(writer: RecordWriter, number: int) -> Call:
    """One call with its tensors in the file."""
    mine = put(writer, torch.full((4, 5), float(number)), "input/self", 2 * number - 1)
    result = put(writer, torch.full((4, 5), number + 1.0), "output/output_0", 2 * number)
    return Call(
        number,
        "aten::add.Scalar",
        step=1 + number // 10,
        phase="forward",
        module="layer",
        place="train.py:3",
        arguments=(("self", TensorRef(0)), ("other", 1)),
        inputs=(mine,),
        outputs=(result,),
        results=TensorRef(0),
    )


def write_statistics(path: Path, count: int) -> None:
    """A record of statistics in which every call has the same figures."""
    writer = StatisticsWriter(path, replace(HEADER, kept=Kept.STATISTICS))
    tensor = TensorRecord("input/self", "float32", (2,), (1,), "cuda:0")
    site = writer.site("aten::relu", "forward", "Net", "act", "train.py:3", "")
    signature = writer.signature((("self", TensorRef(0)),), encoded_tensors((tensor,), ()), None)
    for _ in range(count):
        number, address = writer.row()
        ctypes.memmove(address, ROW.pack(2, 0, 0, 0, 0.5, 1.5, 1.0, 1.0, 77), ROW.size)
        writer.call(1, site, signature, (number,))
    writer.close()
