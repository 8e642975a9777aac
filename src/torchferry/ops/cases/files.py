"""Writes the files of a case: the tests, and the recorded tensors beside them; each appears whole or not at all."""

from __future__ import annotations

from pathlib import Path

from torchferry.errors import OutputError
from torchferry.files.aside import whole_file
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
        _save(tensors, data)
    else:
        data.unlink(missing_ok=True)
    with whole_file(path) as file:
        file.write(render(case, facts, frame).encode())
    return path


def _save(tensors: dict[str, object], path: Path) -> None:
    import torch

    with whole_file(path) as file:  # by name, torch refuses some
        torch.save(tensors, file)
