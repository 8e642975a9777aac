"""set_epoch: where the sampler of a training loader is told which epoch begins."""

from __future__ import annotations

import ast

from torchferry.convert.distributed.changes import Changes
from torchferry.convert.distributed.flow import Origin, Site
from torchferry.convert.distributed.functions import yielding_loops
from torchferry.convert.distributed.loaders import SAMPLER
from torchferry.convert.distributed.program import ASSIGNMENTS, ProgramFile, targets
from torchferry.convert.distributed.training import Iteration, Training
from torchferry.convert.distributed.uses import Loaders, key_of
from torchferry.convert.insertion import shares_its_line
from torchferry.finding import Kind
from torchferry.source.names import called_name
from torchferry.text import Text

_TOLD = Text(
    "tells the sampler which epoch begins, so that each has an order of its own",
    "告知采样器当前轮次，使每轮顺序不同",
)
_NO_COUNTER = Text(
    "goes over the training data several times, but counts no epochs in a `for` loop; call "
    "LOADER.sampler.set_epoch(n) with a growing n before each pass, else every epoch has the same order",
    "多次遍历训练数据，但没有以 for 循环计数轮次；请在每轮开始前调用 LOADER.sampler.set_epoch(n)（n 递增），否则各轮顺序相同",
)
_GOES_ON = Text(
    "begins the next epoch of the sampler, so that each has an order of its own",
    "采样器进入下一轮，使每轮顺序不同",
)
_COUNTERS = frozenset({"range", "trange", "count", "tqdm", "track"})
_DEPTH = 5


def tell_epochs(training: Training, loaders: Loaders, changes: Changes) -> None:
    """Put set_epoch into every epoch loop over a loader that feeds the training."""
    for loader in loaders.training:
        for iteration in training.iterations:
            if any(found.node is loader.node for found in iteration.loaders):
                _tell(training, loader, iteration, changes)
    shared = {id(loader.node) for loader in loaders.training} - {*loaders.tests}
    for iteration in training.iterations:
        if any(id(found.node) in shared | {*loaders.tests} for found in iteration.loaders):
            _tell_generator(training, iteration, shared, changes)


def _tell(training: Training, loader: Origin, iteration: Iteration, changes: Changes) -> None:
    if iteration.trains and not iteration.is_next and not _is_generated(training, iteration):
        source = _loader_expression(training, iteration, loader)
        telling = _Telling(training, loader, changes)
        if isinstance(source, ast.Subscript) and not isinstance(source.slice, ast.Constant):
            text = _picked(training, iteration.file, source, loader)
            if text:
                telling.tell(iteration.file, iteration.loop, text)
                return
            changes.of(iteration.file).remark(Kind.TODO, iteration.source, _NO_COUNTER)
            return
        if isinstance(source, (ast.Name, ast.Attribute, ast.Subscript)):
            telling.tell(iteration.file, iteration.loop, iteration.file.module.segment(source))
        elif any(training.loops_around(iteration.file, iteration.loop)):
            changes.of(iteration.file).remark(Kind.TODO, iteration.source, _NO_COUNTER)


def _picked(training: Training, file: ProgramFile, source: ast.Subscript, loader: Origin) -> str:
    """Of loaders[phase] the one that trains: loaders["train"]."""
    found = {key_of(training, origin, loader) for origin in training.flow.origins(file, source.value)} - {""}
    return f"{file.module.segment(source.value)}[{found.pop()!r}]" if len(found) == 1 else ""


def _is_generated(training: Training, iteration: Iteration) -> bool:
    """`for x in endless(loader)`: a generator of the program goes over the loader."""
    value = _value(iteration.file, iteration.source)
    callee = training.flow.callee(iteration.file, value) if isinstance(value, ast.Call) else None
    return callee is not None and bool(yielding_loops(callee.node))


def _tell_generator(training: Training, iteration: Iteration, shared: set[int], changes: Changes) -> None:
    """A generator that goes over a loader again and again."""
    function = training.function_around(iteration.file, iteration.loop)
    if function is None or iteration.loop not in yielding_loops(function):
        return
    is_again = any(training.loops_around(iteration.file, iteration.loop))
    if not is_again or not isinstance(iteration.source, (ast.Name, ast.Attribute)):
        return
    file = changes.of(iteration.file)
    text = iteration.file.module.segment(iteration.source)
    line = f"{text}.sampler.set_epoch({text}.sampler.epoch + 1)"
    if all(id(found.node) in shared for found in iteration.loaders):
        file.before(iteration.loop, [line], _GOES_ON)
    else:
        sampler = file.name_of(SAMPLER, "DistributedSampler")
        lines = [f"if isinstance({text}.sampler, {sampler}):", f"{file.indent_unit}{line}"]
        file.before(iteration.loop, lines, _GOES_ON)


