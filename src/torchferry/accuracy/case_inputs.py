"""Reads one call from an HDF5 record of operators, ours or one of the vendors' `torch.utils.dumper`, as a case's inputs."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import torch

from torchferry.accuracy.file.foreign import ForeignRecord
from torchferry.accuracy.file.reader import Record, open_record
from torchferry.accuracy.model import TensorRecord, TensorRef, Value
from torchferry.errors import InputError
from torchferry.readiness.cases.building import RecordedCall, RecordedInputs
from torchferry.readiness.cases.contents import check_fits, overlaps
from torchferry.readiness.cases.model import CaseValue, Draw, TensorContents, TensorInput, contiguous
from torchferry.text import Text


def calls(path: Path, operator: str = "") -> list[RecordedCall]:
    """The calls of an operator in a record, of all operators if none is named; in the order of their numbers."""
    with open_record(path) as record:
        if isinstance(record, ForeignRecord) and not record.is_ours:
            found = [RecordedCall(name, number, index) for index, (number, name) in enumerate(record.names)]
        else:
            found = [
                RecordedCall(call.operator.removeprefix("aten::"), call.number, index, call.operator)
                for index, call in enumerate(record.calls)
            ]
    return [call for call in found if not operator or _is_named(call.operator, operator)]


def read(path: Path, call: RecordedCall, *, contents: bool = True) -> RecordedInputs:
    """The inputs of one call; their shapes alone, without contents, also where only statistics were recorded."""
    stored: dict[str, torch.Tensor] = {}
    with open_record(path) as record:
        recorded = record.calls[call.index]

        def made(value: Value) -> CaseValue:
            if isinstance(value, TensorRef):
                tensor = recorded.inputs[value.index]
                if contents:
                    return _tensor(record, tensor, stored)
                is_plain = tensor.stride == contiguous(tensor.shape)
                stride = None if is_plain else tensor.stride
                return TensorInput(tensor.dtype, tensor.shape, TensorContents(Draw.STORED), stride)
            return tuple(made(each) for each in value) if isinstance(value, tuple) else value

        values = {name: made(value) for name, value in recorded.arguments}
    return RecordedInputs(values, stored)


def _is_named(recorded: str, wanted: str) -> bool:
    """Whether a record's name is what a user means; an overload that is not said may be any."""
    ours, theirs = _plain(wanted), _plain(recorded)
    return theirs == ours or theirs.partition(".")[0] == ours or (theirs == ours.partition(".")[0])


def _plain(name: str) -> str:
    bare = re.sub(r"^(torch\.ops\.)?(aten|torch|Tensor)(::|\.)", "", name.replace("torch.nn.functional.", ""))
    return bare.removesuffix(".default")


def _tensor(record: Record, recorded: TensorRecord, stored: dict[str, torch.Tensor]) -> TensorInput:
    name = recorded.name.rpartition("/")[2]
    if recorded.offset is None:
        why = recorded.unread or ("only slices" if recorded.part else "only statistics")
        raise InputError(
            Text(
                f"{record.path}: the contents of `{name}` were not recorded ({why}); record tensors",
                f"{record.path}：没有记录 `{name}` 的内容（{why}）；请记录张量",
            )
        )
    key, count = name, 1
    while key in stored:
        count += 1
        key = f"{name}#{count}"
    contents = TensorContents(Draw.STORED, key=key)
    tensor = TensorInput(recorded.dtype, recorded.shape, contents, recorded.stride)
    check_fits([tensor])
    made = record.tensor(recorded)
    is_plain = tensor.elements == 0 or recorded.stride == contiguous(recorded.shape) or overlaps(tensor)
    if is_plain or made.stride() != recorded.stride:
        tensor = replace(tensor, stride=None)
        stored[contents.key] = made.contiguous().reshape(-1)
    else:
        stored[contents.key] = made.as_strided((tensor.span,), (1,))
    return tensor
