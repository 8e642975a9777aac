"""Optimizers in the fastest form that a device has: the vendor's own, or one of torch's."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from torchferry.vendors.model import Vendor
from torchferry.vendors.ops import load_ops
from torchferry.vendors.registry import vendor_of_device
from torchferry.vendors.similar import Similar, load_similar

_LOG = logging.getLogger("torchferry")
_FORM = "_torchferry_form"
_CHOICES = ("fused", "foreach")  # arguments of torch's optimizers that choose how, not what
_TAKEN = frozenset({torch.float32, torch.float16})  # by all vendors' classes; of others no table speaks
_REFUSALS = (TypeError, ValueError, RuntimeError, NotImplementedError)

Form = tuple[str, Callable[[], Optimizer]]  # how it is called, and how it is made


def fused_optimizer(
    kind: str | type[Optimizer],
    /,
    params: Iterable[Any],
    *args: Any,
    vendor_class: bool = True,
    **settings: Any,
) -> Optimizer:
    """An optimizer of torch.optim, by its class or name, with its own arguments, in the fastest form there is.

    In this order: the class of the vendor's that follows the same rule, unless `vendor_class` is False; torch's own
    with fused=True; with foreach=True; as it is. `fused_form` tells which. Whoever says `fused` or `foreach` has chosen.
    """
    plain: type[Any] = getattr(torch.optim, kind) if isinstance(kind, str) else kind
    groups = [_listed(item) for item in params]
    # Wrong ones raise as they always do.
    given = inspect.signature(plain).bind(groups, *args, **settings).arguments
    given.pop(next(iter(given)))
    has_chosen = any(given.get(name) is not None for name in _CHOICES)
    for name, make in () if has_chosen else _forms(plain, groups, given, vendor_class):
        try:
            return _named(make(), name)
        except _REFUSALS as refusal:
            _LOG.debug("%s: %s", name, refusal)
    return _named(plain(groups, *args, **settings), _name(plain))


def fused(kind: str | type[Optimizer]) -> Callable[..., Optimizer]:
    """What makes such optimizers: `fused(torch.optim.SGD)(model.parameters(), lr=0.1)`."""
    return functools.partial(fused_optimizer, kind)


def fused_form(optimizer: Optimizer) -> str:
    """Which form was chosen: "torch_acme.optim.FusedSGD", "torch.optim.SGD(fused=True)", "torch.optim.SGD" ..."""
    return str(getattr(optimizer, _FORM, _name(type(optimizer))))


def _named(optimizer: Optimizer, name: str) -> Optimizer:
    setattr(optimizer, _FORM, name)
    _LOG.info("optimizer: %s", name)
    return optimizer


def _name(kind: type[Optimizer]) -> str:
    is_torchs = getattr(torch.optim, kind.__name__, None) is kind
    return f"torch.optim.{kind.__name__}" if is_torchs else f"{kind.__module__}.{kind.__qualname__}"


def _forms(
    plain: type[Any], groups: list[Any], given: Mapping[str, Any], vendor_class: bool
) -> Iterator[Form]:
    """All forms that may do, the fastest first."""
    params = list(_parameters(groups))
    devices = {param.device.type for param in params}
    vendor = vendor_of(devices.pop()) if len(devices) == 1 else None
    if vendor is not None and vendor_class and _TAKEN.issuperset(param.dtype for param in params):
        yield from _vendors_own(plain, groups, given, vendor)
    known = inspect.signature(plain).parameters
    if "fused" in known and (vendor is None or _has_fused_kernel(plain, vendor)):
        yield f"{_name(plain)}(fused=True)", lambda: plain(_fresh(groups), **given, fused=True)
    if "foreach" in known:
        yield f"{_name(plain)}(foreach=True)", lambda: plain(_fresh(groups), **given, foreach=True)


def _listed(item: Any) -> Any:
    """A group with its parameters as a list: they are looked at, and handed over more than once."""
    if not isinstance(item, dict) or isinstance(item.get("params"), (Tensor, type(None))):
        return item
    return {**item, "params": list(item["params"])}


def _fresh(groups: list[Any]) -> list[Any]:
    """The groups for one optimizer: it writes its settings into them."""
    return [dict(item) if isinstance(item, dict) else item for item in groups]


def _parameters(groups: list[Any]) -> Iterator[Tensor]:
    """The tensors of parameters, of named ones, and of groups of either."""
    for item in groups:
        if isinstance(item, Tensor):
            yield item
        elif isinstance(item, dict):
            inside = item.get("params", ())
            yield from (inside,) if isinstance(inside, Tensor) else _parameters(list(inside))
        elif isinstance(item, tuple):
            yield item[1]


@functools.cache
def vendor_of(device_type: str) -> Vendor | None:
    """The vendor whose devices PyTorch calls so, looked for once."""
    return vendor_of_device(device_type)


def _has_fused_kernel(plain: type[Optimizer], vendor: Vendor) -> bool:
    """torch's fused=True asks for an operator, which an adapter may lack; in tree, torch itself knows who has it."""
    if not vendor.plugin:
        return True
    version = re.match(r"\d+\.\d+", torch.__version__)
    return (
        load_ops(Path(vendor.folder)).has_kernel(
            f"_fused_{plain.__name__.lower()}_", version[0] if version else ""
        )
        is True
    )


