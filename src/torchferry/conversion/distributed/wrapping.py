"""DistributedDataParallel: where each model is wrapped, and what is said of it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from torchferry.conversion.distributed.changes import ProgramChanges, UnclearProgramError
from torchferry.conversion.distributed.models import MOVES, Holder, find_models, is_module_class, is_optimizer
from torchferry.conversion.distributed.training import Training, is_without_gradients
from torchferry.conversion.program.blocks import DEFINITIONS, is_elif
from torchferry.conversion.program.functions import own_calls, targets
from torchferry.conversion.program.module import ProgramModule, called_method
from torchferry.conversion.program.training_program import ProgramDefinition, TrainingProgram
from torchferry.conversion.settings import Distributed
from torchferry.finding import Kind, Message
from torchferry.source.names import called_name
from torchferry.source.scopes import Scope
from torchferry.text import Text

# Programs that can be told to stay on the CPU although there is a card.

_SWITCH = re.compile(r"(?i)cuda|cpu|gpu|device")
_ASKED = re.compile(r"(?i)cuda|gpu")
_VARIABLES = (ast.Name, ast.Attribute, ast.Subscript)


def may_stay_on_cpu(program: TrainingProgram) -> bool:
    """Whether an option, a setting or a test of the program chooses between the card and the CPU."""
    return any(map(_chooses_device, program.files.values()))


def _chooses_device(file: ProgramModule) -> bool:
    for call in file.calls:
        if called_name(call) in ("add_argument", "option"):  # --no-cuda, --device; not --gpu with a number
            types = [file.module.segment(item.value) for item in call.keywords if item.arg == "type"]
            words = [str(item.value) for item in call.args if isinstance(item, ast.Constant)]
            if any(map(_SWITCH.search, words)) and "int" not in types:
                return True
        if call.args and isinstance(call.args[0], _VARIABLES) and file.qualified(call.func) == "torch.device":
            return True
    tests = [statement.test for statement in file.statements if isinstance(statement, ast.If)]
    return any(_ASKED.search(file.module.segment(test)) for test in tests if isinstance(test, _VARIABLES))


# The forward passes that gradients are computed of.


def forward_calls(training: Training, holder: Holder) -> Iterator[ast.Call]:
    """MODEL(...) in the rounds of a loop in which backward is run."""
    own, reached = _rounds_with_backward(training)
    for file, call in training.program.calls:
        if not isinstance(call.func, (ast.Name, ast.Attribute)):
            continue
        statement = file.statement_of(call)
        if is_without_gradients(file, statement):
            continue
        # Also in a function that computes the loss for the loop that runs backward.
        if _round(file, call) in reached or any(
            _round(site.file, site.call) in own for site in training.callers(file, statement)
        ):
            if training.flow.comes_from(file, call.func, *holder.made):
                yield call


def _rounds_with_backward(training: Training) -> tuple[set[ast.AST], set[ast.AST]]:
    """Loops and functions: those that run backward themselves, and those that call such ones as well."""
    own = {_round(file, call) for file, call in training.program.calls if called_method(call) == "backward"}
    reached, waiting = set(own), list(own)
    while waiting:
        for site in training.flow.calls_of(waiting.pop()):
            around = _round(site.file, site.call)
            if around not in reached:
                reached.add(around)
                waiting.append(around)
    return own, reached


def _round(file: ProgramModule, call: ast.Call) -> ast.AST:
    """The nearest loop around a call, else its function, else the module."""
    statement = file.statement_of(call)
    loop = next(file.loops_around(statement), None)
    return loop or file.function_around(statement) or file.module.tree


# Layers that a model holds but never uses: DistributedDataParallel would wait for their gradients.

_DEPTH = 4
_LAYERS = frozenset(
    {"Linear", "Bilinear", "Embedding", "Parameter", "LSTM", "GRU", "RNN", "LayerNorm", "GroupNorm"}
    | {"Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"}
    | {"BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "MultiheadAttention", "TransformerEncoderLayer"}
)
# Ways to come to a layer without its name.
_NAMELESS = frozenset({"children", "modules", "_modules", "named_children", "getattr", "__dict__"})


def has_unused_layers(training: Training, holder: Holder) -> bool:
    """Whether a layer is given to `self` in a class of the model, and asked for nowhere in the program."""
    classes: dict[int, ProgramDefinition] = {}
    for origin in holder.made:
        made = training.flow.class_of(origin.file, origin.node)
        if made is not None:
            _gather(training, made, classes, _DEPTH)
    layers = {name for made in classes.values() for name in _layers(training, made)}
    files = training.program.files.values() if layers else ()
    nodes = [node for file in files for node in ast.walk(file.module.tree)]
    asked_for = {
        node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }
    asked_for |= {node.id for node in nodes if isinstance(node, ast.Name)}
    return bool(layers - asked_for) and not asked_for & _NAMELESS


def _gather(
    training: Training, made: ProgramDefinition, classes: dict[int, ProgramDefinition], depth: int
) -> None:
    """A class and those that it makes layers of."""
    if id(made.node) in classes or not depth or not is_module_class(training, made):
        return
    classes[id(made.node)] = made
    for call in (node for node in ast.walk(made.node) if isinstance(node, ast.Call)):
        inner = training.flow.class_of(made.file, call)
        if inner is not None:
            _gather(training, inner, classes, depth - 1)


def _layers(training: Training, made: ProgramDefinition) -> Iterator[str]:
    for node in ast.walk(made.node):
        value = getattr(node, "value", None)
        if not isinstance(value, ast.Call) or not targets(node):
            continue
        inner = training.flow.class_of(made.file, value)
        is_layer = made.file.qualified(value.func).removeprefix("torch.nn.") in _LAYERS
        if is_layer or (inner is not None and is_module_class(training, inner)):
            yield from (target.attr for target in targets(node) if isinstance(target, ast.Attribute))


DDP = "torch.nn.parallel.DistributedDataParallel"
# Methods that leave the model as it is: calling one of them before the wrap or after it is the same.
_HARMLESS = frozenset(
    {"parameters", "named_parameters", "train", "eval", "state_dict", "modules", "named_modules", "children"}
    | {"buffers", "zero_grad"}
)
_NOT_MOVED = Text(
    "{name} is not moved to a device before its training begins; move it with .to(device) or .cuda()",
    "{name} 在训练开始前没有移至设备；请用 .to(device) 或 .cuda() 移动",
)
_NOT_CALLED = Text(
    "{name} is trained, but never called as {name}(...) where the gradients are computed: DistributedDataParallel "
    "only sees calls of forward; let forward do what the training needs",
    "{name} 被训练，但计算梯度处没有以 {name}(...) 的形式调用：DistributedDataParallel 只处理 forward 调用；请将训练所需计算放入 forward",
)
_WRAPPED = Text("Model wrapped in DistributedDataParallel", "用 DistributedDataParallel 包装模型")
_OTHER = Message(
    Text(
        "`{name}` is trained but not named by `--model-name`",
        "`{name}` 同样被训练，但 `--model-name` 未指定它",
    ),
    why=Text("Its gradients stay those of each process.", "其梯度仅属于各自进程。"),
    do=Text(
        "Name all models with commas between them, or leave `--model-name` out.",
        "请用逗号列出全部模型，或省略 `--model-name`。",
    ),
)
_FIGURES = Message(
    Text("Running means of BatchNorm in `{name}`", "`{name}` 中 BatchNorm 的滑动平均"),
    why=Text(
        "They are those of each process, so evaluations differ slightly.",
        "它们属于各自进程，评估结果会略有不同。",
    ),
    do=Text(
        "Convert with `--sync-batchnorm` to have the same on all processes.",
        "使用 `--sync-batchnorm` 转换可使其一致。",
    ),
)
_ANOTHER = Text(
    "{name} holds one model after the other, and both are trained; hold each in its own variable",
    "{name} 先后保存不同的模型，且均被训练；请分别保存在各自的变量中",
)
_COMPOUND = (ast.If, ast.With, ast.Try, ast.For, ast.While)
_BUFFERS = "# Called more than once before a backward pass: its buffers must stay as they are in between."


@dataclass(frozen=True)
class Wrap:
    """Where a model is wrapped."""

    holder: Holder
    after: ast.stmt  # the statement behind which that happens
    position: int  # in bytes: where that statement ends


def wrap_models(
    training: Training,
    holders: list[Holder],
    settings: Distributed,
    setup: tuple[Scope, str],
    changes: ProgramChanges,
) -> list[Wrap]:
    """Wrap every model; `setup` is the scope that knows the local rank, and how it calls it."""
    wraps = [_find_place(training, holder) for holder in holders]
    for wrap in wraps:
        # A second model in the same variable that is trained as well would have to be wrapped as well.
        file = wrap.holder.file
        optimizers = [call for call in file.calls if is_optimizer(file, call)]
        for fresh in given_anew(wrap):
            later = [call for call in optimizers if file.module.start(call) > file.module.start(fresh)]
            if any(_mentions(wrap.holder, node) for call in later for node in ast.walk(call)):
                raise UnclearProgramError(file, fresh, _ANOTHER.format(name=wrap.holder.text))
    for wrap in wraps:
        calls = list(forward_calls(training, wrap.holder))
        if not calls:
            raise UnclearProgramError(wrap.holder.file, wrap.after, _NOT_CALLED.format(name=wrap.holder.text))
        lines = []
        if settings.sync_batchnorm:
            torch, text = changes.of(wrap.holder.file).name_of("torch", "torch"), wrap.holder.text
            lines.append(f"{text} = {torch}.nn.SyncBatchNorm.convert_sync_batchnorm({text})")
        if len(calls) > 1:
            lines.append(_BUFFERS)
        further = ["broadcast_buffers=False"] if len(calls) > 1 else []
        further += ["find_unused_parameters=True"] if has_unused_layers(training, wrap.holder) else []
        lines += _call_lines(wrap, setup, further, may_stay_on_cpu(training.program), changes)
        if len(calls) > 1 and not settings.sync_batchnorm:
            if any(b"BatchNorm" in file.module.data for file in training.program.files.values()):
                message = _FIGURES.format(name=wrap.holder.text)
                changes.of(wrap.holder.file).remark(Kind.RISK, wrap.after, message)
        changes.of(wrap.holder.file).after(wrap.after, lines, _WRAPPED)
    return wraps


def given_anew(wrap: Wrap) -> list[ast.stmt]:
    """The statements behind the wrap that give the variable another model."""
    holder = wrap.holder
    return [
        statement
        for statement in _statements(holder)
        if holder.file.module.start(statement) > wrap.position
        and any(holder.file.module.segment(target) == holder.text for target in targets(statement))
        and isinstance(statement.value, ast.Call)  # type: ignore[attr-defined]
        and not any(_mentions(holder, node) for node in ast.walk(statement.value))  # type: ignore[attr-defined]
    ]


def point_out_others(
    training: Training, main: ProgramModule, holders: list[Holder], changes: ProgramChanges
) -> None:
    """Name the models that are trained, but not among those that the user named."""
    try:
        trained = find_models(training, main, "")
    except UnclearProgramError:
        return
    known = {(holder.file.path, id(holder.scope), holder.text) for holder in holders}
    for holder in trained:
        if (holder.file.path, id(holder.scope), holder.text) not in known:
            changes.of(holder.file).remark(Kind.TODO, _first(holder), _OTHER.format(name=holder.text))


def _call_lines(
    wrap: Wrap, setup: tuple[Scope, str], further: list[str], may_be_on_cpu: bool, changes: ProgramChanges
) -> list[str]:
    """The call that wraps a model: on one line, but where the model may be on the CPU in spite of a card."""
    file = changes.of(wrap.holder.file)
    text = wrap.holder.text
    torch = file.name_of("torch", "torch")
    scope, local_rank = setup
    card = local_rank if wrap.holder.scope is scope else f"{torch}.cuda.current_device()"
    on_card = f"next({text}.parameters()).is_cuda" if may_be_on_cpu else f"{torch}.cuda.is_available()"
    options = [text, f"device_ids=[{card}] if {on_card} else None"]
    if may_be_on_cpu:
        dist = file.name_of("torch.distributed", "dist")
        options.append(f'process_group=None if {on_card} else {dist}.new_group(backend="gloo")')
    options += further
    head = f"{text} = {file.name_of(DDP, 'DistributedDataParallel')}("
    if not may_be_on_cpu:
        return [f"{head}{', '.join(options)})"]
    return [head, *(f"{file.indent_unit}{option}," for option in options), ")"]


def _find_place(training: Training, holder: Holder) -> Wrap:
    """Behind the last statement that makes, moves, loads or changes the model before its first use."""
    preparing: list[ast.stmt] = []
    is_moved = False
    segment = holder.file.module.segment
    for statement in _statements(holder):
        # A loop may make the model anew in each round, one round for each fold or setting.
        made = (target for node in ast.walk(statement) for target in targets(node))
        if _uses(training, holder, statement):
            if preparing or all(segment(target) != holder.text for target in made):
                break
        if _prepares(holder, statement):
            preparing.append(statement)
            is_moved = is_moved or _moves(training, holder, statement)
    if not preparing or not is_moved:
        raise UnclearProgramError(holder.file, _first(holder), _NOT_MOVED.format(name=holder.text))
    after = _common(holder.file, preparing)
    return Wrap(holder, after, holder.file.module.end(after))


def _first(holder: Holder) -> ast.AST:
    node = holder.scope.node
    return node if not isinstance(node, ast.Module) else node.body[0]


def _statements(holder: Holder) -> Iterator[ast.stmt]:
    """The statements of the holder's scope, in the order of the text: simple ones, and the heads of others."""
    for statement in holder.file.statements:
        if holder.file.scope_of_statement(statement) is holder.scope:
            if not isinstance(statement, DEFINITIONS):
                yield statement


