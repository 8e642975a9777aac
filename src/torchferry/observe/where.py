"""Where in the program an operator is called: phase, module, line; and what a tensor is to the model."""

from __future__ import annotations

import inspect
import itertools
import os
import sys
import sysconfig
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

import torch
from torch.nn.modules import module as modules
from torch.optim import optimizer as optimizers

FORWARD, BACKWARD, OPTIMIZER = "forward", "backward", "optimizer"
PARAMETER, BUFFER = "parameter", "buffer"
_OURS = (f"{Path(torch.__file__).parent}{os.sep}", f"{Path(__file__).parents[1]}{os.sep}", "<frozen")
_STANDARD = sysconfig.get_path("stdlib")
_LIBRARIES = tuple(f"{sysconfig.get_path(name)}{os.sep}" for name in ("purelib", "platlib"))
_WRAPPERS = {"DataParallel": "module", "DistributedDataParallel": "module", "OptimizedModule": "_orig_mod"}
_BETWEEN = frozenset({"__torch_dispatch__", "__torch_function__"})  # they pass calls on, they make none
_MOST_NODES = 200_000  # of a graph; one of ResNet-50 has 500
_NO_SEQUENCE = 1 << 63  # nodes that no operator made have a number beyond this


_watching: list[Whereabouts] = []  # those that are told when an optimizer steps
_hooks: list[Any] = []


def watch_optimizers() -> None:
    """Hook into every optimizer's step, once and for good: inside a step no hook can be added or removed, and that is
    where recording begins and ends."""
    if _hooks:
        return

    def begins(*_anything: Any) -> None:
        for each in _watching:
            each.optimizer_begins()

    def ends(*_anything: Any) -> None:
        for each in _watching:
            each.optimizer_ends()

    _hooks.append(optimizers.register_optimizer_step_pre_hook(begins))
    _hooks.append(optimizers.register_optimizer_step_post_hook(ends))


