"""Writes the files of a case: the tests, and the recorded tensors beside them; each appears whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path

from torchferry.errors import InputError, OutputError
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


def read_times(path: Path) -> dict[str, list[float]]:
    """What `ferry case --save-times` has written, on this machine or another: seconds by the type of the device."""
    wrong = InputError(
        f"{path}: is no file of times; ferry case OPERATOR --time --save-times FILE writes one"
    )
    try:
        data = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path}: can't be read: {error.strerror or error}") from None
    except ValueError:
        raise wrong from None
    seconds = data.get("seconds") if isinstance(data, dict) else None
    if not isinstance(seconds, dict) or not seconds:
        raise wrong
    for each in seconds.values():
        if (
            not isinstance(each, list)
            or not each
            or not all(isinstance(one, float) and one > 0 for one in each)
        ):
            raise wrong
    return seconds


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
