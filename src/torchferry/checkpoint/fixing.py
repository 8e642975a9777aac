"""Mends a checkpoint: takes a part of it, puts shards together, changes names and devices, writes another format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from torchferry.checkpoint.folders import read
from torchferry.checkpoint.loading import Loaded, NotPlainError, load_tree, refusal
from torchferry.checkpoint.model import Cast, Checkpoint, FileFormat, Opaque, Repair, Repaired
from torchferry.checkpoint.names import (
    at,
    is_model_in_pieces,
    key_name,
    model_parts,
    parts,
    state_dicts,
    tensors_of,
    wrappers_of,
)
from torchferry.checkpoint.writing import write_safetensors, write_torch
from torchferry.errors import InputError, OutputError
from torchferry.text import Text, then

# What is changed in a tree before it is written: names of weights, their dtype, the devices they are
# marked with.


def renamed(tree: Any, old: str, new: str, option: str) -> tuple[Any, int]:
    """The same where names of weights that began with one text begin with another, and how many did."""
    total = 0
    for path, node in list(model_parts(tree, torch.Tensor)):
        made, count = _renamed(node, old, new, option)
        total += count
        if path:
            at_path = tree
            for key in path[:-1]:
                at_path = at_path[key]
            at_path[path[-1]] = made
        else:
            tree = made
    if not total:
        names = [str(key) for _, node in model_parts(tree, torch.Tensor) for key in node]
        first = Text("there are no weights", "没有权重")
        if names:
            first = Text(f"the first is {names[0]}", f"第一个权重是 {names[0]}")
        wrappers = "".join(wrappers_of(names))
        hint = Text(f"all begin with {wrappers}", f"所有名称都以 {wrappers} 开头") if wrappers else first
        raise InputError(
            then(Text(f"{option}: no weight's name starts with that", f"{option}：没有权重名以此开头"), hint)
        )
    return tree, total


def _renamed(node: Any, old: str, new: str, option: str) -> tuple[Any, int]:
    made, count = type(node)(), 0
    for key, part in node.items():
        fits = isinstance(key, str) and key.startswith(old)
        name = new + key.removeprefix(old) if fits else key
        if name in made:
            raise InputError(
                Text(
                    f"{option}: {key} and another name would both become {name}; nothing was written",
                    f"{option}：{key} 与另一个名称都会变成 {name}；未写入任何内容",
                )
            )
        made[name] = part
        count += fits
    # PyTorch keeps the versions of modules beside a state dict, by their names.
    metadata = getattr(node, "_metadata", None)
    if isinstance(metadata, dict):
        made._metadata = type(metadata)()
        for key, value in metadata.items():
            whole = f"{key}." if key else ""
            if isinstance(key, str) and whole.startswith(old):
                key = (new + whole.removeprefix(old)).removesuffix(".")
            made._metadata[key] = value
    return made, count


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
        raise InputError(
            Text(
                f"--dtype {name}: no weight has another floating-point dtype; leave it out",
                f"--dtype {name}：没有其他浮点类型的权重；请去掉该选项",
            )
        )
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
            there = ", ".join(sorted(set(devices.values()))) or "-"
            raise InputError(
                Text(
                    f"--map {old}:{to}: nothing was saved on {old}; devices in the file: {there}",
                    f"--map {old}:{to}：没有内容保存在 {old} 上；文件中的设备：{there}",
                )
            )
    return result, tuple((old, new, count) for (old, new), count in counts.items())


@dataclass
class _Taken:
    """What is to be written, with the device of each storage."""

    tree: Any
    devices: dict[int, str]
    ran_code: bool = False
    made_plain: tuple[tuple[str, str], ...] = ()


def repair(source: Path, output: Path, asked: Repair) -> Repaired:
    """Read, change, write, and read back what was written."""
    if output.is_dir():
        raise OutputError(
            Text(f"{output}: is a folder; give -o a file name", f"{output}：是文件夹；请给 -o 一个文件名")
        )
    if output.exists() and not asked.force:
        is_input = source.exists() and output.samefile(source)
        which = Text("the input itself", "这正是输入文件") if is_input else Text("already exists", "已存在")
        raise OutputError(
            Text(
                "{path}: {which}; choose another name, or add --force to replace it",
                "{path}：{which}；请另选文件名，或加 --force 替换",
            ).format(path=output, which=which)
        )
    contents = read(source)
    try:
        taken = _taken(contents, asked)
    except RecursionError:
        raise InputError(
            Text(
                f"{source}: nested too deeply for a checkpoint; check the file",
                f"{source}：嵌套过深，不像 checkpoint；请检查该文件",
            )
        ) from None
    try:
        return _changed_and_written(output, asked, contents, taken)
    except RuntimeError as error:
        if "allocate memory" not in str(error):  # as PyTorch says it
            raise
        raise MemoryError from None


def _changed_and_written(output: Path, asked: Repair, contents: Checkpoint, taken: _Taken) -> Repaired:
    tree, names = taken.tree, []
    renamings = [(f"--strip {prefix}", prefix, "") for prefix in asked.strip]
    renamings += [(f"--rename {old}={new}", old, new) for old, new in asked.rename]
    for option, old, new in renamings:
        tree, count = renamed(tree, old, new, option)
        names.append((old, new, count))
    done = None
    if asked.dtype:
        tree, done = cast(tree, asked.dtype, taken.devices)
    devices, changed = moved(taken.devices, asked.devices)
    tensors = dict(_leaves(tree))
    twice = 0
    if output.suffix == ".safetensors":
        write_safetensors(output, _flat(tree, contents), contents.metadata)
        full = [tensor for tensor in tensors.values() if tensor.numel()]
        twice = len(full) - len({(each.data_ptr(), each.dtype, each.shape, each.stride()) for each in full})
    else:
        write_torch(output, tree, devices, tensors)
    left_out = tuple(path.name for path in contents.others)
    if asked.only:
        taken_names = (asked.only.split(".", 1)[0], asked.only)
        names_of_parts = tuple(map(key_name, parts(contents.tree)))
        left_out = (*(name for name in names_of_parts if name not in taken_names), *left_out)
    return Repaired(
        output,
        output.stat().st_size,
        len(tensors),
        tuple(names),
        changed,
        left_out,
        taken.ran_code,
        done,
        taken.made_plain,
        twice,
        bool(contents.metadata.keys() - {"format"}) and output.suffix != ".safetensors",
        bool(tensors) and all(isinstance(part, torch.Tensor) for part in parts(tree).values()),
    )


def _taken(contents: Checkpoint, asked: Repair) -> _Taken:
    node = at(contents.tree, asked.only) if asked.only else contents.tree
    loaded = Loaded(contents, asked.plain)
    is_model = (isinstance(node, Opaque) and bool(tensors_of(node))) or (
        bool(asked.only) and is_model_in_pieces(node)
    )
    try:
        # a module that was saved whole: its weights are all that can be taken without its class
        tree = loaded.tensors(tensors_of(node)) if is_model else loaded.tree(node, asked.only)
        return _Taken(tree, loaded.devices, False, tuple(loaded.made_plain or ()))
    except NotPlainError as problem:
        if contents.format in (FileFormat.SHARDED, FileFormat.DISTRIBUTED, FileFormat.NUMPY):
            raise refusal(contents, problem) from None
    whole, devices, ran_code = load_tree(contents, asked.allow_pickle)
    found = at(whole, asked.only) if asked.only else whole
    return _Taken(found.state_dict() if isinstance(found, torch.nn.Module) else found, devices, ran_code)


def _leaves(node: Any, name: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors of a tree by their dotted names."""
    if isinstance(node, torch.Tensor):
        yield name, node
    for key, part in parts(node).items():
        path = f"{name}.{key_name(key)}" if name else key_name(key)
        yield from _leaves(part, path)


def _flat(tree: Any, contents: Checkpoint) -> dict[str, torch.Tensor]:
    """What safetensors can hold: names and tensors, nothing else."""
    odd = [key_name(key) for key, part in parts(tree).items() if not isinstance(part, torch.Tensor)]
    if not odd and isinstance(tree, dict) and tree:
        return {str(name): tensor for name, tensor in tree.items()}
    states = [state.name for state in state_dicts(contents.tree) if state.path]
    hint = Text("write a .pth", "请写成 .pth")
    if states:
        hint = Text(f"add --part {states[0]}", f"请加 --part {states[0]}")
    said = Text(
        f"safetensors holds only tensors, and {', '.join(odd[:5]) or 'this'} is not one",
        f"safetensors 只能保存张量，而 {', '.join(odd[:5]) or '该内容'} 不是张量",
    )
    raise InputError(then(said, hint))
