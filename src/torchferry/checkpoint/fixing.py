"""Mends a checkpoint: takes a part of it, takes prefixes off names, names other devices, writes another format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from torchferry.checkpoint.keys import wrappers_of
from torchferry.checkpoint.loading import Loaded, NotPlainError, load_tree, refusal
from torchferry.checkpoint.model import Contents, Opaque
from torchferry.checkpoint.names import at, parts, state_dicts, tensors_of
from torchferry.checkpoint.reading import read
from torchferry.checkpoint.repair import Repair, Repaired
from torchferry.checkpoint.writing import write_safetensors, write_torch
from torchferry.errors import InputError, OutputError


def repair(source: Path, output: Path, asked: Repair) -> Repaired:
    """Read, change, write."""
    _check_output(source, output, asked.force)
    contents = read(source)
    try:
        tree, devices, ran_code = _taken(contents, asked)
    except RecursionError:
        raise InputError(f"{source}: nested too deeply; that is no checkpoint") from None
    stripped = []
    for prefix in asked.strip:
        tree, count = _renamed(tree, prefix)
        if not count:
            raise InputError(f"--strip {prefix}: no name of {source} begins with that; {_prefixes(tree)}")
        stripped.append((prefix, count))
    devices, moved = _moved(devices, asked.devices)
    tensors = _leaves(tree)
    if output.suffix == ".safetensors":
        write_safetensors(output, _flat(tree, contents), contents.metadata)
    else:
        write_torch(output, tree, devices)
    left_out = _left_out(contents, asked.only)
    return Repaired(output, output.stat().st_size, tensors, tuple(stripped), moved, left_out, ran_code)


def _check_output(source: Path, output: Path, force: bool) -> None:
    if output.exists() and not force:
        which = "the input itself" if source.exists() and output.samefile(source) else "there already"
        raise OutputError(f"{output}: {which}; choose another name, or add --force to replace it")
    if output.is_dir():
        raise OutputError(f"{output}: a folder; -o takes the name of a file")


def _taken(contents: Contents, asked: Repair) -> tuple[Any, dict[int, str], bool]:
    node = at(contents.tree, asked.only) if asked.only else contents.tree
    if not asked.only and not isinstance(node, Opaque):
        return load_tree(contents, asked.allow_pickle)
    loaded = Loaded(contents)
    try:
        # a module that was saved whole: its weights are all that can be taken without its class
        tree = loaded.tensors(tensors_of(node)) if isinstance(node, Opaque) else loaded.tree(node, asked.only)
    except NotPlainError as problem:
        if not asked.allow_pickle:
            raise refusal(contents, problem) from None
        whole, devices, ran_code = load_tree(contents, True)
        return _inside(whole, asked.only), devices, ran_code
    return tree, loaded.devices, False


def _inside(tree: Any, dotted: str) -> Any:
    found = at(tree, dotted) if dotted else tree
    return found.state_dict() if isinstance(found, torch.nn.Module) else found


def _renamed(node: Any, prefix: str) -> tuple[Any, int]:
    """The same without a prefix of the names in every dictionary that holds tensors."""
    if not isinstance(node, (dict, list)):
        return node, 0
    if isinstance(node, list):
        pairs = [_renamed(part, prefix) for part in node]
        return [part for part, _ in pairs], sum(count for _, count in pairs)
    holds = any(isinstance(part, torch.Tensor) for part in node.values())
    made, total = type(node)(), 0
    for key, part in node.items():
        new, count = _renamed(part, prefix)
        strips = holds and isinstance(key, str) and key.startswith(prefix)
        name = key.removeprefix(prefix) if strips else key
        if name in made:
            raise InputError(
                f"--strip {prefix}: {key} and another name would both become {name}; nothing was written"
            )
        made[name] = new
        total += count + strips
    _rename_metadata(node, made, prefix)
    return made, total


def _rename_metadata(node: Any, made: Any, prefix: str) -> None:
    """PyTorch keeps the versions of modules beside a state dict, by the names of the modules."""
    metadata = getattr(node, "_metadata", None)
    if isinstance(metadata, dict):
        made._metadata = type(metadata)(
            (f"{key}.".removeprefix(prefix).removesuffix("."), value) for key, value in metadata.items()
        )


def _prefixes(tree: Any) -> str:
    names = _names(tree)
    wrappers = wrappers_of(names)
    if wrappers:
        return f"all begin with {''.join(wrappers)}"
    return f"the first is {names[0]}" if names else "there are none"


def _names(node: Any) -> list[str]:
    """The keys of tensors."""
    found: list[str] = []
    _visit(node, lambda key, tensor: found.append(key))
    return found


def _leaves(tree: Any) -> int:
    return len(_names(tree))


def _visit(node: Any, see: Callable[[str, torch.Tensor], None]) -> None:
    for key, part in parts(node).items():
        if isinstance(part, torch.Tensor):
            see(str(key), part)
        else:
            _visit(part, see)


def _moved(
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


def _flat(tree: Any, contents: Contents) -> dict[str, torch.Tensor]:
    """What safetensors can hold: names and tensors, nothing else."""
    odd = [str(key) for key, part in parts(tree).items() if not isinstance(part, torch.Tensor)]
    if not odd and isinstance(tree, dict):
        return {str(name): tensor for name, tensor in tree.items()}
    states = [state.name for state in state_dicts(contents.tree) if state.path]
    hint = f"add --only {states[0]}" if states else "write a .pth"
    raise InputError(f"safetensors holds tensors alone, and {', '.join(odd[:5]) or 'this'} is none; {hint}")


def _left_out(contents: Contents, only: str) -> tuple[str, ...]:
    if not only:
        return ()
    first = only.split(".", 1)[0]
    return tuple(str(key) for key in parts(contents.tree) if str(key) not in (first, only))
