"""Decisions that hang on one process's share of the data: processes that decide differently wait for ever."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from torchferry.convert.distributed.changes import Changes
from torchferry.convert.distributed.loader_uses import Loaders
from torchferry.convert.distributed.training import Training
from torchferry.convert.program.origins import CallSite
from torchferry.convert.program.training_program import (
    ASSIGNMENTS,
    FUNCTIONS,
    ProgramFile,
    assigned_to,
    own_nodes,
)
from torchferry.finding import Kind
from torchferry.source.names import called_name
from torchferry.text import Text

_ALONE = Text(
    "decides by a figure of this process's share of the data; where processes decide differently, the others wait for "
    "ever. Average the figure first: torch.distributed.all_reduce(figure); figure /= torch.distributed.get_world_size()",
    "根据本进程的数据指标作出决定；若各进程决定不同，其他进程会一直等待。请先取平均："
    "torch.distributed.all_reduce(figure); figure /= torch.distributed.get_world_size()",
)
_JUMPS = (ast.Break, ast.Continue, ast.Return)  # an error in one process ends them all
_ROUNDS = 4

RunsModel = Callable[[ProgramFile, ast.Call], bool]


def point_out_decisions(
    training: Training, loaders: Loaders, runs_model: RunsModel, changes: Changes
) -> None:
    """Point out tests of figures that differ among the processes, if they lead out of a loop or to the model."""
    for file in training.program.files.values():
        scopes = [
            file.module.tree,
            *(item for item in ast.walk(file.module.tree) if isinstance(item, FUNCTIONS)),
        ]
        for scope in scopes:
            local = _Local(training, loaders, file, scope)
            for test in local.decisions(runs_model) if local.names else ():
                changes.of(file).remark(Kind.TODO, test, _ALONE)


class _Local:
    """The names of a function, or of the script, that hold figures of this process alone."""

    def __init__(self, training: Training, loaders: Loaders, file: ProgramFile, scope: ast.AST) -> None:
        self.training = training
        self.loaders = [loader for loader in loaders.training if id(loader.node) not in loaders.tests]
        self.file = file
        self.nodes = list(own_nodes(scope))
        self.names = self._begun()
        for _ in range(_ROUNDS if self.names else 0):
            before = len(self.names)
            for node in self.nodes:
                self._follow(node)
            if len(self.names) == before:
                break

    def _begun(self) -> set[str]:
        """The loss that backward is called on, and what functions answer that train or use training data."""
        found: set[str] = set()
        for node in self.nodes:
            if isinstance(node, ast.Call) and called_name(node) == "backward":
                assert isinstance(node.func, (ast.Attribute, ast.Name))
                value = node.func.value if isinstance(node.func, ast.Attribute) else node.func
                if isinstance(value, ast.Name):
                    found.add(value.id)
            if isinstance(node, ASSIGNMENTS) and node.value is not None:
                calls = [child for child in ast.walk(node.value) if isinstance(child, ast.Call)]
                found |= self._given(node) if any(map(self._is_share, calls)) else set()
        return found

    def _is_share(self, call: ast.Call) -> bool:
        callee = self.training.flow.callee(self.file, call)
        if callee is None or not isinstance(callee.node, FUNCTIONS) or callee.node.name == "__init__":
            return False
        site = CallSite(self.file, call)
        is_given = any(self.training.argument_from(site, loader.node) is not None for loader in self.loaders)
        if is_given or self.training.takes_loader(site) or not self.training.trains(callee.file, callee.node):
            return is_given
        return not any(isinstance(node, ast.Call) and self._evaluates(node) for node in ast.walk(callee.node))

    def _evaluates(self, call: ast.Call) -> bool:
        """`model.eval()`: a function that trains and evaluates may answer with either figure."""
        return called_name(call) == "eval"

    def _given(self, node: ast.AST) -> set[str]:
        nodes = [child for target in assigned_to(node) for child in ast.walk(target)]
        return {
            self.file.module.segment(child) for child in nodes if isinstance(child, (ast.Name, ast.Attribute))
        } - {"self"}

    def _mentions(self, node: ast.AST) -> bool:
        return any(
            isinstance(child, (ast.Name, ast.Attribute)) and self.file.module.segment(child) in self.names
            for child in ast.walk(node)
        )

    def _follow(self, node: ast.AST) -> None:
        if isinstance(node, ASSIGNMENTS) and node.value is not None and self._mentions(node.value):
            self.names |= self._given(node)
        elif isinstance(node, ast.AugAssign) and self._mentions(node.value):
            self.names.add(self.file.module.segment(node.target))
        elif isinstance(node, ast.If) and self._mentions(node.test):
            for child in own_nodes(node):
                if isinstance(child, ast.AugAssign):
                    self.names.add(self.file.module.segment(child.target))
                elif assigned_to(child) and not self._has_constant_twin(node, child):
                    self.names |= self._given(child)

    def _has_constant_twin(self, node: ast.If, child: ast.AST) -> bool:
        """An assignment that both branches make alike."""
        texts = [self.file.module.segment(item) for item in ast.walk(node) if assigned_to(item)]
        return texts.count(self.file.module.segment(child)) > 1

    def decisions(self, runs_model: RunsModel) -> Iterator[ast.expr]:
        for node in self.nodes:
            if (
                isinstance(node, ast.Call)
                and called_name(node) == "step"
                and any(map(self._mentions, node.args))
            ):
                yield node.args[0]  # of ReduceLROnPlateau
            if not isinstance(node, (ast.If, ast.While)) or not self._mentions(node.test):
                continue
            in_loop = isinstance(node, ast.While) or any(self.training.loops_around(self.file, node))
            if isinstance(node, ast.While) or (in_loop and any(self._leads_away(node, runs_model))):
                yield node.test

    def _leads_away(self, node: ast.If, runs_model: RunsModel) -> Iterator[bool]:
        for child in own_nodes(node):
            if isinstance(child, (*_JUMPS, ast.Call)) and not self._is_below_another(node, child):
                yield not isinstance(child, ast.Call) or runs_model(self.file, child)

    def _is_below_another(self, node: ast.If, child: ast.AST) -> bool:
        """Whether an inner `if` with such a test is the one to point out."""
        return any(
            isinstance(inner, ast.If)
            and self._mentions(inner.test)
            and any(item is child for item in ast.walk(inner))
            for inner in own_nodes(node)
        )
