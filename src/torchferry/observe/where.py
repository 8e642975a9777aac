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
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

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
_Tensor, _Parameter = torch.Tensor, torch.nn.Parameter
_Made = tuple[str, str, str, str]  # module, place, model, inside
_NOWHERE: _Made = ("", "", "", "")


class ProgramSite(NamedTuple):
    """Where an operator is called."""

    phase: str
    module: str = ""  # layer1.0.conv1; of the model itself, its type
    place: str = ""  # train.py:31
    model: str = ""  # "": outside of every module
    inside: str = ""  # the operator whose parts are being called
    node: str = ""  # ConvolutionBackward0


_nodes: dict[type, str] = {}  # names of autograd's nodes, where their types tell them
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
        # Clipping, scaling, averaging: what is done to gradients belongs to the step.
        self._after_backward = False
        self._names: dict[int, str] = {}
        self._root = ""
        self._labels: weakref.WeakKeyDictionary[torch.nn.Module, str] = weakref.WeakKeyDictionary()
        self._models_of_parts: weakref.WeakKeyDictionary[torch.nn.Module, str] = weakref.WeakKeyDictionary()
        self._names_in: dict[str, dict[int, str]] = {}
        # models, by their type, the second of a type as Linear#2 -> paths in it -> types
        self.models: dict[str, dict[str, str]] = {}
        self.has_begun = False  # a module was called, or a backward pass made
        self.inside = ""  # the operator whose parts are being called, where its derivative belongs to it
        self.buffers: set[int] = set()
        self._made: dict[int, _Made] = {}  # autograd's sequence number -> where the node was made
        self._sites: dict[tuple[str, ...], ProgramSite] = {}
        self._files: dict[int, ProgramFile] = {}
        # as `site`; the same may be had more quickly
        self.find_site: Callable[[int], ProgramSite] = self.site
        self._handles: list[Any] = []
        try:
            self._folder = os.getcwd() + os.sep  # the program may go to another one
        except OSError:  # it has been removed
            self._folder = ""

    def watch(self) -> None:
        """Keep account of modules and optimizers from now on."""
        register: Callable[..., Any] = modules.register_module_forward_hook
        always = {"always_call": True} if "always_call" in inspect.signature(register).parameters else {}
        self._handles = [
            modules.register_module_forward_pre_hook(self._enter),
            register(self._leave, **always),
        ]
        watch_optimizers()
        _watching.append(self)

    def unwatch(self) -> None:
        """Take all hooks back."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        if self in _watching:
            _watching.remove(self)

    def now(self) -> dict[str, str]:
        """Phase, module and line of the operator that is being called."""
        site = self.site()
        where = {"phase": site.phase, "module": site.module, "place": site.place}
        for name in ("model", "inside", "node"):
            if value := getattr(site, name):
                where[name] = value
        return where

    def site(self, own: int = 0) -> ProgramSite:
        """The same as an object; the same one for the same place. `own`: so many of the functions that lead here are
        no part of the program."""
        number = _sequence()
        if _graph_task() != -1:
            self.has_begun = self._after_backward = True
            self._thread.last_number = number
            made, node = self._where_computed_again(number) or self._where_made()
            key = (BACKWARD, *made, node)
        else:
            made = self._where_called(own)
            if number not in self._made:
                self._remember(number, made)
            key = (self._phase(number, made[2] != ""), *made, "")
        return self._sites.get(key) or self.new_site(key)

    def new_site(self, key: tuple[str, ...]) -> ProgramSite:
        """The site of a call such as there was none before."""
        site = self._sites[key] = ProgramSite(*key)
        return site

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

    def _where_called(self, own: int = 0) -> _Made:
        inside = self._stack()
        module, model = (inside[-1], self._root) if inside else ("", "")
        return (module, self._place(own), model, self.inside)

    def _where_computed_again(self, number: int) -> tuple[_Made, str] | None:
        """In a backward pass that calls modules: a checkpoint computes them again, with nodes of their own."""
        if not self._stack():
            return None
        where = self._where_called()
        self._remember(number, where)
        node = _current_node()
        return where, "" if node is None else _name(node)

    def _remember(self, number: int, where: _Made) -> None:
        """The first operator since a node was made is the node's. What is long gone is forgotten."""
        if number not in self._made:
            self._made[number] = where
            if len(self._made) > _MOST_NODES:
                for old in list(itertools.islice(self._made, _MOST_NODES // 2)):
                    del self._made[old]

    def role_of(self, tensor: torch.Tensor) -> str:
        """What the tensor is to the model."""
        # the first is quick; to ask whether a plain tensor is a parameter is not
        if type(tensor) is not _Tensor and isinstance(tensor, _Parameter):
            return PARAMETER
        return BUFFER if id(tensor) in self.buffers else ""

    def _where_made(self) -> tuple[_Made, str]:
        """For an operator of the backward pass: where the forward pass made its node."""
        node = _current_node()
        if node is None:
            return _NOWHERE, ""
        number = node._sequence_nr() if hasattr(node, "_sequence_nr") else _NO_SEQUENCE
        # an in-place operator copies what its derivative needs: the copy's node comes before the operator's own call
        where = self._made.get(number + 1) or self._made.get(number + 2, _NOWHERE)
        return where, _name(node)

    def _place(self, own: int) -> str:
        """The nearest line of the user's own code; of a library's where no code of the user's is on the way."""
        frame = sys._getframe(3 + own)  # whoever has asked for the site
        files = self._files
        in_library = ""
        while frame is not None:
            code = frame.f_code
            # by its number: to compare code costs more than all else here; a file holds its code, so numbers stay
            file = files.get(id(code))
            if file is None:
                file = files[id(code)] = self.file_of(code)
            if file.name:
                if not file.is_of_library:
                    return file.line(frame)
                in_library = in_library or file.line(frame)
            frame = frame.f_back  # type: ignore[assignment]  # ends with None
        return in_library

    def file_of(self, code: CodeType) -> ProgramFile:
        """The file of some code, as it is shown."""
        return ProgramFile.of(code, self._folder)

    def _stack(self) -> list[str]:
        try:
            inside: list[str] = self._thread.modules
        except AttributeError:
            inside = self._thread.modules = []
            if _graph_task() == -1:
                self._made.clear()  # each thread counts its nodes from the beginning
        return inside

    def _enter(self, module: torch.nn.Module, _arguments: Any) -> None:
        inside = self._stack()
        self._after_backward = False
        if not inside:
            # a part of a model that a backward pass calls, as checkpoints do, keeps its name in the model
            model = self._models_of_parts.get(module) if _graph_task() != -1 else None
            if model is not None:
                self._root, self._names = model, self._names_in[model]
            else:
                self._look_at_model(module)
        inside.append(self._names.get(id(module)) or type(module).__name__)

    def _look_at_model(self, module: torch.nn.Module) -> None:
        self.has_begun = True
        prefix = _WRAPPERS.get(type(module).__name__, "")
        parts = [(name.removeprefix(prefix).removeprefix("."), part) for name, part in module.named_modules()]
        self._names = {id(part): name for name, part in parts}
        self.buffers = {id(buffer) for buffer in module.buffers()}
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
        """Take note that an optimizer's step begins."""
        self._in_optimizer += 1

    def optimizer_ends(self) -> None:
        """Take note that an optimizer's step ends."""
        self._after_backward = False
        self._in_optimizer = max(0, self._in_optimizer - 1)


_graph_task: Callable[[], int] = getattr(torch._C, "_current_graph_task_id", lambda: -1)
_current_node: Callable[[], Any] = getattr(torch._C, "_current_autograd_node", lambda: None)
# how many nodes autograd has made in this thread; the node of the operator being called is the last of them
_sequence: Callable[[], int] = getattr(torch.autograd, "_get_sequence_nr", lambda: 0)


def _name(node: Any) -> str:
    """The name of an autograd node: ConvolutionBackward0."""
    kind = type(node)
    known = _nodes.get(kind)
    if known is None:
        known = node.name().split("::")[-1].removesuffix(">")  # CppNode<...::Mine>
        if known == kind.__name__:  # otherwise nodes of several names are of this type
            _nodes[kind] = known
    return known


class ProgramFile:
    """The file of some code, as it is shown."""

    __slots__ = ("_code", "_lines", "is_of_library", "name")

    def __init__(self, code: CodeType, name: str, is_of_library: bool = False) -> None:
        self._code = code
        self._lines: dict[int, str] = {}  # by the place in the code: to find a line's number takes long
        # from where the program runs, or from where libraries are; "": it is PyTorch's, Python's or ours
        self.name = name
        self.is_of_library = is_of_library

    def line(self, frame: FrameType) -> str:
        """train.py:31, the line that this frame of the code is at."""
        found = self._lines.get(frame.f_lasti)
        if found is None:
            found = self._lines[frame.f_lasti] = f"{self.name}:{frame.f_lineno}"
        return found

    @classmethod
    def of(cls, code: CodeType, folder: str) -> ProgramFile:
        """The file of some code of a program that runs in that folder."""
        path = code.co_filename
        if path.startswith(_OURS) or code.co_name in _BETWEEN:
            return cls(code, "")
        library = next(filter(path.startswith, _LIBRARIES), None)
        if library is not None:
            return cls(code, path.removeprefix(library), is_of_library=True)
        if path.startswith(_STANDARD):
            return cls(code, "")
        return cls(code, path.removeprefix(folder))
