"""Autocast around the forward passes and the losses of a training step."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from torchferry.conversion.amp.autocast import Computing, UnsafeLosses, as_float, tensors_of
from torchferry.conversion.amp.changes import UnclearStepError
from torchferry.conversion.amp.steps import Backward, TrainingSteps
from torchferry.conversion.program.blocks import (
    DEFINITIONS,
    LOOPS,
    block_edits,
    blocks_of,
    has_own_lines,
    heads_of,
    indent_of,
    indent_unit,
    is_elif,
    statements_below,
)
from torchferry.conversion.program.changes import ModuleChanges, Rank
from torchferry.conversion.program.functions import FUNCTIONS
from torchferry.conversion.program.module import PassModule, Routine, calls_in, last_name
from torchferry.finding import Message
from torchferry.source.edits import Edit, edited
from torchferry.text import Text

# Which statements of a training step lead to a loss.

_GROWS = frozenset({"append", "extend", "add", "add_", "insert", "update", "copy_", "fill_", "setdefault"})


def used(node: ast.AST) -> Iterator[str]:
    """The variables and attributes of `self` whose values a piece of code reads; not those that it only calls."""
    called = {item.func for item in ast.walk(node) if isinstance(item, ast.Call)}
    for item in ast.walk(node):
        if item in called:
            continue
        if isinstance(item, ast.Name) and item.id != "self":
            yield item.id
        elif isinstance(item, ast.Attribute) and isinstance(item.value, ast.Name) and item.value.id == "self":
            yield f"self.{item.attr}"


def defined(statement: ast.stmt) -> Iterator[str]:
    """The variables that a statement gives a value or adds to, its blocks not included."""
    targets: list[ast.AST] = []
    if isinstance(statement, ast.Assign):
        targets = list(statement.targets)
    elif isinstance(statement, (ast.AugAssign, ast.AnnAssign, ast.For, ast.AsyncFor)):
        targets = [statement.target]
    elif isinstance(statement, (ast.With, ast.AsyncWith)):
        targets = [item.optional_vars for item in statement.items if item.optional_vars]
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        function = statement.value.func
        if isinstance(function, ast.Attribute) and function.attr in _GROWS:
            targets = [function.value]
    for target in targets:
        yield from _names(target)
    for head in heads_of(statement):
        for node in ast.walk(head):
            if isinstance(node, ast.NamedExpr):
                yield node.target.id


def _names(target: ast.AST) -> Iterator[str]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for element in target.elts:
            yield from _names(element)
    elif isinstance(target, (ast.Subscript, ast.Starred)):
        yield from _names(target.value)
    elif isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Attribute):
        yield ast.unparse(target)


def leading_to(
    wanted: set[str], domain: Iterable[ast.stmt], last_line: int, effects: Callable[[ast.stmt], set[str]]
) -> set[ast.stmt]:
    """The statements of a domain (and of its blocks) up to a line from which the wanted variables get their values.

    `effects` says which attributes a statement sets through the methods that it calls.
    """
    statements = [
        item for top in domain for item in (top, *statements_below(top)) if item.lineno <= last_line
    ]
    sets = {item: effects(item).union(defined(item)) for item in statements}
    wanted = set(wanted)
    found: set[ast.stmt] = set()
    while True:
        more = [item for item in statements if item not in found and wanted.intersection(sets[item])]
        if not more:
            return found
        found.update(more)
        for item in more:
            for head in heads_of(item):
                wanted.update(used(head))


_CAST = Text("Forward pass put under autocast", "前向计算置于 autocast 下")
_FLOAT = Message(
    Text(
        "Loss computed in float32, because autocast refuses it", "损失以 float32 计算，因为 autocast 不允许它"
    ),
    why=Text(
        "`BCEWithLogitsLoss` on the values before the sigmoid is allowed under autocast and more exact.",
        "对 sigmoid 之前的值使用 `BCEWithLogitsLoss` 可在 autocast 下运行，且更精确。",
    ),
)
_NO_FORWARD = Text(
    "the loss does not come from this function, so its forward pass can't be put under autocast here",
    "损失并非由本函数计算，无法在此将其前向置于 autocast 下",
)
_UNSEEN = Text(
    "it is not clear which call is the forward pass; if it is `{call}`, autocast belongs around that, too",
    "不清楚哪个调用是前向计算；若是 `{call}`，autocast 也应包住它",
)
_SHARED_LINE = Text(
    "forward, loss and backward share a line with other statements", "前向、损失或 backward 与其他语句同行"
)
_IN_HEAD = Text("the forward pass is in the head of a compound statement", "前向计算位于复合语句的头部")
_MIXED = Text("a loss that autocast refuses is part of this expression", "该表达式含有 autocast 不允许的损失")


@dataclass
class _Run:
    """Statements one after the other without a backward among them, and what is computed ahead for the next one."""

    statements: list[ast.stmt] = field(default_factory=list)
    hoisted: list[str] = field(default_factory=list)
    before: ast.stmt | None = None


class Regions:
    """Puts the computing statements of training steps under autocast."""

    def __init__(self, program: PassModule, changes: ModuleChanges, autocast: str) -> None:
        self.program = program
        self.module = program.module
        self.changes = changes
        self.autocast = autocast  # torch.cuda.amp.autocast, as this module can write it
        self.computing = Computing(program)
        self.unsafe = UnsafeLosses(program)
        self.routine: Routine = program.module.tree
        self.leading: set[ast.stmt] = set()
        self.backwards: dict[ast.stmt, Backward] = {}
        self.barriers: set[ast.stmt] = set()
        self.renamed: dict[ast.stmt, str] = {}
        self._hoisted_names: set[str] = set()
        self._domains: dict[ast.AST, list[ast.stmt]] = {}  # each with the statements that add to gradients
        self._covered: set[ast.stmt] = set()  # what is under autocast

    def cover(self, training: TrainingSteps) -> dict[ast.stmt, str]:
        """Add the edits for one function of a training step; answers with the losses that now have a name."""
        self.routine = training.routine
        self.renamed = {}
        self.backwards = {item.statement: item for item in training.backwards}
        self.barriers = {*training.gradients, *(step.statement for step in training.steps)}
        for statement in statements_below(self.routine):
            functions = (self.program.qualified(call.func, self.routine) for call in calls_in(statement))
            if any(name.startswith("torch.optim.") for name in functions):
                self.barriers.add(statement)  # what makes an optimizer stays outside
        self._domains = {}
        for statement in sorted(training.gradients, key=lambda item: item.lineno):
            self._domains.setdefault(self._domain(statement, training), []).append(statement)
        for node in self._domains:
            self._cover_domain(node, training)
        return self.renamed

    def _domain(self, statement: ast.stmt, training: TrainingSteps) -> ast.AST:
        """The innermost loop that computes the loss; a loop that only goes through losses is not it."""
        for node in self.program.tree.upwards(statement):
            if node is self.routine:
                break
            if isinstance(node, LOOPS) and self._computes_loss(node, statement, training):
                return node
        return self.routine

    def _computes_loss(self, loop: ast.stmt, statement: ast.stmt, training: TrainingSteps) -> bool:
        found = self._leading(loop.body, [statement], training)  # type: ignore[attr-defined]
        return any(self.computing.in_heads(item, self.routine) for item in (*found, statement))

    def _leading(
        self, body: list[ast.stmt], gradients: list[ast.stmt], training: TrainingSteps
    ) -> set[ast.stmt]:
        """What leads to the losses of these statements, and to the attributes that the helpers read."""
        wanted = {name for item in gradients for head in heads_of(item) for name in used(head)}
        if not set(gradients).isdisjoint(training.indirect):
            wanted |= {
                name for helper in training.helpers for name in used(helper.routine) if "self." in name
            }
        last = max(item.lineno for item in gradients)
        return leading_to(wanted, body, last, self.program.effects)

    def _cover_domain(self, node: ast.AST, training: TrainingSteps) -> None:
        body: list[ast.stmt] = node.body  # type: ignore[attr-defined]
        gradients = self._domains[node]
        self.leading = self._leading(body, gradients, training)
        if isinstance(node, LOOPS):  # what leads to the losses of domains around may be computed in here
            for around in (*self.program.tree.upwards(node), self.module.tree):
                if around in self._domains:
                    outer: list[ast.stmt] = around.body  # type: ignore[attr-defined]
                    self.leading |= self._leading(outer, self._domains[around], training)
        before = len(self.changes.items)
        self._cover_block(body)
        direct = [item for item in gradients if item in self.backwards]
        if direct and len(self.changes.items) == before:
            raise UnclearStepError(direct[0], _NO_FORWARD)
        # Losses alone under autocast gain nothing: then a method of an unknown object may be the forward pass.
        outside = [item for item in self.leading if item not in self._covered]
        if any(
            self.computing.runs_model(call, self.routine) for item in self._covered for call in calls_in(item)
        ):
            return
        for statement in sorted(outside, key=lambda item: item.lineno):
            for call in calls_in(statement):
                if self.computing.may_run_model(call, self.routine):
                    raise UnclearStepError(call, _UNSEEN.format(call=ast.unparse(call.func)))

    def _cover_block(self, block: list[ast.stmt]) -> None:
        run = _Run()
        for statement in block:
            if isinstance(statement, DEFINITIONS) or not self._is_barrier(statement):
                run.statements.append(statement)
                continue
            run.before = statement
            run = self._open_barrier(statement, run)
        self._flush(run)

    def _is_barrier(self, statement: ast.stmt) -> bool:
        if is_elif(self.module, statement):
            return True  # no line can be put before it, and its branches are those of the `if` above
        inner = [statement, *statements_below(statement)]
        return any(item in self.barriers or self.unsafe.calls(item, self.routine) for item in inner)

    def _open_barrier(self, statement: ast.stmt, run: _Run) -> _Run:
        """A statement that stays outside: what it computes itself is computed ahead; its blocks are covered.

        Answers with the run that begins behind it.
        """
        refused = self.unsafe.calls(statement, self.routine)
        if any(True for _ in statements_below(statement)):
            if refused or self._computes_in_head(statement):
                raise UnclearStepError(statement, _IN_HEAD)
            if not is_elif(self.module, statement):
                self._flush(run)
            own = statement.body if statement in self._domains else None  # type: ignore[attr-defined]
            if statement not in self.barriers:
                for inner in blocks_of(statement):
                    if inner is not own:
                        self._cover_block(inner)
            return _Run()
        following = _Run()
        if refused and self._computes_beside(statement, refused):
            lines = self._pull_out(statement, refused, run)
            self._flush(run)
            self._put_above(statement, lines)
            following.statements.append(statement)
            return following
        if refused:
            self._make_float(refused, run, self._leads(statement))
        elif statement in self.backwards:  # criterion(model(x), y).backward()
            loss = self.backwards[statement].loss
            if self.computing.in_expression(loss, self.routine):
                name = self._fresh("loss", "total_loss")
                run.hoisted.append(self._assigned(name, loss))
                self.renamed[statement] = name
        self._flush(run)
        return following

    def _computes_in_head(self, statement: ast.stmt) -> bool:
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            return False
        asks = statement in self.leading or isinstance(statement, (ast.If, ast.While))
        return asks and self.computing.in_heads(statement, self.routine)

    def _computes_beside(self, statement: ast.stmt, refused: list[ast.Call]) -> bool:
        """Whether a statement computes something else than these calls and their arguments."""
        inside = {id(node) for call in refused for node in ast.walk(call)}
        return any(
            self.computing.is_computing(call, self.routine)
            for call in calls_in(statement)
            if id(call) not in inside
        )

    def _make_float(self, refused: list[ast.Call], run: _Run, is_trained: bool = True) -> None:
        """loss = bce(model(x), y): the model under autocast if it is trained, the loss outside."""
        for call in refused:
            self.changes.at(call, _FLOAT, *self._float_edits(call, run, is_trained))

    def _float_edits(self, call: ast.Call, run: _Run, is_trained: bool = True) -> Iterator[Edit]:
        for tensor in tensors_of(call):
            if is_trained and self.computing.in_expression(tensor, self.routine):
                name = self._fresh("prediction", "probabilities")
                run.hoisted.append(self._assigned(name, tensor))
                yield self.module.replacement(tensor, f"{name}.float()")
            else:
                yield from as_float(self.module, tensor)

    def _pull_out(self, statement: ast.stmt, refused: list[ast.Call], run: _Run) -> list[str]:
        """loss = mse(a, b) + bce(c, d): bce gets a line of its own, to be put before and outside of autocast."""
        if statement in self.backwards or not has_own_lines(self.module, statement, statement):
            raise UnclearStepError(statement, _MIXED)
        lines: list[str] = []
        for call in refused:
            start, end = self.module.start(call), self.module.end(call)
            text = edited(self.module.data, start, end, self._float_edits(call, run)).decode("utf-8")
            if "\n" in text or "\r" in text:
                raise UnclearStepError(call, _MIXED)
            name = self._fresh("cross_entropy", "bce_loss")
            self.changes.at(call, _FLOAT, Edit(start, end, name))
            lines.append(f"{name} = {text}")
        return lines

    def _put_above(self, statement: ast.stmt, lines: Iterable[str]) -> None:
        self.changes.items[-1].edits += [self.changes.above(statement, line) for line in lines]

    def _fresh(self, *choices: str) -> str:
        taken = self._hoisted_names
        numbered = (f"{choices[0]}_{number}" for number in range(2, 1000))
        used = self.program.identifiers | taken
        name = next(item for item in (*choices, *numbered) if item not in used)
        taken.add(name)
        return name

    def _assigned(self, name: str, value: ast.expr) -> str:
        text = self.module.segment(value)
        return f"{name} = ({text})" if "\n" in text or "\r" in text else f"{name} = {text}"

    def _flush(self, run: _Run) -> None:
        """Autocast around what computes in a run of statements, and around what is computed ahead."""
        statements = run.statements
        computing = [
            index
            for index, item in enumerate(statements)
            if self._leads(item) and self.computing.in_statement(item, self.routine)
        ]
        if not computing and not run.hoisted:
            return
        header = f"with {self.autocast}():"
        if not computing:
            self._insert_block(run, header)
            return
        last = len(statements) - 1
        if not run.hoisted:
            last = max(index for index, item in enumerate(statements) if self._leads(item))
        chosen = statements[computing[0] : last + 1]
        self._covered.update(inner for item in chosen for inner in (item, *statements_below(item)))
        if not has_own_lines(self.module, chosen[0], chosen[-1]):
            raise UnclearStepError(chosen[0], _SHARED_LINE)
        start = self.module.line_starts[chosen[0].lineno - 1]
        change = self.changes.between(start, self.module.end(chosen[-1]), _CAST)
        change.edits += [
            (Rank.BLOCK, edit) for edit in block_edits(self.module, chosen, header, self.program.tree)
        ]
        if run.hoisted:
            unit = indent_unit(self.module, chosen[0], self.program.tree)
            change.edits += [self.changes.below(chosen[-1], unit + line) for line in run.hoisted]

    def _leads(self, statement: ast.stmt) -> bool:
        return any(item in self.leading for item in (statement, *statements_below(statement)))

    def _insert_block(self, run: _Run, header: str) -> None:
        before = run.before
        assert before is not None
        if indent_of(self.module, before).strip():
            raise UnclearStepError(before, _SHARED_LINE)
        unit = indent_unit(self.module, before, self.program.tree)
        change = self.changes.at(before, _CAST)
        change.edits.append(self.changes.above(before, header))
        change.edits += [self.changes.above(before, unit + line) for line in run.hoisted]

    def cover_helpers(self, trainings: list[TrainingSteps]) -> None:
        """Functions that a training step calls are under its autocast: a refused loss in them leaves it."""
        trained = {part.routine for training in trainings for part in (training, *training.helpers)}
        for routine in self.program.routines:
            if routine in trained or isinstance(routine, ast.Module) or _is_without_gradients(routine):
                continue
            for statement in statements_below(routine):
                refused = self.unsafe.calls(statement, routine)
                if refused and not any(map(_is_without_gradients, self.program.tree.upwards(statement))):
                    self._leave_autocast(statement, refused, routine)

    def _leave_autocast(self, statement: ast.stmt, refused: list[ast.Call], routine: Routine) -> None:
        if any(True for _ in statements_below(statement)):
            raise UnclearStepError(statement, _IN_HEAD)
        if not has_own_lines(self.module, statement, statement):
            raise UnclearStepError(statement, _SHARED_LINE)
        self.routine = routine
        run = _Run()
        header = f"with {self.autocast}(enabled=False):"
        if self._computes_beside(statement, refused):
            unit = indent_unit(self.module, statement, self.program.tree)
            lines = self._pull_out(statement, refused, run)
            self._put_above(statement, [*run.hoisted, header, *(unit + line for line in lines)])
            return
        self._make_float(refused, run)
        self._put_above(statement, run.hoisted)
        self.changes.items[-1].edits += [
            (Rank.BLOCK, edit) for edit in block_edits(self.module, [statement], header, self.program.tree)
        ]


def _is_without_gradients(node: ast.AST) -> bool:
    """Whether a function, or a block, computes no gradients, and so is not part of a training step."""
    expressions: list[ast.AST] = []
    if isinstance(node, FUNCTIONS):
        expressions += node.decorator_list
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        expressions += [item.context_expr for item in node.items]
    names = {last_name(item.func if isinstance(item, ast.Call) else item) for item in expressions}
    return not names.isdisjoint({"no_grad", "inference_mode"})
