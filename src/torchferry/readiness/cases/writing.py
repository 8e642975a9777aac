"""Writes a case as a file of tests that needs nothing but torch, and TorchFerry for the simulated device."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from torchferry.errors import InputError, not_writable
from torchferry.files.aside import whole_file
from torchferry.readiness.cases import notation
from torchferry.readiness.cases.model import (
    CalleeKind,
    Case,
    CaseValue,
    Draw,
    TensorContents,
    TensorInput,
    TrialFacts,
    tensors_in,
)
from torchferry.readiness.model import Special
from torchferry.report.safe import one_line
from torchferry.text import Text
from torchferry.vendors.model import Vendor
from torchferry.vendors.registry import get_vendor, vendor_names

WIDTH = 88  # the narrowest that formatters are commonly set to
_STEP = 4


@dataclass(frozen=True)
class Bracketed:
    """Items in brackets: a call, a list, a dictionary."""

    opening: str  # torch.full(
    items: tuple[Item, ...]
    closing: str
    tail: str = ""  # what follows: .to(torch.int8)


@dataclass(frozen=True)
class NamedItem:
    """A name or a key before an item."""

    lead: str  # `dim=` or `"dim": `
    value: Item


Item = str | Bracketed | NamedItem


def statement(lead: str, value: Item, depth: int = 1) -> str:
    """`lead` and a value, indented, as a formatter leaves it: on one line if it fits, else one item for each line."""
    return _laid(value, " " * (_STEP * depth) + lead, depth, "")


def _laid(item: Item, lead: str, depth: int, closing: str) -> str:
    flat = lead + on_one_line(item) + closing
    if len(flat) <= WIDTH or isinstance(item, str):
        return flat
    if isinstance(item, NamedItem):
        return _laid(item.value, lead + item.lead, depth, closing)
    if not item.items:
        return flat
    inner = " " * (_STEP * (depth + 1))
    lines = [_laid(each, inner, depth + 1, ",") for each in item.items]
    last = " " * (_STEP * depth) + item.closing + item.tail + closing
    return "\n".join([lead + item.opening, *lines, last])


def on_one_line(item: Item) -> str:
    """The text without line breaks."""
    if isinstance(item, str):
        return item
    if isinstance(item, NamedItem):
        return item.lead + on_one_line(item.value)
    comma = "," if item.opening == "(" and len(item.items) == 1 else ""
    return item.opening + ", ".join(map(on_one_line, item.items)) + comma + item.closing + item.tail


def call(name: str, *items: Item, tail: str = "") -> Bracketed:
    """A call: name(items)."""
    return Bracketed(f"{name}(", items, ")", tail)


def sequence(items: Sequence[Item]) -> Bracketed:
    """A list: [items]."""
    return Bracketed("[", tuple(items), "]")


def quoted(text: str) -> str:
    """A string as formatters write it."""
    plain = text.isprintable() and '"' not in text and "\\" not in text
    return f'"{text}"' if plain else repr(text)


MOST_INLINE = 16  # elements of a recorded tensor that are written into the file itself
_EVERY = 7  # special values take the place of each seventh element
_DRAWN_DIRECTLY = (*notation.FLOATS, "complex64", "complex128")


def lines_for(name: str, tensor: TensorInput, stored: Mapping[str, Any]) -> list[str]:
    """Statements that make one tensor."""
    size = f"({', '.join(map(str, tensor.shape))}{',' if len(tensor.shape) == 1 else ''})"
    memory = size if tensor.is_plain else f"({tensor.span},)"
    made = _made(tensor, memory, stored)
    if tensor.is_plain:
        return [statement(f"{name} = ", made), *_special(name, tensor.contents, ".view(-1)")]
    lines = [statement("memory = ", made), *_special("memory", tensor.contents, "")]
    stride = f"({', '.join(map(str, tensor.strides))}{',' if len(tensor.shape) == 1 else ''})"
    offset = [str(tensor.offset)] if tensor.offset else []
    return [*lines, statement(f"{name} = ", call("memory.as_strided", size, stride, *offset))]


def is_inline(tensor: TensorInput) -> bool:
    """Whether recorded contents are written into the file itself."""
    return tensor.contents.draw is Draw.STORED and tensor.span <= MOST_INLINE


def written(value: CaseValue, tensors: Mapping[int, str]) -> Item:
    """A value as Python; tensors by the names of their variables, found by identity."""
    if isinstance(value, TensorInput):
        return tensors[id(value)]
    if isinstance(value, tuple):
        return sequence([written(item, tensors) for item in value])
    if isinstance(value, Special):
        if value.kind in ("dtype", "memory_format", "layout"):
            return f"torch.{value.text.removeprefix('torch.')}"
        if value.kind == "device":
            return 'torch.device("cpu")'
        if value.kind == "generator":
            return "None"
        if value.kind != "complex":
            raise InputError(
                Text(
                    f"an argument is a {value.kind}, which a case can't create; choose another call",
                    f"有参数是 {value.kind}，用例无法创建；请选择其他调用",
                )
            )
        value = complex(value.text)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, complex):
        return f"complex({_number(value.real)}, {_number(value.imag)})"
    return _number(value) if isinstance(value, float) else repr(value)


def _made(tensor: TensorInput, size: str, stored: Mapping[str, Any]) -> Bracketed:
    contents, dtype = tensor.contents, f"torch.{tensor.dtype}"
    convert = f".to({dtype})"
    if contents.draw is Draw.STORED:
        return _recorded(tensor, stored, convert)
    if contents.draw is Draw.FULL:
        value = _number(contents.low)
        if tensor.dtype == "bool":
            value = str(bool(contents.low))
        elif not notation.is_floating(tensor.dtype) and math.isfinite(contents.low):
            value = str(int(contents.low))
        return call("torch.full", size, value, f"dtype={dtype}")
    if contents.draw is Draw.ARANGE:
        return call("torch.arange", str(tensor.span), tail=f".reshape({size}){convert}")
    generator = "generator=random"
    if contents.draw is Draw.INTS:
        bounds = (str(int(contents.low)), str(int(contents.high)))
        tail = "" if tensor.dtype == "int64" else convert
        return call("torch.randint", *bounds, size, generator, tail=tail)
    if contents.draw is Draw.UNIFORM:
        bounds = (_number(contents.low), _number(contents.high))
        drawn = on_one_line(call(f"torch.empty({size}).uniform_", *bounds, generator))
        return Bracketed(drawn, (), "", "" if tensor.dtype == "float32" else convert)
    if tensor.dtype in _DRAWN_DIRECTLY:
        return call("torch.randn", size, generator, f"dtype={dtype}")
    return call("torch.randn", size, generator, tail=" > 0" if tensor.dtype == "bool" else convert)


def _recorded(tensor: TensorInput, stored: Mapping[str, Any], convert: str) -> Bracketed:
    size = ", ".join(map(str, tensor.shape))
    shape = "" if not tensor.is_plain or len(tensor.shape) == 1 else f".reshape(({size}))"
    if not is_inline(tensor):
        return call("stored", quoted(tensor.contents.key), tail=shape)
    numbers = stored[tensor.contents.key].tolist()
    items = [str(written(number, {})) for number in numbers]
    plain = tensor.dtype not in notation.SMALL_FLOATS and tensor.dtype != "complex32"
    dtype = (f"dtype=torch.{tensor.dtype}",) if plain else ()
    return call("torch.tensor", sequence(items), *dtype, tail=("" if plain else convert) + shape)


def _special(name: str, contents: TensorContents, view: str) -> list[str]:
    return [
        statement(f"{name}{view}[{start}::{_EVERY}] = ", _number(float(value)))
        for start, value in enumerate(contents.special)
    ]


def _number(value: float) -> str:
    return repr(value) if math.isfinite(value) else f'float("{value}")'


_BEGIN = "# --- the part that goes into a case begins here\n"
_REMARK = re.compile(r"  # noqa: \w+$", re.MULTILINE)  # for this repository's own checks


@cache
def library() -> str:
    """Everything that a case calls."""
    text = Path(__file__).with_name("comparing.py").read_text("utf-8")
    return _REMARK.sub("", text.partition(_BEGIN)[2].lstrip("\n"))


Style = Literal["pytest", "unittest"]
VARIABLE = "TORCHFERRY_CASE_TO"
TIME_TEST = "test_time"  # prints, and never fails
_COMPARED = {
    "close": "within tolerances",
    "distribution": "it draws random numbers: their distributions",
    "nothing": "the memory that it returns holds nothing in particular: shapes only",
}


@dataclass(frozen=True)
class Platform:
    """A vendor's device, as far as a case needs to know it."""

    vendor: str
    plugin: str
    device_type: str


