"""Records that others wrote, or rewrote, in the vendors' layout: read through h5py."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from torchferry.accuracy.file.call_json import decoded_call
from torchferry.accuracy.file.call_objects import BOOL, DTYPE, MEMORY_FORMAT, MEMORY_FORMATS, TENSOR
from torchferry.accuracy.file.contents import numpy_dtype, span
from torchferry.accuracy.file.hdf5 import DTYPE_OF_ONNX
from torchferry.accuracy.file.reader import LazyCalls, Record
from torchferry.accuracy.model import (
    INPUT,
    OUTPUT,
    Call,
    Kept,
    RandomState,
    RecordHeader,
    TensorRecord,
    TensorRef,
    Value,
)
from torchferry.errors import InputError
from torchferry.readiness.cases.model import contiguous
from torchferry.readiness.cases.notation import SMALL_FLOATS, dtype_name
from torchferry.readiness.model import Special
from torchferry.text import Text

# What a dataset of a record by the vendors' `torch.utils.dumper` means, through h5py.
#
# Each argument is a dataset with an attribute `Type`: 0 is a tensor, the others are scalars, lists of
# integers, dtypes and memory formats. A tensor's `DataType` counts as ONNX does; half precision lies
# in the file as single precision. `Stride` tells how the tensor lay in its memory: if it was dense,
# the dataset holds its elements in the order of the memory, otherwise in the order of the indices. A
# list of tensors is a group: input/tensors/tensors_0, tensors_1 ...

_OPTIONS = 18
_DEVICES = {0: "cpu", 1: "cuda", 10: "privateuseone"}
Keep = Callable[[Any, TensorRecord], TensorRef]


def value_of(item: Any, name: str, place: str, keep: Keep) -> Value:
    """The value of an argument; tensors are handed to `keep`, with the dataset they are in."""
    if item is None:
        raise InputError(
            Text(
                f"{place}: `{name.rpartition('/')[2]}` is a dangling link; record it again",
                f"{place}：`{name.rpartition('/')[2]}` 是失效的链接；请重新记录",
            )
        )
    if hasattr(item, "items"):
        base = name.rpartition("/")[2]

        def position(member: tuple[str, Any]) -> int:
            return int(re.sub(r"\D", "", member[0].removeprefix(base).rpartition("_")[2]) or 0)

        members = sorted(item.items(), key=position)
        return tuple(value_of(member, f"{name}/{key}", place, keep) for key, member in members)
    short = name.rpartition("/")[2]
    (kind,) = _numbers(item, "Type", short, place, 1) or (TENSOR,)
    if kind != TENSOR:
        return _plain_value(item, kind, place)
    return None if item.shape is None else keep(item, tensor_of(item, name, place))


def _plain_value(item: Any, kind: int, place: str) -> Value:
    if item.shape is None:  # an empty dataset
        return None
    value = item[()]
    if kind == DTYPE:
        return Special("dtype", _dtype(int(value), place))
    if kind == MEMORY_FORMAT:
        return Special("memory_format", MEMORY_FORMATS[int(value) % len(MEMORY_FORMATS)])
    if kind == _OPTIONS:
        return Special("dtype", _tensor_dtype(item, "", place))
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    plain = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(plain, list):
        return _tuples(plain)
    is_truth = kind == BOOL or str(item.dtype) in ("bool", "int8")
    found: Value = bool(plain) if is_truth else plain
    return found


def _tuples(plain: list[Any]) -> tuple[Value, ...]:
    return tuple(_tuples(each) if isinstance(each, list) else each for each in plain)


def tensor_of(item: Any, name: str, place: str) -> TensorRecord:
    """What a dataset says of the tensor in it."""
    short = name.rpartition("/")[2]
    dtype = _tensor_dtype(item, short, place)
    shape = tuple(int(size) for size in item.shape)
    stride = _numbers(item, "Stride", short, place) if "Stride" in item.attrs else contiguous(shape)
    if len(stride) != len(shape) or min(stride, default=0) < 0:
        raise InputError(
            Text(
                f"{place}: the strides {stride} of `{short}` do not match its shape {shape}; record it again",
                f"{place}：`{short}` 的步幅 {stride} 与形状 {shape} 不符；请重新记录",
            )
        )
    (device,) = _numbers(item, "DeviceType", short, place, 1) or (-1,)
    tensor = TensorRecord(name, dtype, shape, stride, _DEVICES.get(device, ""))
    return replace(tensor, is_dense=span(tensor) == math.prod(shape))


def elements_of(item: Any, tensor: TensorRecord) -> np.ndarray[Any, Any]:
    """The elements of a dataset as a record in chunks would hold them: flat, what a stride of 0 repeats once."""
    array = item[()]
    if len(array.shape) == len(tensor.stride):
        array = array[tuple(slice(0, 1) if step == 0 else slice(None) for step in tensor.stride)]
    flat = np.ascontiguousarray(array.reshape(-1)).astype(array.dtype.newbyteorder("="))
    wanted = numpy_dtype(tensor.dtype)
    has_bits = flat.dtype.kind in "iuV" and flat.dtype.itemsize == wanted.itemsize
    if tensor.dtype in ("bfloat16", "complex32", *SMALL_FLOATS):
        return flat.view(wanted) if has_bits else _rounded(flat, tensor.dtype).view(wanted)
    if tensor.dtype == "uint8" and flat.dtype.itemsize == 1:  # the dumper writes it as signed
        return flat.view("uint8")
    return flat.astype(wanted)


def _rounded(values: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    """The bits of values in a dtype that numpy does not have."""
    import torch

    made = torch.from_numpy(values.copy()).to(getattr(torch, dtype))
    sizes = {1: torch.uint8, 2: torch.int16, 4: torch.int32}
    found: np.ndarray[Any, Any] = made.view(sizes[made.element_size()]).numpy()
    return found


def _tensor_dtype(item: Any, name: str, place: str) -> str:
    """What the attribute says, by number or by name; without it that of the dataset."""
    said = item.attrs.get("DataType")
    own = item.dtype.newbyteorder("=").name
    word = own if said is None else said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    if said is not None and not dtype_name(word):
        return _dtype(_numbers(item, "DataType", name, place, 1)[0], place)
    if not dtype_name(word) or not (dtype_name(own) or item.dtype.kind in "biufc"):
        raise InputError(
            Text(
                f"{place}: `{name}` holds {own}, which a tensor can't hold",
                f"{place}：`{name}` 的内容为 {own}，张量不支持",
            )
        )
    return dtype_name(word)


def _numbers(item: Any, attribute: str, name: str, place: str, count: int | None = None) -> tuple[int, ...]:
    """The whole numbers of an attribute: a number, several, or a text with them; none if it is not there."""
    value = item.attrs.get(attribute, ())
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, (bytes, str)):
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        value = text.strip("()[] ").replace(",", " ").split()
    try:
        found = tuple(int(each) for each in (value if isinstance(value, (list, tuple)) else (value,)))
    except (TypeError, ValueError):
        found = None
    if found is None or (count is not None and len(found) != count and attribute in item.attrs):
        raise InputError(
            Text(
                f"{place}: the attribute {attribute} of `{name}` is {value!r}, not a number",
                f"{place}：`{name}` 的属性 {attribute} 为 {value!r}，不是数字",
            )
        )
    return found


def _dtype(number: int, place: str) -> str:
    if number not in DTYPE_OF_ONNX:
        known = ", ".join(map(str, DTYPE_OF_ONNX))
        raise InputError(
            Text(
                f"{place}: unknown DataType {number}; known are {known}",
                f"{place}：未知的 DataType {number}；已知的有 {known}",
            )
        )
    return DTYPE_OF_ONNX[number]


class ForeignRecord(Record):
    """A record without our chunks. A tensor's `content` is where its dataset is in the file."""

    def __init__(self, path: Path) -> None:
        self._datasets: dict[int, str] = {}  # content -> name of the dataset
        self._file = _opened(path)
        try:
            with _readable(path):
                found = [
                    (int(number), name)
                    for name, group in self._file.items()
                    if hasattr(group, "items")
                    for number in group
                    if number.isdecimal() and hasattr(group[number], "items")
                ]
                header = _header(self._file.attrs)
            if header.kept is Kept.STATISTICS:
                raise InputError(
                    Text(
                        f"{path}: rewritten by another tool, so its statistics can't be read; use the original file",
                        f"{path}：已被其他工具改写，无法读取统计值；请使用原文件",
                    )
                )
        except BaseException:
            self._file.close()
            raise
        self.names = sorted(found)  # number of each call, and its operator as the file has it
        super().__init__(path, header, LazyCalls(len(self.names), self._call))
        self.is_ours = "kept" in self._file.attrs  # written by us, and rewritten by another tool

    def _call(self, index: int) -> Call:
        number, name = self.names[index]
        with _readable(self.path):
            group = self._file[f"/{name}/{number}"]
            line = group.get("call")
            if line is not None and not hasattr(line, "items"):
                return self._rewritten(decoded_call(bytes(line[()])), group)
            return self._taken(name, number, group)

    def _rewritten(self, call: Call, group: Any) -> Call:
        """One of ours: only the places in the file are others now."""

        def placed(tensor: TensorRecord) -> TensorRecord:
            item = group.get(tensor.name)
            if item is None or (tensor.offset is None and tensor.part is None):
                return replace(tensor, offset=None, part=None)
            kept = self._kept(item, tensor)
            return (
                kept
                if tensor.part is None
                else replace(kept, offset=None, part=tensor.part._replace(offset=0))
            )

        return replace(
            call,
            inputs=tuple(map(placed, call.inputs)),
            outputs=tuple(map(placed, call.outputs)),
            random=None,
        )

    def _taken(self, name: str, number: int, group: Any) -> Call:
        place = f"{self.path}: /{name}/{number}"
        inputs, arguments = self._members(group, INPUT, place)
        outputs, answers = self._members(group, OUTPUT, place)
        results = tuple(value for _, value in answers)
        operator = name if "::" in name else f"aten::{name}"
        return Call(
            number, operator, step=1, phase="",
            arguments=tuple(arguments), inputs=tuple(inputs), outputs=tuple(outputs),
            results=results[0] if len(results) == 1 else results or None,
        )  # fmt: skip

    def _members(
        self, group: Any, part: str, place: str
    ) -> tuple[list[TensorRecord], list[tuple[str, Value]]]:
        members = group.get(part, {})
        if not hasattr(members, "items"):
            raise InputError(
                Text(
                    f"{place}/{part}: not a group of arguments; record it again",
                    f"{place}/{part}：不是参数组；请重新记录",
                )
            )
        tensors: list[TensorRecord] = []

        def keep(item: Any, tensor: TensorRecord) -> TensorRef:
            tensors.append(self._kept(item, tensor))
            return TensorRef(len(tensors) - 1)

        return tensors, [(key, value_of(item, f"{part}/{key}", place, keep)) for key, item in members.items()]

    def _kept(self, item: Any, tensor: TensorRecord) -> TensorRecord:
        import h5py

        content = int(h5py.h5o.get_info(item.id).addr)
        self._datasets.setdefault(content, item.name)
        return replace(tensor, content=content, offset=0)

    def raw(self, tensor: TensorRecord) -> memoryview:
        name = self._datasets.get(tensor.content)
        if name is None:
            raise InputError(
                Text(
                    f"{self.path}: the contents of {tensor.name} were not recorded",
                    f"{self.path}：没有记录 {tensor.name} 的内容",
                )
            )
        with _readable(self.path):
            flat = elements_of(self._file[name], tensor)
        return memoryview(flat.tobytes())

    def state(self, random: RandomState) -> bytes:
        raise InputError(
            Text(
                f"{self.path}: rewritten by another tool, without generator states; use the original file",
                f"{self.path}：已被其他工具改写，不含随机数生成器的状态；请使用原文件",
            )
        )

    def close(self) -> None:
        self.calls = ()
        self._file.close()


