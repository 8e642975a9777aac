"""Mixed precision for a module: the training steps that have none get it, or a reason why not."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchferry.conversion.amp import apex_form, other_modules, torch_form
from torchferry.conversion.amp.changes import UnclearStepError
from torchferry.conversion.amp.steps import TrainingFinder, existing_precision
from torchferry.conversion.program.module import PassModule
from torchferry.conversion.rule import Proposal
from torchferry.conversion.settings import AmpForm
from torchferry.conversion.site import FileContext
from torchferry.finding import Kind
from torchferry.text import Text

_THERE = Text(
    "has mixed precision, or a library that brings it: left as it is",
    "已有混合精度（或由所用库提供）：保持原样",
)
_TEST = Text(
    "a test compares numbers: it stays in single precision",
    "测试会比较数值：保持单精度",
)
_LEFT = Text("mixed precision is yours to add: {reason}. {recipe}", "混合精度需自行添加：{reason}。{recipe}")
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
            proposals = [*other_modules.checkpoint_proposals(program), *other_modules.loss_proposals(program)]
    except UnclearStepError as problem:
        trainings, problems = [], [problem]
    if _is_test(context):
        for node in (*(item.steps[0].call for item in trainings), *(item.node for item in problems)):
            yield context.propose(Kind.INFO, node, _TEST)
        return
    found = existing_precision(context.module) if trainings or problems else None
    if found is not None:
        yield context.propose(Kind.INFO, found, _THERE)
        return
    if not any(_is_ignored(context, proposal) for proposal in proposals):
        yield from proposals
    for unclear in problems:
        recipe = _RECIPES[context.settings.amp or AmpForm.TORCH]
        yield context.propose(Kind.TODO, unclear.node, _LEFT.format(reason=unclear.reason, recipe=recipe))


def _is_test(context: FileContext) -> bool:
    """Whether a module holds tests: by where it is, and by what it does."""
    return _TEST_PATH.search(context.path) is not None and _TEST_CODE.search(context.module.data) is not None


def _is_ignored(context: FileContext, proposal: Proposal) -> bool:
    """Half of a training step is worse than none: one line that the user wants left leaves all."""
    line = context.module.line_text(context.module.line_of(proposal.start))
    return proposal.kind is Kind.CHANGE and _IGNORED.search(line) is not None
