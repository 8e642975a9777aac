"""The process in which calls are made again: python -m torchferry.accuracy.replay.worker REQUEST ANSWER"""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from torchferry.accuracy.file.background import memory_at
from torchferry.accuracy.file.reader import Record, open_record
from torchferry.accuracy.file.writer import RecordWriter
from torchferry.accuracy.judge.execution import (
    Outputs,
    blank_inputs,
    execute,
    has_gaps,
    is_view,
    leaves_uninitialised,
    read_inputs,
)
from torchferry.accuracy.judge.model import CannotExecuteError
from torchferry.accuracy.model import Call, Kept, RecordHeader, TensorRecord
from torchferry.accuracy.record.layout import Layouts, MemoryReader
from torchferry.accuracy.record.settings import Selection
from torchferry.accuracy.replay.launching import LAST_LENGTH, Left, ReplayOutcome, ReplayRequest
from torchferry.errors import FerryError, RunError, not_writable
from torchferry.files.aside import folder_aside
from torchferry.report.progress import Counted, long_task
from torchferry.settings import decode, encode
from torchferry.sim import fallback_calls
from torchferry.text import Text

# Makes every call of a record once more, alone, on a device: from the recorded inputs, so that no
# error is handed on.

Progress = Callable[[int, int, str], None]  # calls done, calls in all, the operator that comes next
_MISSING = "missing"


def replay(
    record: Record,
    output: Path,
    device: str,
    header: RecordHeader,
    is_wanted: Callable[[Call], bool] = lambda _call: True,
    progress: Progress | None = None,
) -> ReplayOutcome:
    """Write a record with the results of a device; calls keep their numbers. The file appears when it is complete;
    there is none if no call is wanted."""
    wanted = [place for place, call in enumerate(record.calls) if is_wanted(call)]
    if not wanted:
        return ReplayOutcome()
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
            raise not_writable(output, writer.failed, _MAKE_ROOM)
        os.replace(made, output)
    return ReplayOutcome(len(wanted) - len(replayer.left), writer.nbytes, tuple(replayer.left))


class _Replayer:
    def __init__(self, record: Record, writer: RecordWriter, device: str) -> None:
        self.left: list[Left] = []
        self._record, self._writer, self._device = record, writer, device
        self._home = record.header.device
        self._layouts, self._reader = Layouts(frozenset({"cpu"})), MemoryReader()
        # place and length in the old record -> place in the new one
        self._written: dict[tuple[int, int], int] = {}

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
        state, generator = call.random, None
        if state is not None and state.device.partition(":")[0] == self._device.partition(":")[0]:
            generator = torch.Generator(self._device)
            generator.set_state(torch.frombuffer(bytearray(self._record.state(state)), dtype=torch.uint8))
        on_host = generator if generator is not None and generator.device.type == "cpu" else None
        with torch.no_grad(), torch.random.fork_rng(devices=(), enabled=on_host is not None):
            if on_host is not None:
                torch.set_rng_state(on_host.get_state())
            outputs = execute(call, inputs, self._device, self._home, generator)
            return [None if tensor is None else tensor.to("cpu") for tensor in outputs]

    def _input(self, record: TensorRecord) -> TensorRecord:
        kept = record.kept_part or record
        if kept.offset is None:
            return record
        key = (kept.offset, kept.nbytes)
        if key not in self._written:
            self._written[key] = self._writer.append(self._record.raw(kept))
        if record.part is not None:
            return replace(record, part=record.part._replace(offset=self._written[key]))
        return replace(record, offset=self._written[key])

    def _output(self, record: TensorRecord, tensor: torch.Tensor | None, is_blank: bool) -> TensorRecord:
        """Contents that are the same as in the old record are written once, for this call and those that read them."""
        if tensor is None:
            return replace(record, offset=None, content=0, unread=_MISSING)
        layout = self._layouts.of(tensor)
        found = replace(layout.record(record.name, record.role), device=self._device)
        if is_blank or layout.unread:
            return replace(found, unread=layout.unread or record.unread)
        address = self._reader.address(tensor, layout)
        is_alike = (record.dtype, record.shape, record.stride) == (found.dtype, found.shape, found.stride)
        if record.offset is not None and is_alike:
            if memory_at(address, found.nbytes) == self._record.raw(record):
                return replace(self._input(replace(record, statistics=None)), device=self._device)
        return replace(found, offset=self._writer.append_memory(address, layout.nbytes))


_MAKE_ROOM = Text("free some space, or name another file with -o", "请腾出空间，或用 -o 指定其他文件")


def main() -> None:
    """Replay one record, and leave an answer."""
    request = decode(ReplayRequest, Path(sys.argv[1]).read_text("utf-8"))
    warnings.simplefilter("ignore")  # what falls back to the CPU is told at the end
    if request.plugin:
        importlib.import_module(request.plugin)
    try:
        outcome = _replayed(request)
    except FerryError as error:
        outcome = ReplayOutcome(problem=error.to_json())
    Path(sys.argv[2]).write_text(encode(outcome), "utf-8")


_REPLAYING = Text("replaying", "正在重放")


def _replayed(request: ReplayRequest) -> ReplayOutcome:
    name = request.device
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        said = str(error).strip().splitlines()
        raise RunError(
            Text(
                f"{name}: not a device that can be used here ({said[0] if said else error!r}); choose another "
                "device",
                f"{name}：该设备在此不可用（{said[0] if said else error!r}）；请选择其他设备",
            )
        ) from None
    selection = Selection(request.modules, request.operators, request.phases)

    def is_wanted(call: Call) -> bool:
        has_site = selection.has_site(call.phase, call.model, call.module)
        return has_site and selection.has_operator(call.operator)

    with open_record(Path(request.record)) as record, open(request.last, "wb", buffering=0) as last:
        header = RecordHeader(
            Kept.TENSORS, record.header.program, torch.device(request.device).type, torch.__version__,
            record.header.rank, record.header.world, request.vendor, request.simulated, request.record,
            selection.describe(),
        )  # fmt: skip
        with long_task(_REPLAYING, not request.shows_progress, Counted.CALLS) as show:

            def progress(done: int, count: int, operator: str) -> None:
                os.pwrite(last.fileno(), operator.encode()[:LAST_LENGTH].ljust(LAST_LENGTH), 0)
                if show is not None:
                    show(done, count, operator)

            found = replay(record, Path(request.output), request.device, header, is_wanted, progress)
    return replace(found, fallen_back=tuple(sorted(fallback_calls())))


if __name__ == "__main__":
    main()
