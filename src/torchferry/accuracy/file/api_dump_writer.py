"""Writes a record in the form of msprobe's dumps: DIR/step0/rank0/dump.json, stack.json, construct.json, tensors."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from torchferry.accuracy.file.api_dump import INPUTS, OUTPUTS, ApiDumpRecord
from torchferry.accuracy.file.api_folders import DUMP, MODULES, STACKS, TENSORS
from torchferry.accuracy.file.api_names import BACKWARD, FORWARD, parsed_name
from torchferry.accuracy.file.reader import Record
from torchferry.accuracy.file.saved_tensors import UnreadableTensorError
from torchferry.accuracy.model import INPUT, OUTPUT, Call, Kept, TensorRecord, TensorRef, Value
from torchferry.accuracy.native.library import NUMBERS, statistics_of
from torchferry.accuracy.native.standin import values_of
from torchferry.readiness.model import Special

_LIBRARY = "Aten"  # msprobe's word for operators, as opposed to functions
_PARAMETERS = "parameters."
_RELEASED = 64  # calls after which memory is given back
_CONTAINER = "Module"  # in the place of a module's class, which records do not tell
Progress = Callable[[int, int], None]


def write_api_dump(record: Record, folder: Path, progress: Progress | None = None) -> int:
    """Write the calls of a record into a new folder; how many tensors."""
    count, step, number = 0, None, -1
    names = _Names(record.of_apis)
    with ExitStack() as stack:
        for done, call in enumerate(record.calls, 1):
            if step is None or call.step != number:
                stack.close()
                number = call.step
                place = folder / f"step{number - 1}" / f"rank{record.header.rank}"
                step = stack.enter_context(_StepFiles(place, record))
                names.start()
            count += step.add(call, names.of(call))
            if progress is not None:
                progress(done, len(record.calls))
            if done % _RELEASED == 0:
                record.release()
    return count


class _Names:
    """Names of calls, counted for each operator from 0 in each step."""

    def __init__(self, are_kept: bool) -> None:
        self._are_kept = are_kept
        self._counts: Counter[tuple[str, str]] = Counter()

    def start(self) -> None:
        """Begin another step."""
        self._counts.clear()

    def of(self, call: Call) -> str:
        """The name of the next call: that of the dump it comes from, or Aten.convolution.0.forward."""
        if self._are_kept and call.node:
            return call.node
        library, _, operator = call.operator.partition("::")
        name = f"{_LIBRARY if library == 'aten' else library}.{operator or library}"
        phase = BACKWARD if call.phase == BACKWARD else FORWARD
        number = self._counts[name, phase]
        self._counts[name, phase] += 1
        return f"{name}.{number}.{phase}"


class _Members:
    """A JSON object that is written member by member."""

    def __init__(self, file: IO[str], start: str, end: str) -> None:
        self._file, self._end, self._separator = file, end, "\n"
        file.write(start)

    def add(self, name: str, value: Any) -> None:
        """Write the next one."""
        self._file.write(f"{self._separator}  {json.dumps(name)}: {json.dumps(value)}")
        self._separator = ",\n"

    def end(self) -> None:
        """Close the object."""
        self._file.write(self._end)


class _StepFiles:
    """The files of one step."""

    def __init__(self, folder: Path, record: Record) -> None:
        self._folder, self._record = folder, record
        self._has_tensors = record.header.kept is not Kept.STATISTICS
        self._stacks: dict[str, list[str]] = {}

    def __enter__(self) -> _StepFiles:
        self._folder.mkdir(parents=True)
        if self._has_tensors:
            (self._folder / TENSORS).mkdir()
        self._file = (self._folder / DUMP).open("w", encoding="utf-8")
        self._modules = (self._folder / MODULES).open("w", encoding="utf-8")
        head = {
            "task": "tensor" if self._has_tensors else "statistics",
            "level": "mix" if self._record.of_apis else "L1",
            "framework": "pytorch",
            "dump_data_dir": TENSORS if self._has_tensors else None,
        }
        self._calls = _Members(self._file, json.dumps(head)[:-1] + ',\n "data": {', "\n }\n}\n")
        self._parents = _Members(self._modules, "{", "\n}\n")
        return self

    def __exit__(self, *error: object) -> None:
        self._calls.end()
        self._parents.end()
        self._file.close()
        self._modules.close()
        grouped = {str(at): [names, [place]] for at, (place, names) in enumerate(self._stacks.items())}
        (self._folder / STACKS).write_text(json.dumps(grouped, indent=1) + "\n", encoding="utf-8")

    def add(self, call: Call, name: str) -> int:
        """Write a call; how many tensors were kept with it."""
        described = _DescribedCall(self._record, call, name, self._folder / TENSORS, self._has_tensors)
        self._calls.add(name, described.entry())
        phase = BACKWARD if call.phase == BACKWARD else FORWARD
        is_inside = call.module and call.module != call.model and not parsed_name(name).is_module
        self._parents.add(name, f"Module.{call.module}.{_CONTAINER}.{phase}.0" if is_inside else None)
        if call.place:
            file, _, line = call.place.rpartition(":")
            frame = f"File {file}, line {line}, in <module>, \n {call.operator}"
            self._stacks.setdefault(frame, []).append(name)
        return described.kept


class _DescribedCall:
    """A call as dump.json has it."""

    def __init__(self, record: Record, call: Call, name: str, folder: Path, has_tensors: bool) -> None:
        self._record, self._call, self._name = record, call, name
        self._folder, self._has_tensors = folder, has_tensors
        self.kept = 0

    def entry(self) -> dict[str, Any]:
        """Its members."""
        call = self._call
        results = call.results if isinstance(call.results, tuple) else (call.results,)
        named = set(_references(results))
        written = [TensorRef(at) for at in range(len(call.outputs)) if at not in named]
        outputs = [*(results if call.results is not None else ()), *written]
        if parsed_name(self._name).is_gradients:
            return {
                tensor.name.rpartition("/")[2]: [self._tensor(tensor, f".{tensor.name.rpartition('/')[2]}")]
                for tensor in call.outputs
            }
        described = [self._value(each, OUTPUT, f".{at}") for at, each in enumerate(outputs)]
        if call.phase == BACKWARD:
            inputs = [self._value(value, INPUT, f".{at}") for at, (_, value) in enumerate(call.arguments)]
            return {"input": inputs, "output": described}
        return {**self._inputs(), "output": described}

    def _inputs(self) -> dict[str, Any]:
        positional: list[Any] = []
        named: dict[str, Any] = {}
        parameters: dict[str, Any] = {}
        for name, value in self._call.arguments:
            if name.startswith(_PARAMETERS):
                short = name.removeprefix(_PARAMETERS)
                parameters[short] = self._value(value, INPUT, f".{short}", "parameters")
            elif name == f"{INPUT}_{len(positional)}":
                positional.append(self._value(value, INPUT, f".{len(positional)}"))
            else:
                named[name] = self._value(value, INPUT, f".{name}")
        found = {"input_args": positional, "input_kwargs": named}
        return {**found, "parameters": parameters} if parameters else found

    def _value(self, value: Value, side: str, place: str, word: str = "") -> Any:
        if isinstance(value, TensorRef):
            tensors = self._call.inputs if side == INPUT else self._call.outputs
            return self._tensor(tensors[value.index], f".{word or side}{place}")
        if isinstance(value, tuple):
            return [self._value(each, side, f"{place}.{at}", word) for at, each in enumerate(value)]
        if isinstance(value, Special):
            return {"type": f"torch.{value.kind}", "value": value.text}
        return None if value is None else {"type": type(value).__name__, "value": value}

    def _tensor(self, tensor: TensorRecord, place: str) -> dict[str, Any]:
        described: dict[str, Any] = {
            "type": "torch.Tensor",
            "dtype": f"torch.{tensor.dtype}",
            "shape": list(tensor.shape),
            **_figures(self._record, tensor),
            "requires_grad": tensor.role == "parameter",
        }
        if self._has_tensors and tensor.offset is not None and 0 not in tensor.shape:
            file = f"{self._name}{place}.pt"
            if self._save(tensor, self._folder / file):
                described["data_name"] = file
        return described

    def _save(self, tensor: TensorRecord, file: Path) -> bool:
        import torch

        try:
            values = self._record.tensor(tensor)
        except UnreadableTensorError:
            return False
        torch.save(values.contiguous(), file)
        self.kept += 1
        return True


def _references(values: Sequence[Value]) -> Iterator[int]:
    for value in values:
        if isinstance(value, TensorRef):
            yield value.index
        elif isinstance(value, tuple):
            yield from _references(value)


_NAMES = ("Max", "Min", "Mean", "Norm")


def _figures(record: Record, tensor: TensorRecord) -> dict[str, float | None]:
    """As msprobe has them: with a NaN all are NaN, and infinities count."""
    known = tensor.statistics
    if known is None and tensor.offset is not None:
        try:
            array = record.array(tensor)
        except UnreadableTensorError:
            return dict.fromkeys(_NAMES)
        known = statistics_of(array.ctypes.data, tensor.dtype, array.size)
        if known.infinities and not known.nans and not tensor.dtype.startswith("complex"):
            return _of_infinities(array, tensor.dtype)
    if known is None or not known.count or tensor.dtype.startswith("complex"):
        return dict.fromkeys(_NAMES)
    if known.nans:
        return dict.fromkeys(_NAMES, math.nan)
    repeated = math.prod(tensor.shape) / max(known.count, 1)
    figures = (known.maximum, known.minimum, known.mean, known.norm * math.sqrt(repeated))
    return {name: None if math.isnan(each) else each for name, each in zip(_NAMES, figures, strict=True)}


def _of_infinities(array: np.ndarray[Any, Any], dtype: str) -> dict[str, float | None]:
    values = values_of(array, NUMBERS[dtype])
    with np.errstate(all="ignore"):
        mean = float(values.mean())
    return {"Max": float(values.max()), "Min": float(values.min()), "Mean": mean, "Norm": math.inf}


# What a dump says of a call, taken apart again into what stands in a row of a table.


@dataclass(frozen=True, slots=True)
class ApiValue:
    """A tensor or another argument of a call, as dump.json describes it."""

    tensor: str  # the name that a tensor of this place has in a record
    described: dict[str, Any]


def described_call(record: Record, call: Call) -> dict[str, Any]:
    """What dump.json says of a call, or would say."""
    if isinstance(record, ApiDumpRecord):
        return record.described(call)
    return _DescribedCall(record, call, call.node, Path(), has_tensors=False).entry()


def named_values(entry: dict[str, Any]) -> dict[str, ApiValue]:
    """Tensors and arguments by name, as input.0, parameters.weight, output.1.0."""
    found: dict[str, ApiValue] = {}
    for key, value in entry.items():
        side = OUTPUT if key in OUTPUTS else INPUT
        if key == "parameters":
            _add(found, value, "parameters", f"{side}/parameters.", side)
        elif key in (*INPUTS, *OUTPUTS):
            _add(found, value, side, f"{side}/", side)
        elif isinstance(value, list):  # gradients, by the name of the parameter
            _add(found, value[0] if len(value) == 1 else value, key, f"{OUTPUT}/{key}", "")
    return found


def _add(found: dict[str, ApiValue], value: Any, name: str, tensor: str, first: str) -> None:
    """`first`: what places are counted with on the first level, as input_0."""
    if isinstance(value, dict) and ("dtype" in value or isinstance(value.get("type"), str)):
        found[name] = ApiValue(tensor, value)
    elif isinstance(value, dict):
        for key, each in value.items():
            _add(found, each, f"{name}.{key}", f"{tensor}{key}" if first else f"{tensor}/{key}", "")
    elif isinstance(value, list):
        short = first or tensor.rpartition("/")[2]
        for at, each in enumerate(value):
            place = f"{tensor}{short}_{at}" if first else f"{tensor}/{short}_{at}"
            _add(found, each, f"{name}.{at}", place, "")
