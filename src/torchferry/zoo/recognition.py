"""Recognises licences by words that only they have."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from enum import Enum
from pathlib import Path

_FILE = re.compile(r"(licen[cs]e|copying)(\.(txt|md|rst))?", re.IGNORECASE)
# The first that fits counts: the longer names first.
_WORDS = {
    "AGPL-3.0": r"GNU AFFERO GENERAL PUBLIC LICENSE",
    "LGPL": r"GNU LESSER GENERAL PUBLIC LICENSE",
    "GPL": r"GNU GENERAL PUBLIC LICENSE",
    "Apache-2.0": r"Apache License,?\s+Version 2\.0",
    "MPL-2.0": r"Mozilla Public License",
    "CC-BY-NC": r"Attribution-NonCommercial|Creative Commons.*NonCommercial",
    "MIT": r"Permission is hereby granted, free of charge, to any person obtaining a copy",
    "BSD-3-Clause": r"Neither the name of",
    "BSD-2-Clause": r"Redistribution and use in source and binary forms",
}


def licence_files(names: Iterable[str]) -> list[str]:
    """The licence files at the top of a folder."""
    return [name for name in names if _FILE.fullmatch(name)]


def licence_name(text: str) -> str:
    """As SPDX names it; "" for one that is not recognised."""
    plain = " ".join(text.split())
    return next(
        (name for name, words in _WORDS.items() if re.search(words, plain, re.IGNORECASE | re.DOTALL)), ""
    )


# Files that do not belong into a repository of code: weights, data, what running has made.

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
