"""What is changed in a tree before it is written: names of weights, their dtype, the devices they are marked with."""

from __future__ import annotations

from typing import Any

import torch

from torchferry.checkpoint.keys import wrappers_of
from torchferry.checkpoint.names import model_parts
from torchferry.checkpoint.repair import Cast
from torchferry.errors import InputError


def renamed(tree: Any, old: str, new: str, option: str) -> tuple[Any, int]:
    """The same where names of weights that began with one text begin with another, and how many did."""
    total = 0
    for path, node in list(model_parts(tree, torch.Tensor)):
        made, count = _renamed(node, old, new, option)
        tree, total = _replaced(tree, path, made), total + count
    if not total:
        raise InputError(f"{option}: no name of a weight begins with that; {_beginnings(tree)}")
    return tree, total


def _renamed(node: Any, old: str, new: str, option: str) -> tuple[Any, int]:
    made, count = type(node)(), 0
    for key, part in node.items():
        fits = isinstance(key, str) and key.startswith(old)
        name = new + key.removeprefix(old) if fits else key
        if name in made:
            raise InputError(
                f"{option}: {key} and another name would both become {name}; nothing was written"
            )
        made[name] = part
        count += fits
    metadata = getattr(node, "_metadata", None)
    if isinstance(
        metadata, dict
    ):  # PyTorch keeps the versions of modules beside a state dict, by their names
        made._metadata = type(metadata)((_module(key, old, new), value) for key, value in metadata.items())
    return made, count


def _module(name: object, old: str, new: str) -> object:
    if not isinstance(name, str):
        return name
    whole = f"{name}." if name else ""
    return (new + whole.removeprefix(old)).removesuffix(".") if whole.startswith(old) else name


def _replaced(tree: Any, path: tuple[Any, ...], part: Any) -> Any:
    if not path:
        return part
    node = tree
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = part
    return tree


def _beginnings(tree: Any) -> str:
    names = [str(key) for _, node in model_parts(tree, torch.Tensor) for key in node]
    wrappers = wrappers_of(names)
    if wrappers:
        return f"all begin with {''.join(wrappers)}"
    return f"the first is {names[0]}" if names else "there are none"


def cast(tree: Any, name: str, devices: dict[int, str]) -> tuple[Any, Cast]:
    """The same with weights of floating point in another dtype; what was shared stays shared."""
    dtype: torch.dtype = getattr(torch, name)
    made: dict[tuple[int, torch.dtype], torch.Tensor] = {}
    tensors = infinite = 0
    for _, node in model_parts(tree, torch.Tensor):
        for key, tensor in node.items():
            is_number = isinstance(tensor, torch.Tensor) and tensor.is_floating_point()
            if not is_number or tensor.dtype == dtype or tensor.layout != torch.strided:
                continue
            storage = tensor.untyped_storage()
            known = (storage._cdata, tensor.dtype)
            if known not in made:
                whole = torch.empty(0, dtype=tensor.dtype).set_(storage)
                made[known] = whole.to(dtype)
                infinite += int((made[known].isinf() & ~whole.isinf()).sum()) if dtype.itemsize > 1 else 0
                devices[made[known].untyped_storage()._cdata] = devices.get(storage._cdata, "cpu")
            new = made[known].as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
            new = torch.nn.Parameter(new) if isinstance(tensor, torch.nn.Parameter) else new
            node[key] = new.requires_grad_(tensor.requires_grad)
            tensors += 1
    if not tensors:
        raise InputError(f"--dtype {name}: no weight has another dtype of floating point; leave it out")
    return tree, Cast(name, tensors, infinite)


def moved(
    devices: dict[int, str], wanted: tuple[tuple[str, str], ...]
) -> tuple[dict[int, str], tuple[tuple[str, str, int], ...]]:
    """The devices of storages by their new names; the number of a device is kept where the new one has numbers."""
    counts: dict[tuple[str, str], int] = {}
    used: set[str] = set()
    result = {}
    for address, device in devices.items():
        kind, _, number = device.partition(":")
        new = next((to for old, to in wanted if old in (device, kind, "*")), device)
        used.update(old for old, _ in wanted if old in (device, kind, "*"))
        if new != device and ":" not in new and new != "cpu":
            new = f"{new}:{number or 0}"
        result[address] = new
        if new != device:
            counts[device, new] = counts.get((device, new), 0) + 1
    for old, to in wanted:
        if old not in used:
            there = ", ".join(sorted(set(devices.values()))) or "none"
            raise InputError(f"--map {old}:{to}: nothing was saved on {old}; devices in the file: {there}")
    return result, tuple((old, new, count) for (old, new), count in counts.items())