def _uses(training: Training, holder: Holder, statement: ast.stmt) -> bool:
    """Whether the training begins at a statement, or an object takes the model for itself."""
    if isinstance(statement, (ast.For, ast.While)) and training.trains(holder.file, statement):
        return True
    if isinstance(statement, _COMPOUND):
        return False  # their own statements follow
    return any(_is_use(training, holder, call) for call in own_calls(statement))


def _is_use(training: Training, holder: Holder, call: ast.Call) -> bool:
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    takes = any(holder.file.module.segment(item) == holder.text for item in arguments)
    called = training.flow.function_called(holder.file, call)
    if called is not None and training.trains(called.file, called.node):
        return True
    return takes and training.flow.class_of(holder.file, call) is not None


def _mentions(holder: Holder, node: ast.AST) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and holder.file.module.segment(node) == holder.text


def _prepares(holder: Holder, statement: ast.stmt) -> bool:
    if isinstance(statement, _COMPOUND) and not _freezes(holder, statement):
        return False
    for node in ast.walk(statement):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            if _mentions(holder, node) or (isinstance(node, ast.Attribute) and _is_part(holder, node)):
                return True
        if isinstance(node, ast.Call):
            function = node.func
            if isinstance(function, ast.Attribute) and function.attr not in _HARMLESS:
                if _mentions(holder, function.value) or _is_part(holder, function.value):
                    return True
            if isinstance(statement, ast.Expr) and any(_mentions(holder, item) for item in node.args):
                return True  # a function that may load or change it
    return _freezes(holder, statement)


