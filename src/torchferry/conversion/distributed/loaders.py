"""Data loaders that feed the training: how each process gets its share of them."""

from __future__ import annotations

import ast
import re

from torchferry.conversion.common_edits import add_argument
from torchferry.conversion.distributed.changes import FileChanges, ProgramChanges, UnclearProgramError
from torchferry.conversion.distributed.loader_uses import Loaders, comprehension_of, key_of
from torchferry.conversion.distributed.training import Iteration, Training
from torchferry.conversion.loaders import argument
from torchferry.conversion.program.blocks import shares_its_line
from torchferry.conversion.program.functions import ASSIGNMENTS, targets, yielding_loops
from torchferry.conversion.program.module import ProgramModule
from torchferry.conversion.program.training_program import CallSite, Origin
from torchferry.conversion.settings import Distributed
from torchferry.finding import Kind, Message
from torchferry.source.edits import Edit
from torchferry.source.names import called_name
from torchferry.text import Text

SAMPLER = "torch.utils.data.distributed.DistributedSampler"
# Samplers that mean no more than a shuffle argument does.
_SUBSET = "SubsetRandomSampler"
_ORDERS = {"torch.utils.data.RandomSampler": True, "torch.utils.data.SequentialSampler": False}

_INSIDE = Text(
    "the dataset is made inside a comprehension, with its loader; make the datasets in a statement before it",
    "数据集与 DataLoader 一起在推导式中创建；请先用单独的语句创建数据集",
)
_OWN_SAMPLER = Text(
    "this loader has its own {what}, which ignores other processes; write one that gives rank r only the "
    "indices r, r + world_size, ... of each epoch, with the same number on every rank",
    "该 DataLoader 使用了自定义 {what}，它不了解其他进程；请改写为仅给进程 r 提供每轮中第 r、r + world_size …… 个下标，且各进程数量相同",
)
_ITERABLE = Text(
    "an IterableDataset can't be sampled; let its __iter__ yield every world_size-th item, from rank on, "
    "and the same number on every rank",
    "IterableDataset 无法采样；请在 __iter__ 中从 rank 开始每隔 world_size 取一项，且各进程数量相同",
)
_HIDDEN = Text(
    "its arguments are hidden in * or **; write dataset, batch_size, shuffle and sampler in the call",
    "参数隐藏在 * 或 ** 中；请在调用中写明 dataset、batch_size、shuffle 和 sampler",
)
_SHARED = Text(
    "DistributedSampler added, so that each process gets its share",
    "添加 DistributedSampler，各进程取得各自的样本",
)
_WHOLE = Message(
    Text("Evaluation runs whole on every process", "每个进程都完整执行评估"),
    why=Text("All processes compute the same figures.", "所有进程得到相同的指标。"),
    do=Text(
        "To share it as well, reduce the sums of all ranks; a DistributedSampler repeats samples to fill up.",
        "如需分摊，请对各 rank 求和归约；注意 DistributedSampler 会重复样本补齐。",
    ),
)
_SHUFFLED = Message(
    Text("Evaluation in random order", "按随机顺序进行的评估"),
    why=Text(
        "Every process has other batches, so means of batches differ slightly.",
        "各进程的批次不同，按批次求平均的指标会略有差异。",
    ),
    do=Text("Remove `shuffle=True`.", "请去掉 `shuffle=True`。"),
)
_KEEP = (
    "batch_size and num_workers are per process: a step takes batch_size samples on each card",
    "batch_size 与 num_workers 按进程计：每步每卡取 batch_size 个样本",
)
_SPLIT = (
    "batch_size is of all cards together: each process takes its share; num_workers is per process",
    "batch_size 为所有卡之和，各进程取其份额；num_workers 按进程计",
)


