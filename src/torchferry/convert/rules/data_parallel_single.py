"""TF711 (opt-in): torch.nn.DataParallel(model) becomes the model itself, on one card."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.convert.blocks import StatementTree, has_own_lines
from torchferry.convert.program import Program, calls_in
from torchferry.convert.rule import Proposal, Rule, register
from torchferry.convert.site import FileContext
from torchferry.finding import Kind
from torchferry.source.edits import Edit
from torchferry.text import Text

_SINGLE = Text(
    "the model itself, on one card: DataParallel is for several in one process. Checkpoints lose the prefix `module.` "
    "in their names; `ferry checkpoint fix --strip module.` takes it off older ones",
    "单卡上直接使用模型本身：DataParallel 用于单进程多卡。检查点中的名称不再带前缀 `module.`；"
    "旧检查点可用 `ferry checkpoint fix --strip module.` 去掉前缀",
)
_MODULE = Text(
    "`.module` was the model inside of DataParallel; on one card it is the model itself",
    "`.module` 原指 DataParallel 中的模型；单卡时即模型本身",
)
_NAMES = frozenset({"torch.nn.DataParallel", "torch.nn.parallel.DataParallel"})


def _restructure(context: FileContext) -> Iterator[Proposal]:
    program = Program(context)
    models: set[str] = set()
    for statement in program.statements:
        for call in calls_in(statement):
            if program.qualified(call.func, program.routine_of(statement)) in _NAMES and call.args:
                models.update(_targets(statement))
                yield context.propose(Kind.CHANGE, call, _SINGLE, *_edits(program, statement, call))
    is_wrapped_otherwise = b"DistributedDataParallel" in context.module.data
    for node in ast.walk(context.module.tree) if models else ():
        if isinstance(node, ast.Attribute) and node.attr == "module" and ast.unparse(node.value) in models:
            yield context.propose(Kind.INFO if is_wrapped_otherwise else Kind.TODO, node, _MODULE)


def _targets(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.Assign):
        yield from map(ast.unparse, statement.targets)


def _edits(program: Program, statement: ast.stmt, call: ast.Call) -> list[Edit]:
    """The argument in place of the call; nothing at all where that would be `model = model`."""
    module, model = program.module, call.args[0]
    start, end = module.start(model), module.end(model)
    is_itself = isinstance(statement, ast.Assign) and statement.value is call
    if is_itself and module.segment(model) in map(module.segment, getattr(statement, "targets", ())):
        return [_removal(program, statement)]
    return [Edit(module.start(call), start, ""), Edit(end, module.end(call), "")]


def _removal(program: Program, statement: ast.stmt) -> Edit:
    module, tree = program.module, StatementTree(program.module)
    if len(tree.position(statement).block) == 1 or not has_own_lines(module, statement, statement):
        return Edit(module.start(statement), module.end(statement), "pass")
    last = statement.end_lineno or statement.lineno
    end = module.line_starts[last] if last < len(module.line_starts) else len(module.data)
    return Edit(module.line_starts[statement.lineno - 1], end, "")


RULE = register(
    Rule(
        id="TF711",
        name="data-parallel-single",
        summary=Text("DataParallel becomes the model on one card", "DataParallel 改为单卡上的模型"),
        triggers=("DataParallel",),
        option="data_parallel",
        restructure=_restructure,
    )
)
