"""How devices and tensors of the reference present themselves: to the program as on a GPU, to PyTorch as the CPU's.

A program asks in many ways (`device.type == "cuda"`, `!= "cpu"`, `type in (...)`, `str(device)`, a dictionary, `match`,
`x.is_cuda`), so there is one answer for all of them: the plain text of a GPU. PyTorch's own code has to take its ways
for the CPU; who asks is told by the module of the calling frame.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn.parameter import is_lazy

from torchferry.runtime.host.devices import Placement, is_cuda, raw_type, shown, shown_index
from torchferry.runtime.patches import Action, Change, Patch
from torchferry.runtime.target import CUDA, LayerTarget, TwoNames

_HOST = torch.device("cpu")
_DYNAMO = "torch._dynamo"
# torch.accelerator's name -> torch.cuda's
_SAME = {
    "current_device_idx": "current_device",
    "current_device_index": "current_device",
    "current_stream": "current_stream",
    "device_count": "device_count",
    "empty_cache": "empty_cache",
    "is_available": "is_available",
    "max_memory_allocated": "max_memory_allocated",
    "max_memory_reserved": "max_memory_reserved",
    "memory_allocated": "memory_allocated",
    "memory_reserved": "memory_reserved",
    "memory_stats": "memory_stats",
    "reset_accumulated_memory_stats": "reset_accumulated_memory_stats",
    "reset_peak_memory_stats": "reset_peak_memory_stats",
    "set_device_idx": "set_device",
    "set_device_index": "set_device",
    "set_stream": "set_stream",
    "synchronize": "synchronize",
}


def device_changes(target: LayerTarget, knows: Callable[[str], bool]) -> Iterator[Change]:
    """What changes torch.device; `knows` says of a module's name whether it has to see the CPU."""
    device = torch.device
    shows_cuda = 'of cuda:1 "cuda:1"'
    yield Patch("torch.device.type", device, "type", property(_type(target, knows)), 'of cuda:1 "cuda"')
    index = property(shown_index)
    yield Patch("torch.device.index", device, "index", index, "of cuda:1 1, of cuda None")
    for name, form in (("__str__", "{}"), ("__repr__", "device({})")):
        yield Patch(f"torch.device.{name}", device, name, _text(name, form, knows), shows_cuda)
    yield Patch("torch.device.__reduce__", device, "__reduce__", _reduce, "in pickles cuda:1")


def _type(target: LayerTarget, knows: Callable[[str], bool]) -> Callable[[torch.device], str]:
    host = "cpu"
    # where nobody knows which tensors are on a device
    either = host if target.placement else TwoNames(host, CUDA)

    def type_of(device: torch.device) -> str:
        raw = raw_type(device)
        if raw != host:
            return raw
        caller = sys._getframe(1).f_globals.get("__name__", "")
        if knows(caller):
            return host
        # The compiler asks for a captured program, whose tensors have no memory that could be marked.
        return CUDA if is_cuda(device) or caller.startswith(_DYNAMO) else either

    return type_of


def _text(name: str, form: str, knows: Callable[[str], bool]) -> Callable[[torch.device], str]:
    original: Any = getattr(torch.device, name)
    as_arguments = form != "{}"

    def text(device: torch.device) -> str:
        if not is_cuda(device) or knows(sys._getframe(1).f_globals.get("__name__", "")):
            return str(original(device))
        if not as_arguments:
            return shown(device)
        index = shown_index(device)
        return form.format(f"type={CUDA!r}" + ("" if index is None else f", index={index}"))

    return text


def _reduce(device: torch.device) -> tuple[Any, tuple[Any, ...]]:
    kind = CUDA if is_cuda(device) else raw_type(device)
    index = shown_index(device)
    return torch.device, (kind,) if index is None else (kind, index)


def tensor_changes(target: LayerTarget, knows: Callable[[str], bool]) -> Iterator[Change]:
    """What changes tensors and storages; nothing where no account is kept of what is on a device."""
    placement = target.placement
    if placement is None:
        return
    tensor, means = torch.Tensor, "as on a GPU, by where it was put"
    where = _Where(placement, target)
    yield Action("tensors", "are known to be on a device or on the host", placement.begin, placement.end)
    yield Patch("torch.Tensor.device", tensor, "device", property(_device(where, knows)), means)
    yield Patch("torch.Tensor.is_cuda", tensor, "is_cuda", property(where.is_on_device), means)
    yield Patch("torch.Tensor.is_cpu", tensor, "is_cpu", property(_is_cpu(where, knows)), means)
    yield Patch("torch.Tensor.get_device", tensor, "get_device", lambda self: where.number(self), means)
    for name, moving in (("to", where.to), ("cpu", where.cpu)):
        yield Patch(f"torch.Tensor.{name}", tensor, name, moving(getattr(tensor, name)), means)
    copied = where.deepcopy(tensor.__deepcopy__)
    yield Patch("torch.Tensor.__deepcopy__", tensor, "__deepcopy__", copied, means)
    for name in ("new", "new_tensor"):
        yield Patch(f"torch.Tensor.{name}", tensor, name, where.beside(getattr(tensor, name)), means)
    yield from _storages(where, placement, knows)
    yield _between_processes(placement)