def share_loaders(
    training: Training, loaders: Loaders, settings: Distributed, changes: ProgramChanges
) -> None:
    """Give every training loader a DistributedSampler; say why the others stay whole."""
    for loader in loaders.training:
        assert isinstance(loader.node, ast.Call)
        call = _LoaderCall(training, loader.file, loader.node, changes.of(loader.file))
        call.share(settings, loaders.tests.get(id(loader.node), ""))
    for loader in loaders.others:
        assert isinstance(loader.node, ast.Call)
        shuffle = argument(loader.node, "shuffle")
        is_shuffled = isinstance(shuffle, ast.Constant) and shuffle.value is True
        changes.of(loader.file).remark(Kind.INFO, loader.node, _WHOLE)
        if is_shuffled:
            changes.of(loader.file).remark(Kind.RISK, loader.node, _SHUFFLED)


class _LoaderCall:
    """One DataLoader(...) that feeds the training."""

    def __init__(self, training: Training, file: ProgramModule, call: ast.Call, changes: FileChanges) -> None:
        self.training = training
        self.file = file
        self.module = file.module
        self.call = call
        self.statement = file.statement_of(call)
        self.changes = changes

    def argument(self, name: str) -> ast.expr | None:
        return argument(self.call, name)

    def share(self, settings: Distributed, test: str) -> None:
        """`test`: what is true only if the call makes a loader for the training; else it makes no others."""
        if any(isinstance(argument, ast.Starred) for argument in self.call.args):
            raise UnclearProgramError(self.file, self.call, _HIDDEN)
        batch_sampler, given = self.argument("batch_sampler"), self.argument("dataset")
        if batch_sampler is not None and not _is_none(batch_sampler):
            raise UnclearProgramError(self.file, self.call, _OWN_SAMPLER.format(what="batch_sampler"))
        if given is None:
            raise UnclearProgramError(self.file, self.call, _HIDDEN)
        if self._is_iterable(given):
            raise UnclearProgramError(self.file, self.call, _ITERABLE)
        order = self._order_of_sampler()
        if order is None and self._subset() is None and self._is_shared():
            return
        sampler = self.changes.name_of(SAMPLER, "DistributedSampler")
        edits = self._batch_edits(settings)
        if test and (order is not None or self._subset() is not None):
            raise UnclearProgramError(self.file, self.call, _OWN_SAMPLER.format(what="sampler"))
        if self._subset() is not None:
            self.changes.replace(self.call, _SHARED, *self._subset_edits(sampler), *edits)
        elif order is not None:
            made, shuffle = order
            text = f"{sampler}({self._text(made.args[0])}, shuffle={shuffle})"
            self.changes.replace(self.call, _SHARED, self.module.replacement(made, text), *edits)
        else:
            dataset = self._dataset_text()
            self.changes.replace(self.call, _SHARED, *self._sampler_edits(sampler, dataset, test), *edits)
        comment = _SPLIT if settings.split_batch else _KEEP
        self.changes.before(self.statement, [f"# {comment[0]}"], Text(*comment), self.call)

    def _is_iterable(self, dataset: ast.expr) -> bool:
        for origin in self.training.flow.origins(self.file, dataset):
            made = self.training.flow.class_of(origin.file, origin.node)
            for base in made.node.bases if made and isinstance(made.node, ast.ClassDef) else ():
                if made and made.file.qualified(base).endswith("IterableDataset"):
                    return True
        return False

    def _is_shared(self) -> bool:
        sampler = self.argument("sampler")
        if sampler is None or _is_none(sampler):
            return False
        made = self.training.flow.origins(self.file, sampler)
        if made and all(called_name(origin.node) == "DistributedSampler" for origin in made):
            return True
        raise UnclearProgramError(self.file, self.call, _OWN_SAMPLER.format(what="sampler"))

    def _sampler_call(self) -> ast.Call | None:
        """The call with one plain argument that makes the loader's sampler, in the same file."""
        sampler = self.argument("sampler")
        made = self.training.flow.origins(self.file, sampler) if sampler is not None else []
        if len(made) != 1 or not isinstance(made[0].node, ast.Call) or made[0].file is not self.file:
            return None
        call = made[0].node
        return call if len(call.args) == 1 and not call.keywords else None

    def _order_of_sampler(self) -> tuple[ast.Call, bool] | None:
        """The RandomSampler(dataset) or SequentialSampler(dataset) that is the loader's sampler, and its order."""
        call = self._sampler_call()
        if call is None:
            return None
        name = self.file.qualified(call.func).replace("torch.utils.data.sampler.", "torch.utils.data.")
        return (call, _ORDERS[name]) if name in _ORDERS else None

    def _subset(self) -> ast.expr | None:
        """The indices of the SubsetRandomSampler(indices) that is the loader's sampler, if they are plainly named."""
        call = self._sampler_call()
        if call is None or called_name(call) != _SUBSET:
            return None
        if self.file.scope_at(call) is not self.file.scope_at(self.call):
            return None
        indices = call.args[0]
        computing = (ast.Call, ast.NamedExpr, ast.ListComp)
        return None if any(isinstance(node, computing) for node in ast.walk(indices)) else indices

    def _subset_edits(self, sampler: str) -> list[Edit]:
        """A subset in random order is a Subset that is shuffled."""
        dataset, given, indices = self.argument("dataset"), self.argument("sampler"), self._subset()
        assert dataset is not None and given is not None and indices is not None
        subset = self.changes.name_of("torch.utils.data.Subset", "Subset")
        name = self._hoisted(f"{subset}({self._text(dataset)}, {self._text(indices)})")
        return [
            self.module.replacement(dataset, name),
            self.module.replacement(given, f"{sampler}({name}, shuffle=True)"),
        ]

    def _text(self, node: ast.AST) -> str:
        return self.module.segment(node)

    def _dataset_text(self) -> str:
        """The dataset as a name, so that it is made only once."""
        dataset = self.argument("dataset")
        assert dataset is not None
        if _is_plain(dataset):
            return self._text(dataset)
        name = self._hoisted(_alone(self._text(dataset)))
        self.changes.replace(self.call, _SHARED, self.module.replacement(dataset, name))
        return name

    def _hoisted(self, text: str) -> str:
        """The name of a variable that is given a value above the call's statement."""
        if comprehension_of(Origin(self.file, self.call)) is not None:
            raise UnclearProgramError(self.file, self.call, _INSIDE)
        scope = self.file.scope_of_statement(self.statement)
        name = self.changes.free_name("train_dataset", {*scope.bindings, *self.module.scopes.root.bindings})
        self.changes.before(self.statement, [f"{name} = {text}"], _SHARED, self.call)
        return name

    def _sampler_edits(self, sampler: str, dataset: str, test: str) -> list[Edit]:
        """Edits that put the sampler in the place of `shuffle`, or add it."""
        shuffle = self.argument("shuffle")
        hidden = [keyword.value for keyword in self.call.keywords if keyword.arg is None]
        if hidden and re.search(r"sampler['\"=]", self.module.decoded.text):
            raise UnclearProgramError(self.file, self.call, _HIDDEN)
        if hidden and shuffle is None:
            return self._edits_beside_hidden(sampler, dataset, hidden, test)
        order = self._text(shuffle) if shuffle is not None else "False"
        text = f"{sampler}({dataset}, shuffle={order})"
        if test == order:
            plain = f"({test})" if isinstance(shuffle, ast.IfExp) else test
            text = f"{sampler}({dataset}) if {plain} else None"
        elif test:
            text += f" if {test} else None"
        given = self.argument("sampler")
        if shuffle is None and given is None:
            return [add_argument(self.module, self.call, f"sampler={text}")]
        for keyword in self.call.keywords:
            if keyword.arg == "shuffle" and given is None:
                return [self.module.replacement(keyword, f"sampler={text}")]
        edits = [self.module.replacement(shuffle, "False")] if shuffle is not None else []
        if given is not None:
            return [*edits, self.module.replacement(given, text)]
        return [*edits, add_argument(self.module, self.call, f"sampler={text}")]

    def _edits_beside_hidden(
        self, sampler: str, dataset: str, hidden: list[ast.expr], test: str
    ) -> list[Edit]:
        """`DataLoader(dataset, **options)`: what the options say of shuffle goes to the sampler."""
        options = hidden[0]
        if test or len(hidden) > 1 or not _is_plain(options):
            raise UnclearProgramError(self.file, self.call, _HIDDEN)
        name = self._text(options)
        order = f'{name}.get("shuffle", False)'
        text = f'{{**{name}, "shuffle": False}}, sampler={sampler}({dataset}, shuffle={order})'
        return [self.module.replacement(options, text)]

    def _batch_edits(self, settings: Distributed) -> list[Edit]:
        if not settings.split_batch:
            return []
        size = self.argument("batch_size")
        if size is None:
            raise UnclearProgramError(self.file, self.call, _HIDDEN)
        dist = self.changes.name_of("torch.distributed", "dist")
        text = self._text(size)
        if not isinstance(size, (ast.Name, ast.Attribute, ast.Constant, ast.Call, ast.Subscript)):
            text = f"({text})"
        return [self.module.replacement(size, f"{text} // {dist}.get_world_size()")]


