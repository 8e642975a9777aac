"""The state of mixed precision in checkpoints, beside that of the optimizer."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from torchferry.convert.amp.changes import Changes, Rank
from torchferry.convert.program.blocks import heads_of, indent_unit, shares_its_line
from torchferry.convert.program.module import ProgramModule, last_name, method_of
from torchferry.source.edits import Edit
from torchferry.text import Text

_SAVED = Text("the scale of the losses goes into the checkpoint", "损失缩放系数一并存入检查点")
_LOADED = Text("takes up the scale of a checkpoint that has one", "若检查点含有缩放系数则恢复")


@dataclass(frozen=True)
class CheckpointState:
    """What is saved: the object with the state, the key it gets, and which statements can use it."""

    holder: str
    key: str
    optimizers: frozenset[str]  # last names; beside their state ours is kept
    is_within_reach: Callable[[ast.stmt], bool]


class Checkpoints:
    """Adds the edits for what a module saves and loads."""

    def __init__(self, program: ProgramModule, changes: Changes, state: CheckpointState) -> None:
        self.program = program
        self.module = program.module
        self.changes = changes
        self.state = state
        self.missed: list[ast.AST] = []  # places that the state does not reach

    def apply(self) -> None:
        done: set[ast.AST] = set()
        for statement in self.program.statements:
            for node in _expressions(statement):
                if isinstance(node, (ast.Dict, ast.Call)) and node not in done and self._is_saved(node):
                    done.add(node)
                    self._within_reach(statement, node, self._extend)
            if isinstance(statement, ast.Assign) and self._is_own(statement.value, "state_dict"):
                self._within_reach(statement, statement, self._add_item)
            elif isinstance(statement, ast.Expr) and self._is_own(statement.value, "load_state_dict"):
                self._within_reach(statement, statement, self._load)

    def _within_reach(
        self, statement: ast.stmt, node: ast.AST, act: Callable[[ast.AST, ast.stmt], None]
    ) -> None:
        if self.state.is_within_reach(statement):
            act(node, statement)
        else:
            self.missed.append(node)

    def _is_own(self, node: ast.AST, method: str) -> bool:
        """optimizer.state_dict() of one of the optimizers."""
        return (
            isinstance(node, ast.Call)
            and method_of(node) == method
            and last_name(node.func.value) in self.state.optimizers  # type: ignore[attr-defined]
        )

    def _is_saved(self, node: ast.Dict | ast.Call) -> bool:
        """{'optimizer': optimizer.state_dict()}, or the same as dict(...)."""
        if isinstance(node, ast.Dict):
            return any(self._is_own(value, "state_dict") for value in node.values)
        is_dict = isinstance(node.func, ast.Name) and node.func.id == "dict"
        return is_dict and any(self._is_own(item.value, "state_dict") for item in node.keywords)

    def _extend(self, node: ast.AST, statement: ast.stmt) -> None:
        value = f"{self.state.holder}.state_dict()"
        if isinstance(node, ast.Dict):
            index = max(i for i, item in enumerate(node.values) if self._is_own(item, "state_dict"))
            beside, key = node.values[index], node.keys[index]
            quote = self.module.segment(key)[-1] if isinstance(key, ast.Constant) else '"'
            entry = f"{quote}{self.state.key}{quote}: {value}"
            first = self.module.start(key) if key is not None else self.module.start(beside)
        else:
            assert isinstance(node, ast.Call)
            keyword = [item for item in node.keywords if self._is_own(item.value, "state_dict")][-1]
            beside, entry, first = keyword.value, f"{self.state.key}={value}", self.module.start(keyword)
        end = self.module.end(beside)
        self.changes.at(node, _SAVED).edits.append(
            (Rank.INLINE, Edit(end, end, self._separator(node, first) + entry))
        )

    def _separator(self, node: ast.AST, first: int) -> str:
        """A comma, and a new line where each entry has one."""
        line = self.module.line_of(first)
        before = self.module.data[self.module.line_starts[line - 1] : first].decode("utf-8")
        if before.strip() or self.module.line_of(self.module.start(node)) == line:
            return ", "
        return f",{self.module.newline}{before}"

    def _add_item(self, node: ast.AST, statement: ast.stmt) -> None:
        """state['optimizer'] = optimizer.state_dict()"""
        assert isinstance(statement, ast.Assign)
        target = statement.targets[0]
        if not isinstance(target, ast.Subscript) or not isinstance(target.slice, ast.Constant):
            return
        quote = self.module.segment(target.slice)[-1]
        base = self.module.segment(target.value)
        line = f"{base}[{quote}{self.state.key}{quote}] = {self.state.holder}.state_dict()"
        self.changes.at(statement, _SAVED).edits.append(self.changes.below(statement, line))

    def _load(self, node: ast.AST, statement: ast.stmt) -> None:
        """optimizer.load_state_dict(checkpoint['optimizer'])"""
        assert isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
        source = statement.value.args[0] if statement.value.args else None
        if not isinstance(source, ast.Subscript) or not isinstance(source.slice, ast.Constant):
            return
        if shares_its_line(self.module, statement) or not isinstance(source.value, (ast.Name, ast.Attribute)):
            self.missed.append(statement)
            return
        quote = self.module.segment(source.slice)[-1]
        base, key = self.module.segment(source.value), f"{quote}{self.state.key}{quote}"
        unit = indent_unit(self.module, statement, self.program.tree)
        lines = f"if {key} in {base}:\n{unit}{self.state.holder}.load_state_dict({base}[{key}])"
        self.changes.at(statement, _LOADED).edits.append(self.changes.below(statement, lines))


def _expressions(statement: ast.stmt) -> list[ast.AST]:
    return [node for head in heads_of(statement) for node in ast.walk(head)]