@dataclass(frozen=True)
class FileFrame:
    """What surrounds the call in the file."""

    target: Platform
    platforms: tuple[Platform, ...]  # that the file can be run on, the target among them
    style: Style = "pytest"
    modules: tuple[str, ...] = ()  # imported once the device is there
    vendor_paths: tuple[str, ...] = ()
    forward_only: bool = False
    command: str = ""  # that made it
    file_name: str = "test_case.py"
    timed: bool = False  # with a test that prints what a call takes


def platforms_for(vendor: Vendor) -> tuple[Platform, tuple[Platform, ...]]:
    """The vendor's, and those on which a case's file can be run: of all vendors that are brought along."""
    known = {name: get_vendor(name) for name in vendor_names()} | {vendor.name: vendor}
    platforms = {name: Platform(name, each.plugin, each.device_type) for name, each in known.items()}
    return platforms[vendor.name], tuple(platforms[name] for name in sorted(platforms))


def short_name(case: Case) -> str:
    """The operator's name as part of a file's or a function's name: max_dim."""
    last = re.split(r"::|:", case.callee.name)[-1]
    last = re.sub(r"^(aten|torch|nn|functional|Tensor|F)\.", "", re.sub(r".*\.(?=[A-Z])", "", last))
    last = last.rpartition("functional.")[2] if "functional." in last else last
    return re.sub(r"\W+", "_", last).strip("_").lower() or "operator"


