"""Options of a script's own command line for the level and the loss scale of apex."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from torchferry.convert.amp.changes import Changes
from torchferry.convert.blocks import FUNCTIONS, statements_below
from torchferry.convert.program import Program, Routine, calls_in, last_name, method_of, text_of
from torchferry.text import Text

_ADDED = Text("options for the level and the loss scale of apex", "apex 的级别与损失缩放选项")
OPTIONS = (
    "parser.add_argument('--opt-level', default='O2', type=str, help='level of apex: O0, O1, O2 or O3')",
    "parser.add_argument('--loss-scale', default='dynamic', type=str, help='loss scale of apex: a number or dynamic')",
)


@dataclass(frozen=True)
class Values:
    """The expressions that apex is given."""

    opt_level: str = '"O2"'
    loss_scale: str = '"dynamic"'


def scale_options(program: Program, changes: Changes, routine: Routine) -> Values:
    """Add the options where a routine can read the parsed arguments; constants where it can't."""
    parsers = [
        statement
        for statement in program.statements
        if isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Call)
        and program.qualified(statement.value.func, program.routine_of(statement))
        == "argparse.ArgumentParser"
    ]
    name = _arguments_name(program, routine)
    if len(parsers) != 1 or not name or not isinstance(parsers[0].targets[0], ast.Name):
        return Values()
    _add_options(program, changes, parsers[0], parsers[0].targets[0].id)
    return Values(f"{name}.opt_level", f"{name}.loss_scale")


def _arguments_name(program: Program, routine: Routine) -> str:
    """What a routine calls the parsed arguments."""
    for statement in program.statements:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            if _is_parsed(statement.value, program, statement) and program.scopes[routine].owner_of(name):
                return name
    return ""


def _is_parsed(value: ast.expr, program: Program, statement: ast.stmt) -> bool:
    if not isinstance(value, ast.Call):
        return False
    if method_of(value) == "parse_args":
        return True
    function = program.definition(value.func, program.routine_of(statement))
    return isinstance(function, FUNCTIONS) and any(
        method_of(call) == "parse_args" for item in statements_below(function) for call in calls_in(item)
    )


def _add_options(program: Program, changes: Changes, parser: ast.stmt, name: str) -> None:
    """Below the last option that is added beside the parser."""
    last = parser
    for statement in program.tree.position(parser).block:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            call = statement.value
            if method_of(call) == "add_argument" and last_name(call.func.value) == name:  # type: ignore[attr-defined]
                last = statement
    present = text_of(program.module.tree)
    change = changes.at(last, _ADDED)
    for option in OPTIONS:
        if f"'{option.split(chr(39))[1]}'" not in present:
            text = option.replace("parser", name, 1)
            change.edits.append(changes.below(last, text.replace("'", _quote(program, last))))


def _quote(program: Program, statement: ast.stmt) -> str:
    """The quotation mark that the options beside use."""
    text = program.module.segment(statement)
    return "'" if "'" in text or '"' not in text else '"'
