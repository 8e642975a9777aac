"""Mixed precision for a module: its training steps that have none, and what steps of other modules need of it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from torchferry.conversion.amp import apex_form, torch_form
from torchferry.conversion.amp.autocast import WORDS, overflowing
from torchferry.conversion.amp.changes import UnclearStepError, first_import, torch_name
from torchferry.conversion.amp.regions import Regions
from torchferry.conversion.amp.state import Checkpoints, scaler_place
from torchferry.conversion.amp.steps import TrainingFinder, existing_precision
from torchferry.conversion.program.blocks import heads_of
from torchferry.conversion.program.changes import ModuleChanges
from torchferry.conversion.program.functions import FUNCTIONS
from torchferry.conversion.program.module import PassModule, called_method, last_name
from torchferry.conversion.program.neighbours import Definition
from torchferry.conversion.rule import Proposal
from torchferry.conversion.settings import AmpForm
from torchferry.conversion.site import FileContext
from torchferry.finding import Kind, Message
from torchferry.source.scopes import BindingKind
from torchferry.text import Text

_THERE = Message(
    Text("Mixed precision already present", "已有混合精度"),
    why=Text(
        "The program or one of its libraries brings it, so the file stays unchanged.",
        "程序或所用的库已提供，因此该文件保持原样。",
    ),
)
_TEST = Message(
    Text("Test kept in single precision", "测试保持单精度"),
    why=Text("A test compares numbers.", "测试会比较数值。"),
)
_LEFT = Message(
    Text("Mixed precision not added", "未添加混合精度"),
    why=Text("The training step is not clear: {reason}.", "训练步不够清晰：{reason}。"),
    do=Text("{recipe}.", "{recipe}。"),
)
_RECIPES = {
    AmpForm.TORCH: Text(
        "Forward and loss under torch.cuda.amp.autocast(), then scaler.scale(loss).backward(), "
        "scaler.unscale_(optimizer) before gradients are clipped, scaler.step(optimizer), and scaler.update() once "
        "per iteration",
        "前向与损失置于 torch.cuda.amp.autocast() 下，然后 scaler.scale(loss).backward()，"
        "裁剪梯度前 scaler.unscale_(optimizer)，scaler.step(optimizer)，每次迭代一次 scaler.update()",
    ),
    AmpForm.APEX: Text(
        "model, optimizer = amp.initialize(model, optimizer, opt_level='O2') once both exist and before the model is "
        "wrapped, then `with amp.scale_loss(loss, optimizer) as scaled_loss: scaled_loss.backward()`",
        "两者创建后、模型包装前执行 model, optimizer = amp.initialize(model, optimizer, opt_level='O2')，"
        "然后 `with amp.scale_loss(loss, optimizer) as scaled_loss: scaled_loss.backward()`",
    ),
}
_FORMS = {AmpForm.TORCH: torch_form.proposals, AmpForm.APEX: apex_form.proposals}
_TEST_PATH = re.compile(r"(^|/)tests?/|(^|/)test_[^/]*$|_test\.py$")
_TEST_CODE = re.compile(rb"\b(pytest|unittest)\b|\bdef test_|\bTestCase\b")
_IGNORED = re.compile(r"#\s*ferry: ignore(?:\[[^\]]*TF72[^\]]*\]|(?![\w\[-]))")


def restructure(context: FileContext) -> Iterator[Proposal]:
    """What the pass says about a module."""
    program = PassModule(context)
    finder = TrainingFinder(program)
    proposals: list[Proposal] = []
    problems: list[UnclearStepError] = []
    try:
        trainings = finder.find()
        if trainings and existing_precision(context.module) is None:
            proposals = list(_FORMS[context.settings.amp or AmpForm.TORCH](program, trainings))
        problems = finder.problems
        if not trainings and not problems and context.settings.amp is not AmpForm.APEX:
            proposals = [*_checkpoint_proposals(program), *_loss_proposals(program)]
    except UnclearStepError as problem:
        trainings, problems = [], [problem]
    # A test: by where it is, and by what it does.
    if _TEST_PATH.search(context.path) and _TEST_CODE.search(context.module.data):
        for node in (*(item.steps[0].call for item in trainings), *(item.node for item in problems)):
            yield context.propose(Kind.INFO, node, _TEST)
        return
    found = existing_precision(context.module) if trainings or problems else None
    if found is not None:
        yield context.propose(Kind.INFO, found, _THERE)
        return
    # Half of a training step is worse than none: one line that the user wants left leaves all.
    changed = (context.module.line_of(item.start) for item in proposals if item.kind is Kind.CHANGE)
    if not any(map(_IGNORED.search, map(context.module.line_text, changed))):
        yield from proposals
    for unclear in problems:
        recipe = _RECIPES[context.settings.amp or AmpForm.TORCH]
        yield context.propose(Kind.TODO, unclear.node, _LEFT.format(reason=unclear.reason, recipe=recipe))


# Checkpoints in a module that imports its training step: they keep the scaler of the module which trains.

_IMPORTED = Text("Scaler of the training step saved with the checkpoints", "训练步的 scaler 随检查点保存")
_OPTIMIZER = re.compile(r"(?i)optim|^opt(_?\w)?$")


def _checkpoint_proposals(program: PassModule) -> Iterator[Proposal]:
    """Add the state of an imported training step's scaler to the checkpoints of a module without one of its own."""
    if b"state_dict(" not in program.module.data:
        return
    nodes = (node for item in program.statements for head in heads_of(item) for node in ast.walk(head))
    calls = (node for node in nodes if isinstance(node, ast.Call))
    saved = (call for call in calls if called_method(call) in ("state_dict", "load_state_dict"))
    owners = (last_name(call.func.value) for call in saved)  # type: ignore[attr-defined]
    optimizers = {name for name in owners if _OPTIMIZER.search(name)}
    if not optimizers:
        return
    bound = program.module.scopes.root.bindings.values()
    for binding in (item for items in bound for item in items if item.kind is BindingKind.IMPORT):
        found = program.context.neighbours.find(program.context.path, binding.qualified)
        name = _scaler_of(program, found) if found is not None else ""
        if name and name not in program.identifiers and isinstance(binding.node, ast.ImportFrom):
            changes = ModuleChanges(program.module)
            Checkpoints(program, changes, name, "scaler", optimizers, lambda _: True).add_state()
            if changes.items:
                line = f"from {'.' * binding.node.level}{binding.node.module or ''} import {name}"
                changes.add_below(binding.node, line, _IMPORTED)
                yield from changes.proposals()
            return


