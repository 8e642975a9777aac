"""Records of operators in HDF5, as Ascend's torch.utils.dumper writes them."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from torchferry.accuracy import case_inputs
from torchferry.accuracy.case_inputs import calls, read
from torchferry.errors import InputError
from torchferry.readiness.cases.building import CaseRequest, build, listed
from torchferry.readiness.cases.model import TensorInput
from torchferry.readiness.model import Special

FLOAT, INT64, BOOL, HALF, BFLOAT16 = 1, 7, 9, 10, 16
LIST_OF_INTS, INT, TRUTH, DOUBLE, SCALAR, DTYPE = 2, 3, 4, 5, 7, 14


def _put_tensor(
    group: h5py.Group, name: str, array: np.ndarray, dtype: int, stride: tuple[int, ...] | None = None
) -> None:
    dataset = group.create_dataset(name, data=array)
    steps = [step // array.itemsize for step in array.strides] if stride is None else stride
    attributes = {"DeviceType": 1, "DataType": dtype, "FormatType": 0, "Type": 0}
    for key, value in attributes.items():
        dataset.attrs.create(key, value, dtype="int32")
    dataset.attrs.create("Stride", np.array(steps, dtype="int64"))


def _put_value(group: h5py.Group, name: str, value: object, kind: int, dtype: str) -> None:
    group.create_dataset(name, data=np.array(value, dtype=dtype)).attrs.create("Type", kind, dtype="int32")


@pytest.fixture
def record(tmp_path: Path) -> Path:
    path = tmp_path / "record.h5"
    rng = np.random.default_rng(0)
    with h5py.File(path, "w") as file:
        for number, scale in ((3, 1.0), (12, 2.0)):
            inputs = file.create_group(f"/max.dim/{number}/input")
            _put_tensor(inputs, "self", (rng.standard_normal((5, 6)) * scale).astype("float32"), FLOAT)
            _put_value(inputs, "dim", 1, INT, "int64")
            _put_value(inputs, "keepdim", 1, TRUTH, "int8")
            file.create_group(f"/max.dim/{number}/output")
        inputs = file.create_group("/cat/5/input/tensors")
        for index in range(2):
            _put_tensor(inputs, f"tensors_{index}", np.full((2, 3), index, "float32"), HALF)
        _put_value(file["/cat/5/input"], "dim", 0, INT, "int64")
    return path


def test_calls_in_their_order(record: Path) -> None:
    assert [(call.operator, call.number) for call in calls(record)] == [
        ("max.dim", 3),
        ("cat", 5),
        ("max.dim", 12),
    ]
    for name in ("max", "max.dim", "aten::max.dim", "aten.max", "torch.max", "torch.ops.aten.max.dim"):
        assert [call.number for call in calls(record, name)] == [3, 12], name
    assert calls(record, "aten::min") == []


def test_case_from_a_call(record: Path) -> None:
    case = build(CaseRequest("aten::max", source=record, call=12), case_inputs)
    assert case.callee.expression == "torch.ops.aten.max.dim"
    tensor, dim, keepdim = case.args
    assert isinstance(tensor, TensorInput) and (tensor.shape, tensor.dtype) == ((5, 6), "float32")
    assert (dim, keepdim) == (1, True)
    with h5py.File(record) as file:
        assert case.stored["self"].tolist() == file["/max.dim/12/input/self"][()].reshape(-1).tolist()


def test_an_argument_changed(record: Path) -> None:
    case = build(CaseRequest("aten::max.dim", ("dim=0",), source=record), case_inputs)
    assert case.args[1] == 0


def test_lists_of_tensors(record: Path) -> None:
    tensors, dim = build(CaseRequest("aten::cat", source=record), case_inputs).args
    assert isinstance(tensors, tuple) and len(tensors) == 2 and dim == 0
    assert all(isinstance(tensor, TensorInput) and tensor.dtype == "float16" for tensor in tensors)


def test_listing(record: Path) -> None:
    lines = listed(record, "max", "", case_inputs)
    assert len(lines) == 2
    assert lines[1].startswith("  12  max.dim(") and "self=5x6:float32" in lines[1] and "dim=1" in lines[1]


def _one(tmp_path: Path, array: np.ndarray, dtype: int, stride: tuple[int, ...]) -> torch.Tensor:
    """A tensor that was recorded and read, as the case makes it."""
    path = tmp_path / "one.h5"
    with h5py.File(path, "w") as file:
        _put_tensor(file.create_group("/relu/1/input"), "self", array, dtype, stride)
    return _made(path)


def _made(path: Path) -> torch.Tensor:
    found = read(path, calls(path)[0])
    tensor = found.values["self"]
    assert isinstance(tensor, TensorInput)
    memory = found.stored[tensor.contents.key]
    return (
        memory.reshape(tensor.shape)
        if tensor.is_plain
        else memory.as_strided(tensor.shape, tensor.stride or ())
    )


def test_dense_strides_hold_the_memory(tmp_path: Path) -> None:
    """The dumper writes a transposed tensor's memory as it lies there."""
    tensor = torch.arange(6.0).reshape(3, 2).t()
    memory = np.arange(6, dtype="float32").reshape(2, 3)
    found = _one(tmp_path, memory, FLOAT, (1, 2))
    assert torch.equal(found, tensor) and found.stride() == (1, 2)


def test_other_strides_hold_the_elements(tmp_path: Path) -> None:
    elements = np.array([[1, 2], [3, 4]], dtype="float32")
    found = _one(tmp_path, elements, FLOAT, (6, 2))
    assert found.tolist() == elements.tolist() and found.stride() == (6, 2)
    repeated = np.array([[1, 2], [1, 2]], dtype="float32")
    found = _one(tmp_path, repeated, FLOAT, (0, 1))
    assert found.tolist() == repeated.tolist() and found.stride() == (0, 1)


