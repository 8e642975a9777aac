"""Folders of torch.distributed.checkpoint: which part of which tensor lies where, put together as one tree."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from torchferry.checkpoint.arrays import contiguous_strides
from torchferry.checkpoint.files import damaged
from torchferry.checkpoint.model import Contents, Format, Global, Known, Opaque, Piece, Place, Storage, Tensor
from torchferry.checkpoint.torch_files import read_zip
from torchferry.checkpoint.unpickling import Bounded, Reader
from torchferry.errors import InputError

METADATA = ".metadata"


def is_beside(name: str) -> bool:
    """Whether a name that a file gives stays in its folder."""
    return bool(name) and name not in (".", "..") and os.path.basename(name) == name and "\0" not in name


def read_distributed(folder: Path) -> Contents:
    """The tree, as it was given to torch.distributed.checkpoint.save."""
    try:
        return _read(folder)
    except OSError as error:
        raise InputError(
            f"{error.filename or folder}: can't be read ({error.strerror}); fetch it anew"
        ) from None
    except InputError:
        raise
    except Exception as error:  # whatever a damaged or hostile file makes the standard library raise
        raise damaged(folder / METADATA, error) from None


def read_piece(piece: Piece, prefix: str = "") -> Contents:
    """What was saved at one place of a file."""
    with open(piece.path, "rb") as stream:
        return read_zip(piece.path, stream, piece.size, piece.offset, prefix)


def _read(folder: Path) -> Contents:
    path = folder / METADATA
    with open(path, "rb") as stream:
        about = _state(Reader(Bounded(stream, path.stat().st_size)).load())
    pieces = _pieces(folder, about["storage_data"])
    leaves: dict[str, object] = {}
    places: dict[str, Place] = {}
    names: dict[Global, None] = {}
    for name, kind in about["state_dict_metadata"].items():
        if name not in pieces:
            raise InputError(f"{path}: does not say where {name} is; save it anew")
        described = _state(kind)
        if "size" in described:
            leaves[name], places[name] = _tensor(path, name, described, pieces[name])
        else:
            value = read_piece(pieces[name][0], f"{name}/")
            names.update(dict.fromkeys(value.globals))
            places.update({key: replace(place, path=value.path) for key, place in value.places.items()})
            leaves[name] = value.tree
    size = sum(
        file.stat().st_size for file in sorted({piece.path for each in pieces.values() for piece in each})
    )
    tree = _nested(leaves, about.get("planner_data"))
    return Contents(folder, Format.DISTRIBUTED, size, tree, places, tuple(names))


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
            raise InputError(f"{folder}: its files are compressed; save it without extensions")
        file = str(where["relative_path"])
        if not is_beside(file):
            raise InputError(f"{folder}: names {file}, which is not in it; that is no checkpoint")
        path = folder / file
        if not path.exists():
            raise InputError(
                f"{folder}: {file} is missing: it was saved by another machine, or not fetched; bring it"
            )
        piece = Piece(path, int(where["offset"]), int(where["length"]), _sizes(which.get("offset")))
        found.setdefault(str(which["fqn"]), []).append(piece)
    return found


def _tensor(path: Path, name: str, described: Mapping[Any, Any], pieces: list[Piece]) -> tuple[Tensor, Place]:
    shape = _sizes(described["size"])
    kind = described["properties"].state[0]
    dtype = kind.name if isinstance(kind, Global) else ""
    chunks = [_state(chunk) for chunk in described["chunks"]]
    tensor = Tensor(Storage(name, dtype, "cpu", 0), dtype, shape, contiguous_strides(shape), 0, "cpu")
    there = sum(_product(_sizes(chunk["sizes"])) for chunk in chunks)
    if there != tensor.elements or len({piece.starts for piece in pieces}) < len(chunks):
        raise InputError(f"{path}: parts of {name} are missing; save it anew, from all ranks")
    return tensor, Place(tensor.nbytes, pieces=tuple(pieces))


def _product(sizes: Iterable[int]) -> int:
    count = 1
    for size in sizes:
        count *= size
    return count


def _nested(leaves: Mapping[str, object], paths: object) -> object:
    """The tree of which the names are paths; what lay in a list has numbers in its path."""
    known = paths if isinstance(paths, dict) else {}
    tree: dict[object, Any] = {}
    for name, leaf in leaves.items():
        way = known.get(name, (name,))
        node = tree
        for step in way[:-1]:
            node = node.setdefault(step, {})
        node[way[-1]] = leaf
    return _with_lists(tree, "")


def _with_lists(node: Any, name: object) -> Any:
    if not isinstance(node, dict):
        return node
    inside = {key: _with_lists(part, key) for key, part in node.items()}
    # An optimizer's state is a dictionary by numbers, its groups are a list: both look alike here.
    is_list = name != "state" and inside and list(inside) == list(range(len(inside)))
    return list(inside.values()) if is_list else inside