def data_name(file_name: str) -> str:
    """The file of recorded tensors that belongs to a case's file."""
    return f"{Path(file_name).stem}.pt"


def render(case: Case, facts: TrialFacts, frame: FileFrame) -> str:
    """The whole file of a case."""
    tests = _unittest_class if frame.style == "unittest" else _test_functions
    has_data = bool(kept_tensors(case))
    parts = [_head(case, frame), _constants(case, facts, frame)]
    parts += ['DATA = Path(__file__).with_suffix(".pt")'] if has_data else []
    functions = [_inputs(case), *([_STORED] if has_data else []), _operator(case), _PLACE]
    functions += [_SECONDS_OF] if frame.timed else []
    functions += tests(case, facts, frame)
    comparing = "# How results are compared: the same in every case.\n\n" + library()
    text = "\n".join(parts) + "\n\n\n" + "\n\n\n".join(functions) + "\n\n\n" + comparing
    return text + (_MAIN if frame.style == "unittest" else "")


def kept_tensors(case: Case) -> dict[str, object]:
    """The recorded tensors that go into a file of their own."""
    return {
        tensor.contents.key: case.stored[tensor.contents.key]
        for tensor in case.tensors
        if tensor.contents.draw is Draw.STORED and not is_inline(tensor)
    }


_STORED = '''def stored(key: str) -> Tensor:
    """A recorded tensor, from the file beside this one."""
    tensor: Tensor = torch.load(DATA, weights_only=True)[key]
    return tensor'''

_PLACE = '''def place() -> torch.device:
    """Where the operator is tested."""
    if VENDOR not in PLATFORMS:
        raise LookupError(f"no vendor {VENDOR}; there are {', '.join(PLATFORMS)}")
    return find_device(VENDOR, *PLATFORMS[VENDOR], MODULES, VENDOR_PATHS)'''