def test_dtypes(tmp_path: Path) -> None:
    assert _one(tmp_path, np.array([1.5, 2], dtype="float32"), HALF, (1,)).dtype is torch.float16
    assert _one(tmp_path, np.array([1, 0], dtype="int8"), BOOL, (1,)).tolist() == [True, False]
    assert _one(tmp_path, np.array([-1, 5], dtype="int8"), 2, (1,)).tolist() == [255, 5]
    bits = torch.tensor([1.5, -2.0], dtype=torch.bfloat16).view(torch.int16).numpy()
    assert _one(tmp_path, bits, BFLOAT16, (1,)).tolist() == [1.5, -2.0]


def test_values_of_every_sort(tmp_path: Path) -> None:
    path = tmp_path / "values.h5"
    with h5py.File(path, "w") as file:
        inputs = file.create_group("/f/1/input")
        _put_value(inputs, "size", [2, 3], LIST_OF_INTS, "int64")
        _put_value(inputs, "eps", 0.5, DOUBLE, "float64")
        _put_value(inputs, "other", 3, SCALAR, "int64")
        _put_value(inputs, "dtype", HALF, DTYPE, "int32")
        inputs.create_dataset("mode", data="nearest").attrs["Type"] = 99
        inputs.create_dataset("none", data=h5py.Empty("f4")).attrs["Type"] = 6
    assert read(path, calls(path)[0]).values == {
        "size": (2, 3),
        "eps": 0.5,
        "other": 3,
        "dtype": Special("dtype", "float16"),
        "mode": "nearest",
        "none": None,
    }


def test_mistakes(record: Path, tmp_path: Path) -> None:
    for request, said in (
        (CaseRequest("aten::min", source=record), "no call of aten::min; it has cat, max.dim"),
        (CaseRequest("aten::max", source=record, call=2), "has 2 calls of aten::max, none with the number 2"),
        (CaseRequest("aten::max", ("3x4",), source=record), "by name"),
    ):
        with pytest.raises(InputError) as error:
            build(request, case_inputs)
        assert said in str(error.value)
    broken = tmp_path / "broken.h5"
    broken.write_bytes(record.read_bytes()[:300])
    with pytest.raises(InputError, match="not a readable HDF5 recording"):
        calls(broken)
    with h5py.File(record, "a") as file:
        file["/cat/5/input/tensors/tensors_0"].attrs["DataType"] = 77
    with pytest.raises(InputError, match="unknown DataType 77; known are 1, 2"):
        build(CaseRequest("aten::cat", source=record), case_inputs)


@pytest.mark.parametrize(
    ("dtype", "stride"),
    [
        ("1", "2,1"),
        (b"1", b"(2, 1)"),
        (np.array([1]), np.array([2, 1])),
        ("float32", [2, 1]),
        ("torch.float32", [2, 1]),
    ],
)
def test_attributes_as_texts_and_arrays(tmp_path: Path, dtype: object, stride: object) -> None:
    path = tmp_path / "one.h5"
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("/relu/1/input/self", data=np.array([[1, 2], [3, 4]], dtype=">f4"))
        dataset.attrs.update({"Type": np.array([0]), "DataType": dtype, "Stride": stride})
    found = _made(path)
    assert found.tolist() == [[1, 2], [3, 4]] and found.dtype is torch.float32


@pytest.mark.parametrize(
    ("data", "attributes", "said"),
    [
        (
            np.ones((2, 2)),
            {"Stride": "a,b"},
            "the attribute Stride of `self` is ['a', 'b'], not a number",
        ),
        (np.ones((2, 2)), {"Stride": 3}, "the strides (3,) of `self` do not match its shape (2, 2)"),
        (np.ones((2, 2)), {"Stride": [10**14, 1]}, "give smaller sizes"),
        (np.ones(2), {"Type": "tensor"}, "the attribute Type of `self`"),
        (np.ones(2), {"DataType": "floot"}, "the attribute DataType of `self`"),
        ("text", {"Type": 0}, "`self` holds object, which a tensor can't hold"),
        (np.zeros(2, dtype=[("a", "f4")]), {}, "which a tensor can't hold"),
        (np.zeros(2, dtype="longdouble"), {}, "which a tensor can't hold"),
    ],
)
def test_what_is_no_tensor(tmp_path: Path, data: object, attributes: dict[str, object], said: str) -> None:
    path = tmp_path / "one.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("/f/1/input/self", data=data).attrs.update(attributes)
    with pytest.raises(InputError) as error:
        read(path, calls(path)[0])
    assert said in str(error.value)


def test_another_structure(tmp_path: Path) -> None:
    path = tmp_path / "one.h5"
    with h5py.File(path, "w") as file:
        file["/f/1/input"] = np.ones(2)
        file["/f/2/input/self"] = h5py.SoftLink("/nowhere")
    first, second = calls(path)
    with pytest.raises(InputError, match="/f/1/input: not a group of arguments; record it again"):
        read(path, first)
    with pytest.raises(InputError, match="`self` is a dangling link; record it again"):
        read(path, second)
    damaged = path.read_bytes().replace(b"HEAP", b"HOLE")
    path.write_bytes(damaged)
    with pytest.raises(InputError, match="not a readable HDF5 recording"):
        calls(path)
    with pytest.raises(InputError, match="can't be read: Is a directory"):
        build(CaseRequest("f", source=tmp_path), case_inputs)