class Whereabouts:
    """Watches modules and optimizers, through the hooks that PyTorch has for all of them."""

    def __init__(self) -> None:
        self._thread = threading.local()
        self._in_optimizer = 0
        self._after_backward = (
            False  # clipping, scaling, averaging: what is done to gradients belongs to the step
        )
        self._names: dict[int, str] = {}
        self._root = ""
        self._labels: weakref.WeakKeyDictionary[torch.nn.Module, str] = weakref.WeakKeyDictionary()
        self._models_of_parts: weakref.WeakKeyDictionary[torch.nn.Module, str] = weakref.WeakKeyDictionary()
        self._names_in: dict[str, dict[int, str]] = {}
        # models, by their type, the second of a type as Linear#2 -> paths in it -> types
        self.models: dict[str, dict[str, str]] = {}
        self.has_begun = False  # a module was called, or a backward pass made
        self.inside = ""  # the operator whose parts are being called, where its derivative belongs to it
        self._buffers: set[int] = set()
        self._made: dict[int, dict[str, str]] = {}  # autograd's sequence number -> where the node was made
        self._files: dict[CodeType, _File] = {}
        self._handles: list[Any] = []
        self._folder = _current_folder()  # the program may go to another one

    def watch(self) -> None:
        """From now on."""
        always = (
            {"always_call": True}
            if "always_call" in _parameters(modules.register_module_forward_hook)
            else {}
        )
        self._handles = [
            modules.register_module_forward_pre_hook(self._enter),
            modules.register_module_forward_hook(self._leave, **always),
        ]
        watch_optimizers()
        _watching.append(self)

    def unwatch(self) -> None:
        """Leave no hook behind."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        if self in _watching:
            _watching.remove(self)

    def now(self) -> dict[str, str]:
        """Phase, module and line of the operator that is being called."""
        if _graph_task() != -1:
            self.has_begun = self._after_backward = True
            self._thread.last_number = _sequence()
            return {"phase": BACKWARD, **(self._where_computed_again() or self._where_made())}
        number = _sequence()
        where = self._where_called()
        self._remember(number, where)
        return {"phase": self._phase(number, "model" in where), **where}

    def _phase(self, number: int, is_in_module: bool) -> str:
        """An operator that autograd has made a node for is of a forward pass, though no module may be involved, and
        though an optimizer may have asked for it."""
        makes_node = number > getattr(self._thread, "last_number", number)
        self._thread.last_number = number
        if self._in_optimizer:
            return FORWARD if is_in_module or makes_node else OPTIMIZER
        if is_in_module or makes_node:
            self._after_backward = False
        return OPTIMIZER if self._after_backward else FORWARD

    def _where_called(self) -> dict[str, str]:
        inside = self._stack()
        where = {"module": inside[-1] if inside else "", "place": self._place()}
        if inside:
            where["model"] = self._root
        if self.inside:
            where["inside"] = self.inside
        return where

    def _where_computed_again(self) -> dict[str, str] | None:
        """In a backward pass that calls modules: a checkpoint computes them again, with nodes of their own."""
        if not self._stack():
            return None
        where = self._where_called()
        self._remember(_sequence(), where)
        node = _current_node()
        return where if node is None else {**where, "node": _name(node)}

    def _remember(self, number: int, where: dict[str, str]) -> None:
        """The first operator since a node was made is the node's. What is long gone is forgotten."""
        self._made.setdefault(number, where)
        if len(self._made) > _MOST_NODES:
            for old in list(itertools.islice(self._made, _MOST_NODES // 2)):
                del self._made[old]

    def role_of(self, tensor: torch.Tensor) -> str:
        """What the tensor is to the model."""
        if isinstance(tensor, torch.nn.Parameter):
            return PARAMETER
        return BUFFER if id(tensor) in self._buffers else ""

    def _where_made(self) -> dict[str, str]:
        """For an operator of the backward pass: where the forward pass made its node."""
        node = _current_node()
        nowhere = {"module": "", "place": ""}
        if node is None:
            return nowhere
        number = getattr(node, "_sequence_nr", lambda: _NO_SEQUENCE)()
        # an in-place operator copies what its derivative needs: the copy's node comes before the operator's own call
        where = self._made.get(number + 1) or self._made.get(number + 2, nowhere)
        return {**where, "node": _name(node)}

    def _place(self) -> str:
        """The nearest line of the user's own code; of a library's where no code of the user's is on the way."""
        frame = sys._getframe(1)
        in_library = ""
        while frame is not None:
            code = frame.f_code
            file = self._files.get(code)
            if file is None:
                file = self._files[code] = _File.of(code, self._folder)
            if file.name:
                if not file.is_of_library:
                    return f"{file.name}:{frame.f_lineno}"
                in_library = in_library or f"{file.name}:{frame.f_lineno}"
            frame = frame.f_back  # type: ignore[assignment]  # ends with None
        return in_library

    def _stack(self) -> list[str]:
        if not hasattr(self._thread, "modules"):
            self._thread.modules = []
            if _graph_task() == -1:
                self._made.clear()  # each thread counts its nodes from the beginning
        inside: list[str] = self._thread.modules
        return inside

    def _enter(self, module: torch.nn.Module, _arguments: Any) -> None:
        inside = self._stack()
        self._after_backward = False
        if not inside and not self._comes_again(module):
            self._look_at(module)
        inside.append(self._names.get(id(module)) or type(module).__name__)

    def _comes_again(self, module: torch.nn.Module) -> bool:
        """Whether a backward pass calls a part of a model, as checkpoints do: it keeps its name in the model."""
        model = self._models_of_parts.get(module) if _graph_task() != -1 else None
        if model is not None:
            self._root, self._names = model, self._names_in[model]
        return model is not None

    def _look_at(self, module: torch.nn.Module) -> None:
        """At a module that is called from outside of all others."""
        self.has_begun = True
        prefix = _WRAPPERS.get(type(module).__name__, "")
        parts = [(name.removeprefix(prefix).removeprefix("."), part) for name, part in module.named_modules()]
        self._names = {id(part): name for name, part in parts}
        self._buffers = {id(buffer) for buffer in module.buffers()}
        self._root = self._label(module)
        self._names_in[self._root] = self._names
        if self._root not in self.models:
            self.models[self._root] = {name: type(part).__name__ for name, part in parts}
            self._models_of_parts.update((part, self._root) for _, part in parts)

    def _label(self, module: torch.nn.Module) -> str:
        if module not in self._labels:
            inner = getattr(module, _WRAPPERS.get(type(module).__name__, ""), module)
            kind = type(inner).__name__
            before = sum(1 for label in self.models if label.partition("#")[0] == kind)
            self._labels[module] = f"{kind}#{before + 1}" if before else kind
        return self._labels[module]

    def _leave(self, _module: torch.nn.Module, _arguments: Any, _result: Any) -> None:
        inside = self._stack()
        if inside:
            inside.pop()

    def optimizer_begins(self) -> None:
        """A step begins."""
        self._in_optimizer += 1

    def optimizer_ends(self) -> None:
        """A step ends."""
        self._after_backward = False
        self._in_optimizer = max(0, self._in_optimizer - 1)


def _current_folder() -> str:
    try:
        return os.getcwd() + os.sep
    except OSError:  # it has been removed
        return ""


def _parameters(function: Callable[..., Any]) -> Any:
    return inspect.signature(function).parameters


def _graph_task() -> int:
    return int(torch._C._current_graph_task_id()) if hasattr(torch._C, "_current_graph_task_id") else -1


def _current_node() -> Any:
    return torch._C._current_autograd_node() if hasattr(torch._C, "_current_autograd_node") else None


def _name(node: Any) -> str:
    """ConvolutionBackward0."""
    name: str = node.name()
    return name.split("::")[-1]


def _sequence() -> int:
    """How many nodes autograd has made in this thread; the node of the operator being called is the last of them."""
    return int(torch.autograd._get_sequence_nr()) if hasattr(torch.autograd, "_get_sequence_nr") else 0


@dataclass(frozen=True)
class _File:
    """A file of code, as it is shown."""

    name: (
        str  # from where the program runs, or from where libraries are; "": it is PyTorch's, Python's or ours
    )
    is_of_library: bool = False

    @classmethod
    def of(cls, code: CodeType, folder: str) -> _File:
        """The file of some code of a program that runs in that folder."""
        path = code.co_filename
        if path.startswith(_OURS) or code.co_name in _BETWEEN:
            return cls("")
        library = next(filter(path.startswith, _LIBRARIES), None)
        if library is not None:
            return cls(path.removeprefix(library), is_of_library=True)
        if path.startswith(_STANDARD):
            return cls("")
        return cls(path.removeprefix(folder))