def _scaler_of(program: PassModule, found: Definition) -> str:
    """The module-level scaler that a function of another module gets, "" if it gets none."""
    if not isinstance(found.binding.node, FUNCTIONS):
        return ""
    context = replace(
        program.context, module=found.module, path=found.path, resolved={}, words={}, positions={}
    )
    other = PassModule(context)
    try:
        trainings = TrainingFinder(other).find()
        if found.binding.node not in {item.routine for item in trainings} or existing_precision(found.module):
            return ""
        list(torch_form.proposals(other, trainings))
        place = scaler_place(trainings, other)
    except UnclearStepError:
        return ""
    return place.name if place is not None and isinstance(place.owner, ast.Module) else ""


# What autocast refuses in a module that does not train itself, but whose functions the project's training calls.

_REFUSED = Message(
    Text("Binary cross entropy of probabilities", "对概率计算的二元交叉熵"),
    why=Text(
        "autocast refuses it, and it was not changed: {reason}.", "autocast 不允许它，且此处未改：{reason}。"
    ),
    do=Text(
        "Compute it in float32 under `torch.cuda.amp.autocast(enabled=False)`.",
        "请在 `torch.cuda.amp.autocast(enabled=False)` 下以 float32 计算。",
    ),
)
_LOSSES = (b"BCELoss", b"binary_cross_entropy")
# A module that trains, and has no mixed precision of its own.
_TRAINS = b".backward("
_HAS_PRECISION = (b"autocast", b"GradScaler")


def _loss_proposals(program: PassModule) -> Iterator[Proposal]:
    """Compute such losses in float32, outside of the autocast that their callers get; report masks."""
    data, neighbours = program.module.data, program.context.neighbours
    if not any(word in data for word in (*_LOSSES, *WORDS)):
        return
    # A module of the project trains and gets mixed precision, and any imports something of this one.
    if not neighbours.any_text(_TRAINS, *_HAS_PRECISION) or not neighbours.is_imported(program.context.path):
        return
    if existing_precision(program.module) is not None:
        return
    yield from overflowing(program)
    if not any(word in data for word in _LOSSES) or first_import(program) is None:
        return
    changes = ModuleChanges(program.module)
    torch = torch_name(program, changes)
    regions = Regions(program, changes, f"{torch}.cuda.amp.autocast")
    added = len(changes.items)
    for node in regions.unsafe.lost():
        yield program.context.propose(Kind.TODO, node, torch_form.LOST)
    try:
        regions.cover_helpers([])
    except UnclearStepError as problem:
        yield program.context.propose(Kind.TODO, problem.node, _REFUSED.format(reason=problem.reason))
        return
    if len(changes.items) > added:
        yield from changes.proposals()
