"""What each data loader of a program is for: the training, an evaluation, or one after the other."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from torchferry.conversion.distributed.changes import UnclearProgramError
from torchferry.conversion.distributed.training import Iteration, Training
from torchferry.conversion.loaders import argument
from torchferry.conversion.program.functions import (
    FunctionNode,
    argument_for,
    targets,
    with_defaults,
)
from torchferry.conversion.program.module import ProgramModule
from torchferry.conversion.program.slots import text_of
from torchferry.conversion.program.training_program import CallSite, Origin, OriginFlow
from torchferry.source.names import called_name
from torchferry.source.scopes import BindingKind
from torchferry.text import Text

# What a test in a function comes to when the function is called at a certain place with constants.

_UNKNOWN = object()
_DEPTH = 6


class _KnownCall(NamedTuple):
    """A function of a file, and a call of it."""

    file: ProgramModule
    function: FunctionNode
    call: ast.Call
    given: int  # parameters that the call does not write

    def truth(self, node: ast.expr) -> bool | None:
        """Whether an expression of the function is true for the call; None if that can't be told."""
        value = self._value(node, _DEPTH)
        return None if value is _UNKNOWN else bool(value)

    def _value(self, node: ast.expr, depth: int) -> object:
        if isinstance(node, ast.Constant):
            return node.value
        if not depth:
            return _UNKNOWN
        if isinstance(node, ast.Name):
            return self._of_name(node.id, depth)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            found = self._value(node.operand, depth - 1)
            return found if found is _UNKNOWN else not found
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._of_comparison(node, node.ops[0], node.comparators[0], depth - 1)
        if isinstance(node, ast.IfExp):
            test = self._value(node.test, depth - 1)
            branch = node.body if test else node.orelse
            return test if test is _UNKNOWN else self._value(branch, depth - 1)
        return _UNKNOWN

    def _of_comparison(self, node: ast.Compare, operator: ast.cmpop, other: ast.expr, depth: int) -> object:
        is_membership = isinstance(operator, (ast.In, ast.NotIn)) and isinstance(
            other, (ast.List, ast.Tuple, ast.Set)
        )
        if not is_membership and not isinstance(operator, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)):
            return _UNKNOWN
        items = other.elts if is_membership else [other]  # type: ignore[attr-defined]
        left, *values = (self._value(item, depth) for item in (node.left, *items))
        if _UNKNOWN in (left, *values):
            return _UNKNOWN
        return (left in values) is isinstance(operator, (ast.In, ast.Eq, ast.Is))

    def _of_name(self, name: str, depth: int) -> object:
        """A parameter by what the call hands over, else its default; a variable by the one value it is given."""
        bindings = self.file.scopes[self.function].bindings.get(name, [])
        if len(bindings) != 1:
            return _UNKNOWN
        binding = bindings[0]
        if binding.kind is BindingKind.ASSIGN and binding.value is not None:
            return self._value(binding.value, depth - 1)
        if binding.kind is not BindingKind.PARAMETER:
            return _UNKNOWN
        given = argument_for(self.call, self.function, name, self.given)
        is_starred = any(isinstance(item, ast.Starred) for item in self.call.args)
        if given is None and not is_starred and all(keyword.arg for keyword in self.call.keywords):
            defaults = with_defaults(self.function.args)
            given = next((value for parameter, value in defaults if parameter.arg == name), None)
        return given.value if isinstance(given, ast.Constant) else _UNKNOWN


