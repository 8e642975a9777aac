"""Mixed precision with apex: amp.initialize, and amp.scale_loss around backward."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from torchferry.conversion.amp.autocast import overflowing
from torchferry.conversion.amp.changes import UnclearStepError
from torchferry.conversion.amp.state import Checkpoints, comes_before, last_import, lifted, own_optimizers
from torchferry.conversion.amp.steps import Backward, TrainingSteps
from torchferry.conversion.amp.torch_form import clips_of
from torchferry.conversion.program.blocks import (
    has_own_lines,
    indent_of,
    indent_unit,
    on_next_line,
    statements_below,
)
from torchferry.conversion.program.changes import ModuleChanges, Rank
from torchferry.conversion.program.functions import FUNCTIONS, assigned_to
from torchferry.conversion.program.module import (
    PassModule,
    Routine,
    called_method,
    calls_below,
    calls_in,
    last_name,
)
from torchferry.conversion.rule import Proposal
from torchferry.finding import Kind, Message
from torchferry.source.edits import Edit
from torchferry.text import Text

# Options of a script's own command line for the level and the loss scale of apex.

_ADDED = Text("Options for the level and the loss scale of apex", "apex 的级别与损失缩放选项")
OPTIONS = (
    "parser.add_argument('--opt-level', default='O2', type=str, help='level of apex: O0, O1, O2 or O3')",
    "parser.add_argument('--loss-scale', default='dynamic', type=str, help='loss scale of apex: a number or dynamic')",
)


def scale_options(program: PassModule, changes: ModuleChanges, routine: Routine) -> tuple[str, str]:
    """Expressions for level and loss scale: options that are added where a routine can read them, else constants."""
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
        return '"O2"', '"dynamic"'
    _add_options(program, changes, parsers[0], parsers[0].targets[0].id)
    return f"{name}.opt_level", f"{name}.loss_scale"


def _arguments_name(program: PassModule, routine: Routine) -> str:
    for statement in program.statements:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            if _is_parsed(statement.value, program, statement) and program.scopes[routine].owner_of(name):
                return name
    return ""


def _is_parsed(value: ast.expr, program: PassModule, statement: ast.stmt) -> bool:
    if not isinstance(value, ast.Call):
        return False
    if called_method(value) == "parse_args":
        return True
    function = program.definition(value.func, program.routine_of(statement))
    calls = calls_below(function) if isinstance(function, FUNCTIONS) else ()
    return any(called_method(call) == "parse_args" for _, call in calls)


def _add_options(program: PassModule, changes: ModuleChanges, parser: ast.stmt, name: str) -> None:
    """Below the last option that is added beside the parser."""
    last = parser
    for statement in program.tree.position(parser).block:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            call = statement.value
            if called_method(call) == "add_argument" and last_name(call.func.value) == name:  # type: ignore[attr-defined]
                last = statement
    present, beside = ast.unparse(program.module.tree), program.module.segment(last)
    quote = "'" if "'" in beside or '"' not in beside else '"'
    change = changes.at(last, _ADDED)
    for option in OPTIONS:
        if f"'{option.split(chr(39))[1]}'" not in present:
            text = option.replace("parser", name, 1).replace("'", quote)
            change.edits.append(changes.below(last, text))


# Parallel wrappers around a model, which apex wants to see only after amp.initialize.

_MOVED = Text(
    "Wrapper moved below `amp.initialize`, which refuses a wrapped model",
    "包装移到 `amp.initialize` 之后：它不接受已包装的模型",
)
_TANGLED = Text(
    "the model is wrapped before its optimizer is made; amp.initialize must come between: move the wrapper below it",
    "模型在创建优化器之前已被包装；amp.initialize 须位于两者之间：请把包装移到其后",
)
_DATA_PARALLEL = Text(
    "amp.initialize refuses a model in DataParallel: convert with `--data-parallel single` as well, or wrap it below",
    "amp.initialize 不接受 DataParallel 中的模型：请同时使用 `--data-parallel single` 转换，或在其后再包装",
)
_WRAPPERS = frozenset({"DistributedDataParallel", "DataParallel", "DDP"})
_SAFE_TESTS = (ast.Name, ast.Attribute, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.cmpop)


def move_wraps(program: PassModule, changes: ModuleChanges, below: ast.stmt, models: list[str]) -> None:
    """model = DistributedDataParallel(model) goes below the line that prepares the model."""
    block = program.tree.position(below).block
    for statement in program.statements:
        if statement.lineno > below.lineno or program.routine_of(statement) is not program.routine_of(below):
            continue
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
            continue
        call = statement.value
        if ast.unparse(statement.targets[0]) not in models:
            continue
        inner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if isinstance(inner, ast.Call) and last_name(inner.func) in _WRAPPERS:
            # DataParallel(model).cuda(); in a program that was converted before, the method is the target's.
            raise UnclearStepError(statement, _DATA_PARALLEL)
        if last_name(call.func) not in _WRAPPERS:
            continue
        if not has_own_lines(program.module, statement, statement):
            raise UnclearStepError(statement, _TANGLED)
        condition = "" if statement in block else _condition(program, statement, below)
        _move(program, changes, statement, below, condition)


def _condition(program: PassModule, statement: ast.stmt, below: ast.stmt) -> str:
    """When a wrapper in branches above is made; raises UnclearStepError if that can't be asked again further down."""
    block = program.tree.position(below).block
    tests: list[str] = []
    asked: list[ast.AST] = [statement.value] if isinstance(statement, ast.Assign) else []
    node = statement
    while node not in block:
        position = program.tree.position(node)
        if not isinstance(position.parent, ast.If):
            raise UnclearStepError(statement, _TANGLED)
        test, is_negative = position.parent.test, node in position.parent.orelse
        if not all(map(_can_be_asked_again, ast.walk(test))):
            raise UnclearStepError(statement, _TANGLED)
        asked.append(test)
        tests.insert(0, _written(program, test, is_negative))
        node = position.parent
    names = {
        ast.unparse(part)
        for item in asked
        for part in ast.walk(item)
        if isinstance(part, (ast.Name, ast.Attribute))
    }
    for other in statements_below(program.routine_of(below)):
        if statement.lineno < other.lineno <= below.lineno and names & _assigned(other):
            raise UnclearStepError(statement, _TANGLED)
    return " and ".join(tests)


