"""Writes one call with the contents of its tensors, as a record that `ferry case`, `ferry replay` and h5py read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

from torchferry.accuracy.file.writer import RecordWriter
from torchferry.accuracy.model import Call, Header, TensorRecord, TensorRef, Value
from torchferry.accuracy.overflow.calls import CheckedCall
from torchferry.accuracy.record.outside import Outsides
from torchferry.accuracy.record.reading import Reader
from torchferry.accuracy.record.values import Numbering
from torchferry.observe.modes import unobserved
from torchferry.observe.tensors import OVERWRITTEN

_RoleOf = Callable[[torch.Tensor], str]


def save_call(
    path: Path, header: Header, call: CheckedCall, role_of: _RoleOf, on_host: frozenset[str]
) -> None:
    """Inputs as they were before the call, outputs as they are. `on_host`: devices whose memory the host can read."""
    writer = RecordWriter(path, header)
    try:
        with unobserved():
            tensors = _Tensors(writer, role_of, on_host)
            readable = {name for name, _ in call.read_inputs()}
            inputs = [tensors.record(name, tensor, name in readable) for name, tensor in call.inputs]
            outputs = [tensors.record(name, tensor, True) for name, tensor in call.outputs]
        numbering = Numbering()
        site = call.site
        writer.write(
            Call(
                number=1,
                operator=call.plan.operator,
                step=call.step,
                phase=site.phase,
                model=site.model,
                module=site.module,
                place=site.place,
                node=site.node,
                arguments=tuple((name, numbering.value(value)) for name, value in call.arguments),
                inputs=tuple(inputs),
                outputs=tuple(outputs),
                results=_results(call),
            )
        )
    finally:
        writer.close()


class _Tensors:
    def __init__(self, writer: RecordWriter, role_of: _RoleOf, on_host: frozenset[str]) -> None:
        self._writer = writer
        self._role_of = role_of
        self._outsides = Outsides(on_host)
        self._reader = Reader()
        self._contents = 0

    def record(self, name: str, tensor: torch.Tensor, is_as_it_was: bool) -> TensorRecord:
        outside = self._outsides.of_any(tensor)
        unread = outside.unread or ("" if is_as_it_was else OVERWRITTEN)
        offset = None
        if not unread:
            offset = self._writer.append_memory(self._reader.address(tensor, outside), outside.nbytes)
        self._contents += 1
        return TensorRecord(
            name,
            outside.dtype,
            outside.shape,
            outside.stride,
            outside.device,
            self._role_of(tensor),
            0 if unread else self._contents,
            offset,
            outside.is_dense,
            unread,
        )


def _results(call: CheckedCall) -> Value:
    """The call's answer is among its outputs; what else it wrote to comes after."""
    refs = tuple(TensorRef(place) for place in range(call.answered))
    return refs[0] if len(refs) == 1 else refs
