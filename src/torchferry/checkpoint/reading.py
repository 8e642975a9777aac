"""Reads a checkpoint, a file or a folder: what it says about its contents, and nothing of it is run."""

from __future__ import annotations

from pathlib import Path

from torchferry.checkpoint.files import damaged, read_file
from torchferry.checkpoint.folders import INDEX_SUFFIX, read_folder, read_index
from torchferry.checkpoint.model import Contents
from torchferry.checkpoint.names import tensors_of
from torchferry.errors import InputError


def read(path: Path) -> Contents:
    """What is inside; of tensors only the descriptions are read, however large the checkpoint is."""
    contents = _read(path)
    try:
        tensors_of(contents.tree)
    except InputError as error:  # a hostile file that names one part without end
        raise InputError(f"{path}: {error}") from None
    return contents


def _read(path: Path) -> Contents:
    if path.is_dir():
        try:
            return read_folder(path)
        except OSError as error:  # what may not be read
            raise damaged(path, error) from None
    return read_index(path) if path.name.endswith(INDEX_SUFFIX) else read_file(path)