def _can_be_asked_again(part: ast.AST) -> bool:
    """A part of a test that has the same answer further down, as long as its names are not assigned to."""
    if isinstance(part, ast.Call):
        return called_method(part) == "is_available" and not part.args
    return isinstance(part, (*_SAFE_TESTS, ast.expr_context, ast.boolop, ast.unaryop))


def _written(program: PassModule, test: ast.expr, is_negative: bool) -> str:
    """A test, or its opposite, as a part of a longer one."""
    if is_negative and isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, is_negative = test.operand, False
    text = program.module.segment(test)
    if is_negative:
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.IsNot):
            left, right = program.module.segment(test.left), program.module.segment(test.comparators[0])
            return f"{left} is {right}"
        return f"not {text}" if isinstance(test, (ast.Name, ast.Attribute)) else f"not ({text})"
    return f"({text})" if isinstance(test, ast.BoolOp) else text


def _assigned(statement: ast.stmt) -> set[str]:
    """What a simple statement assigns to, without the models that wrappers replace."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
        if last_name(statement.value.func) in _WRAPPERS or called_method(statement.value) in ("cuda", "to"):
            return set()
    return {ast.unparse(target) for target in targets if target is not None}


def _move(
    program: PassModule, changes: ModuleChanges, statement: ast.stmt, below: ast.stmt, condition: str
) -> None:
    module = program.module
    first, last = statement.lineno, statement.end_lineno or statement.lineno
    start = module.line_starts[first - 1]
    end = module.line_starts[last] if last < len(module.line_starts) else len(module.data)
    change = changes.between(start, end, _MOVED)
    is_alone = len(program.tree.position(statement).block) == 1
    left = f"{indent_of(module, statement)}pass{module.newline}" if is_alone else ""
    change.edits.append((Rank.START, Edit(start, end, left)))
    indent = indent_of(module, below)
    text = indent + module.segment(statement)
    if condition:
        unit = indent_unit(module, statement, program.tree)
        text = f"{indent}if {condition}:{module.newline}{unit}{text}"
    change.edits.append((Rank.BELOW, on_next_line(module, below, text)))


_IMPORTED = Text("apex's mixed precision", "apex 的混合精度")
_INITIALIZED = Text(
    "`amp.initialize` added for models and optimizers", "添加 `amp.initialize` 准备模型与优化器"
)
_FASTER = Message(
    Text("{company}'s apex accepts {option}", "{company} 的 apex 接受 {option}"),
    why=Text(
        "The vendor's guide sets it in `amp.initialize` for speed; NVIDIA's apex has no such argument.",
        "厂商指南在 `amp.initialize` 中使用它以提升速度；NVIDIA 的 apex 没有该参数。",
    ),
)
_SCALED = Text("Loss scaled by apex for the backward pass", "由 apex 缩放损失后再反向传播")
_NO_OPTIMIZER = Text(
    "the optimizer `{name}` is not made in this module, where amp.initialize would have to be",
    "优化器 `{name}` 不在本模块创建，无法在此加入 amp.initialize",
)
_MADE_ANEW = Text(
    "the optimizer `{name}` is not made once before all its steps, where amp.initialize would have to be",
    "优化器 `{name}` 并非在其全部 step 之前一次性创建，无法在此加入 amp.initialize",
)
_NO_MODEL = Text("it is not clear which model the optimizer trains", "不清楚该优化器训练哪个模型")
_SHARED_LINE = Text("backward shares a line with other statements", "backward 与其他语句同行")
_BY_OPTIMIZER = Text(
    "apex keeps its own gradients in float32, which only the optimizer clears",
    "apex 另存 float32 梯度，只有优化器的 zero_grad 会清除",
)
_APART = Text(
    "backward is in a function that does not know the optimizer, which amp.scale_loss must be told",
    "backward 所在函数不知道优化器，而 amp.scale_loss 需要它",
)
_ZEROED = Text(
    "gradients are cleared by the model; apex wants optimizer.zero_grad(), and the model has not just one",
    "由模型清除梯度；apex 需要 optimizer.zero_grad()，而该模型并非只对应一个优化器",
)
_BEFORE = Message(
    Text("Checkpoint without the state of amp", "未恢复 amp 状态的检查点"),
    why=Text("The scale of the losses would start again from its first value.", "损失缩放系数会重新开始。"),
    do=Text(
        "After `amp.initialize`, call `amp.load_state_dict(checkpoint['amp'])` as well.",
        "请在 `amp.initialize` 之后也调用 `amp.load_state_dict(checkpoint['amp'])`。",
    ),
)


@dataclass(frozen=True)
class _Made:
    """An optimizer that the module makes, and the models whose parameters it has."""

    statement: ast.stmt
    name: str
    models: tuple[str, ...]


def proposals(program: PassModule, trainings: list[TrainingSteps]) -> Iterator[Proposal]:
    """Everything that these training steps need; raises UnclearStepError before anything is proposed."""
    for training in trainings:
        if training.helpers:
            raise UnclearStepError(training.indirect[0], _APART)
    changes = ModuleChanges(program.module)
    made = _made_optimizers(program, trainings)
    routine = program.routine_of(made[0].statement)
    amp = program.free_name("amp", "apex_amp")
    below = last_import(program, trainings)
    if below is None or any(program.routine_of(item.statement) is not routine for item in made):
        raise UnclearStepError(made[-1].statement, _NO_OPTIMIZER.format(name=made[-1].name))
    line = "from apex import amp" + (f" as {amp}" if amp != "amp" else "")
    changes.add_below(below, line, _IMPORTED)
    backwards = [(backward, training) for training in trainings for backward in training.backwards]
    initialized = _initialize(program, changes, made, amp, len(backwards))
    steps = [step for training in trainings for step in training.steps]
    if not comes_before(initialized, [step.statement for step in steps], program):
        raise UnclearStepError(made[-1].statement, _MADE_ANEW.format(name=made[-1].name))
    for index, (backward, training) in enumerate(backwards):
        _scale(program, changes, amp, (backward, training), index if len(backwards) > 1 else None)
    for training in trainings:
        for call, step in clips_of(program, training):
            text = f"{amp}.master_params({program.module.segment(step.optimizer)})"
            changes.at(call, _SCALED, program.module.replacement(call.args[0], text))
    _zero_by_optimizer(program, changes, made)

    def is_within_reach(statement: ast.stmt) -> bool:
        return program.routine_of(statement) is not routine or statement.lineno > initialized.lineno

    checkpoints = Checkpoints(program, changes, amp, "amp", own_optimizers(trainings), is_within_reach)
    missed = checkpoints.add_state()
    yield from changes.proposals()
    option = program.context.target.vendor.apex_initialize
    if option:
        company = program.context.target.vendor.company_name
        message = _FASTER.format(company=company, option=option)
        yield program.context.propose(Kind.INFO, initialized, message)
    yield from overflowing(program)
    for node in missed:
        yield program.context.propose(Kind.TODO, node, _BEFORE)


def _made_optimizers(program: PassModule, trainings: list[TrainingSteps]) -> list[_Made]:
    found: dict[str, _Made] = {}
    for training in trainings:
        for step in training.steps:
            name = last_name(step.many or step.optimizer)
            made = [
                _Made(statement, ast.unparse(_target(statement, name)), models)
                for statement, value in program.assignments(name)
                if isinstance(value, ast.Call)
                and _is_same_sort(_target(statement, name), step.many or step.optimizer)
                and (models := _models(program, statement, value))
            ]
            if not made or step.many is not None:
                raise UnclearStepError(step.call, _NO_OPTIMIZER.format(name=step.name))
            found.setdefault(name, made[-1])
    return sorted(found.values(), key=lambda item: item.statement.lineno)


def _target(statement: ast.stmt, name: str) -> ast.expr:
    return next(target for target in assigned_to(statement) if last_name(target) == name)


def _is_same_sort(one: ast.expr, other: ast.expr) -> bool:
    """Whether both are variables, or both attributes: self.opt of a class is not what a function calls `opt`."""
    while isinstance(other, ast.Subscript):
        other = other.value
    return isinstance(one, ast.Attribute) == isinstance(other, ast.Attribute)


def _models(program: PassModule, statement: ast.stmt, value: ast.expr) -> tuple[str, ...]:
    """The variables whose parameters() an optimizer is made of, or that are handed to the function which makes it."""
    found = dict.fromkeys(_with_parameters(value))
    if not found:
        names = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
        for other in statements_below(program.routine_of(statement)):
            if isinstance(other, ast.Assign) and names.intersection(map(last_name, other.targets)):
                found.update(dict.fromkeys(_with_parameters(other.value)))
    return tuple(found)


def _with_parameters(value: ast.expr) -> Iterator[str]:
    for node in ast.walk(value):
        if isinstance(node, ast.Call) and called_method(node) in ("parameters", "named_parameters"):
            owner = node.func.value  # type: ignore[attr-defined]
            is_attribute = isinstance(owner, ast.Attribute) and ast.unparse(owner.value) == "self"
            if isinstance(owner, ast.Name) or is_attribute:
                yield ast.unparse(owner)
            else:
                raise UnclearStepError(node, _NO_MODEL)


def _initialize(
    program: PassModule, changes: ModuleChanges, made: list[_Made], amp: str, losses: int
) -> ast.stmt:
    """model, optimizer = amp.initialize(model, optimizer, ...) below what makes the last optimizer."""
    models = list(dict.fromkeys(model for item in made for model in item.models))
    below = _after_moves(program, lifted([item.statement for item in made], [], program), models)
    routine = program.routine_of(below)
    level, scale = scale_options(program, changes, routine)
    names = f"{_listed(models)}, {_listed([item.name for item in made])}"
    count = f", num_losses={losses}" if losses > 1 else ""
    text = f"{names} = {amp}.initialize({names}, opt_level={level}, loss_scale={scale}{count})"
    changes.add_below(below, text, _INITIALIZED)
    move_wraps(program, changes, below, models)
    return below


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"[{', '.join(names)}]"


def _after_moves(program: PassModule, made: ast.stmt, models: list[str]) -> ast.stmt:
    """A model that is moved to the device only after its optimizer is made must be there before amp sees it."""
    block = program.tree.position(made).block
    last = made
    for statement in block[block.index(made) + 1 :]:
        for call in calls_in(statement):
            if called_method(call) in ("cuda", "to") and ast.unparse(call.func.value) in models:  # type: ignore[attr-defined]
                last = statement
    return last


def _scale(
    program: PassModule,
    changes: ModuleChanges,
    amp: str,
    where: tuple[Backward, TrainingSteps],
    index: int | None,
) -> None:
    """with amp.scale_loss(loss, optimizer) as scaled_loss: scaled_loss.backward()"""
    backward, training = where
    module, statement = program.module, backward.statement
    if not has_own_lines(module, statement, statement):
        raise UnclearStepError(backward.call, _SHARED_LINE)
    # The step that uses the gradients is the next one.
    later = [step for step in training.steps if step.statement.lineno > statement.lineno]
    step = later[0] if later else training.steps[0]
    optimizer = module.segment(step.many or step.optimizer)
    number = f", loss_id={index}" if index is not None else ""
    start = module.start(backward.call)
    dot = module.data.rindex(b".", start, module.attribute_span(backward.call.func)[0])  # type: ignore[arg-type]
    inner = indent_of(module, statement) + indent_unit(module, statement, program.tree)
    head = f"with {amp}.scale_loss({module.segment(backward.loss)}, {optimizer}{number}) as scaled_loss:"
    edit = Edit(start, dot, f"{head}{module.newline}{inner}scaled_loss")
    changes.at(backward.call, _SCALED, edit)


def _zero_by_optimizer(program: PassModule, changes: ModuleChanges, made: list[_Made]) -> None:
    """model.zero_grad() misses the float32 gradients that apex keeps; optimizer.zero_grad() clears both."""
    for _, call in program.statement_calls:
        if called_method(call) != "zero_grad":
            continue
        model: ast.expr = call.func.value  # type: ignore[attr-defined]
        owners = [item for item in made if ast.unparse(model) in item.models]
        if not owners:
            continue
        if len(owners) > 1 or len(owners[0].models) > 1:
            raise UnclearStepError(call, _ZEROED)
        edit = Edit(program.module.start(call), program.module.end(model), owners[0].name)
        changes.at(call, _BY_OPTIMIZER, edit)
