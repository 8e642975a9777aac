"""What goes wrong in a user's model, in one line: what was done, what was raised, and in which line."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

import torchferry
from torchferry.errors import RunError
from torchferry.ops.models.fakes import NEEDS_VALUES

_NOT_THE_USERS = tuple(
    os.path.join(os.path.dirname(package.__file__ or ""), "") for package in (torch, torchferry)
)
_OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "out of memory")
_NO_SUCH_KERNEL = "could not create a primitive"
_MOST_CHARACTERS = 300


@contextmanager
def told_as(what: str, advice: str = "", fake: bool = False) -> Iterator[None]:
    """Whatever is raised becomes one line that begins with what was being done."""
    try:
        yield
    except (RunError, KeyboardInterrupt):
        raise
    except BaseException as error:  # a SystemExit of a user's file included
        place = _place(error)
        where = f" ({place})" if place else ""
        cause = _needing_values(error)
        if fake and cause is not None:
            raise RunError(
                f"{what}: {place or 'the model'}: {cause.func} needs the numbers in a tensor, which --fake does not "
                "have; run without --fake, with a smaller model or input if need be"
            ) from None
        if isinstance(error, MemoryError) or any(words in str(error).lower() for words in _OUT_OF_MEMORY):
            advice = "not enough memory: a smaller input, or --fake, which computes with shapes only"
        elif _NO_SUCH_KERNEL in str(error):
            advice = "this CPU does not compute that dtype: --amp bfloat16, or --fake, which computes nothing"
        raise RunError(f"{what} failed: {_raised(error)}{where}{'; ' if advice else ''}{advice}") from None


def _raised(error: BaseException) -> str:
    """The last line of the traceback; an exception's text may have several, the first of which says most."""
    name = type(error).__name__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = f"{name}: {lines[0]}" if lines else name
    return text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + "..."


def _place(error: BaseException) -> str:
    """The innermost line that is neither PyTorch's nor ours; for a file that can't be parsed, the line in it."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_relative(error.filename)}:{error.lineno}"
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((*_NOT_THE_USERS, "<frozen"))
    ]
    own = [frame for frame in frames if f"{os.sep}importlib{os.sep}" not in frame.filename]
    return f"{_relative(own[-1].filename)}:{own[-1].lineno}" if own else ""


def _relative(file: str) -> str:
    return file.removeprefix(os.getcwd() + os.sep)


def _needing_values(error: BaseException | None) -> Any:
    while error is not None:
        if isinstance(error, NEEDS_VALUES):
            return error
        error = error.__cause__ or error.__context__
    return None
