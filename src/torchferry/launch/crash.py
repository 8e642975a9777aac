"""Adds a line after the traceback of a program that asked for CUDA in a way that the layer does not redirect."""

from __future__ import annotations

import os
import sys
import traceback
from types import TracebackType

import torch

import torchferry

# What PyTorch says where CUDA itself was meant.
_ABOUT_CUDA = (
    "Torch not compiled with CUDA enabled",
    "Found no NVIDIA driver",
    "No CUDA GPUs are available",
    "Cannot access accelerator device when none is available",
    "has no attribute '_cuda",
    "does not have attribute '_cuda",
    "from the 'CUDA' backend",
)
_OURS_AND_PYTORCHS = tuple(
    os.path.join(os.path.dirname(package.__file__ or ""), "") for package in (torch, torchferry)
)


def explain_in_future(vendor: str) -> None:
    """From now on an uncaught exception that is about CUDA gets one more line, after what is printed anyway."""
    before = sys.excepthook

    def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        before(kind, error, trace)
        from torchferry.runtime import is_active

        line = explanation(error, trace, vendor)
        if line and is_active():
            print(line, file=sys.stderr)

    sys.excepthook = show


def explanation(error: BaseException, trace: TracebackType | None, vendor: str) -> str:
    """One line for an exception that is about CUDA, "" for any other."""
    if not _is_about_cuda(error):
        return ""
    place = _place(trace)
    return (
        f"torchferry: {place} asks for CUDA itself, in a way that is not redirected to {vendor}; `ferry run --explain "
        f"--to {vendor}` lists what is, `ferry scan --to {vendor}` says how to write that line"
    )


def _is_about_cuda(error: BaseException | None) -> bool:
    """Of the exception or one that led to it."""
    while error is not None:
        if any(words in str(error) for words in _ABOUT_CUDA):
            return True
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return False


def _place(trace: TracebackType | None) -> str:
    """The innermost line of the program itself."""
    frames = traceback.extract_tb(trace)
    own = [frame for frame in frames if not frame.filename.startswith(_OURS_AND_PYTORCHS)]
    return f"{own[-1].filename}:{own[-1].lineno}" if own else "the program"
