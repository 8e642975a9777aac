"""Data loaders: which of them feed the training, and how each process gets its share of them."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from torchferry.convert.arguments import add_argument
from torchferry.convert.distributed.changes import Changes, FileChanges, UnclearError
from torchferry.convert.distributed.flow import Origin
from torchferry.convert.distributed.program import ProgramFile, targets
from torchferry.convert.distributed.training import Training
from torchferry.convert.settings import Distributed
from torchferry.finding import Kind
from torchferry.source.edits import Edit
from torchferry.source.names import called_name
from torchferry.text import Text

SAMPLER = "torch.utils.data.distributed.DistributedSampler"
_POSITIONS = ("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers")
_FOR_TRAINING = re.compile(r"(?i)train|trn(?:_|$)")
_FOR_EVALUATION = re.compile(r"(?i)val(?:_|id|l|$)|eval|test|dev(?:_|$)")
# Samplers that mean no more than a shuffle argument does.
_ORDERS = {"torch.utils.data.RandomSampler": True, "torch.utils.data.SequentialSampler": False}

_NONE = Text(
    "no torch.utils.data.DataLoader feeds the training loop; give each process its share of the data by hand: "
    "samples rank, rank + world_size, rank + 2 * world_size ... of each epoch",
    "未找到为训练循环提供数据的 torch.utils.data.DataLoader；请手动为每个进程分配数据："
    "每轮取第 rank、rank + world_size、rank + 2 * world_size …… 个样本",
)
_ROLE = Text(
    "does this loader feed the training or an evaluation? The same loop goes over both; give them names with "
    "`train` and `val` in them, or a loop each",
    "该 DataLoader 用于训练还是评估？两者由同一循环遍历；请在变量名中使用 train 和 val，或分开遍历",
)
_OWN_SAMPLER = Text(
    "has a {what} of its own, which knows nothing of other processes; write one that gives rank r only the "
    "indices r, r + world_size, ... of each epoch, with the same number on every rank",
    "使用了自定义 {what}，它不了解其他进程；请改写为仅给进程 r 提供每轮中第 r、r + world_size …… 个下标，且各进程数量相同",
)
_ITERABLE = Text(
    "an IterableDataset can't be sampled; let its __iter__ yield every world_size-th item, from rank on, "
    "and the same number on every rank",
    "IterableDataset 无法采样；请在 __iter__ 中从 rank 开始每隔 world_size 取一项，且各进程数量相同",
)
_MANY = Text(
    "one call makes several loaders, so that it can't be told which trains; make each in a statement of its own",
    "同一调用创建多个 DataLoader，无法区分用于训练的那个；请分别创建",
)
_HIDDEN = Text(
    "its arguments are hidden in * or **; write dataset, batch_size, shuffle and sampler in the call",
    "参数隐藏在 * 或 ** 中；请在调用中写明 dataset、batch_size、shuffle 和 sampler",
)
_SHARED = Text(
    "each process draws its share of the samples through a DistributedSampler, which takes over shuffle",
    "各进程通过 DistributedSampler 取得各自的样本，并由其负责 shuffle",
)
_WHOLE = Text(
    "an evaluation: every process goes over all of it, so that all compute the same figures; to share it as well, "
    "reduce the sums of all ranks and mind that a DistributedSampler repeats samples to fill up",
    "用于评估：每个进程遍历全部数据，因此结果一致；如需分摊，请对各进程求和归约，并注意 DistributedSampler 会重复样本补齐",
)
_KEEP = (
    "batch_size and num_workers are per process: a step takes batch_size samples on each card",
    "batch_size 与 num_workers 按进程计：每步每卡取 batch_size 个样本",
)
_SPLIT = (
    "batch_size is of all cards together: each process takes its share; num_workers is per process",
    "batch_size 为所有卡之和，各进程取其份额；num_workers 按进程计",
)


@dataclass(frozen=True)
class Loaders:
    """The loaders of a program by what they are for."""

    training: list[Origin]
    others: list[Origin]


def find_loaders(training: Training, main: ProgramFile) -> Loaders:
    """Tell the loaders that feed the training from the others."""
    trained = [loader for loader in training.loaders if _is_for_training(training, loader)]
    if not trained:
        raise UnclearError(main, main.module.tree.body[0], _NONE)
    feeds = {id(loader.node) for loader in trained}
    return Loaders(trained, [item for item in training.loaders if id(item.node) not in feeds])


def _is_for_training(training: Training, loader: Origin) -> bool:
    iterations = [
        item for item in training.iterations if any(found.node is loader.node for found in item.loaders)
    ]
    if not any(item.trains for item in iterations):
        return False
    if any(item.trains and len(item.loaders) == 1 for item in iterations):
        return True
    names = _names(training, loader)
    if _FOR_TRAINING.search(names) and not _FOR_EVALUATION.search(names):
        return True
    if _FOR_EVALUATION.search(names) and not _FOR_TRAINING.search(names):
        return False
    raise UnclearError(loader.file, loader.node, _ROLE)


def _names(training: Training, loader: Origin) -> str:
    """What a loader is called: the targets that it is assigned to, also by the callers of a function."""
    return " ".join(
        file.module.segment(target)
        for file in training.program.files.values()
        for statement in file.statements
        for target in targets(statement)
        if training.flow.comes_from(file, target, loader.node)
    )


def share_loaders(training: Training, loaders: Loaders, settings: Distributed, changes: Changes) -> None:
    """Give every training loader a DistributedSampler; say why the others stay whole."""
    for loader in loaders.training:
        assert isinstance(loader.node, ast.Call)
        _LoaderCall(training, loader.file, loader.node, changes.of(loader.file)).share(settings)
    for loader in loaders.others:
        changes.of(loader.file).remark(Kind.INFO, loader.node, _WHOLE)


class _LoaderCall:
    """One DataLoader(...) that feeds the training."""

    def __init__(self, training: Training, file: ProgramFile, call: ast.Call, changes: FileChanges) -> None:
        self.training = training
        self.file = file
        self.module = file.module
        self.call = call
        self.changes = changes

    def argument(self, name: str) -> ast.expr | None:
        for keyword in self.call.keywords:
            if keyword.arg == name:
                return keyword.value
        place = _POSITIONS.index(name)
        return self.call.args[place] if place < len(self.call.args) else None

    def share(self, settings: Distributed) -> None:
        self._check()
        order = self._order_of_sampler()
        if order is None and self._is_shared():
            return
        dataset = self._dataset_text()
        sampler = self.changes.name_of(SAMPLER, "DistributedSampler")
        edits = self._batch_edits(settings)
        if order is not None:
            made, shuffle = order
            text = f"{sampler}({self._text(made.args[0])}, shuffle={shuffle})"
            changes = [Edit(self.module.start(made), self.module.end(made), text)]
            if self.training.program.main is not None and self._is_elsewhere(made):
                raise UnclearError(self.file, self.call, _OWN_SAMPLER.format(what="sampler"))
            self.changes.replace(self.call, _SHARED, *changes, *edits)
        else:
            self.changes.replace(self.call, _SHARED, *self._sampler_edits(sampler, dataset), *edits)
        statement = self._statement()
        comment = _SPLIT if settings.split_batch else _KEEP
        self.changes.before(statement, [f"# {comment[0]}"], Text(*comment), self.call)

    def _is_elsewhere(self, node: ast.expr) -> bool:
        return self.file.standing(node) is None

    def _check(self) -> None:
        if any(isinstance(argument, ast.Starred) for argument in self.call.args):
            raise UnclearError(self.file, self.call, _HIDDEN)
        parent: ast.AST | None = self.call
        while parent is not None:
            if isinstance(parent, (ast.Lambda, ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp)):
                raise UnclearError(self.file, self.call, _MANY)
            parent = self.file.parent(parent)
        batch_sampler = self.argument("batch_sampler")
        if batch_sampler is not None and not _is_none(batch_sampler):
            raise UnclearError(self.file, self.call, _OWN_SAMPLER.format(what="batch_sampler"))
        dataset = self.argument("dataset")
        if dataset is None:
            raise UnclearError(self.file, self.call, _HIDDEN)
        if self._is_iterable(dataset):
            raise UnclearError(self.file, self.call, _ITERABLE)

    def _is_iterable(self, dataset: ast.expr) -> bool:
        for origin in self.training.flow.origins(self.file, dataset):
            made = self.training.flow.class_of(origin.file, origin.node)
            for base in made.node.bases if made and isinstance(made.node, ast.ClassDef) else ():
                if made and made.file.qualified(base).endswith("IterableDataset"):
                    return True
        return False

    def _is_shared(self) -> bool:
        """Whether the loader has a DistributedSampler already."""
        sampler = self.argument("sampler")
        if sampler is None or _is_none(sampler):
            return False
        made = self.training.flow.origins(self.file, sampler)
        if made and all(called_name(origin.node) == "DistributedSampler" for origin in made):
            return True
        raise UnclearError(self.file, self.call, _OWN_SAMPLER.format(what="sampler"))

    def _order_of_sampler(self) -> tuple[ast.Call, bool] | None:
        """The RandomSampler(dataset) or SequentialSampler(dataset) that is the loader's sampler, and its order."""
        sampler = self.argument("sampler")
        made = self.training.flow.origins(self.file, sampler) if sampler is not None else []
        if len(made) != 1 or not isinstance(made[0].node, ast.Call) or made[0].file is not self.file:
            return None
        call = made[0].node
        name = self.file.qualified(call.func).replace("torch.utils.data.sampler.", "torch.utils.data.")
        if name not in _ORDERS or len(call.args) != 1 or call.keywords:
            return None
        return call, _ORDERS[name]

    def _text(self, node: ast.AST) -> str:
        return self.module.segment(node)

    def _statement(self) -> ast.stmt:
        standing = self.file.standing(self.call)
        assert standing is not None
        return standing.statement

    def _dataset_text(self) -> str:
        """The dataset as a name, so that it is made only once."""
        dataset = self.argument("dataset")
        assert dataset is not None
        if _is_plain(dataset):
            return self._text(dataset)
        name = self._free_name("dataset")
        message = _SHARED
        self.changes.before(
            self._statement(), [f"{name} = {_alone(self._text(dataset))}"], message, self.call
        )
        self.changes.replace(
            self.call, message, Edit(self.module.start(dataset), self.module.end(dataset), name)
        )
        return name

    def _free_name(self, name: str) -> str:
        scope = self.file.scope_of_statement(self._statement())
        taken = {*scope.bindings, *self.module.scopes.root.bindings}
        free, number = f"train_{name}", 1
        while free in taken:
            number += 1
            free = f"train_{name}_{number}"
        return free

    def _sampler_edits(self, sampler: str, dataset: str) -> list[Edit]:
        """Edits that put the sampler in the place of `shuffle`, or add it."""
        hidden = [keyword.value for keyword in self.call.keywords if keyword.arg is None]
        if hidden:
            return self._edits_beside_hidden(sampler, dataset, hidden)
        shuffle = self.argument("shuffle")
        order = self._text(shuffle) if shuffle is not None else "False"
        text = f"{sampler}({dataset}, shuffle={order})"
        given = self.argument("sampler")
        if shuffle is None and given is None:
            return [add_argument(self.module, self.call, f"sampler={text}")]
        for keyword in self.call.keywords:
            if keyword.arg == "shuffle" and given is None:
                return [Edit(self.module.start(keyword), self.module.end(keyword), f"sampler={text}")]
        edits: list[Edit] = []
        if shuffle is not None:
            edits.append(Edit(self.module.start(shuffle), self.module.end(shuffle), "False"))
        if given is not None:
            edits.append(Edit(self.module.start(given), self.module.end(given), text))
        else:
            edits.append(add_argument(self.module, self.call, f"sampler={text}"))
        return edits

    def _edits_beside_hidden(self, sampler: str, dataset: str, hidden: list[ast.expr]) -> list[Edit]:
        """`DataLoader(dataset, **options)`: what the options say of shuffle goes to the sampler."""
        options = hidden[0]
        if len(hidden) > 1 or not _is_plain(options) or re.search(r"sampler['\"=]", self.module.decoded.text):
            raise UnclearError(self.file, self.call, _HIDDEN)
        name = self._text(options)
        order = f'{name}.get("shuffle", False)'
        shuffle = self.argument("shuffle")
        if shuffle is not None:
            raise UnclearError(self.file, self.call, _HIDDEN)
        text = f'{{**{name}, "shuffle": False}}, sampler={sampler}({dataset}, shuffle={order})'
        return [Edit(self.module.start(options), self.module.end(options), text)]

    def _batch_edits(self, settings: Distributed) -> list[Edit]:
        if not settings.split_batch:
            return []
        size = self.argument("batch_size")
        if size is None:
            raise UnclearError(self.file, self.call, _HIDDEN)
        dist = self.changes.name_of("torch.distributed", "dist")
        text = self._text(size)
        if not isinstance(size, (ast.Name, ast.Attribute, ast.Constant, ast.Call, ast.Subscript)):
            text = f"({text})"
        return [Edit(self.module.start(size), self.module.end(size), f"{text} // {dist}.get_world_size()")]


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
