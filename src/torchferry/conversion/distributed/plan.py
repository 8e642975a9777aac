"""The rewrite of a whole program for several cards: all of it, or nothing and the reason."""

from __future__ import annotations

import ast
from functools import lru_cache

from torchferry.conversion.distributed.changes import ProgramChanges, UnclearProgramError
from torchferry.conversion.distributed.loader_uses import find_loaders
from torchferry.conversion.distributed.loaders import share_loaders, tell_epochs
from torchferry.conversion.distributed.models import find_models
from torchferry.conversion.distributed.processes import find_entry, set_up, take_own_card
from torchferry.conversion.distributed.rank_zero import RankZero
from torchferry.conversion.distributed.remarks import point_out_decisions, remark
from torchferry.conversion.distributed.training import Training, find_sign
from torchferry.conversion.distributed.wrapped_models import (
    Unwrapping,
    accept_old_checkpoints,
    remove_data_parallel,
)
from torchferry.conversion.distributed.wrapping import point_out_others, wrap_models
from torchferry.conversion.program.module import ProgramModule
from torchferry.conversion.program.neighbours import Neighbours
from torchferry.conversion.program.training_program import TrainingProgram
from torchferry.conversion.rule import Proposal
from torchferry.conversion.rules.distributed import TRIGGERS
from torchferry.conversion.settings import Distributed
from torchferry.conversion.site import FileContext
from torchferry.finding import Kind, Message, Wording
from torchferry.text import Text

_LEFT = Message(
    Text("Program not rewritten for several cards", "未将程序改写为多卡"),
    why=Text("{reason}.", "{reason}。"),
    do=Text(
        "Follow the reason, then convert again; `docs` has the recipe by hand.",
        "请按上述原因修改后重新转换，或手动改写。",
    ),
)
_DISTRIBUTED = Message(
    Text("Program already runs on several cards", "程序已支持多卡"),
    why=Text(
        "It uses {name}, so it stays unchanged; the launch script starts it.",
        "程序使用 {name}，因此保持原样，由启动脚本启动。",
    ),
)
_IMPORTS = Text("Imports added for several cards", "添加多卡运行所需的导入")
_CONVERTED = (b"cuda", b"nccl")
_UNSEEN = Text("{path} would have to be changed, but is not looked at", "需要修改 {path}，但该文件未被处理")

Proposals = dict[str, list[Proposal]]


def plan_for(context: FileContext, settings: Distributed) -> list[Proposal]:
    """What the rewrite of the program does in one file."""
    program, planned = _plan(context.neighbours, settings)
    file = program.files.get(context.path)
    here = planned.get(context.path, [])
    if file is not None and file.module.data == context.module.data:
        return here
    if (file is None and context.path != settings.main) or _is_done(context.module.data, here):
        return []
    # The text is not that on the disk: an earlier pass has changed it, or this is the result, looked at again.
    changed = TrainingProgram(settings.main, context.neighbours, {context.path: context.module})
    proposals = _proposals(changed, settings)
    if _edited(proposals) - {context.path} - _edited(planned):
        return here  # the other files don't know of this text, and would not change
    return proposals.get(context.path, [])


def _edited(proposals: Proposals) -> set[str]:
    return {path for path, said in proposals.items() if any(item.edits for item in said)}


def _is_done(data: bytes, proposals: list[Proposal]) -> bool:
    """Whether a text holds what the plan puts into its file; the words of CUDA may be another target's by now."""
    new = [line for item in proposals for edit in item.edits for line in edit.text.encode().splitlines()]
    kept = [line.strip() for line in new if line.strip() and not any(word in line for word in _CONVERTED)]
    return bool(kept) and all(line in data for line in kept)


@lru_cache(maxsize=8)
def _plan(neighbours: Neighbours, settings: Distributed) -> tuple[TrainingProgram, Proposals]:
    program = TrainingProgram(settings.main, neighbours)
    return program, _proposals(program, settings)


def _proposals(program: TrainingProgram, settings: Distributed) -> Proposals:
    main = program.main
    if main is None or not main.module.tree.body:
        return {}
    sign = find_sign(program)
    if sign is not None:
        # What is said of a file that is not looked at would be lost.
        file, node = (sign.file, sign.node) if _is_looked_at(sign.file) else (main, main.module.tree.body[0])
        return _said(file, node, Kind.INFO, _DISTRIBUTED.format(name=sign.name))
    try:
        return _rewritten(program, main, settings)
    except UnclearProgramError as unclear:
        return _said(unclear.file, unclear.node, Kind.TODO, _LEFT.format(reason=unclear.message))


def _is_looked_at(file: ProgramModule) -> bool:
    return any(word.encode() in file.module.data for word in TRIGGERS)


def _said(file: ProgramModule, node: ast.AST, kind: Kind, message: Wording) -> Proposals:
    return {file.path: [Proposal(kind, file.module.start(node), file.module.end(node), message)]}


def _rewritten(program: TrainingProgram, main: ProgramModule, settings: Distributed) -> Proposals:
    training = Training(program)
    changes = ProgramChanges()
    loaders = find_loaders(training, main)
    holders = find_models(training, main, settings.model)
    entry = find_entry(training, main)
    local_rank = set_up(training, entry, any(holder.scope is entry.scope for holder in holders), changes)
    had_data_parallel = remove_data_parallel(program, settings.split_batch, changes)
    if had_data_parallel:
        accept_old_checkpoints(training.flow, holders, changes)
    take_own_card(training.flow, changes)
    wraps = wrap_models(training, holders, settings, (entry.scope, local_rank), changes)
    if settings.model:
        point_out_others(training, main, holders, changes)
    share_loaders(training, loaders, settings, changes)
    tell_epochs(training, loaders, changes)
    Unwrapping(training, wraps, changes, had_data_parallel).rewrite()
    rank_zero = RankZero(training, holders, changes)
    rank_zero.guard()
    remark(training, changes)
    point_out_decisions(training, loaders, rank_zero.runs_a_model, changes)
    proposals = changes.proposals(_IMPORTS)
    for path, said in proposals.items():
        if any(item.edits for item in said) and not _is_looked_at(program.files[path]):
            raise UnclearProgramError(main, main.module.tree.body[0], _UNSEEN.format(path=path))
    return proposals