def _is_part(holder: Holder, node: ast.expr) -> bool:
    """`model.head`: something of the model."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
        if _mentions(holder, node):
            return True
    return False


def _freezes(holder: Holder, statement: ast.stmt) -> bool:
    """`for p in model.parameters(): p.requires_grad = False`: must be done when the model is wrapped."""
    nodes = list(ast.walk(statement))
    return any(
        isinstance(node, ast.Attribute) and node.attr.startswith("requires_grad") for node in nodes
    ) and any(_mentions(holder, node) for node in nodes)


def _moves(training: Training, holder: Holder, statement: ast.stmt) -> bool:
    """Whether a statement moves the model to a device, itself or in the function that builds it."""
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
    callees = (training.flow.callee(holder.file, call) for call in calls)
    return any(map(_is_move, calls)) or any(
        callee is not None and any(map(_is_move, ast.walk(callee.node))) for callee in callees
    )


def _is_move(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and called_method(node) in MOVES


def _common(file: ProgramModule, statements: list[ast.stmt]) -> ast.stmt:
    """The statement of the innermost block that holds all of them, which holds the last of them."""
    chains = [_chain(file, statement) for statement in statements]
    depth = 0
    while (
        all(len(chain) > depth + 1 for chain in chains) and len({id(chain[depth]) for chain in chains}) == 1
    ):
        same_block = {id(file.tree.position(chain[depth + 1]).block) for chain in chains}
        if len(same_block) != 1:
            break
        depth += 1
    while is_elif(file.module, chains[-1][depth]):
        depth -= 1  # nothing can be put behind one of the branches
    return chains[-1][depth]


def _chain(file: ProgramModule, statement: ast.stmt) -> list[ast.stmt]:
    """A statement and those around it in its scope, the outermost first."""
    found = [statement]
    for owner in file.tree.owners(statement):
        if not isinstance(owner, ast.stmt) or isinstance(owner, DEFINITIONS):
            break
        found.append(owner)
    return found[::-1]
