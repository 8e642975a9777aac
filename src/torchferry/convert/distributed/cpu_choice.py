"""Programs that can be told to stay on the CPU although there is a card."""

from __future__ import annotations

import ast
import re

from torchferry.convert.distributed.program import Program, ProgramFile
from torchferry.source.names import called_name

_SWITCH = re.compile(r"(?i)cuda|cpu|gpu|device")
_ASKED = re.compile(r"(?i)cuda|gpu")


def may_stay_on_cpu(program: Program) -> bool:
    """Whether an option, a setting or a test of the program chooses between the card and the CPU."""
    return any(_has_option(file) or _has_test(file) or _has_device(file) for file in program.files.values())


def _has_option(file: ProgramFile) -> bool:
    """--no-cuda, --device; not --gpu with a number."""
    return any(
        called_name(call) in ("add_argument", "option")
        and any(isinstance(item, ast.Constant) and _SWITCH.search(str(item.value)) for item in call.args)
        and not any(
            keyword.arg == "type" and file.module.segment(keyword.value) == "int" for keyword in call.keywords
        )
        for call in file.calls
    )


def _has_test(file: ProgramFile) -> bool:
    """`if args.cuda:`, `if use_gpu:`."""
    tests = [statement.test for statement in file.statements if isinstance(statement, ast.If)]
    return any(
        isinstance(test, (ast.Name, ast.Attribute, ast.Subscript))
        and _ASKED.search(file.module.segment(test))
        for test in tests
    )


def _has_device(file: ProgramFile) -> bool:
    """`torch.device(config["device"])`."""
    return any(
        file.qualified(call.func) == "torch.device"
        and bool(call.args)
        and isinstance(call.args[0], (ast.Name, ast.Attribute, ast.Subscript))
        for call in file.calls
    )
