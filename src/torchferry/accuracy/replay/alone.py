"""Makes every call of a record once more, alone, on a device: from the recorded inputs, so that no error is handed on."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from torchferry.accuracy.file.reader import Record
from torchferry.accuracy.file.writer import RecordWriter
from torchferry.accuracy.model import Call, Header, Kept, TensorRecord
from torchferry.accuracy.record.outside import Outsides
from torchferry.accuracy.record.reading import Reader
from torchferry.accuracy.replay.arguments import CannotExecuteError
from torchferry.accuracy.replay.execution import Outputs, blank_inputs, execute, has_gaps, read_inputs
from torchferry.accuracy.replay.operators import is_view, leaves_uninitialised
from torchferry.accuracy.replay.request import Left
from torchferry.errors import OutputError
from torchferry.files.aside import folder_aside

Progress = Callable[[int, int, str], None]  # calls done, calls in all, the operator that comes next
_MISSING = "missing"


@dataclass(frozen=True)
class Replayed:
    """What became of the calls."""

    calls: int
    left: tuple[Left, ...]
    nbytes: int


def replay(
    record: Record,
    output: Path,
    device: str,
    header: Header,
    is_wanted: Callable[[Call], bool] = lambda _call: True,
    progress: Progress | None = None,
) -> Replayed:
    """Write a record with the results of a device; calls keep their numbers. The file appears when it is complete;
    there is none if no call is wanted."""
    wanted = [place for place, call in enumerate(record.calls) if is_wanted(call)]
    if not wanted:
        return Replayed(0, (), 0)
    with folder_aside(output.parent) as aside:
        made = aside.path / output.name
        writer = RecordWriter(made, replace(header, kept=Kept.TENSORS, replayed=str(record.path)))
        replayer = _Replayer(record, writer, device)
        for done, place in enumerate(wanted):
            call = record.calls[place]
            if progress is not None:
                progress(done, len(wanted), call.operator)
            replayer.replay(call)
        writer.close(record.header.notes)
        if writer.failed:
            raise OutputError(
                f"{output}: can't be written ({writer.failed}); make room, or name another file with -o"
            )
        os.replace(made, output)
    return Replayed(len(wanted) - len(replayer.left), tuple(replayer.left), writer.nbytes)


class _Replayer:
    """From one record to another."""

    def __init__(self, record: Record, writer: RecordWriter, device: str) -> None:
        self.left: list[Left] = []
        self._record, self._writer, self._device = record, writer, device
        self._home = record.header.device
        self._outsides, self._reader = Outsides(frozenset({"cpu"})), Reader()
        self._written: dict[
            tuple[int, int], int
        ] = {}  # place and length in the old record -> place in the new one

    def replay(self, call: Call) -> None:
        try:
            is_blank = is_view(call.operator) and has_gaps(call)
            inputs = blank_inputs(call) if is_blank else read_inputs(self._record, call)
            outputs = self._executed(call, inputs)
        except CannotExecuteError as reason:
            self._leave(call, str(reason), is_failure=False)
            return
        except Exception as error:  # whatever a device's plugin raises
            lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
            self._leave(call, lines[0].strip(), is_failure=True)
            return
        records = [
            self._output(record, tensor, is_blank or leaves_uninitialised(call.operator))
            for record, tensor in zip(call.outputs, outputs, strict=True)
        ]
        kept = [self._input(record) for record in call.inputs]
        self._writer.write(replace(call, inputs=tuple(kept), outputs=tuple(records), random=None))

    def _leave(self, call: Call, reason: str, is_failure: bool) -> None:
        self.left.append(Left(call.number, call.operator, call.module, reason, is_failure))

    def _executed(self, call: Call, inputs: list[torch.Tensor]) -> Outputs:
        """Results on the host. Random operators draw what they drew, where the device is of the same kind."""
        with torch.no_grad():
            state = call.random
            if state is None or state.device.partition(":")[0] != self._device.partition(":")[0]:
                return _on_host(execute(call, inputs, self._device, self._home))
            generator = torch.Generator(self._device)
            generator.set_state(torch.frombuffer(bytearray(self._record.state(state)), dtype=torch.uint8))
            if generator.device.type != "cpu":
                return _on_host(execute(call, inputs, self._device, self._home, generator))
            before = torch.get_rng_state()
            torch.set_rng_state(generator.get_state())
            try:
                return _on_host(execute(call, inputs, self._device, self._home, generator))
            finally:
                torch.set_rng_state(before)

    def _input(self, record: TensorRecord) -> TensorRecord:
        if record.offset is None:
            return record
        key = (record.offset, record.nbytes)
        if key not in self._written:
            self._written[key] = self._writer.append(self._record.raw(record))
        return replace(record, offset=self._written[key])

    def _output(self, record: TensorRecord, tensor: torch.Tensor | None, is_blank: bool) -> TensorRecord:
        """Contents that are the same as in the old record are written once, for this call and those that read them."""
        if tensor is None:
            return replace(record, offset=None, content=0, unread=_MISSING)
        outside = self._outsides.of(tensor)
        found = TensorRecord(
            record.name, outside.dtype, outside.shape, outside.stride, self._device, record.role,
            is_dense=outside.is_dense,
        )  # fmt: skip
        if is_blank or outside.unread:
            return replace(found, unread=outside.unread or record.unread)
        address = self._reader.address(tensor, outside)
        if record.offset is not None and self._is_the_same(record, found, address):
            return replace(self._input(replace(record, statistics=None)), device=self._device)
        return replace(found, offset=self._writer.append_memory(address, outside.nbytes))

    def _is_the_same(self, record: TensorRecord, found: TensorRecord, address: int) -> bool:
        from torchferry.accuracy.file.writer import memory_at

        alike = (record.dtype, record.shape, record.stride) == (found.dtype, found.shape, found.stride)
        return alike and memory_at(address, found.nbytes) == self._record.raw(record)


def _on_host(outputs: Outputs) -> Outputs:
    return [tensor.to("cpu") if tensor is not None else None for tensor in outputs]