_SECONDS_OF = '''def seconds_of(device: torch.device) -> float:
    """What one call takes: the median of many, after a warm-up."""
    tested = placed(operator(), device)
    args, kwargs = moved(inputs(), device)
    wait = getattr(getattr(torch, device.type, None), "synchronize", lambda: None)
    rounds = []
    with torch.no_grad():
        for _ in range(20):
            start = time.perf_counter()
            for _ in range(10):
                tested(*args, **kwargs)
            wait()
            rounds.append((time.perf_counter() - start) / 10)
    return statistics.median(rounds[5:])


def print_times() -> None:
    """Prints the time of one call, forward, on the CPU and on the device."""
    for device in (CPU, place()):
        print(f"one call on {device.type}: {seconds_of(device) * 1e6:,.1f} us")'''

_TIME_TEST = '''def test_time() -> None:
    """Prints what a call takes, as with `pytest -s`; fails for no time."""
    print_times()'''

_MAIN = """

if __name__ == "__main__":
    unittest.main()
"""


def _head(case: Case, frame: FileFrame) -> str:
    name = one_line(case.callee.name).replace("\\", "\\\\").replace('"', "'")
    program = "python" if frame.style == "unittest" else "pytest"
    run = f"{program} {shlex.quote(Path(frame.file_name).name)}"
    imports = ["contextlib", "copy", "dataclasses", "importlib", "math", "os"]
    imports += ["statistics"] if frame.timed else []
    imports += ["sys"] if case.callee.path else []
    imports += ["time"] if frame.timed else []
    imports.append("unittest")
    lines = [f'"""{name}: a device against the CPU."""', ""]
    if frame.command:
        lines += [f"# Made by: {one_line(frame.command)}"]
    lines += [f"# Run it:  {one_line(run)}", f"# On another device: {VARIABLE}=VENDOR {one_line(run)}", ""]
    lines += ["from __future__ import annotations", "", *(f"import {module}" for module in imports)]
    lines += [*(["from pathlib import Path"] if kept_tensors(case) else []), "from typing import Any", ""]
    return "\n".join([*lines, "import torch", "from torch import Tensor", ""])


def _constants(case: Case, facts: TrialFacts, frame: FileFrame) -> str:
    values = "nothing" if facts.uninitialised else "distribution" if facts.random else "close"
    rows: list[Item] = [
        NamedItem(f"{quoted(each.vendor)}: ", f"({quoted(each.plugin)}, {quoted(each.device_type)})")
        for each in frame.platforms
    ]
    lines = [
        f'VENDOR = os.environ.get("{VARIABLE}", {quoted(frame.target.vendor)})',
        "# vendor: the plugin to import, the type of its device",
        "\n".join(["PLATFORMS = {", *(statement("", row) + "," for row in rows), "}"]),
        "# imported when the device is there",
        statement("MODULES: tuple[str, ...] = ", _tuple(frame.modules), 0),
        statement("VENDOR_PATHS: tuple[str, ...] = ", _tuple(frame.vendor_paths), 0),
        f"# what is compared of results: {_COMPARED[values]}",
        f'VALUES = "{values}"',
        f"IN_PLACE = {case.callee.in_place}  # whether the operator writes to its arguments",
    ]
    return "\n".join(lines)


def _tuple(words: tuple[str, ...]) -> Bracketed:
    return Bracketed("(", tuple(map(quoted, words)), ")")