def _device(where: _Where, knows: Callable[[str], bool]) -> Callable[[torch.Tensor], torch.device]:
    raw: Any = torch._C.TensorBase.device.__get__

    def device_of(tensor: torch.Tensor) -> torch.device:
        place: torch.device = raw(tensor)
        if place != _HOST or knows(sys._getframe(1).f_globals.get("__name__", "")):
            return place
        index = where.index(tensor)
        return place if index is None else where.device(index)

    return device_of


def _is_cpu(where: _Where, knows: Callable[[str], bool]) -> Callable[[torch.Tensor], bool]:
    raw: Any = torch._C.TensorBase.is_cpu.__get__  # type: ignore[attr-defined]

    def is_cpu(tensor: torch.Tensor) -> bool:
        said: bool = raw(tensor)
        if not said or knows(sys._getframe(1).f_globals.get("__name__", "")):
            return said
        return where.index(tensor) is None

    return is_cpu


def _storages(where: _Where, placement: Placement, knows: Callable[[str], bool]) -> Iterator[Change]:
    means = "as on a GPU, by where it was put"
    storage = torch.UntypedStorage
    made = staticmethod(where.storage(storage.__new__))
    yield Patch("torch.UntypedStorage", storage, "__new__", made, means)
    raw: Any = torch._C.StorageBase.device.__get__  # type: ignore[attr-defined]

    def device_of(storage: Any) -> torch.device:
        place: torch.device = raw(storage)
        if place != _HOST or knows(sys._getframe(1).f_globals.get("__name__", "")):
            return place
        index = placement.of_storage(storage)
        return place if index is None else where.device(index)

    def is_cuda(storage: Any) -> bool:
        if knows(sys._getframe(1).f_globals.get("__name__", "")):
            return False
        untyped = getattr(storage, "_untyped_storage", storage)
        return bool(raw(untyped) == _HOST and placement.of_storage(untyped) is not None)

    yield Patch("torch.UntypedStorage.device", storage, "device", property(device_of), means)
    for kind in (storage, torch.TypedStorage):
        yield Patch(f"torch.{kind.__name__}.is_cuda", kind, "is_cuda", property(is_cuda), means)


class _Moving(threading.local):
    """The tensor that a thread is moving: a mode that watches functions calls ours again for the one inside."""

    tensor: torch.Tensor | None = None