def _alone(text: str) -> str:
    """An expression that stood in parentheses, outside of them."""
    try:
        ast.parse(text)
    except SyntaxError:
        return f"({text})"
    return text


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_plain(node: ast.expr) -> bool:
    """A name, or an attribute of one: evaluating it twice is no harm."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Subscript) and not isinstance(node.slice, (ast.Constant, ast.Name)):
            return False
        node = node.value
    return isinstance(node, ast.Name)


# set_epoch: where the sampler of a training loader is told which epoch begins.

_TOLD = Text("Sampler told which epoch begins", "告知采样器当前轮次")
_NO_COUNTER = Message(
    Text("Training loop that counts no epochs", "没有计数轮次的训练循环"),
    why=Text("Every epoch has the same order of samples.", "各轮的样本顺序相同。"),
    do=Text(
        "Call `LOADER.sampler.set_epoch(n)` with a growing n before each pass.",
        "请在每轮开始前调用 `LOADER.sampler.set_epoch(n)`（n 递增）。",
    ),
)
_GOES_ON = Text("Next epoch of the sampler begun", "采样器进入下一轮")
_COUNTERS = frozenset({"range", "trange", "count", "tqdm", "track"})
_DEPTH = 5


def tell_epochs(training: Training, loaders: Loaders, changes: ProgramChanges) -> None:
    """Put set_epoch into every epoch loop over a loader that feeds the training."""
    for loader in loaders.training:
        for iteration in training.iterations:
            if any(found.node is loader.node for found in iteration.loaders):
                _tell(training, loader, iteration, changes)
    shared = {id(loader.node) for loader in loaders.training} - {*loaders.tests}
    for iteration in training.iterations:
        if any(id(found.node) in shared | {*loaders.tests} for found in iteration.loaders):
            _tell_generator(training, iteration, shared, changes)


def _tell(training: Training, loader: Origin, iteration: Iteration, changes: ProgramChanges) -> None:
    value = _value(iteration.file, iteration.source)
    callee = training.flow.callee(iteration.file, value) if isinstance(value, ast.Call) else None
    # `for x in endless(loader)`: a generator of the program goes over the loader.
    is_generated = callee is not None and bool(yielding_loops(callee.node))
    if iteration.trains and not iteration.is_next and not is_generated:
        source = _loader_expression(training, iteration, loader)
        file, text = iteration.file, ""
        if isinstance(source, ast.Subscript) and not isinstance(source.slice, ast.Constant):
            # Of loaders[phase] the one that trains: loaders["train"].
            made = training.flow.origins(file, source.value)
            keys = {key_of(training, origin, loader) for origin in made} - {""}
            text = f"{file.module.segment(source.value)}[{keys.pop()!r}]" if len(keys) == 1 else ""
        elif isinstance(source, (ast.Name, ast.Attribute, ast.Subscript)):
            text = file.module.segment(source)
        elif not any(file.loops_around(iteration.loop)):
            return
        if text:
            _Telling(training, loader, changes).tell(file, iteration.loop, text)
        else:
            changes.of(file).remark(Kind.TODO, iteration.source, _NO_COUNTER)


def _tell_generator(
    training: Training, iteration: Iteration, shared: set[int], changes: ProgramChanges
) -> None:
    """A generator that goes over a loader again and again."""
    function = iteration.file.function_around(iteration.loop)
    if function is None or iteration.loop not in yielding_loops(function):
        return
    is_again = any(iteration.file.loops_around(iteration.loop))
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
        held = (item for item in arguments if training.flow.comes_from(iteration.file, item, loader))
        inner = next(held, None)
        if inner is None:
            break
        node = inner
    return node


class _Telling:
    """The way from the loop over a loader out to the loop that counts epochs."""

    def __init__(self, training: Training, loader: Origin, changes: ProgramChanges) -> None:
        self.training = training
        self.loader = loader
        self.changes = changes

    def tell(self, file: ProgramModule, statement: ast.stmt, text: str, depth: int = _DEPTH) -> None:
        """`text` is how the loader is called at the statement."""
        loops = list(file.loops_around(statement))
        counting = next((loop for loop in loops if _counter(file, loop)), None)
        if counting is not None:
            line = f"{text}.sampler.set_epoch({_counter(file, counting)})"
            made = _assignment_in(file, counting, text)
            if made is not None:
                self.changes.of(file).after(made, [line], _TOLD)
            else:
                self.changes.of(file).before(counting.body[0], [line], _TOLD)  # type: ignore[attr-defined]
        elif (
            loops
            and not shares_its_line(file.module, statement)
            and not _assignment_in(file, loops[-1], text)
        ):
            line = f"{text}.sampler.set_epoch({text}.sampler.epoch + 1)"
            self.changes.of(file).before(statement, [line], _GOES_ON)
        elif loops:
            self.changes.of(file).remark(Kind.TODO, loops[-1], _NO_COUNTER)
        elif depth:
            callers = self.training.callers(file, statement)
            if not callers and file.function_around(statement) is not None:
                self.changes.of(file).remark(Kind.TODO, statement, _NO_COUNTER)
            for site in callers:
                caller = site.file.statement_of(site.call)
                passed = self._text_at(site, file, text)
                if passed:
                    self.tell(site.file, caller, passed, depth - 1)
                elif not self.training.takes_loader(site) and any(site.file.loops_around(caller)):
                    self.changes.of(site.file).remark(Kind.TODO, site.call, _NO_COUNTER)

    def _text_at(self, site: CallSite, file: ProgramModule, text: str) -> str:
        """How the caller calls the loader."""
        argument = self.training.argument_from(site, self.loader)
        if isinstance(argument, (ast.Name, ast.Attribute, ast.Subscript)):
            return site.file.module.segment(argument)
        if text.startswith("self.") and isinstance(site.call.func, ast.Attribute):
            return site.file.module.segment(site.call.func.value) + text.removeprefix("self")
        is_global = text in file.module.scopes.root.bindings
        return text if is_global and site.file is file else ""


def _assignment_in(file: ProgramModule, loop: ast.stmt, text: str) -> ast.stmt | None:
    """The statement in a loop that gives a variable its value."""
    for statement in ast.walk(loop):
        if isinstance(statement, ASSIGNMENTS):
            if any(file.module.segment(target) == text for target in targets(statement)):
                return statement
    return None


def _counter(file: ProgramModule, loop: ast.stmt) -> str:
    """The variable that counts the rounds of a loop, "" if none does."""
    if not isinstance(loop, (ast.For, ast.AsyncFor)):
        return ""
    target, name = loop.target, called_name(_value(file, loop.iter))
    if name == "enumerate" and isinstance(target, ast.Tuple) and isinstance(target.elts[0], ast.Name):
        return target.elts[0].id
    return target.id if name in _COUNTERS and isinstance(target, ast.Name) else ""


def _value(file: ProgramModule, node: ast.expr) -> ast.expr:
    """Of a variable what it was given last: `epochs = trange(9)`."""
    surroundings = file.surroundings(node)
    if not isinstance(node, ast.Name) or surroundings is None:
        return node
    binding = file.module.binding_of(node.id, surroundings.scope, node.lineno)
    return binding.value if binding is not None and binding.value is not None else node