def _header(attributes: Any) -> RecordHeader:
    """From the attributes of the root; a dumper's file has none."""
    if "kept" not in attributes:
        return RecordHeader(Kept.TENSORS, "", "", "", notes=("written by another tool",))

    def word(name: str) -> str:
        value = attributes.get(name, b"")
        return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)

    rank, world = int(attributes.get("rank", 0)), int(attributes.get("world", 1))
    is_simulated, is_complete = bool(attributes.get("simulated", 0)), bool(attributes.get("complete", 1))
    return RecordHeader(
        Kept(word("kept")), word("program"), word("device"), word("torch"), rank, world, word("vendor"), is_simulated,
        word("replayed"), word("selected"), tuple(word("notes").splitlines()), is_complete,
        word("in_part"), bool(attributes.get("modules_only", 0)),
        apis=bool(attributes.get("apis", 0)),
    )  # fmt: skip


def _opened(path: Path) -> Any:
    try:
        import h5py
    except ImportError:
        raise InputError(
            Text(
                f"{path}: reading HDF5 recordings needs h5py; pip install 'torchferry[record]'",
                f"{path}：读取 HDF5 记录需要 h5py；请执行 pip install 'torchferry[record]'",
            )
        ) from None
    try:
        return h5py.File(path, "r")
    except OSError as error:
        reason = str(error).partition("(")[2].rstrip(")") or str(error)
        raise InputError(
            Text(
                f"{path}: not a readable HDF5 recording: {reason}",
                f"{path}：不是可读取的 HDF5 记录：{reason}",
            )
        ) from None


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    # what h5py raises where the file is damaged
    except (OSError, RuntimeError, KeyError, ValueError) as error:
        raise InputError(
            Text(
                f"{path}: not a readable HDF5 recording: {error}", f"{path}：不是可读取的 HDF5 记录：{error}"
            )
        ) from None
