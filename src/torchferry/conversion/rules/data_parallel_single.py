"""TF711 (opt-in): torch.nn.DataParallel(model) becomes the model itself, on one card."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.conversion.program.blocks import add_imports, indent_of, on_next_line, shares_its_line
from torchferry.conversion.program.module import PassModule
from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import FileContext
from torchferry.finding import Kind, Message
from torchferry.source.edits import Edit
from torchferry.text import Text

_SINGLE = Message(
    Text("`DataParallel` replaced by the model itself, on one card", "`DataParallel` 改为单卡上的模型本身"),
    why=Text(
        "A hook moves the inputs to the device, as DataParallel did. Names in new checkpoints lose the "
        "prefix `module.`.",
        "由 hook 把输入移到设备上，与 DataParallel 相同。新检查点中的名称不再带前缀 `module.`。",
    ),
    do=Text(
        "Load older checkpoints after `ferry checkpoint fix --strip module.`.",
        "加载旧检查点前请运行 `ferry checkpoint fix --strip module.`。",
    ),
)
_INPUTS = Message(
    Text("Inputs that `DataParallel` moved to the device", "由 `DataParallel` 移到设备的输入"),
    why=Text(
        "DataParallel moved its inputs; the model itself does not.", "DataParallel 会移动输入，模型本身不会。"
    ),
    do=Text("Move the inputs of this model to the device.", "请把该模型的输入移到设备上。"),
)
_MODULE = Text("`.module` removed: on one card it is the model itself", "去掉 `.module`：单卡时即模型本身")
_NAMES = frozenset({"torch.nn.DataParallel", "torch.nn.parallel.DataParallel"})


def _restructure(context: FileContext) -> Iterator[Proposal]:
    program = PassModule(context)
    models: set[str] = set()
    mover = program.free_name("inputs_to_device", "move_inputs_to_device")
    for statement, call in program.statement_calls:
        if program.qualified(call.func, program.routine_of(statement)) not in _NAMES or not call.args:
            continue
        models.update(_targets(statement))
        yield context.propose(Kind.CHANGE, call, _SINGLE, *_edits(program, statement, call, mover))
        if not any(_targets(statement)):
            yield context.propose(Kind.TODO, statement, _INPUTS)
    is_wrapped_otherwise = b"DistributedDataParallel" in context.module.data
    for node in ast.walk(context.module.tree) if models else ():
        if isinstance(node, ast.Attribute) and node.attr == "module" and ast.unparse(node.value) in models:
            yield context.propose(Kind.INFO if is_wrapped_otherwise else Kind.TODO, node, _MODULE)


def _targets(statement: ast.stmt) -> list[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return [ast.unparse(item) for item in targets if isinstance(item, (ast.Name, ast.Attribute))]


def _edits(program: PassModule, statement: ast.stmt, call: ast.Call, mover: str) -> list[Edit]:
    """The argument in place of the call, and a hook that moves its inputs to the device, as DataParallel did."""
    module, model = program.module, call.args[0]
    targets = _targets(statement)
    if not targets:
        return _unwrapped(program, call)
    hook = f"{targets[0]}.register_forward_pre_hook({mover})"
    # The function that moves the inputs; one of the module, so that models can be saved and sent to processes.
    newline = program.module.newline
    lines = [] if "torch" in program.module.scopes.root.bindings else ["import torch"]
    head = f"{newline}{newline}def {mover}(module, inputs):"
    body = "    return tuple(item.cuda() if isinstance(item, torch.Tensor) else item for item in inputs)"
    define = add_imports(module, [*lines, f"{head}{newline}{body}{newline}"])
    is_itself = isinstance(statement, ast.Assign) and statement.value is call
    if is_itself and module.segment(model) == targets[0]:  # model = model
        return [module.replacement(statement, hook), *define]
    if shares_its_line(module, statement):
        line = module.insertion_after(statement, f"; {hook}")
    else:
        line = on_next_line(module, statement, indent_of(module, statement) + hook)
    return [*_unwrapped(program, call), line, *define]


def _unwrapped(program: PassModule, call: ast.Call) -> list[Edit]:
    module, model = program.module, call.args[0]
    return [Edit(module.start(call), module.start(model), ""), Edit(module.end(model), module.end(call), "")]


RULE = Rule(
    id="TF711",
    name="data-parallel-single",
    summary=Text(
        "Replaces `DataParallel` by the model itself, on one card", "将 `DataParallel` 改为单卡上的模型本身"
    ),
    triggers=("DataParallel",),
    option="data_parallel",
    restructure=_restructure,
)