def _inputs(case: Case) -> str:
    names: dict[int, str] = {}
    lines: list[str] = []
    labelled = [(f"input{index}", value) for index, value in enumerate(case.args)]
    for label, value in [*labelled, *case.kwargs]:
        for number, tensor in enumerate(tensors_in(value)):
            name = f"{label}_{number}"
            if tensor is value:
                name = label if label.startswith("input") else f"the_{label}"
            names[id(tensor)] = name
            lines += lines_for(name, tensor, case.stored)
    if any("generator=random" in line for line in lines):
        lines.insert(0, f"    random = torch.Generator().manual_seed({case.seed})")
    args = sequence([written(value, names) for value in case.args])
    pairs = [NamedItem(f"{quoted(name)}: ", written(value, names)) for name, value in case.kwargs]
    lines += [
        statement("args: list[Any] = ", args),
        statement("kwargs: dict[str, Any] = ", Bracketed("{", tuple(pairs), "}")),
        "    return args, kwargs",
    ]
    said = '    """What the operator is called with, on the CPU."""'
    return "\n".join(["def inputs() -> tuple[list[Any], dict[str, Any]]:", said, *lines])


def _operator(case: Case) -> str:
    callee = case.callee
    lines = ["def operator() -> Any:", '    """What is tested."""']
    if callee.path:
        lines.append(statement("", call("sys.path.insert", "0", quoted(callee.path))))
    lines += [f"    {line}" for line in callee.imports]
    lines += [""] if callee.imports else []
    if callee.kind is not CalleeKind.MODULE:
        return "\n".join([*lines, f"    return {callee.expression}"])
    items: list[Item] = [
        written(value, {}) if name.isdigit() else NamedItem(f"{name}=", written(value, {}))
        for name, value in case.init
    ]
    lines += [f"    torch.manual_seed({case.seed})", statement("return ", call(callee.expression, *items))]
    return "\n".join(lines)


def _has_backward(facts: TrialFacts, frame: FileFrame) -> bool:
    is_comparable = not facts.random and not facts.uninitialised
    return facts.differentiable and is_comparable and not frame.forward_only


def _test_functions(case: Case, facts: TrialFacts, frame: FileFrame) -> list[str]:
    functions = [
        '''def test_forward() -> None:
    """The device returns what the CPU returns."""
    check(forward, operator, inputs, place())'''
    ]
    if _has_backward(facts, frame):
        functions.append(
            '''def test_backward() -> None:
    """The gradients are those of the CPU."""
    check(backward, operator, inputs, place())'''
        )
    return [*functions, _TIME_TEST] if frame.timed else functions


def _unittest_class(case: Case, facts: TrialFacts, frame: FileFrame) -> list[str]:
    name = short_name(case)
    camel = "".join(word.capitalize() for word in name.split("_"))
    device = frame.target.device_type
    lines = f'''class Test{camel}(unittest.TestCase):
    """The same call on the CPU and on the device."""

    def cpu_op_exec(self) -> dict[str, Tensor]:
        return forward(operator(), inputs(), CPU)

    def {device}_op_exec(self) -> dict[str, Tensor]:
        return forward(operator(), inputs(), place())

    def test_{name}(self) -> None:
        reference = reference_of(forward, operator, inputs)
        compare_all(self.{device}_op_exec(), self.cpu_op_exec(), reference)'''
    if _has_backward(facts, frame):
        lines += f"""

    def test_{name}_backward(self) -> None:
        check(backward, operator, inputs, place())"""
    if frame.timed:
        lines += """

    def test_time(self) -> None:
        print_times()"""
    return [lines]


def write_case(case: Case, facts: TrialFacts, frame: FileFrame, path: Path) -> Path:
    """Write the tests of a case, and the recorded tensors beside them; each file appears whole or not at all.

    A file of tensors that an earlier case has left there is replaced or removed.
    """
    tensors = kept_tensors(case)
    data = path.with_name(data_name(path.name))
    try:
        if tensors:
            import torch

            with whole_file(data) as file:  # by name, torch refuses some
                torch.save(tensors, file)
        else:
            data.unlink(missing_ok=True)
        with whole_file(path) as file:
            file.write(render(case, facts, frame).encode())
        return path
    except OSError as error:  # of a file aside, whose name says nothing to a user
        raise not_writable(
            path, error, Text("choose another file with -o FILE", "请用 -o FILE 指定其他文件")
        ) from None
