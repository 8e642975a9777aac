"""torch.nn.DataParallel, which one process per card takes the place of."""

from __future__ import annotations

import ast

from torchferry.convert.distributed.changes import Changes, FileChanges, UnclearProgramError
from torchferry.convert.distributed.models import Holder
from torchferry.convert.distributed.wrapping import DDP
from torchferry.convert.program.origins import OriginFlow
from torchferry.convert.program.training_program import ASSIGNMENTS, ProgramFile, TrainingProgram, assigned_to
from torchferry.finding import Kind
from torchferry.source.edits import Edit
from torchferry.source.names import called_name
from torchferry.text import Text

DATA_PARALLEL = frozenset({"torch.nn.DataParallel", "torch.nn.parallel.DataParallel"})
_GONE = Text(
    "DataParallel gives way to one process per card, with DistributedDataParallel",
    "DataParallel 改为每卡一个进程的 DistributedDataParallel",
)
_BATCH = Text(
    "with DataParallel the batch was shared by all cards; now each process takes a whole one. Convert with "
    "--batch split to keep the total as it was",
    "DataParallel 下批量由所有卡分摊；现在每个进程各取一整批。如需保持总批量，请使用 --batch split 转换",
)
_CONSUME = "torch.nn.modules.utils.consume_prefix_in_state_dict_if_present"
_PREFIX = Text(
    "checkpoints that were saved from a DataParallel have names that begin with `module.`; both sorts can be loaded",
    "由 DataParallel 保存的检查点名称以 `module.` 开头；两种检查点均可加载",
)
_PREFIX_LEFT = Text(
    "checkpoints that were saved from a DataParallel have names that begin with `module.`; take that off before they "
    "are loaded (torch.nn.modules.utils.consume_prefix_in_state_dict_if_present)",
    "由 DataParallel 保存的检查点名称以 `module.` 开头；加载前请去掉该前缀"
    "（torch.nn.modules.utils.consume_prefix_in_state_dict_if_present）",
)
_TYPE = Text("asks for the wrapper that the model has now", "改为判断模型现在所用的包装类型")
_UNCLEAR = Text(
    "this use of DataParallel is not understood; write `model = torch.nn.DataParallel(model)`, or wrap by hand",
    "无法理解此处 DataParallel 的用法；请写成 `model = torch.nn.DataParallel(model)`，或手动包装",
)


def remove_data_parallel(program: TrainingProgram, splits: bool, changes: Changes) -> bool:
    """Take DataParallel out of a program, if it has any; its models are wrapped anew by the pass."""
    is_found = False
    for file in program.files.values():
        if b"DataParallel" not in file.module.data:
            continue
        for call in file.calls:
            if file.qualified(call.func) in DATA_PARALLEL:
                is_found = True
                _remove(file, call, changes.of(file))
                if not splits:
                    changes.of(file).remark(Kind.INFO, call, _BATCH)
            elif called_name(call) == "isinstance":
                _ask_for_wrapper(file, call, changes.of(file))
    return is_found


def accept_old_checkpoints(flow: OriginFlow, holders: list[Holder], changes: Changes) -> None:
    """Names that begin with `module.`, as DataParallel saved them, lose that before a model is given them."""
    made = {id(origin.node) for holder in holders for origin in holder.made}
    for file in flow.program.files.values():
        for call in file.calls:
            if (
                called_name(call) != "load_state_dict"
                or not call.args
                or not isinstance(call.func, ast.Attribute)
            ):
                continue
            owners = flow.origins(file, call.func.value)
            standing = file.standing(call)
            if standing is None or not any(id(origin.node) in made for origin in owners):
                continue
            state = call.args[0]
            if isinstance(state, (ast.Name, ast.Attribute, ast.Subscript)):
                name = changes.of(file).name_of(_CONSUME, "consume_prefix_in_state_dict_if_present")
                line = f'{name}({file.module.segment(state)}, "module.")'
                changes.of(file).before(standing.statement, [line], _PREFIX, call)
            else:
                changes.of(file).remark(Kind.TODO, call, _PREFIX_LEFT)


def _remove(file: ProgramFile, call: ast.Call, changes: FileChanges) -> None:
    standing = file.standing(call)
    model = next((item.value for item in call.keywords if item.arg == "module"), None)
    model = call.args[0] if call.args else model
    if standing is None or model is None:
        raise UnclearProgramError(file, call, _UNCLEAR)
    statement = standing.statement
    text = file.module.segment(model)
    is_alone = isinstance(statement, ASSIGNMENTS) and statement.value is call
    if is_alone and [file.module.segment(target) for target in assigned_to(statement)] == [text]:
        _delete(file, statement, changes)
    else:
        changes.replace(call, _GONE, Edit(file.module.start(call), file.module.end(call), text))


def _delete(file: ProgramFile, statement: ast.stmt, changes: FileChanges) -> None:
    """Delete a statement; with it an `if` that held nothing else."""
    block = file.blocks[id(statement)]
    while len(block.statements) == 1 and isinstance(block.owner, ast.If) and not block.owner.orelse:
        if _is_else_if(file, block.owner):
            break
        statement, block = block.owner, file.blocks[id(block.owner)]
    changes.delete(statement, _GONE)


def _is_else_if(file: ProgramFile, statement: ast.stmt) -> bool:
    """An `elif` is an `if` alone in the else-branch of another one."""
    owner = file.blocks[id(statement)].owner
    return isinstance(statement, ast.If) and isinstance(owner, ast.If) and statement in owner.orelse


def _ask_for_wrapper(file: ProgramFile, call: ast.Call, changes: FileChanges) -> None:
    for node in ast.walk(call.args[1]) if len(call.args) > 1 else ():
        if isinstance(node, (ast.Name, ast.Attribute)) and file.qualified(node) in DATA_PARALLEL:
            name = changes.name_of(DDP, "DistributedDataParallel")
            changes.replace(node, _TYPE, Edit(file.module.start(node), file.module.end(node), name))
