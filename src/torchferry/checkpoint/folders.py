"""Checkpoints that are folders: shards with an index, and the layouts of the frameworks that train large models."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from torchferry.checkpoint.classes import contiguous_strides
from torchferry.checkpoint.files import CHECK_PATH, damaged, read_file, read_zip, readable
from torchferry.checkpoint.model import (
    Checkpoint,
    FileFormat,
    Global,
    Known,
    Opaque,
    Ordered,
    Piece,
    Storage,
    StoragePlace,
    TensorEntry,
)
from torchferry.checkpoint.names import tensors_of
from torchferry.checkpoint.unpickling import Bounded, Reader
from torchferry.errors import InputError, not_readable
from torchferry.text import NOTHING, Text, then

# Folders of torch.distributed.checkpoint: which part of which tensor lies where, put together as one
# tree.

METADATA = ".metadata"


def is_beside(name: str) -> bool:
    """Whether a name that a file gives stays in its folder."""
    return bool(name) and name not in (".", "..") and os.path.basename(name) == name and "\0" not in name


def read_distributed(folder: Path) -> Checkpoint:
    """The tree, as it was given to torch.distributed.checkpoint.save."""
    try:
        return _read_metadata(folder)
    except OSError as error:
        raise not_readable(error.filename or folder, error, Text("download it again", "请重新下载")) from None
    except InputError:
        raise
    except Exception as error:  # whatever a damaged or hostile file makes the standard library raise
        raise damaged(folder / METADATA, error) from None


def read_piece(piece: Piece, prefix: str = "") -> Checkpoint:
    """What was saved at one place of a file."""
    with open(piece.path, "rb") as stream:
        return read_zip(piece.path, stream, piece.size, piece.offset, prefix)


def _read_metadata(folder: Path) -> Checkpoint:
    path = folder / METADATA
    with open(path, "rb") as stream:
        about = _state(Reader(Bounded(stream, path.stat().st_size)).load())
    pieces = _pieces(folder, about["storage_data"])
    leaves: dict[str, object] = {}
    places: dict[str, StoragePlace] = {}
    names: dict[Global, None] = {}
    for name, kind in about["state_dict_metadata"].items():
        if name not in pieces:
            raise InputError(
                Text(
                    f"{path}: does not tell where {name} is; save it again",
                    f"{path}：没有说明 {name} 的位置；请重新保存",
                )
            )
        described = _state(kind)
        if "size" in described:
            leaves[name], places[name] = _tensor(path, name, described, pieces[name])
        else:
            value = read_piece(pieces[name][0], f"{name}/")
            names.update(dict.fromkeys(value.globals))
            places.update({key: replace(place, path=value.path) for key, place in value.places.items()})
            leaves[name] = value.tree
    size = sum(file.stat().st_size for file in {piece.path for each in pieces.values() for piece in each})
    # The tree of which the names are paths; what lay in a list has numbers in its path.
    planned = about.get("planner_data")
    known = planned if isinstance(planned, dict) else {}
    nested: dict[object, Any] = {}
    for name, leaf in leaves.items():
        way = known.get(name, (name,))
        node = nested
        for step in way[:-1]:
            node = node.setdefault(step, {})
        node[way[-1]] = leaf
    tree = _with_lists(nested, "")
    return Checkpoint(folder, FileFormat.DISTRIBUTED, size, tree, places, tuple(names))


def _state(node: object) -> Mapping[Any, Any]:
    state = node.state if isinstance(node, Opaque) else None
    return state if isinstance(state, dict) else {}


def _sizes(node: object) -> tuple[int, ...]:
    sizes: Any = node.arguments[0] if isinstance(node, Known) else node
    return tuple(map(int, sizes or ()))


def _pieces(folder: Path, stored: Mapping[Any, Any]) -> dict[str, list[Piece]]:
    found: dict[str, list[Piece]] = {}
    for index, info in stored.items():
        which, where = _state(index), _state(info)
        if where.get("transform_descriptors"):
            raise InputError(
                Text(
                    f"{folder}: its files are compressed; save it without extensions",
                    f"{folder}：其中的文件经过压缩；请在保存时不使用扩展",
                )
            )
        file = str(where["relative_path"])
        if not is_beside(file):
            raise InputError(
                Text(
                    f"{folder}: refers to {file} outside the folder; not a valid checkpoint",
                    f"{folder}：引用了文件夹之外的 {file}；不是合法的 checkpoint",
                )
            )
        path = folder / file
        if not path.exists():
            raise InputError(
                Text(
                    f"{folder}: {file} is missing: it was saved by another machine, or not downloaded; copy it here",
                    f"{folder}：缺少 {file}：它由另一台机器保存，或尚未下载；请将其复制到此处",
                )
            )
        piece = Piece(path, int(where["offset"]), int(where["length"]), _sizes(which.get("offset")))
        found.setdefault(str(which["fqn"]), []).append(piece)
    return found


def _tensor(
    path: Path, name: str, described: Mapping[Any, Any], pieces: list[Piece]
) -> tuple[TensorEntry, StoragePlace]:
    shape = _sizes(described["size"])
    kind = described["properties"].state[0]
    dtype = kind.name if isinstance(kind, Global) else ""
    chunks = [_state(chunk) for chunk in described["chunks"]]
    tensor = TensorEntry(Storage(name, dtype, "cpu", 0), dtype, shape, contiguous_strides(shape), 0, "cpu")
    there = sum(math.prod(_sizes(chunk["sizes"])) for chunk in chunks)
    if there != tensor.elements or len({piece.starts for piece in pieces}) < len(chunks):
        raise InputError(
            Text(
                f"{path}: parts of {name} are missing; save it again from all ranks",
                f"{path}：缺少 {name} 的部分内容；请从所有 rank 重新保存",
            )
        )
    return tensor, StoragePlace(tensor.nbytes, pieces=tuple(pieces))


def _with_lists(node: Any, name: object) -> Any:
    if not isinstance(node, dict):
        return node
    inside = {key: _with_lists(part, key) for key, part in node.items()}
    # An optimizer's state is a dictionary by numbers, its groups are a list: both look alike here.
    is_list = name != "state" and inside and list(inside) == list(range(len(inside)))
    return list(inside.values()) if is_list else inside


INDEX_SUFFIX = ".index.json"
_LONGEST_INDEX = 2**28
_LONGEST_NOTE = 4096
_SUFFIXES = (".safetensors", ".bin", ".pth", ".pt", ".ckpt", ".tar", ".pkl", ".npz")
# What a model is called among the optimizer and the schedule that lie beside it, the likeliest first.
_MODEL_NAMES = (
    "model.safetensors", "pytorch_model.bin", "diffusion_pytorch_model.safetensors", "diffusion_pytorch_model.bin",
    "adapter_model.safetensors", "adapter_model.bin", "model_optim_rng.pt", "model_rng.pt", "consolidated.00.pth",
)  # fmt: skip
# Files that name the folder to read: of DeepSpeed, and of Megatron (a number).
_POINTERS = {"latest": "{}", "latest_checkpointed_iteration.txt": "iter_{:0>7}"}
_RANK = re.compile(r"mp_rank_\d+(?:_\d+)*")
_RANK_STATES = re.compile(r"mp_rank_\d+_model_states\.pt")
_PARTITION = re.compile(r"(?:bf16_)?zero_pp_rank_\d+_mp_rank_\d+_model_states\.pt")
_SHOWN = 6


def read_folder(folder: Path) -> Checkpoint:
    """The checkpoint that a folder is; other files in it are named in `others`."""
    inside = _listing(folder)
    if METADATA in inside:
        return read_distributed(folder)
    indices = sorted(name for name in inside if name.endswith(INDEX_SUFFIX))
    if indices:
        index = next((name for name in indices if "safetensors" in name), indices[0])
        contents = read_index(folder / index)
        used = {place.path for place in contents.places.values()}
        return replace(contents, others=tuple(path for path in _checkpoints(folder) if path not in used))
    return _followed(folder, inside) or _single(folder, inside)


def _listing(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError as error:
        raise not_readable(folder, error, CHECK_PATH) from None


def _checkpoints(folder: Path) -> list[Path]:
    return [
        folder / name for name in _listing(folder) if name.endswith(_SUFFIXES) and (folder / name).is_file()
    ]


def _followed(folder: Path, inside: list[str]) -> Checkpoint | None:
    """Where a file of the folder, or its only rank, says that the checkpoint is in a folder below."""
    for name, form in _POINTERS.items():
        if name in inside and (folder / name).is_file():
            with open(folder / name, errors="replace") as stream:
                said = stream.read(_LONGEST_NOTE).strip()
            below = said if said == "release" else form.format(said)
            if not is_beside(below) or not (folder / below).is_dir():
                raise InputError(
                    Text(
                        f"{folder}: its file {name} refers to {below}, which does not exist; give the folder to read",
                        f"{folder}：其中的 {name} 指向不存在的 {below}；请直接给出要读取的文件夹",
                    )
                )
            return read_folder(folder / below)
    ranks = [name for name in inside if _RANK.fullmatch(name) and (folder / name).is_dir()]
    if len(ranks) == 1:
        return read_folder(folder / ranks[0])
    if ranks:
        raise _split_model(folder, ranks)
    return None


def _split_model(folder: Path, ranks: list[str]) -> InputError:
    return InputError(
        Text(
            f"{folder}: a model split over {len(ranks)} ranks ({ranks[0]} ... {ranks[-1]}), in a layout that "
            "only its framework knows; convert it with that framework to a checkpoint of one rank, or give "
            "one of the files",
            f"{folder}：模型切分到 {len(ranks)} 个 rank（{ranks[0]} ... {ranks[-1]}），"
            "切分方式只有保存它的框架知道；请用该框架合并为单 rank 的 checkpoint，或给出其中一个文件",
        )
    )


def _single(folder: Path, inside: list[str]) -> Checkpoint:
    """The one file of the folder that is a model's."""
    if any(_PARTITION.fullmatch(name) for name in inside):
        raise InputError(
            Text(
                f"{folder}: weights split over ranks by DeepSpeed ZeRO; merge them with zero_to_fp32.py from the "
                "checkpoint's folder, then give the merged file",
                f"{folder}：权重由 DeepSpeed ZeRO 切分到各 rank；请用 checkpoint 文件夹中的 zero_to_fp32.py 合并，"
                "再给出合并后的文件",
            )
        )
    ranks = [name for name in inside if _RANK_STATES.fullmatch(name)]
    if len(ranks) > 1:
        raise _split_model(folder, ranks)
    found = _checkpoints(folder)
    models = [folder / name for name in (*_MODEL_NAMES, *ranks) if folder / name in found]
    chosen = models[0] if models else found[0] if len(found) == 1 else None
    if chosen is None and found:
        names = ", ".join(path.name for path in found[:_SHOWN])
        more = ", ..." if len(found) > _SHOWN else ""
        raise InputError(
            Text(
                f"{folder}: a folder with {len(found)} checkpoints; give one of them: {names}{more}",
                f"{folder}：文件夹中有 {len(found)} 个 checkpoint；请给出其中一个：{names}{more}",
            )
        )
    if chosen is None:
        below = [name for name in inside if (folder / name).is_dir()]
        names = ", ".join(below[:_SHOWN])
        hint = Text(f"its subfolders are {names}", f"其子文件夹有 {names}") if below else NOTHING
        raise InputError(
            then(Text(f"{folder}: no checkpoint in this folder", f"{folder}：文件夹中没有 checkpoint"), hint)
        )
    return replace(read_file(chosen), others=tuple(path for path in found if path != chosen))


