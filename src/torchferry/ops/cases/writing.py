"""Writes a case as a file of tests that needs nothing but torch, and TorchFerry for the simulated device."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from torchferry.ops.cases import comparing_text
from torchferry.ops.cases.layout_text import Group, Item, Pair, call, quoted, sequence, statement
from torchferry.ops.cases.model import CalleeKind, Case, CaseValue, Draw, Facts, TensorInput, tensors_in
from torchferry.ops.cases.tensor_text import is_inline, lines_for, written
from torchferry.report.safe import one_line

Style = Literal["pytest", "unittest"]
VARIABLE = "TORCHFERRY_CASE_TO"
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
class Frame:
    """What surrounds the call in the file."""

    target: Platform
    platforms: tuple[Platform, ...]  # that the file can be run on, the target among them
    style: Style = "pytest"
    modules: tuple[str, ...] = ()  # imported once the device is there
    vendor_paths: tuple[str, ...] = ()
    forward_only: bool = False
    command: str = ""  # that made it
    file_name: str = "test_case.py"


def short_name(case: Case) -> str:
    """The operator's name as part of a file's or a function's name: max_dim."""
    last = re.split(r"::|:", case.callee.name)[-1]
    last = re.sub(r"^(aten|torch|nn|functional|Tensor|F)\.", "", re.sub(r".*\.(?=[A-Z])", "", last))
    last = last.rpartition("functional.")[2] if "functional." in last else last
    return re.sub(r"\W+", "_", last).strip("_").lower() or "operator"


def data_name(file_name: str) -> str:
    """The file of recorded tensors that belongs to a case's file."""
    return f"{Path(file_name).stem}.pt"


def render(case: Case, facts: Facts, frame: Frame) -> str:
    """The whole file."""
    tests = _unittest_class if frame.style == "unittest" else _test_functions
    parts = [
        _head(case, frame),
        _constants(case, facts, frame),
        *(["DATA = Path(__file__).with_suffix('.pt')".replace("'", '"')] if kept_tensors(case) else []),
    ]
    functions = [_inputs(case), *([_STORED] if kept_tensors(case) else []), _operator(case), _PLACE]
    functions += tests(case, facts, frame)
    library = "# How results are compared: the same in every case.\n\n" + comparing_text.library()
    text = "\n".join(parts) + "\n\n\n" + "\n\n\n".join(functions) + "\n\n\n" + library
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

_MAIN = """

if __name__ == "__main__":
    unittest.main()
"""


def _head(case: Case, frame: Frame) -> str:
    name = one_line(case.callee.name).replace("\\", "\\\\").replace('"', "'")
    program = "python" if frame.style == "unittest" else "pytest"
    run = f"{program} {shlex.quote(Path(frame.file_name).name)}"
    imports = ["contextlib", "copy", "dataclasses", "importlib", "math", "os"]
    imports += [*(["sys"] if case.callee.path else []), "unittest"]
    lines = [f'"""{name}: a device against the CPU."""', ""]
    if frame.command:
        lines += [f"# Made by: {one_line(frame.command)}"]
    lines += [f"# Run it:  {one_line(run)}", f"# On another device: {VARIABLE}=VENDOR {one_line(run)}", ""]
    lines += ["from __future__ import annotations", "", *(f"import {module}" for module in imports)]
    lines += [*(["from pathlib import Path"] if kept_tensors(case) else []), "from typing import Any", ""]
    return "\n".join([*lines, "import torch", "from torch import Tensor", ""])


def _constants(case: Case, facts: Facts, frame: Frame) -> str:
    values = "nothing" if facts.uninitialised else "distribution" if facts.random else "close"
    rows: list[Item] = [
        Pair(f"{quoted(each.vendor)}: ", f"({quoted(each.plugin)}, {quoted(each.device_type)})")
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


def _tuple(words: tuple[str, ...]) -> Group:
    return Group("(", tuple(map(quoted, words)), ")")


def _inputs(case: Case) -> str:
    names: dict[int, str] = {}
    lines: list[str] = []
    labelled = [(f"input{index}", value) for index, value in enumerate(case.args)]
    for label, value in [*labelled, *case.kwargs]:
        for tensor, name in _tensor_names(label, value):
            names[id(tensor)] = name
            lines += lines_for(name, tensor, case.stored)
    if any("generator=random" in line for line in lines):
        lines.insert(0, f"    random = torch.Generator().manual_seed({case.seed})")
    args = sequence([written(value, names) for value in case.args])
    pairs = [Pair(f"{quoted(name)}: ", written(value, names)) for name, value in case.kwargs]
    lines += [
        statement("args: list[Any] = ", args),
        statement("kwargs: dict[str, Any] = ", Group("{", tuple(pairs), "}")),
        "    return args, kwargs",
    ]
    said = '    """What the operator is called with, on the CPU."""'
    return "\n".join(["def inputs() -> tuple[list[Any], dict[str, Any]]:", said, *lines])


def _tensor_names(label: str, value: CaseValue) -> list[tuple[TensorInput, str]]:
    """A variable for each tensor; those of a list are numbered."""
    if isinstance(value, TensorInput):
        return [(value, label if label.startswith("input") else f"the_{label}")]
    return [(tensor, f"{label}_{number}") for number, tensor in enumerate(tensors_in(value))]


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
        written(value, {}) if name.isdigit() else Pair(f"{name}=", written(value, {}))
        for name, value in case.init
    ]
    lines += [f"    torch.manual_seed({case.seed})", statement("return ", call(callee.expression, *items))]
    return "\n".join(lines)


def _has_backward(facts: Facts, frame: Frame) -> bool:
    is_comparable = not facts.random and not facts.uninitialised
    return facts.differentiable and is_comparable and not frame.forward_only


def _test_functions(case: Case, facts: Facts, frame: Frame) -> list[str]:
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
    return functions


def _unittest_class(case: Case, facts: Facts, frame: Frame) -> list[str]:
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
    return [lines]