def _vendors_own(
    plain: type[Optimizer], groups: list[Any], given: Mapping[str, Any], vendor: Vendor
) -> Iterator[Form]:
    """The vendor's class, if its table has one that takes what is given."""
    for entry in load_similar(vendor.folder):
        is_fused = entry.use.startswith(f"{vendor.fused_optimizer_module}.") and entry.keeps_arguments
        if not is_fused or entry.cuda != _name(plain) or entry.when:
            continue
        settings = _settings_for(entry, plain, given)
        if settings is not None and _takes_groups(entry, groups):
            name = entry.use.partition("(")[0]
            yield name, functools.partial(_made, entry, name, groups, settings)


def _settings_for(entry: Similar, plain: type[Optimizer], given: Mapping[str, Any]) -> dict[str, Any] | None:
    """What to give to the vendor's class; None if it can't take something that is set."""
    known = inspect.signature(plain).parameters
    settings: dict[str, Any] = {}
    for name, value in given.items():
        if name in entry.takes:
            settings[name] = value
        elif name not in entry.ignored and value != known[name].default:
            return None
    call = ast.parse(entry.use, mode="eval").body
    assert isinstance(call, ast.Call)  # the table's reader has seen to it
    for keyword in call.keywords:
        settings.setdefault(str(keyword.arg), ast.literal_eval(keyword.value))
    return settings


def _takes_groups(entry: Similar, groups: list[Any]) -> bool:
    """Whether all that groups set for themselves is known to the vendor's class; names of parameters are not."""
    settings = {key for group in groups if isinstance(group, dict) for key in group}
    items = [item for group in groups for item in (group["params"] if isinstance(group, dict) else [group])]
    return settings <= {"params", *entry.takes} and not any(isinstance(item, tuple) for item in items)


def _made(entry: Similar, name: str, groups: list[Any], settings: dict[str, Any]) -> Optimizer:
    module, _, last = name.rpartition(".")
    try:
        kind = getattr(importlib.import_module(module), last)
    except (ImportError, AttributeError) as error:
        raise RuntimeError(f"{module} has no {last} here: {error}") from error
    optimizer: Optimizer = kind(_fresh(groups), **settings)
    if entry.keeps_gradients:
        _refuse_replaced_gradients(optimizer, name)
    return optimizer


def _refuse_replaced_gradients(optimizer: Optimizer, name: str) -> None:
    """Such a class reads the gradients where it has once put them: with others it would train on old ones, silently."""
    places: dict[Tensor, int] = {}

    def remember(_optimizer: Optimizer, _args: Any, _settings: Any) -> None:
        for param in _parameters(optimizer.param_groups):
            if param.grad is not None:
                places[param] = param.grad.data_ptr()

    def check(_optimizer: Optimizer, _args: Any, _settings: Any) -> None:
        for param, place in places.items():
            if param.grad is None or param.grad.data_ptr() != place:
                raise RuntimeError(
                    f"{name} keeps the gradients in one tensor, but the program has set them to None or replaced them; "
                    "clear them with optimizer.zero_grad() alone, or make it with vendor_class=False"
                )

    optimizer.register_step_pre_hook(check)
    optimizer.register_step_post_hook(remember)