def _loader_expression(training: Training, iteration: Iteration, loader: Origin) -> ast.expr:
    """The loader itself in what the loop goes over: of enumerate(bar) the name, also if `bar = tqdm(loader)`."""
    node = iteration.source
    for _ in range(_DEPTH):
        value = _value(iteration.file, node)
        arguments = value.args if isinstance(value, ast.Call) and value is not loader.node else []
        inner = next(
            (item for item in arguments if training.flow.comes_from(iteration.file, item, loader.node)), None
        )
        if inner is None:
            break
        node = inner
    return node


class _Telling:
    """The way from the loop over a loader out to the loop that counts epochs."""

    def __init__(self, training: Training, loader: Origin, changes: Changes) -> None:
        self.training = training
        self.loader = loader
        self.changes = changes

    def tell(self, file: ProgramFile, statement: ast.stmt, text: str, depth: int = _DEPTH) -> None:
        """`text` is how the loader is called at the statement."""
        loops = list(self.training.loops_around(file, statement))
        counting = next((loop for loop in loops if _counter(file, loop)), None)
        if counting is not None:
            line = f"{text}.sampler.set_epoch({_counter(file, counting)})"
            made = self._made_in(file, counting, text)
            if made is not None:
                self.changes.of(file).after(made, [line], _TOLD)
            else:
                first = counting.body[0]  # type: ignore[attr-defined]
                self.changes.of(file).before(first, [line], _TOLD)
        elif loops and self._can_precede(file, loops[-1], statement, text):
            line = f"{text}.sampler.set_epoch({text}.sampler.epoch + 1)"
            self.changes.of(file).before(statement, [line], _GOES_ON)
        elif loops:
            self.changes.of(file).remark(Kind.TODO, loops[-1], _NO_COUNTER)
        elif depth:
            self._tell_callers(file, statement, text, depth)

    def _can_precede(self, file: ProgramFile, loop: ast.stmt, statement: ast.stmt, text: str) -> bool:
        return not shares_its_line(file.module, statement) and self._made_in(file, loop, text) is None

    def _made_in(self, file: ProgramFile, loop: ast.stmt, text: str) -> ast.stmt | None:
        """The statement in a loop that gives the variable its loader."""
        for statement in ast.walk(loop):
            if isinstance(statement, ASSIGNMENTS) and any(
                file.module.segment(target) == text for target in targets(statement)
            ):
                return statement
        return None

    def _tell_callers(self, file: ProgramFile, statement: ast.stmt, text: str, depth: int) -> None:
        callers = self.training.callers(file, statement)
        if not callers and self.training.function_around(file, statement) is not None:
            self.changes.of(file).remark(Kind.TODO, statement, _NO_COUNTER)
        for site in callers:
            standing = site.file.standing(site.call)
            passed = self._text_at(site, file, text)
            if standing is not None and passed:
                self.tell(site.file, standing.statement, passed, depth - 1)
            elif self.training.takes_loader(site):
                continue  # another one
            elif standing is not None and any(self.training.loops_around(site.file, standing.statement)):
                self.changes.of(site.file).remark(Kind.TODO, site.call, _NO_COUNTER)

    def _text_at(self, site: Site, file: ProgramFile, text: str) -> str:
        """How the caller calls the loader."""
        argument = self.training.argument_from(site, self.loader.node)
        if isinstance(argument, (ast.Name, ast.Attribute, ast.Subscript)):
            return site.file.module.segment(argument)
        if text.startswith("self.") and isinstance(site.call.func, ast.Attribute):
            return site.file.module.segment(site.call.func.value) + text.removeprefix("self")
        is_global = text in file.module.scopes.root.bindings
        return text if is_global and site.file is file else ""


def _counter(file: ProgramFile, loop: ast.stmt) -> str:
    """The variable that counts the rounds of a loop, "" if none does."""
    if not isinstance(loop, (ast.For, ast.AsyncFor)):
        return ""
    target, name = loop.target, called_name(_value(file, loop.iter))
    if name == "enumerate" and isinstance(target, ast.Tuple) and isinstance(target.elts[0], ast.Name):
        return target.elts[0].id
    return target.id if name in _COUNTERS and isinstance(target, ast.Name) else ""


def _value(file: ProgramFile, node: ast.expr) -> ast.expr:
    """Of a variable what it was given last: `epochs = trange(9)`."""
    standing = file.standing(node)
    if not isinstance(node, ast.Name) or standing is None:
        return node
    binding = file.module.binding_of(node.id, standing.scope, node.lineno)
    return binding.value if binding is not None and binding.value is not None else node