class _Where:
    def __init__(self, placement: Placement, target: LayerTarget) -> None:
        self._placement = placement
        self._current: Callable[[], int] = target.module.current_device
        self._count: int = target.module.device_count()
        self._devices: dict[int, torch.device] = {}
        self._moving = _Moving()

    def index(self, tensor: torch.Tensor) -> int | None:
        """The number of a tensor's device; None: the host. What has no memory of its own is where its parts are."""
        with torch._C.DisableTorchFunction():
            raw: Any = torch._C.TensorBase.device.__get__
            if raw(tensor) != _HOST:
                return None
            known, index = self._placement.of(tensor)
            if known:
                return index
            local = getattr(tensor, "_local_tensor", None)
        return self.index(local) if isinstance(local, torch.Tensor) else self._current()

    def device(self, index: int) -> torch.device:
        if index not in self._devices:
            self._devices[index] = torch.device(f"{CUDA}:{index}")
        return self._devices[index]

    def is_on_device(self, tensor: torch.Tensor) -> bool:
        return self.index(tensor) is not None

    def number(self, tensor: torch.Tensor) -> int:
        index = self.index(tensor)
        return -1 if index is None else index

    def wanted(self, device: torch.device) -> int | None:
        if not is_cuda(device):
            return None
        index = shown_index(device)
        if index is not None and index >= self._count:
            raise RuntimeError(
                f"CUDA error: invalid device ordinal: {index}; there are {self._count} devices"
            )
        return self._current() if index is None else index

    def moved(
        self, tensor: torch.Tensor, place: int | None, cast: Callable[[], torch.Tensor]
    ) -> torch.Tensor:
        """What `cast` makes of a tensor, in a memory of its own unless it is there already."""
        here = self.index(tensor)
        before, self._moving.tensor = self._moving.tensor, tensor
        try:
            made = cast()
        finally:
            self._moving.tensor = before
        if here == place or is_lazy(made):  # a parameter without a shape has no memory yet
            return made
        shares = made is tensor or (
            made.device.type == tensor.device.type and _memory(made) == _memory(tensor) is not None
        )
        # the operator that moves between devices: recordings of both sides show the same calls
        made = torch.ops.aten._to_copy.default(made) if shares else made
        self._placement.put(made, place)
        return made

    def to(self, move: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        """Tensor.to, which copies between the host and a device, and not within one."""

        @functools.wraps(move)
        def to(tensor: torch.Tensor, *args: Any, **settings: Any) -> torch.Tensor:
            if self._moving.tensor is tensor:
                return move(tensor, *args, **settings)
            first = args[0] if args else settings.get("device", settings.get("other"))
            if isinstance(first, (str, int)) and not isinstance(first, bool):
                first = torch.device(first)
            if isinstance(first, torch.Tensor):
                return self.moved(tensor, self.index(first), lambda: move(tensor, *args, **settings))
            if not isinstance(first, torch.device) or raw_type(first) != "cpu":
                return move(tensor, *args, **settings)
            if args:
                args = (_HOST, *args[1:])
            else:
                settings["device"] = _HOST
            return self.moved(tensor, self.wanted(first), lambda: move(tensor, *args, **settings))

        return to

    def cpu(self, move: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        """Tensor.cpu, which copies what is on a device."""

        @functools.wraps(move)
        def cpu(tensor: torch.Tensor, *args: Any, **settings: Any) -> torch.Tensor:
            if self._moving.tensor is tensor:
                return move(tensor, *args, **settings)
            return self.moved(tensor, None, lambda: move(tensor, *args, **settings))

        return cpu

    def storage(self, make: Callable[..., Any]) -> Callable[..., Any]:
        """torch.UntypedStorage(..., device="cuda")."""

        def made(cls: type, *args: Any, **settings: Any) -> Any:
            device = settings.get("device")
            place = torch.device(device) if isinstance(device, (str, int)) else device
            result = make(cls, *args, **settings)
            if isinstance(place, torch.device) and is_cuda(place):
                self._placement.put_storage(result, self.wanted(place))
            return result

        return made

    def beside(self, make: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        """Tensor.new and new_tensor, which make a tensor where the first one is."""

        @functools.wraps(make)
        def made(tensor: torch.Tensor, *args: Any, **settings: Any) -> torch.Tensor:
            result = make(tensor, *args, **settings)
            if settings.get("device") is None:
                self._placement.put(result, self.index(tensor))
            return result

        return made

    def deepcopy(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Tensor.__deepcopy__, which copies through storages that PyTorch makes anew."""

        @functools.wraps(original)
        def deepcopy(tensor: torch.Tensor, memo: dict[int, Any]) -> Any:
            known = id(tensor) in memo
            copied = original(tensor, memo)
            if not known and isinstance(copied, torch.Tensor):
                self._placement.put(copied, self.index(tensor))
            return copied

        return deepcopy


def _memory(tensor: torch.Tensor) -> int | None:
    try:
        return int(tensor.untyped_storage()._cdata)
    except (NotImplementedError, RuntimeError):
        return None


def _between_processes(placement: Placement) -> Change:
    """A tensor that goes to another process says where it is."""
    from multiprocessing.reduction import ForkingPickler

    from torch.multiprocessing import reductions

    reduce_tensor: Any = reductions.reduce_tensor

    def reduced(tensor: torch.Tensor) -> Any:
        rebuild, args = reduce_tensor(tensor)
        known, index = placement.of(tensor)
        return (rebuild, args) if not known or index is None else (_rebuilt, (index, rebuild, args))

    kinds = (torch.Tensor, torch.nn.parameter.Parameter)

    def register(function: Any) -> None:
        for kind in kinds:
            ForkingPickler.register(kind, function)

    return Action(
        "torch.multiprocessing",
        "a tensor on a device stays on it in another process",
        lambda: register(reduced),
        lambda: register(reduce_tensor),
    )


def _rebuilt(index: int, rebuild: Callable[..., torch.Tensor], args: tuple[Any, ...]) -> torch.Tensor:
    tensor = rebuild(*args)
    from torchferry.runtime.layer import active_target

    target = active_target()
    if target is not None and target.placement is not None:
        target.placement.put(tensor, index)
    return tensor


def accelerator_changes(target: LayerTarget, knows: Callable[[str], bool]) -> Iterator[Change]:
    """What makes torch.accelerator and torch.get_device_module show one, CUDA's, to programs. PyTorch's own code goes on to see a machine without one: it has to take its ways for the CPU."""
    ask_module = torch.get_device_module

    @functools.wraps(ask_module)
    def get_device_module(device: Any = None) -> Any:
        is_cuda = isinstance(device, str) and device.partition(":")[0] == CUDA
        return torch.cuda if is_cuda else ask_module(device)

    yield Patch(
        "torch.get_device_module", torch, "get_device_module", get_device_module, "of cuda torch.cuda"
    )
    accelerator: Any = getattr(torch, "accelerator", None)
    if accelerator is None:
        return
    for name, own in _SAME.items():
        if hasattr(accelerator, name):
            function = _for_programs(getattr(accelerator, name), getattr(target.module, own), knows)
            yield Patch(f"torch.accelerator.{name}", accelerator, name, function, f"torch.cuda.{own}")
    if hasattr(accelerator, "current_accelerator"):
        function = _for_programs(accelerator.current_accelerator, lambda *_, **__: torch.device(CUDA), knows)
        name = "current_accelerator"
        yield Patch(f"torch.accelerator.{name}", accelerator, name, function, "cuda")


def _for_programs(original: Callable[..., Any], own: Callable[..., Any], knows: Callable[[str], bool]) -> Any:
    @functools.wraps(original)
    def answered(*args: Any, **settings: Any) -> Any:
        caller = sys._getframe(1).f_globals.get("__name__", "")
        return (original if knows(caller) else own)(*args, **settings)

    return answered
