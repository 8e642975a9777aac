"""What each data loader of a program is for: the training, an evaluation, or one after the other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from torchferry.convert.distributed.changes import UnclearError
from torchferry.convert.distributed.flow import Origin, Site
from torchferry.convert.distributed.program import FUNCTIONS, Function, ProgramFile, targets
from torchferry.convert.distributed.training import Iteration, Training
from torchferry.convert.distributed.truth import is_reached, truth
from torchferry.convert.loaders import argument
from torchferry.source.names import called_name
from torchferry.text import Text

_FOR_TRAINING = re.compile(r"(?i)train|trn(?:_|$)|\btr_|_tr\b")
_FOR_EVALUATION = re.compile(r"(?i)val(?:_|id|l|$)|eval|test|dev(?:_|$)|\bva_|_va\b")

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
_BOTH = Text(
    "this call makes the loader for the training as well as one for an evaluation, which must not be shared among "
    "the processes; let shuffle be True for the training alone, in words that can be followed "
    "(`shuffle=split == 'train'`), or make each in a statement of its own",
    "此调用既创建训练用 DataLoader，也创建评估用 DataLoader，而后者不能在进程间分摊；请让 shuffle 仅在训练时为 True，"
    "且写法清晰（`shuffle=split == 'train'`），或分别创建",
)
_MANY = Text(
    "one call makes several loaders, so that it can't be told which trains; make each in a statement of its own, or "
    "name them in the comprehension: {x: DataLoader(...) for x in ['train', 'val']}",
    "同一调用创建多个 DataLoader，无法区分用于训练的那个；请分别创建，"
    "或在推导式中写明名称：{x: DataLoader(...) for x in ['train', 'val']}",
)
_COMPREHENSIONS = (ast.Lambda, ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp)


@dataclass(frozen=True)
class Loaders:
    """The loaders of a program by what they are for."""

    training: list[Origin]
    others: list[Origin]
    # By the id of a call that makes loaders of both kinds: the test that says whether it makes one for the training.
    tests: dict[int, str]


def find_loaders(training: Training, main: ProgramFile) -> Loaders:
    """Tell the loaders that feed the training from the others."""
    finder = _Finder(training)
    trained = [loader for loader in training.loaders if finder.is_for_training(loader)]
    if not trained:
        raise UnclearError(main, main.module.tree.body[0], _NONE)
    feeds = {id(loader.node) for loader in trained}
    tests = {id(loader.node): finder.test(loader) for loader in trained}
    others = [item for item in training.loaders if id(item.node) not in feeds]
    return Loaders(trained, others, {made: test for made, test in tests.items() if test})


class _Finder:
    def __init__(self, training: Training) -> None:
        self.training = training
        self._visited: dict[int, set[int]] = {}

    def is_for_training(self, loader: Origin) -> bool:
        iterations = [item for item in self.training.iterations if self._feeds(loader, item)]
        if not any(item.trains for item in iterations):
            return False
        names = self._names(loader)
        if any(item.trains and self._is_alone(loader, item) for item in iterations):
            # A batch that is taken in the round that trains may be there to be compared with.
            is_loop = any(
                item.trains and isinstance(item.loop, (ast.For, ast.AsyncFor)) for item in iterations
            )
            return is_loop or bool(_FOR_TRAINING.search(names)) or not _FOR_EVALUATION.search(names)
        if _FOR_TRAINING.search(names) and not _FOR_EVALUATION.search(names):
            return True
        if _FOR_EVALUATION.search(names) and not _FOR_TRAINING.search(names):
            return False
        if isinstance(comprehension_of(loader), ast.DictComp):
            return True
        raise UnclearError(loader.file, loader.node, _ROLE)

    def _is_alone(self, loader: Origin, item: Iteration) -> bool:
        is_picked = isinstance(item.source, ast.Subscript) and not isinstance(item.source.slice, ast.Constant)
        others = [other for other in item.loaders if other.node is not loader.node]
        for zipped in (node for node in ast.walk(item.source) if called_name(node) in ("zip", "zip_longest")):
            beside = [part for part in zipped.args if self._comes_from(item, part, loader)]  # type: ignore[attr-defined]
            others = [
                other for other in others if any(self._comes_from(item, part, other) for part in beside)
            ]
        return not any(self._feeds(other, item) for other in others) and not is_picked

    def _comes_from(self, item: Iteration, node: ast.expr, loader: Origin) -> bool:
        return self.training.flow.comes_from(item.file, node, loader.node)

    def _feeds(self, loader: Origin, item: Iteration) -> bool:
        """Whether a loop may go over a loader: by where it comes from, and by what its maker is handed there."""
        if not any(found.node is loader.node for found in item.loaders):
            return False
        sites = self._sites(loader)
        if len(sites) < 2:
            return True
        return any(is_reached(self.training.flow, loader, site) for site in self._sites_of(item, sites))

    def _sites(self, loader: Origin) -> list[Site]:
        """The calls of the function in which a loader is made."""
        standing = loader.file.standing(loader.node)
        return self.training.callers(loader.file, standing.statement) if standing else []

    def _sites_of(self, item: Iteration, sites: list[Site]) -> list[Site]:
        if id(item.source) not in self._visited:
            self._visited[id(item.source)] = self.training.flow.visits(item.file, item.source)
        return [site for site in sites if id(site.call) in self._visited[id(item.source)]]

    def _names(self, loader: Origin) -> str:
        """What a loader is called: the targets that it is assigned to, also by the callers of a function."""
        found = [
            file.module.segment(target)
            for file in self.training.program.files.values()
            for statement in file.statements
            for target in targets(statement)
            if self.training.flow.comes_from(file, target, loader.node)
        ]
        return " ".join([*found, *self._keys(loader)])

    def _keys(self, loader: Origin) -> Iterator[str]:
        """The keys under which dictionaries hold the loader."""
        for file in self.training.program.files.values():
            for statement in file.statements:
                for display in ast.walk(statement) if isinstance(statement, (ast.Assign, ast.Return)) else ():
                    if isinstance(display, ast.Dict):
                        yield from filter(None, [key_of(self.training, Origin(file, display), loader)])

    def test(self, loader: Origin) -> str:
        """The test for the training, of a call that makes loaders for both; "" if it makes none but that."""
        comprehension = comprehension_of(loader)
        if comprehension is not None:
            return _test_of_key(loader, comprehension)
        sites = [site for site in self._sites(loader) if is_reached(self.training.flow, loader, site)]
        goes_over = [item for item in self.training.iterations if self._feeds(loader, item)]
        trains = {id(s.call) for item in goes_over if item.trains for s in self._sites_of(item, sites)}
        evaluates = [
            site for site in sites if id(site.call) not in trains and self._is_gone_over(site, goes_over)
        ]
        if not trains or not evaluates:
            return ""
        assert isinstance(loader.node, ast.Call)
        shuffle = argument(loader.node, "shuffle")
        function = self.training.flow.callee(sites[0].file, sites[0].call)
        if shuffle is None or function is None or not isinstance(function.node, FUNCTIONS):
            raise UnclearError(loader.file, loader.node, _BOTH)
        self._check_truth(loader, shuffle, function.node, sites, trains)
        return loader.file.module.segment(shuffle)

    def _is_gone_over(self, site: Site, iterations: list[Iteration]) -> bool:
        return any(not item.trains and self._sites_of(item, [site]) for item in iterations)

    def _check_truth(
        self, loader: Origin, shuffle: ast.expr, function: Function, sites: list[Site], trains: set[int]
    ) -> None:
        """shuffle must be True for the training, and False for everything else."""
        for site in sites:
            if truth(loader.file, shuffle, function, site) is not (id(site.call) in trains):
                raise UnclearError(loader.file, loader.node, _BOTH)


def comprehension_of(loader: Origin) -> ast.AST | None:
    """The comprehension, or lambda, in which a loader is made."""
    parent: ast.AST | None = loader.node
    while parent is not None and not isinstance(parent, _COMPREHENSIONS):
        parent = loader.file.parent(parent)
    return parent


def key_of(training: Training, display: Origin, loader: Origin) -> str:
    """The key under which a dictionary holds a loader, "" if it does not."""
    if isinstance(display.node, ast.DictComp):
        is_in = any(node is loader.node for node in ast.walk(display.node.value))
        return _key_for_training(loader, display.node) if is_in else ""
    if isinstance(display.node, ast.Dict):
        for key, value in zip(display.node.keys, display.node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                if training.flow.comes_from(display.file, value, loader.node):
                    return key.value
    return ""


def _test_of_key(loader: Origin, comprehension: ast.AST) -> str:
    if not isinstance(comprehension, ast.DictComp):
        raise UnclearError(loader.file, loader.node, _MANY)
    key = _key_for_training(loader, comprehension)
    return f"{loader.file.module.segment(comprehension.key)} == {key!r}"


def _key_for_training(loader: Origin, comprehension: ast.DictComp) -> str:
    """`train` of {x: DataLoader(...) for x in ["train", "val"]}."""
    generator = comprehension.generators[0]
    names = generator.iter.elts if isinstance(generator.iter, (ast.List, ast.Tuple)) else []
    keys = [name.value for name in names if isinstance(name, ast.Constant) and isinstance(name.value, str)]
    is_plain = (
        len(comprehension.generators) == 1
        and isinstance(comprehension.key, ast.Name)
        and isinstance(generator.target, ast.Name)
        and comprehension.key.id == generator.target.id
        and len(keys) == len(names)
    )
    trains = [key for key in keys if _FOR_TRAINING.search(key) and not _FOR_EVALUATION.search(key)]
    others = [key for key in keys if _FOR_EVALUATION.search(key) and not _FOR_TRAINING.search(key)]
    if not is_plain or len(trains) != 1 or len(others) != len(keys) - 1:
        raise UnclearError(loader.file, loader.node, _MANY)
    return trains[0]
