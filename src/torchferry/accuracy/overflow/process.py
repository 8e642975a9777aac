"""The check of a user's program, as a process of it does its part; other parts are in accuracy/record/program.py."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from torchferry.accuracy.file.writer import RecordWriter
from torchferry.accuracy.model import Call, Kept, RecordHeader, TensorRecord, TensorRef
from torchferry.accuracy.overflow.check import CheckOptions, OverflowCheck
from torchferry.accuracy.overflow.figures import CheckedCall, is_checked
from torchferry.accuracy.overflow.model import SUFFIX, End, OverflowEvent, OverflowFindings, Standing
from torchferry.accuracy.overflow.report import headline, where
from torchferry.accuracy.record.calls import Numbering, OperatorPlan, plan_of
from torchferry.accuracy.record.layout import Layouts, MemoryReader, host_devices
from torchferry.accuracy.record.outputs import RecordOutput
from torchferry.accuracy.record.program import RecordingPart, header_of
from torchferry.accuracy.record.settings import OverflowSettings
from torchferry.errors import system_reason
from torchferry.files.aside import write_whole
from torchferry.observe.modes import LocatingMode, has_compiled, unobserved
from torchferry.observe.operators import OVERWRITTEN, has_own_operators
from torchferry.observe.program import EarlyEnd
from torchferry.observe.steps import unwatch_scalers, watch_scalers
from torchferry.settings import encode
from torchferry.text import Text, user_language

# The mode that checks: every operator of this thread and of autograd's is looked at before and after
# it is called.

_FAKE = "FakeTensor"  # it computes with shapes alone


class CheckingMode(LocatingMode):  # type: ignore[no-untyped-call]
    """Hands every call to a check."""

    def __init__(self, check: OverflowCheck) -> None:
        super().__init__()
        self.step = 1
        self.notes: set[str] = set()
        self._check = check
        self._plans: dict[Any, OperatorPlan | None] = {}
        self._unchecked: set[int] = set()  # operators, by their numbers; `_plans` keeps them
        self._process = os.getpid()
        self._has_cuda = torch.cuda.is_available()

    def switch_off(self) -> None:
        """Stop checking."""
        super().switch_off()
        self._process = -1  # threads that still have the mode on their stack
        if has_compiled():
            self.notes.add("compiled")

    def observe(self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make the call, and check it."""
        if self._process != os.getpid() or id(func) in self._unchecked:
            return func(*args, **kwargs)
        if types and any(kind.__name__ != _FAKE and has_own_operators(kind) for kind in types):
            return NotImplemented  # nested, distributed: what the tensor's class calls instead is seen
        if func not in self._plans:
            self._plans[func] = plan_of(func)
        plan = self._plans[func]
        if plan is None:
            self.notes.add("higher_order")
            return func(*args, **kwargs)
        if not is_checked(plan):
            self._unchecked.add(id(func))
            return func(*args, **kwargs)
        if types and any(kind.__name__ == _FAKE for kind in types):
            return func(*args, **kwargs)
        return self._checked(plan, args, kwargs)

    def _checked(self, plan: OperatorPlan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        call = self._begun(plan, args, kwargs)
        result = plan.func(*args, **kwargs)
        if call is not None:
            try:
                self._check.after(call, result)
            except Exception as error:  # what we can't check must not end the program
                self.notes.add(f"{plan.operator}: not checked: {type(error).__name__}: {error}")
        return result

    def _begun(self, plan: OperatorPlan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CheckedCall | None:
        """None: it can't be checked. While a graph of a device is captured, nothing is computed."""
        if self._has_cuda and torch.cuda.is_current_stream_capturing():
            self.notes.add("graphs")
            return None
        try:
            call = CheckedCall(plan, args, kwargs)
            call.step = self.step
            call.site = self.where.site()
            self._check.before(call)
        except Exception as error:
            self.notes.add(f"{plan.operator}: not checked: {type(error).__name__}: {error}")
            return None
        return call


# Writes one call with the contents of its tensors, as a record that `ferry case`, `ferry replay` and
# h5py read.

_RoleOf = Callable[[torch.Tensor], str]


def save_call(path: Path, header: RecordHeader, call: CheckedCall, role_of: _RoleOf) -> None:
    """Inputs as they were before the call, outputs as they are."""
    writer = RecordWriter(path, header)
    layouts, reader, numbers = Layouts(host_devices()), MemoryReader(), itertools.count(1)

    def record(name: str, tensor: torch.Tensor, is_as_it_was: bool) -> TensorRecord:
        layout, number = layouts.of_any(tensor), next(numbers)
        unread = layout.unread or ("" if is_as_it_was else OVERWRITTEN)
        found = layout.record(name, role_of(tensor), unread)
        if unread:
            return found
        return replace(
            found, content=number, offset=writer.append_memory(reader.address(tensor, layout), layout.nbytes)
        )

    try:
        with unobserved():
            readable = {name for name, _ in call.read_inputs()}
            inputs = [record(name, tensor, name in readable) for name, tensor in call.inputs]
            outputs = [record(name, tensor, True) for name, tensor in call.outputs]
        numbering = Numbering()
        arguments = tuple((name, numbering.value(value)) for name, value in call.arguments)
        refs = tuple(TensorRef(place) for place in range(call.answered))  # then comes what else it wrote to
        site = call.site
        made = Call(
            1, call.plan.operator, call.step, site.phase, site.model, site.module, site.place, site.node,
            arguments, tuple(inputs), tuple(outputs), refs[0] if len(refs) == 1 else refs,
        )  # fmt: skip
        writer.write(made)
    finally:
        writer.close()


_FOUND_CODE = 1  # the launchers of other processes end those, too: they would wait for this one for ever


_NOT_SAVED = Text("{path}: {reason}; the inputs are not saved", "{path}：{reason}；未保存输入")


class OverflowPart(RecordingPart):
    """Checks the operators of a process, and tells the launcher what it finds."""

    def __init__(self, settings: OverflowSettings) -> None:
        self._settings = settings
        self._header = header_of(Kept.TENSORS, settings)
        self._steps = 0
        check = CheckOptions(settings.last, settings.half, settings.strict)
        self._check = OverflowCheck(check, self._save, self._found)
        self._mode = CheckingMode(self._check)
        self._path: Path | None = None  # of the record, once there is one
        self._end = End.UNFINISHED
        self._early_end: EarlyEnd | None = None

    def start(self, step: int) -> None:
        self._mode.step = step
        watch_scalers(self._check.scaled)
        self._write()
        self._mode.switch_on()

    def next_step(self, step: int, updates: int) -> None:
        if self._early_end is not None:  # the program has caught what was to end it
            self._early_end.ask()
        self._mode.step = step
        self._check.settle()
        self._steps = updates
        wanted = self._settings.updates
        if wanted is not None and self._steps >= wanted:
            self._finish(End.STEPS)
            self._early_end = EarlyEnd()
            self._early_end.ask()
        self._write()

    def stop(self) -> None:
        self._finish(End.PROGRAM)

    def abandon(self) -> None:
        self._mode.take_off()
        self._mode.where.unwatch()
        self._settings = replace(self._settings, folder="", output="")
        self._path = None

    def out_of_sight(self) -> AbstractContextManager[Any]:
        return self._mode.out_of_sight()

    def findings(self) -> OverflowFindings:
        """What was found so far."""
        return OverflowFindings(
            self._header.program,
            self._header.device,
            self._header.torch,
            self._header.rank,
            self._header.world,
            self._steps,
            self._check.operators,
            self._end,
            self._settings.half,
            tuple(self._check.events),
            self._check.skipped_steps,
            self._check.largest,
            self._check.underflow,
            tuple(sorted(self._mode.notes)),
        )

    def _finish(self, end: End) -> None:
        if self._end is not End.UNFINISHED:
            return
        self._end = end
        with suppress(SystemExit):  # it ends anyway
            self._check.leave()
        self._mode.switch_off()
        unwatch_scalers(self._check.scaled)
        if self._path is not None and self.findings().first is None:
            self._path.unlink(missing_ok=True)
        self._write()

    def _found(self, event: OverflowEvent) -> None:
        if self._settings.keep_going or self._end is not End.UNFINISHED:
            self._write()
            return
        self._end = End.FOUND
        self._mode.switch_off()
        unwatch_scalers(self._check.scaled)
        self._write()
        self._early_end = EarlyEnd(_FOUND_CODE)
        self._early_end.ask()

    def _save(self, call: CheckedCall) -> str:
        if not self._settings.output:
            return ""
        if self._path is None:
            self._path = RecordOutput(self._settings, self._header.rank, self._header.world).path
        try:
            save_call(self._path, self._header, call, self._mode.where.role_of)
        except OSError as error:
            said = _NOT_SAVED.format(path=self._path, reason=system_reason(error))
            print(f"torchferry: {said.in_language(user_language())}", file=sys.stderr)
            return ""
        return str(self._path)

    def _write(self) -> None:
        """Whole or not at all."""
        if not self._settings.folder:
            return
        path = Path(self._settings.folder) / f"{self._header.rank}-{os.getpid()}{SUFFIX}"
        write_whole(path, encode(self.findings()).encode())


# The check of a block of code, for programs that ask for it themselves.


class CheckedBlock:
    """Prints the first operator that overflows, and saves its inputs; the program goes on."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._check = OverflowCheck(CheckOptions(), self._save, self._tell)
        self._mode = CheckingMode(self._check)

    @property
    def events(self) -> tuple[OverflowEvent, ...]:
        """All overflows that were found so far."""
        return tuple(event for event in self._check.events if event.standing is Standing.FOUND)

    def __enter__(self) -> CheckedBlock:
        watch_scalers(self._check.scaled)
        self._mode.switch_on()
        return self

    def __exit__(self, *error: object) -> None:
        self._mode.switch_off()
        unwatch_scalers(self._check.scaled)
        self._check.leave()
        if self._path is not None and not self.events:
            self._path.unlink(missing_ok=True)  # a scaler has handled it

    def _tell(self, event: OverflowEvent) -> None:
        if len(self.events) == 1:
            line, place = (said.in_language(user_language()) for said in (headline(event), where(event.call)))
            print(f"torchferry: {line} ({place})", file=sys.stderr, flush=True)

    def _save(self, call: CheckedCall) -> str:
        if self._path is None:
            return ""
        save_call(self._path, header_of(Kept.TENSORS), call, self._mode.where.role_of)
        return str(self._path)