def read_index(path: Path) -> Checkpoint:
    """The weights of all shards that an index names, as if they were in one file."""
    with readable(path, CHECK_PATH), open(path, encoding="utf-8") as stream:
        listed = json.loads(stream.read(_LONGEST_INDEX))["weight_map"]
        where = {str(name): str(file) for name, file in listed.items()}
    shards: dict[str, Checkpoint] = {}
    for name in dict.fromkeys(where.values()):
        if not is_beside(name):
            raise InputError(
                Text(
                    f"{path}: refers to {name}, which is not in the same folder; not a valid index of shards",
                    f"{path}：引用了不在同一文件夹的 {name}；不是合法的分片索引",
                )
            )
        if not (path.parent / name).exists():
            raise InputError(
                Text(f"{path}: the shard {name} is missing; download it", f"{path}：缺少分片 {name}；请下载")
            )
        shards[name] = read_file(path.parent / name)
        if shards[name].is_big_endian:
            raise InputError(
                Text(
                    f"{shards[name].path}: a shard stored big-endian; save it again on a little-endian machine",
                    f"{shards[name].path}：该分片以大端序存储；请在小端机器上重新保存",
                )
            )
    tree, places = Ordered(), {}
    names: dict[Global, None] = {}
    for file, shard in shards.items():
        names.update(dict.fromkeys(shard.globals))
        for key, place in shard.places.items():
            places[f"{file}/{key}"] = replace(place, path=place.path or shard.path)
    for name, file in where.items():
        weights = shards[file].tree
        tensor = weights.get(name) if isinstance(weights, dict) else None
        if not isinstance(tensor, TensorEntry):
            raise InputError(
                Text(
                    f"{path}: {name} should be in {file} but is not; download both again",
                    f"{path}：{name} 应在 {file} 中，但实际没有；请重新下载这两个文件",
                )
            )
        tree[name] = replace(tensor, storage=replace(tensor.storage, key=f"{file}/{tensor.storage.key}"))
    size = sum(shard.size for shard in shards.values())
    metadata = next((shard.metadata for shard in shards.values()), {})
    return Checkpoint(path, FileFormat.SHARDED, size, tree, places, tuple(names), metadata)


# Reads a checkpoint, a file or a folder: what it says about its contents, and nothing of it is run.


def read(path: Path) -> Checkpoint:
    """What is inside; of tensors only the descriptions are read, however large the checkpoint is."""
    if path.is_dir():
        try:
            contents = read_folder(path)
        except OSError as error:  # what may not be read
            raise damaged(path, error) from None
    else:
        contents = read_index(path) if path.name.endswith(INDEX_SUFFIX) else read_file(path)
    try:
        tensors_of(contents.tree)
    except InputError as error:  # a hostile file that names one part without end
        raise InputError(
            Text("{path}: {error}", "{path}：{error}").format(path=path, error=error.text)
        ) from None
    return contents
