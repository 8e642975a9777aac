"""Where an export is made, and how it comes to its place: whole or not at all. Imports no torch."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from torchferry.errors import OutputError
from torchferry.files.aside import folder_aside, remove_leftovers

DATA = ".data"  # after the name of the model: weights that are too large for it


@contextlib.contextmanager
def work_folder(output: Path) -> Iterator[Path]:
    """A folder beside the output, gone afterwards with whatever is in it; folders on the way there are made."""
    missing = [folder for folder in (output.parent, *output.parent.parents) if not folder.exists()]
    with contextlib.ExitStack() as opened:
        opened.callback(_remove_empty, missing)
        try:
            if missing:
                output.parent.mkdir(parents=True)
            remove_leftovers(output.parent)
            aside = opened.enter_context(folder_aside(output.parent))
        except OSError as error:
            raise _unwritable(output, error) from None
        yield aside.path


def _remove_empty(folders: list[Path]) -> None:
    """Those that were made for nothing."""
    with contextlib.suppress(OSError):
        for folder in folders:
            folder.rmdir()


def put(made: Path, output: Path, may_replace: bool) -> None:
    """Bring the model, and its weights if they lie apart, to their place: weights first, then what names them."""
    weights, its_weights = made.with_name(made.name + DATA), output.with_name(output.name + DATA)
    if weights.exists() and its_weights.exists() and not may_replace:
        raise OutputError(f"{its_weights}: there already; choose another name, or add --force to replace it")
    try:
        if weights.exists():
            os.replace(weights, its_weights)
        os.replace(made, output)
    except OSError as error:
        raise _unwritable(output, error) from None


def _unwritable(output: Path, error: OSError) -> OutputError:
    return OutputError(f"{output}: can't be written ({error.strerror or error}); choose another place")
