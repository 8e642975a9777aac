"""Writes the files of a case: the tests, and the recorded tensors beside them; each appears whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from torchferry.errors import OutputError
from torchferry.ops.cases.model import Case, Facts
from torchferry.ops.cases.writing import Frame, data_name, kept_tensors, render


def write_case(case: Case, facts: Facts, frame: Frame, path: Path) -> Path:
    """Write a case; a file of tensors that an earlier one has left there is replaced or removed."""
    try:
        return _write(case, facts, frame, path)
    except OSError as error:  # of a file aside, whose name says nothing to a user
        raise OutputError(
            f"{path}: can't be written: {error.strerror or error}; -o FILE names another"
        ) from None


def _write(case: Case, facts: Facts, frame: Frame, path: Path) -> Path:
    tensors = kept_tensors(case)
    data = path.with_name(data_name(path.name))
    if tensors:
        _replace(data, lambda aside: _save(tensors, aside))
    else:
        data.unlink(missing_ok=True)
    text = render(case, facts, frame)
    _replace(path, lambda aside: aside.write_text(text, "utf-8"))
    return path


def _save(tensors: dict[str, object], path: Path) -> None:
    import torch

    with path.open("wb") as file:  # by name, torch refuses some
        torch.save(tensors, file)


def _replace(path: Path, write: Callable[[Path], object]) -> None:
    descriptor, name = tempfile.mkstemp(prefix=".ferry-case-", dir=path.parent)
    os.close(descriptor)
    aside = Path(name)
    try:
        write(aside)
        aside.chmod(0o666 & ~_mask())
        aside.replace(path)
    except BaseException:
        with suppress(FileNotFoundError):
            aside.unlink()
        raise


def _mask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
