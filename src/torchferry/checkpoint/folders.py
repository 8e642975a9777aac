"""Checkpoints that are folders: shards with an index, and the layouts of the frameworks that train large models."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

from torchferry.checkpoint.distributed import METADATA, is_beside, read_distributed
from torchferry.checkpoint.files import damaged, read_file
from torchferry.checkpoint.model import Contents, Format, Global, Ordered, Place, Tensor
from torchferry.errors import InputError

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


def read_folder(folder: Path) -> Contents:
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
        raise InputError(f"{folder}: can't be read ({error.strerror}); check the path") from None


def _checkpoints(folder: Path) -> list[Path]:
    return [
        folder / name for name in _listing(folder) if name.endswith(_SUFFIXES) and (folder / name).is_file()
    ]


def _followed(folder: Path, inside: list[str]) -> Contents | None:
    """Where a file of the folder, or its only rank, says that the checkpoint is in a folder below."""
    for name, form in _POINTERS.items():
        if name in inside and (folder / name).is_file():
            with open(folder / name, errors="replace") as stream:
                said = stream.read(_LONGEST_NOTE).strip()
            below = said if said == "release" else form.format(said)
            if not is_beside(below) or not (folder / below).is_dir():
                raise InputError(
                    f"{folder}: its file {name} names {below}, which is not there; give the folder to read"
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
        f"{folder}: a model that is split over {len(ranks)} ranks ({ranks[0]} ... {ranks[-1]}), and only the framework "
        "that saved it knows how; convert it with that to a checkpoint of one rank, or give one of the files"
    )


def _single(folder: Path, inside: list[str]) -> Contents:
    """The one file of the folder that is a model's."""
    if any(_PARTITION.fullmatch(name) for name in inside):
        raise InputError(
            f"{folder}: weights that DeepSpeed's ZeRO has split over ranks; put them together with the zero_to_fp32.py "
            "that lies in the checkpoint's folder, then give what that writes"
        )
    ranks = [name for name in inside if _RANK_STATES.fullmatch(name)]
    if len(ranks) > 1:
        raise _split_model(folder, ranks)
    found = _checkpoints(folder)
    models = [folder / name for name in (*_MODEL_NAMES, *ranks) if folder / name in found]
    chosen = models[0] if models else found[0] if len(found) == 1 else None
    if chosen is None:
        raise _not_one(folder, found, inside)
    return replace(read_file(chosen), others=tuple(path for path in found if path != chosen))


def _not_one(folder: Path, found: list[Path], inside: list[str]) -> InputError:
    if found:
        names = ", ".join(path.name for path in found[:_SHOWN])
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        return InputError(
            f"{folder}: a folder with {len(found)} checkpoints: {names}{more}; give one of them"
        )
    below = [name for name in inside if (folder / name).is_dir()]
    hint = f"; there are folders in it: {', '.join(below[:_SHOWN])}" if below else ""
    return InputError(f"{folder}: a folder without a checkpoint{hint}")


def read_index(path: Path) -> Contents:
    """The weights of all shards that an index names, as if they were in one file."""
    where = _weight_map(path)
    shards = {name: _shard(path, name) for name in dict.fromkeys(where.values())}
    tree, places = Ordered(), {}
    names: dict[Global, None] = {}
    for file, shard in shards.items():
        names.update(dict.fromkeys(shard.globals))
        own = shard.path
        places.update({f"{file}/{key}": _placed(place, own) for key, place in shard.places.items()})
    for name, file in where.items():
        tensor = shards[file].tree[name] if name in _weights(shards[file]) else None  # type: ignore[index]
        if not isinstance(tensor, Tensor):
            raise InputError(f"{path}: {name} should be in {file}, and is not; fetch both anew")
        tree[name] = replace(tensor, storage=replace(tensor.storage, key=f"{file}/{tensor.storage.key}"))
    size = sum(shard.size for shard in shards.values())
    metadata = next((shard.metadata for shard in shards.values()), {})
    return Contents(path, Format.SHARDED, size, tree, places, tuple(names), metadata)


def _weights(shard: Contents) -> dict[object, object]:
    return shard.tree if isinstance(shard.tree, dict) else {}


def _placed(place: Place, path: Path) -> Place:
    return replace(place, path=place.path or path)


def _weight_map(path: Path) -> dict[str, str]:
    try:
        with open(path, encoding="utf-8") as stream:
            where = json.loads(stream.read(_LONGEST_INDEX))["weight_map"]
        return {str(name): str(file) for name, file in where.items()}
    except OSError as error:
        raise InputError(f"{path}: can't be read ({error.strerror}); check the path") from None
    except Exception as error:  # whatever a damaged index makes the standard library raise
        raise damaged(path, error) from None


def _shard(index: Path, name: str) -> Contents:
    if not is_beside(name):
        raise InputError(f"{index}: names {name}, which is not beside it; that is no index of shards")
    if not (index.parent / name).exists():
        raise InputError(f"{index}: the shard {name} is missing; fetch it")
    shard = read_file(index.parent / name)
    if shard.is_big_endian:
        raise InputError(f"{shard.path}: a shard that is stored big-endian; save it anew")
    return shard
