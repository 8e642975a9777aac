"""Random calls, written and read back: by our reader, and by plain h5py."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.accuracy.file.making import HEADER, put
from torchferry.accuracy.file.contents import numpy_dtype, shaped
from torchferry.accuracy.file.reader import open_record
from torchferry.accuracy.file.writer import RecordWriter
from torchferry.accuracy.model import SIZES, Call, Statistics, TensorRecord, TensorRef, Value
from torchferry.readiness.model import Special

_NAMES = st.text(min_size=1, max_size=12).filter(lambda text: text.encode("utf-8", "ignore") != b"")
_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 70), 1 << 70),
    st.floats(allow_nan=False),
    st.text(max_size=20),
    st.builds(
        Special,
        st.sampled_from(["dtype", "device", "memory_format", "complex"]),
        st.sampled_from(["float32", "cuda:0", "channels_last", "(1+2j)"]),
    ),
)
_VALUES = st.recursive(_SCALARS, lambda inner: st.lists(inner, max_size=4).map(tuple), max_leaves=8)
_STATISTICS = st.builds(
    Statistics,
    *[st.integers(0, 1 << 63)] * 4,
    *[st.floats(allow_nan=False)] * 4,
    st.integers(0, (1 << 64) - 1),
)


@st.composite
def _tensors(draw: st.DrawFn) -> torch.Tensor:
    dtype = getattr(torch, draw(st.sampled_from([name for name in SIZES if hasattr(torch, name)])))
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    count = int(np.prod(shape, dtype=int)) * torch.tensor([], dtype=dtype).element_size()
    bits = np.frombuffer(draw(st.binary(min_size=count, max_size=count)), dtype="uint8").copy()
    if dtype is torch.bool:
        bits &= 1
    flat = torch.from_numpy(bits)
    tensor = (flat.view(dtype) if count else torch.empty(0, dtype=dtype)).reshape(shape)
    if shape and draw(st.booleans()):
        tensor = tensor.permute(draw(st.permutations(range(len(shape)))))
    if shape and draw(st.booleans()):
        tensor = tensor[..., :: draw(st.integers(1, 3))]
    if draw(st.booleans()):
        tensor = tensor.unsqueeze(0).expand(draw(st.integers(1, 3)), *tensor.shape)
    return tensor


def _bits(tensor: torch.Tensor) -> bytes:
    flat = torch.empty(tensor.numel(), dtype=tensor.dtype).copy_(tensor.reshape(-1))
    return bytes(flat.view(torch.uint8).numpy()) if tensor.numel() else b""


def _check_dataset(dataset: Any, tensor: TensorRecord, ours: np.ndarray[Any, Any]) -> None:
    """Plain h5py sees the same elements in the same order."""
    theirs = np.asarray(dataset[()]).reshape(-1)
    assert theirs.size == tensor.elements == ours.size
    assert [dataset.attrs[name] for name in ("Type", "DeviceType")] == [0, 1]
    assert tuple(dataset.attrs["Stride"]) == tensor.stride
    if tensor.dtype == "bfloat16":
        values = (ours.astype("uint32") << 16).view("float32")
        assert np.array_equal(theirs, values, equal_nan=True)
    else:
        assert theirs.astype(theirs.dtype, copy=False).tobytes() == ours.tobytes()
        assert theirs.dtype.itemsize == numpy_dtype(tensor.dtype).itemsize


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.tuples(
            st.lists(_tensors(), max_size=4),
            st.lists(_tensors(), max_size=2),
            st.lists(st.tuples(_NAMES, _VALUES), max_size=3),
            st.sampled_from(["aten::add.Tensor", "aten::relu", "my lib::op.ä/x", "aten::cat"]),
            _NAMES,
            _STATISTICS,
        ),
        max_size=5,
    )
)
def test_what_is_written_is_read(drawn: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "record.h5"
        writer = RecordWriter(path, HEADER)
        calls, originals = [], []
        for number, (inputs, outputs, arguments, operator, module, statistics) in enumerate(drawn, 1):
            made = [put(writer, each, f"input/tensors/tensors_{i}", i) for i, each in enumerate(inputs)]
            results = [put(writer, each, f"output/output_{i}") for i, each in enumerate(outputs)]
            unkept = TensorRecord("output/self", "float32", (3,), (1,), "cuda:0", statistics=statistics)
            given_tensors: Value = tuple(map(TensorRef, range(len(made))))
            call = Call(
                number, operator, number, "forward", "Net", module, "a.py:1", "Node",
                (("tensors", given_tensors), *arguments), tuple(made), (*results, unkept), TensorRef(0),
            )  # fmt: skip
            writer.write(call)
            calls.append(call)
            originals += [*zip(made, inputs, strict=True), *zip(results, outputs, strict=True)]
        writer.close()
        _check(path, calls, originals)


def _check(path: Path, calls: list[Call], originals: list[tuple[TensorRecord, torch.Tensor]]) -> None:
    with open_record(path) as record, h5py.File(path) as file:
        assert list(record.calls) == calls and record.header.complete
        for described, original in originals:
            back = record.tensor(described)
            assert _bits(back) == _bits(original)
            assert back.shape == original.shape and back.stride() == original.stride()
            assert shaped(record.array(described), described).tobytes() == _bits(original)
        assert sorted(int(number) for group in file.values() for number in group) == [
            call.number for call in calls
        ]
        for call in calls:
            group = file[f"{call.group}/{call.number}"]
            assert bytes(group["call"][()]).startswith(b'{"number":%d,' % call.number)
            for tensor in (*call.inputs, *call.outputs[:-1]):
                _check_dataset(group[tensor.name], tensor, record.array(tensor))
            assert "self" not in group["output"]