def is_reached(flow: OriginFlow, made: Origin, site: CallSite) -> bool:
    """Whether a call of a function may come to an expression in it, by the tests on the way."""
    called = flow.function_called(site.file, site.call)
    if called is None:
        return True
    tests = _KnownCall(made.file, called.node, site.call, called.given)
    statement = made.file.statement_of(made.node)
    while statement is not called.node:
        place = made.file.tree.position(statement)
        for earlier in place.block[: place.block.index(statement)]:
            if isinstance(earlier, ast.If) and isinstance(earlier.body[-1], (ast.Return, ast.Raise)):
                if tests.truth(earlier.test):
                    return False
        if isinstance(place.parent, ast.If):
            found = tests.truth(place.parent.test)
            if found is not None and found is not (place.block is place.parent.body):
                return False
        if not isinstance(place.parent, ast.stmt):
            return True
        statement = place.parent
    return True


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
    "(`shuffle=split == 'train'`), or make each in its own statement",
    "此调用既创建训练用 DataLoader，也创建评估用 DataLoader，而后者不能在进程间分摊；请让 shuffle 仅在训练时为 True，"
    "且写法清晰（`shuffle=split == 'train'`），或分别创建",
)
_MANY = Text(
    "one call makes several loaders, so that it can't be told which trains; make each in its own statement, or "
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


def find_loaders(training: Training, main: ProgramModule) -> Loaders:
    """Tell the loaders that feed the training from the others."""
    finder = _LoaderFinder(training)
    trained = [loader for loader in training.loaders if finder.is_for_training(loader)]
    if not trained:
        raise UnclearProgramError(main, main.module.tree.body[0], _NONE)
    feeds = {id(loader.node) for loader in trained}
    tests = {id(loader.node): finder.test(loader) for loader in trained}
    others = [item for item in training.loaders if id(item.node) not in feeds]
    return Loaders(trained, others, {made: test for made, test in tests.items() if test})


class _LoaderFinder:
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
            loops = [item.loop for item in iterations if item.trains]
            is_loop = any(isinstance(loop, (ast.For, ast.AsyncFor)) for loop in loops)
            return is_loop or bool(_FOR_TRAINING.search(names)) or not _FOR_EVALUATION.search(names)
        if _FOR_TRAINING.search(names) and not _FOR_EVALUATION.search(names):
            return True
        if _FOR_EVALUATION.search(names) and not _FOR_TRAINING.search(names):
            return False
        if isinstance(comprehension_of(loader), ast.DictComp):
            return True
        raise UnclearProgramError(loader.file, loader.node, _ROLE)

    def _is_alone(self, loader: Origin, item: Iteration) -> bool:
        is_picked = isinstance(item.source, ast.Subscript) and not isinstance(item.source.slice, ast.Constant)
        others = [other for other in item.loaders if other.node is not loader.node]
        for zipped in (node for node in ast.walk(item.source) if called_name(node) in ("zip", "zip_longest")):
            comes_from = partial(self.training.flow.comes_from, item.file)
            beside = [part for part in zipped.args if comes_from(part, loader)]  # type: ignore[attr-defined]
            others = [other for other in others if any(comes_from(part, other) for part in beside)]
        return not any(self._feeds(other, item) for other in others) and not is_picked

    def _feeds(self, loader: Origin, item: Iteration) -> bool:
        """Whether a loop may go over a loader: by where it comes from, and by what its maker is handed there."""
        if not any(found.node is loader.node for found in item.loaders):
            return False
        sites = self._sites(loader)
        if len(sites) < 2:
            return True
        return any(is_reached(self.training.flow, loader, site) for site in self._sites_of(item, sites))

    def _sites(self, loader: Origin) -> list[CallSite]:
        """The calls of the function in which a loader is made."""
        return self.training.callers(loader.file, loader.file.statement_of(loader.node))

    def _sites_of(self, item: Iteration, sites: list[CallSite]) -> list[CallSite]:
        if id(item.source) not in self._visited:
            self._visited[id(item.source)] = self.training.flow.visits(item.file, item.source)
        return [site for site in sites if id(site.call) in self._visited[id(item.source)]]

    def _names(self, loader: Origin) -> str:
        """What a loader is called: the targets that it is assigned to, also by callers, and keys of dictionaries."""
        found = [
            file.module.segment(target)
            for file, statement in self.training.program.statements
            for target in targets(statement)
            if self.training.flow.comes_from(file, target, loader)
        ]
        for file, statement in self.training.program.statements:
            for display in ast.walk(statement) if isinstance(statement, (ast.Assign, ast.Return)) else ():
                if isinstance(display, ast.Dict):
                    found.append(key_of(self.training, Origin(file, display), loader))
        return " ".join(filter(None, found))

    def test(self, loader: Origin) -> str:
        """The test for the training, of a call that makes loaders for both; "" if it makes none but that."""
        comprehension = comprehension_of(loader)
        if comprehension is not None:
            if not isinstance(comprehension, ast.DictComp):
                raise UnclearProgramError(loader.file, loader.node, _MANY)
            key = _key_for_training(loader, comprehension)
            return f"{loader.file.module.segment(comprehension.key)} == {key!r}"
        sites = [site for site in self._sites(loader) if is_reached(self.training.flow, loader, site)]
        goes_over = [item for item in self.training.iterations if self._feeds(loader, item)]
        trains = {id(s.call) for item in goes_over if item.trains for s in self._sites_of(item, sites)}
        evaluations = [item for item in goes_over if not item.trains]
        evaluates = any(
            id(site.call) not in trains and any(self._sites_of(item, [site]) for item in evaluations)
            for site in sites
        )
        if not trains or not evaluates:
            return ""
        assert isinstance(loader.node, ast.Call)
        shuffle = argument(loader.node, "shuffle")
        called = self.training.flow.function_called(sites[0].file, sites[0].call)
        if shuffle is None or called is None:
            raise UnclearProgramError(loader.file, loader.node, _BOTH)
        for site in sites:  # shuffle must be True for the training, and False for everything else
            is_shuffled = _KnownCall(loader.file, called.node, site.call, site.given).truth(shuffle)
            if is_shuffled is not (id(site.call) in trains):
                raise UnclearProgramError(loader.file, loader.node, _BOTH)
        return loader.file.module.segment(shuffle)


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
            if text_of(key) and training.flow.comes_from(display.file, value, loader):
                return text_of(key)
    return ""


def _key_for_training(loader: Origin, comprehension: ast.DictComp) -> str:
    """`train` of {x: DataLoader(...) for x in ["train", "val"]}."""
    generator = comprehension.generators[0]
    names = generator.iter.elts if isinstance(generator.iter, (ast.List, ast.Tuple)) else []
    keys = list(filter(None, map(text_of, names)))
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
        raise UnclearProgramError(loader.file, loader.node, _MANY)
    return trains[0]
