"""Files that do not belong into a repository of code: weights, data, what running has made."""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path

LARGE = 10 << 20
_WEIGHTS = (".pth", ".pt", ".ckpt", ".safetensors", ".onnx", ".om", ".pth.tar", ".pdparams", ".h5", ".bin")
_DATA = (".tar", ".tar.gz", ".tgz", ".zip", ".lmdb", ".tfrecord", ".rec", ".npy", ".npz", ".parquet")
_CACHES = {"__pycache__", ".pytest_cache", ".ipynb_checkpoints", "kernel_meta", "wandb"}


class Sort(Enum):
    """Why a file does not belong there."""

    LARGE = "larger than 10 MiB"
    WEIGHTS = "weights"
    DATA = "data"
    CACHE = "made by running"


def sort_of(name: str, size: int) -> Sort | None:
    """Of which sort a file is, by its path with forward slashes; None: it may stay."""
    folders = name.split("/")[:-1]
    if _CACHES & set(folders) or any(folder.endswith(".egg-info") for folder in folders):
        return Sort.CACHE
    if name.lower().endswith(_WEIGHTS):
        return Sort.WEIGHTS
    if size > LARGE:
        return Sort.LARGE
    return Sort.DATA if name.lower().endswith(_DATA) else None


def leads_out(root: Path, link: str) -> bool:
    """Whether a link points to something that is not in the folder, so that nobody else has it."""
    target = os.readlink(root / link)
    if os.path.isabs(target):
        return True
    place = os.path.normpath(os.path.join(os.path.dirname(link), target))
    return place.split(os.sep)[0] == os.pardir or not os.path.exists(root / link)
