"""torch.cuda and the modules below it: every name is the one of the target's own module.

The vendor's functions themselves are put there, not wrappers around them, so that they cost what they cost. They take
"cuda:1" because they ask torch.device what it means.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

import torch

from torchferry.runtime import device_traits
from torchferry.runtime.cuda_gaps import NOT_HERE, absent, gaps
from torchferry.runtime.patches import Change, Patch
from torchferry.runtime.target import LayerTarget
from torchferry.vendors.model import Support

_CUDA = "torch.cuda"
# CUDA's own classes and flags that stand for nothing on a device.
_NEUTRAL = frozenset({"CudaError", "DeferredCudaCallError", "OutOfMemoryError", "AcceleratorError"})


def changes(target: LayerTarget) -> Iterator[Change]:
    """All names of torch.cuda, then names elsewhere that the vendor's table renames."""
    functions, preferred = gaps(target, device_traits.in_front_of(target))
    distinct = _Distinct()
    top = dict(vars(torch.cuda))  # as it is before the first change
    for name, owner, leaf in _names_of_cuda():
        # A module below shares most of its names with torch.cuda; the plugin, and we, may have them there only.
        known_as = f"{_CUDA}.{leaf}" if top.get(leaf) is vars(owner)[leaf] else name
        value = distinct(
            leaf, _counterpart(name, owner, leaf, target) or _counterpart(known_as, owner, leaf, target)
        )
        if value is not None and known_as not in preferred:
            yield Patch(name, owner, leaf, value, _spelled(value, name, target))
        elif known_as in functions:
            function, means = functions[known_as]
            yield Patch(name, owner, leaf, function, means)
        elif _is_public_api(name, owner, leaf):
            original = vars(owner)[leaf]
            yield Patch(name, owner, leaf, absent(name, original, target), NOT_HERE)
    yield from _renamed_elsewhere(target)


class _Distinct:
    """Two names of CUDA's stay two functions, though the vendor has one for both: torch.compile tells them apart."""

    def __init__(self) -> None:
        self._names: dict[Any, str] = {}

    def __call__(self, leaf: str, value: Any) -> Any:
        is_function = inspect.isfunction(value) or inspect.ismethod(value)
        if not is_function or self._names.setdefault(value, leaf) == leaf:
            return value

        @functools.wraps(value)
        def another(*args: Any, **settings: Any) -> Any:
            return value(*args, **settings)

        return another


def _names_of_cuda() -> Iterator[tuple[str, Any, str]]:
    """(full name, module, last part) of everything in torch.cuda and in its loaded submodules."""
    waiting: list[tuple[str, ModuleType]] = [(_CUDA, torch.cuda)]
    seen: set[int] = set()
    while waiting:
        path, module = waiting.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        for leaf, value in list(vars(module).items()):
            if leaf.startswith("__"):
                continue
            if not isinstance(value, ModuleType):
                # its modules hold `cast` and `lru_cache` as well
                made_in = getattr(value, "__module__", None) if callable(value) else None
                if not isinstance(made_in, str) or made_in.partition(".")[0] == "torch":
                    yield f"{path}.{leaf}", module, leaf
            elif value.__name__ == f"{path}.{leaf}":
                waiting.append((value.__name__, value))


def _counterpart(name: str, owner: Any, leaf: str, target: LayerTarget) -> Any:
    """What the target has for a name: by the vendor's table, else at the same place."""
    vendor = target.vendor
    api = vendor.api(name) if vendor else None
    if api is not None and api.support is Support.RENAMED:
        renamed = found(api.name)
        if renamed is not None:
            return renamed
    below = name[len(_CUDA) + 1 :].split(".")
    value = _walk(target.module, below)
    same_kind = isinstance(value, ModuleType) == isinstance(vars(owner).get(leaf), ModuleType)
    if value == ():  # filled when the device is first used, as torch.npu.default_generators is
        return _ReadWhenUsed(_walk(target.module, below[:-1]), leaf)
    return value if same_kind else None


class _ReadWhenUsed(Sequence[Any]):
    """A tuple of a module, which replaces it later."""

    def __init__(self, module: Any, name: str) -> None:
        self._module, self._name = module, name

    def __getitem__(self, index: Any) -> Any:
        return getattr(self._module, self._name)[index]

    def __len__(self) -> int:
        return len(getattr(self._module, self._name))


def found(dotted: str) -> Any:
    """What a dotted name under torch leads to, None where it leads nowhere."""
    first, *rest = dotted.split(".")
    return _walk(torch, rest) if first == "torch" else None


def _walk(value: Any, parts: list[str]) -> Any:
    for part in parts:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            value = getattr(value, part, None)
        if value is None:
            return None
        if said and (inspect.isfunction(value) or inspect.ismethod(value)):
            value = _warning_when_called(value, str(said[-1].message))
    return value


def _warning_when_called(function: Any, message: str) -> Any:
    """What a module says of a name when it is read belongs to the moment when the program uses it."""

    @functools.wraps(function)
    def used(*args: Any, **settings: Any) -> Any:
        warnings.warn(message, stacklevel=2)
        return function(*args, **settings)

    return used


def _is_public_api(name: str, owner: Any, leaf: str) -> bool:
    """Whether a name without counterpart is something that a program would call, and that CUDA alone can do."""
    value = vars(owner)[leaf]
    made_here = str(getattr(value, "__module__", "")).startswith((_CUDA, "torch._C"))
    is_api = inspect.isroutine(value) or (inspect.isclass(value) and not issubclass(value, BaseException))
    hidden = any(part.startswith("_") for part in name.split("."))
    return is_api and made_here and not hidden and leaf not in _NEUTRAL


def _renamed_elsewhere(target: LayerTarget) -> Iterator[Change]:
    """Names outside torch.cuda that the vendor's table renames: torch.backends.cuda.*, torch.distributed.*."""
    apis: Mapping[str, Any] = target.vendor.apis if target.vendor else {}
    for name, api in apis.items():
        elsewhere = name.startswith(("torch.backends.", "torch.distributed."))
        if elsewhere and api.support is Support.RENAMED:
            path, _, leaf = name.rpartition(".")
            owner, value = found(path), found(api.name)
            if isinstance(owner, ModuleType) and value is not None:
                yield Patch(name, owner, leaf, value, api.name)


def _spelled(value: Any, name: str, target: LayerTarget) -> str:
    natural = target.torch_module + name[len(_CUDA) :]
    qualified = getattr(value, "__qualname__", "")
    own = f"{getattr(value, '__module__', '')}.{qualified}"
    return own if qualified and own.startswith(target.torch_module + ".") else natural
