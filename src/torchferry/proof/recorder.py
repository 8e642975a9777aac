"""Records the steps of this process: what the hooks in recording.py report to it goes into a file, line by line."""

from __future__ import annotations

import ctypes
import gc
import hashlib
import multiprocessing
import os
import sys
import sysconfig
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

import torchferry
from torchferry.accuracy.record.sketches import dense_parts, flattened, sketch_of
from torchferry.observe.modes import unobserved
from torchferry.proof.model import (
    BY_HAND,
    MAIN,
    LossRecord,
    NamedFacts,
    ProcessIdentity,
    StepRecord,
    TensorFacts,
)
from torchferry.proof.recordings import SUFFIX, identity_line, step_line
from torchferry.proof.settings import ProofSettings

# Where in the user's program something happens: a frame's nearest line that is not a library's.

_PYTORCH_AND_OURS = tuple(
    os.path.dirname(os.path.abspath(package.__file__ or "")) + os.sep for package in (torch, torchferry)
)
_LIBRARIES = tuple(
    os.path.abspath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "purelib", "platlib")
)


def user_place(frame: FrameType | None) -> str:
    """`train.py:57`: the nearest line outside of all libraries, else outside of PyTorch; "" if there is none."""
    outside_pytorch = ""
    while frame is not None:
        name = os.path.abspath(frame.f_code.co_filename)
        if not name.startswith(_PYTORCH_AND_OURS) and os.path.isfile(name):
            place = f"{os.path.basename(name)}:{frame.f_lineno}"
            if not name.startswith(_LIBRARIES):
                return place
            outside_pytorch = outside_pytorch or place
        frame = frame.f_back
    return outside_pytorch


# Finds the modules that hold an optimizer's parameters, and what the modules call them.

_CHEAP_BYTES = 1 << 20  # running statistics, not the attention masks of a long context
# What wrappers besides DataParallel put into the names of the modules that they wrap.
_WRAPPERS = ("_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module.")


@dataclass(frozen=True)
class Naming:
    """The names of some parameters, and the outermost modules that hold them."""

    names: dict[int, str]  # id of a parameter -> name
    holders: tuple[weakref.ref[nn.Module], ...]

    def tensors(self, kind: str) -> Iterator[tuple[str, torch.Tensor]]:
        """All "parameters" or "buffers" of the holders as they are now, parameters of no optimizer included."""
        for index, holder in enumerate(self.holders):
            module = holder()
            if module is not None:
                # the names in several modules could be the same
                prefix = f"{type(module).__name__}[{index}]." if len(self.holders) > 1 else ""
                for name, tensor in getattr(module, f"named_{kind}")():
                    if not is_lazy(tensor):  # has no shape until the first forward
                        yield prefix + _unwrapped(name), tensor


class Namer:
    """Names the parameters of one optimizer after the other; looks through the process only when it has to."""

    def __init__(self) -> None:
        self._outermost: list[weakref.ref[nn.Module]] = []

    def name(self, parameters: Sequence[torch.Tensor]) -> Naming:
        """What the outermost modules that hold them call these parameters; some may have no name."""
        naming = self._named_by_known(parameters)
        if len(naming.names) < len({id(parameter) for parameter in parameters}):
            self._outermost = [weakref.ref(module) for module in _outermost_modules()]
            naming = self._named_by_known(parameters)
        return naming

    def _named_by_known(self, parameters: Sequence[torch.Tensor]) -> Naming:
        order = {id(parameter): place for place, parameter in enumerate(parameters)}
        known = [module for module in (each() for each in self._outermost) if module is not None]
        holders = [module for module in known if any(id(each) in order for each in module.parameters())]
        holders.sort(key=lambda module: _first_place(module, order))
        naming = Naming({}, tuple(weakref.ref(module) for module in holders))
        for name, parameter in naming.tensors("parameters"):
            if id(parameter) in order:
                naming.names.setdefault(id(parameter), name)
        return naming


