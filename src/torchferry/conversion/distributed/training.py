"""The training loops of a program, which loader each goes over; and whether it runs on several cards already."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from torchferry.conversion.loaders import DATA_LOADERS
from torchferry.conversion.program.functions import FUNCTIONS, own_calls
from torchferry.conversion.program.module import ProgramModule
from torchferry.conversion.program.training_program import CallSite, Origin, OriginFlow, TrainingProgram
from torchferry.source.names import called_name

_CALLS_DEEP = 4
_WITHOUT = ("no_grad", "inference_mode")


class Iteration(NamedTuple):
    """A place where a loader is gone over; `loop` is the statement that does it, or in which it is done."""

    file: ProgramModule
    loop: ast.stmt
    source: ast.expr  # the expression that the loop goes over
    loaders: tuple[Origin, ...]
    trains: bool
    is_next: bool = False  # takes one batch of an iterator that was made elsewhere


class Training:
    """What the loops of a program do."""

    def __init__(self, program: TrainingProgram) -> None:
        self.program = program
        self.flow = OriginFlow(program)
        self._trains: dict[int, bool] = {}

    @cached_property
    def loaders(self) -> list[Origin]:
        """Every DataLoader that is made."""
        made: list[Origin] = []
        for file, call in self.program.calls:
            name = file.qualified(call.func)
            is_bare = isinstance(call.func, ast.Name) and call.func.id == "DataLoader"
            is_starred = b"from torch.utils.data import *" in file.module.data
            if name in DATA_LOADERS or (is_bare and name[:6] in ("", "torch.") and is_starred):
                made.append(Origin(file, call))
        return made

    @cached_property
    def iterations(self) -> list[Iteration]:
        """Every place where one of them is gone over."""
        found: list[Iteration] = []
        for file in self.program.files.values():
            for statement in file.statements:
                if isinstance(statement, (ast.For, ast.AsyncFor)):
                    found += self._iteration(file, statement, statement.iter)
            for call in file.calls:
                name = called_name(call)
                if name in ("iter", "next") and call.args:
                    found += self._iteration(file, file.statement_of(call), call.args[0], name == "next")
        return found

    def _iteration(
        self, file: ProgramModule, statement: ast.stmt, source: ast.expr, is_next: bool = False
    ) -> Iterator[Iteration]:
        made = {id(loader.node) for loader in self.loaders}
        found = tuple(origin for origin in self.flow.origins(file, source) if id(origin.node) in made)
        if found:
            is_loop = isinstance(statement, (ast.For, ast.AsyncFor)) and statement.iter is source
            around = statement if is_loop else (file.function_around(statement) or file.module.tree)
            trains = self.trains(file, around) and (is_loop or not is_without_gradients(file, statement))
            yield Iteration(file, statement, source, found, trains, is_next)

    def trains(self, file: ProgramModule, node: ast.AST, depth: int = _CALLS_DEEP) -> bool:
        """Whether a piece of code runs a backward pass, itself or in a function that it calls."""
        if id(node) not in self._trains:
            self._trains[id(node)] = False  # while it is being looked at: a function may call itself
            for call in own_calls(node):
                is_backward = isinstance(call.func, ast.Attribute) and call.func.attr == "backward"
                called = self.flow.function_called(file, call) if depth and not is_backward else None
                if is_backward or (
                    called is not None
                    and called.node.name != "backward"
                    and self.trains(called.file, called.node, depth - 1)
                ):
                    self._trains[id(node)] = True
                    break
        return self._trains[id(node)]

    def callers(self, file: ProgramModule, statement: ast.stmt) -> list[CallSite]:
        """The calls of the function in which a statement stands."""
        return self.flow.calls_of(file.function_around(statement))

    def argument_from(self, site: CallSite, wanted: Origin) -> ast.expr | None:
        """The argument of a call that may hold the value that `wanted` makes."""
        arguments = [*site.call.args, *(keyword.value for keyword in site.call.keywords)]
        return next((item for item in arguments if self.flow.comes_from(site.file, item, wanted)), None)

    def takes_loader(self, site: CallSite) -> bool:
        """Whether a call is handed some loader."""
        return any(self.argument_from(site, loader) is not None for loader in self.loaders)


def is_without_gradients(file: ProgramModule, statement: ast.stmt) -> bool:
    """Whether a statement runs under torch.no_grad()."""
    for owner in file.tree.owners(statement):
        heads = [item.context_expr for item in owner.items] if isinstance(owner, ast.With) else []
        if isinstance(owner, FUNCTIONS):
            heads = owner.decorator_list
        if any(name in file.module.segment(head) for head in heads for name in _WITHOUT):
            return True
    return False


# Programs that run on several cards already, and how they are started.


class ProgramStart(Enum):
    """How a program comes to several processes."""

    TORCHRUN = "torchrun"  # one process per card, started for it
    ITSELF = "itself"  # it starts them itself, once per node


class Sign(NamedTuple):
    """What shows that a program is distributed."""

    file: ProgramModule
    node: ast.AST
    name: str


_CALLS = frozenset({"init_process_group", "DistributedDataParallel", "init_distributed_mode"})
_SPAWN = frozenset({"torch.multiprocessing.spawn", "torch.multiprocessing.start_processes"})
_LIBRARIES = frozenset(
    {"accelerate", "deepspeed", "horovod", "lightning", "pytorch_lightning", "colossalai", "fairscale"}
)
# A file that shows any of these holds its last word.
_WORDS = tuple(name.rpartition(".")[2].encode() for name in sorted(_CALLS | _SPAWN | _LIBRARIES))


def find_sign(program: TrainingProgram) -> Sign | None:
    """The first thing in a program that makes it distributed; a start of processes counts most."""
    signs = [sign for file in program.files.values() for sign in _signs(file)]
    return min(signs, key=lambda sign: sign.name not in _SPAWN, default=None)


def start_of(program: TrainingProgram) -> ProgramStart:
    """How the program is started on several cards."""
    sign = find_sign(program)
    return ProgramStart.ITSELF if sign is not None and sign.name in _SPAWN else ProgramStart.TORCHRUN


def _signs(file: ProgramModule) -> list[Sign]:
    found: list[Sign] = []
    if not any(word in file.module.data for word in _WORDS):
        return found
    for _, binding in file.module.scopes.imports:
        package = binding.qualified.partition(".")[0]
        if package in _LIBRARIES:
            found.append(Sign(file, binding.node, package))
    for call in file.calls:
        name = file.qualified(call.func)
        if name in _SPAWN:
            found.append(Sign(file, call, name))
        elif called_name(call) in _CALLS:
            found.append(Sign(file, call, called_name(call)))
    return found