def _outermost_modules() -> list[nn.Module]:
    # type(), not isinstance(): asking a lazy proxy for its class would make it load what it stands for
    modules = [each for each in gc.get_objects() if issubclass(type(each), nn.Module)]
    modules = [module for module in modules if "_modules" in module.__dict__]
    inner = {id(child) for module in modules for child in module.__dict__["_modules"].values()}
    return [module for module in modules if id(module) not in inner]


def _first_place(module: nn.Module, order: dict[int, int]) -> tuple[int, str]:
    """Where the optimizer first meets a parameter of the module: the same in every run, unlike memory addresses."""
    places = [order[id(parameter)] for parameter in module.parameters() if id(parameter) in order]
    return min(places), type(module).__name__


def _unwrapped(name: str) -> str:
    name = name.removeprefix("module.")
    for inserted in _WRAPPERS:
        name = name.replace(inserted, "")
    return name


class ProofRecorder:
    """What one process has done so far."""

    def __init__(self, settings: ProofSettings) -> None:
        self.settings = settings
        self.steps = 0  # of all optimizers
        self.updates = 0  # steps of the training, as all commands count them, that changed weights
        self._lock = threading.RLock()
        self._file: IO[str] | None = None
        self._losses: list[LossRecord] = []
        self._loss_devices: set[str] = set()
        self._scaled: list[tuple[weakref.ref[torch.Tensor], float]] = []
        self._skipped = 0
        self._backwards = 0
        self._optimizers: weakref.WeakKeyDictionary[torch.optim.Optimizer, _Stepping] = (
            weakref.WeakKeyDictionary()
        )
        self._known_optimizers = 0
        self._namer = Namer()
        self._by_hand = _ByHand(self._namer)

    def has_optimizer(self) -> None:
        """The program has made an optimizer."""
        self._by_hand.is_over = True

    def backward(self, losses: Sequence[torch.Tensor]) -> None:
        """The program is about to call backward on these."""
        with self._lock, unobserved():
            place = user_place(sys._getframe(1))
            self._open()
            self._backwards += 1
            for loss in losses:
                scale = next((scale for scaled, scale in self._scaled if scaled() is loss), 1.0)
                self._losses.append(_loss_record(loss, scale, place))
            self._loss_devices |= _device_types(losses)
            self._by_hand.before(losses)

    def after_backward(self) -> None:
        """Backward has returned. Where the program has no optimizer, that is all there is to be seen of a step."""
        with self._lock, unobserved():
            if not self._by_hand.has_begun:
                return
            self.steps += 1
            self.updates = self._by_hand.steps
            self._append(self._by_hand.record(self.steps, tuple(self._losses), self._loss_devices))
            self._losses, self._loss_devices = [], set()

    def scaled(self, loss: torch.Tensor, scale: float) -> None:
        """A GradScaler has multiplied a loss by this."""
        with self._lock:
            self._scaled = [entry for entry in self._scaled if entry[0]() is not None]
            self._scaled.append((weakref.ref(loss), scale))

    def skipped(self) -> None:
        """A GradScaler has left out a step."""
        with self._lock:
            self._skipped += 1

    def before_step(self, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer is about to step."""
        with self._lock, unobserved():
            stepping = self._stepping(optimizer)
            stepping.backwards_before = self._backwards
            stepping.gradients = stepping.gradients_now(optimizer)

    def after_step(self, optimizer: torch.optim.Optimizer, step: int) -> None:
        """An optimizer has stepped, in this step of the training."""
        with self._lock, unobserved():
            stepping = self._stepping(optimizer)
            # a closure: the gradients came about inside the step
            if stepping.backwards_before != self._backwards:
                stepping.gradients = stepping.gradients_now(optimizer)
            self.steps += 1
            self._append(
                StepRecord(
                    ordinal=self.steps,
                    optimizer=stepping.index,
                    optimizer_type=type(optimizer).__name__,
                    losses=tuple(self._losses),
                    skipped=self._skipped,
                    gradients=stepping.gradients,
                    parameters=stepping.parameters_now(optimizer),
                    buffers=stepping.buffers_now(),
                    devices=tuple(sorted(self._loss_devices | _device_types(_parameters(optimizer)))),
                    step=step,
                )
            )
            self._losses, self._loss_devices, self._skipped, stepping.gradients = [], set(), 0, ()

    def is_complete(self) -> bool:
        """Whether as many steps have changed weights as was asked for."""
        if self.settings.operators_step:
            return self.steps >= self.settings.operators_step
        return self.settings.steps is not None and self.updates >= self.settings.steps

    def _append(self, step: StepRecord) -> None:
        file = self._open()
        file.write(step_line(step))
        file.flush()

    def _open(self) -> IO[str]:
        """The file, made when there is something to record: a data loader's worker leaves none."""
        if self._file is None:
            identity = _own_identity()
            path = Path(self.settings.folder) / f"{identity.pid}-{identity.started}{SUFFIX}"
            self._file = path.open("x", encoding="utf-8")
            self._file.write(identity_line(identity))
            self._file.flush()
        return self._file

    def _stepping(self, optimizer: torch.optim.Optimizer) -> _Stepping:
        found = self._optimizers.get(optimizer)
        if found is None:
            found = self._optimizers[optimizer] = _Stepping(self._known_optimizers, self._namer)
            self._known_optimizers += 1
        return found


class _Stepping:
    def __init__(self, index: int, namer: Namer) -> None:
        self.index = index
        self.backwards_before = 0
        self.gradients: tuple[NamedFacts, ...] = ()
        self._namer = namer
        self._naming = Naming({}, ())
        self._named: list[str] = []

    def gradients_now(self, optimizer: torch.optim.Optimizer) -> tuple[NamedFacts, ...]:
        parameters = _parameters(optimizer)
        facts = [None if each.grad is None else tensor_facts(each.grad) for each in parameters]
        return tuple(map(NamedFacts, self._names(optimizer, parameters), facts))

    def parameters_now(self, optimizer: torch.optim.Optimizer) -> tuple[NamedFacts, ...]:
        parameters = _parameters(optimizer)
        facts = [None if is_lazy(each) else tensor_facts(each) for each in parameters]
        return tuple(map(NamedFacts, self._names(optimizer, parameters), facts))

    def buffers_now(self) -> tuple[NamedFacts, ...]:
        """Those that are so small that looking at them after each step costs nothing."""
        buffers = self._naming.tensors("buffers")
        return tuple(
            NamedFacts(name, tensor_facts(each))
            for name, each in buffers
            if each.numel() * each.element_size() <= _CHEAP_BYTES
        )

    def _names(self, optimizer: torch.optim.Optimizer, parameters: list[torch.Tensor]) -> list[str]:
        """Found at the first step, and again when the optimizer was given more parameters."""
        if len(self._named) != len(parameters):
            self._naming = self._namer.name(parameters)
            places = [
                f"optimizer{self.index}.group{number}.{place}"
                for number, group in enumerate(optimizer.param_groups)
                for place in range(len(group["params"]))
            ]
            named = self._naming.names
            self._named = [named.get(id(each), place) for each, place in zip(parameters, places, strict=True)]
        return self._named


class _ByHand:
    """Steps of a program that has made no optimizer: it updates its parameters itself between calls of backward.

    The parameters of a step are those that backward finds, the gradients those that it leaves.
    """

    def __init__(self, namer: Namer) -> None:
        self.is_over = False  # an optimizer was made: its steps are what counts
        self.steps = 0
        self._namer = namer
        self._leaves: list[torch.Tensor] = []
        self._parameters: tuple[NamedFacts, ...] = ()

    def before(self, losses: Sequence[torch.Tensor]) -> None:
        """Look at the parameters that the losses depend on."""
        self._leaves = [] if self.is_over else _leaves(losses)
        if self._leaves:
            self._parameters = self._named(self._leaves)

    @property
    def has_begun(self) -> bool:
        """Whether backward was called on losses that depend on parameters."""
        return bool(self._leaves)

    def record(self, ordinal: int, losses: tuple[LossRecord, ...], devices: set[str]) -> StepRecord:
        """The step that has just been made."""
        self.steps += 1
        held = tuple(sorted(devices | _device_types(self._leaves)))
        gradients = self._named([leaf.grad for leaf in self._leaves])
        self._leaves = []
        return StepRecord(ordinal, 0, BY_HAND, losses, 0, gradients, self._parameters, (), held, self.steps)

    def _named(self, tensors: Sequence[torch.Tensor | None]) -> tuple[NamedFacts, ...]:
        names = self._namer.name(self._leaves).names
        return tuple(
            NamedFacts(
                names.get(id(leaf), f"parameter {place}"), None if each is None else tensor_facts(each)
            )
            for place, (leaf, each) in enumerate(zip(self._leaves, tensors, strict=True))
        )


def _leaves(losses: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The tensors whose gradients backward computes, in the order of the graph."""
    found: dict[int, torch.Tensor] = {}
    waiting: list[Any] = [loss.grad_fn for loss in losses if loss.grad_fn is not None]
    seen: set[Any] = set(waiting)
    while waiting:
        node = waiting.pop()
        leaf = getattr(node, "variable", None)
        if isinstance(leaf, torch.Tensor) and leaf.is_leaf:
            found[id(leaf)] = leaf
        following = [each for each, _ in node.next_functions if each is not None and each not in seen]
        seen.update(following)
        waiting += following
    return list(found.values())


def _loss_record(loss: torch.Tensor, scale: float, place: str) -> LossRecord:
    """Without the factor of a GradScaler: it is a power of two, so that no bit is lost."""
    plain = loss if scale == 1.0 else loss.detach() / scale
    whole = plain.detach().cpu()
    value = float((whole.real if whole.is_complex() else whole).double().sum())
    return LossRecord(value, tensor_facts(plain), place, scale)


def _parameters(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _device_types(tensors: Sequence[torch.Tensor]) -> set[str]:
    return {str(tensor.device.type) for tensor in tensors}


def current_rank() -> int | None:
    """This process's place among several; None where there are none."""
    distributed: Any = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    value = os.environ.get("RANK", "")
    return int(value) if value.isdigit() else None


def _own_identity() -> ProcessIdentity:
    restart = os.environ.get("TORCHELASTIC_RESTART_COUNT", "")
    return ProcessIdentity(
        rank=current_rank(),
        role=MAIN if multiprocessing.parent_process() is None else multiprocessing.current_process().name,
        pid=os.getpid(),
        started=time.time_ns(),
        restart=int(restart) if restart.isdigit() else 0,
        torch=str(torch.__version__),
    )


# What a proof keeps of a tensor: checksum, norm and projections, at little more than the cost of reading it.

_CHECKSUM_DIGITS = 16


def tensor_facts(tensor: torch.Tensor) -> TensorFacts:
    """The facts of a tensor of any layout, dtype and device; call it inside `unobserved()`."""
    checksum = hashlib.sha256(f"{tuple(tensor.shape)}{tensor.dtype}".encode())
    contents = []
    for part in dense_parts(tensor):
        flat = flattened(part)
        size = flat.numel() * flat.element_size()
        if size:
            checksum.update((ctypes.c_char * size).from_address(flat.data_ptr()))
        if part.dtype == tensor.dtype or tensor.is_quantized:  # not the indices of a sparse tensor
            contents.append(flat)
    sketch = sketch_of(contents)
    return TensorFacts(
        tuple(tensor.shape),
        str(tensor.dtype).removeprefix("torch."),
        checksum.hexdigest()[:_CHECKSUM_DIGITS],
        float(sketch.square**0.5),
        tuple(sketch.projections),
    )
