"""Adds a line after the traceback of a program: what it wanted of CUDA, or what a known error means."""

from __future__ import annotations

import os
import sys
import traceback
from types import TracebackType

import torch

import torchferry
from torchferry import variables
from torchferry.report.safe import one_line
from torchferry.text import NOTHING, Text, then, user_language
from torchferry.vendors.model import Vendor

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
# What it says to a program that compiles kernels.
_ABOUT_EXTENSIONS = ("CUDA_HOME environment variable is not set", "nvcc")
_OURS_AND_PYTORCHS = tuple(
    os.path.join(os.path.dirname(package.__file__ or ""), "") for package in (torch, torchferry)
)


def explain_in_future(vendor: Vendor | None) -> None:
    """From now on an uncaught exception that can be explained gets one more line, after what is printed anyway.

    Without a vendor, as where the CPU stands for CUDA, by the rules of all."""
    before = sys.excepthook

    def show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        before(kind, error, trace)
        from torchferry.runtime import is_active

        line = explanation(error, trace, vendor) if vendor is not None and is_active() else ""
        line = line or _diagnosis(kind, error, trace, vendor)
        if line:
            print(line, file=sys.stderr)

    sys.excepthook = show


def _diagnosis(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None, vendor: Vendor | None
) -> str:
    """What the rules of `ferry explain` say; "" if they say nothing, or are not wanted."""
    if os.environ.get(variables.DIAGNOSIS) == "0" or not issubclass(kind, Exception):
        return ""
    try:
        from torchferry.explanation.explaining import explain_exception

        said = explain_exception("".join(traceback.format_exception(kind, error, trace)), vendor)
    except Exception:  # whatever goes wrong here, the program's own error is the one to see
        return ""
    return "" if said is None else f"torchferry: {one_line(said.in_language(user_language()))}"


_MADE_FOR_CUDA = Text(
    "{name} is made for CUDA; {use}; `ferry scan --to {vendor}` finds its uses",
    "{name} 只支持 CUDA；{use}；`ferry scan --to {vendor}` 可找出所有使用处",
)
_REPLACED = Text("{company} offers {use}", "{company} 提供 {use}")
_NOT_REPLACED = Text("no public replacement is known", "没有已知的公开替代品")
_COMPILES = Text(
    "{place} compiles its own CUDA kernels, which can't be redirected",
    "{place} 自行编译 CUDA kernel，无法重定向",
)
_EXTENSION = Text(
    "{company} builds such kernels with {extension}", "{company} 使用 {extension} 编译此类 kernel"
)
_ASKS_FOR_CUDA = Text(
    "{place} uses CUDA in a way that is not redirected to {vendor}; `ferry run --list-redirects --to {vendor}` lists what is "
    "redirected, `ferry scan --to {vendor}` shows how to write that line",
    "{place} 使用 CUDA 的方式无法重定向到 {vendor}；`ferry run --list-redirects --to {vendor}` 可列出会重定向的内容，"
    "`ferry scan --to {vendor}` 会说明该行应如何编写",
)


def explanation(error: BaseException, trace: TracebackType | None, vendor: Vendor) -> str:
    """One line for an exception that is about CUDA, "" for any other."""
    said = _said(error, trace, vendor)
    return "" if said is None else f"torchferry: {said.in_language(user_language())}"


def _said(error: BaseException, trace: TracebackType | None, vendor: Vendor) -> Text | None:
    name = error.name if isinstance(error, ModuleNotFoundError) and error.name else ""
    known = {replacement.cuda: replacement for replacement in vendor.replacements}
    missing = known.get(name) or known.get(name.partition(".")[0])
    if missing is not None:
        use = _REPLACED.format(company=vendor.company, use=missing.use) if missing.use else _NOT_REPLACED
        return _MADE_FOR_CUDA.format(name=missing.cuda, use=use, vendor=vendor.name)
    if any(words in str(error) for words in _ABOUT_EXTENSIONS):
        how = (
            _EXTENSION.format(company=vendor.company, extension=vendor.extension)
            if vendor.extension
            else NOTHING
        )
        return then(_COMPILES.format(place=_place(trace)), how)
    if not _is_about_cuda(error):
        return None
    return _ASKS_FOR_CUDA.format(place=_place(trace), vendor=vendor.name)


def _is_about_cuda(error: BaseException | None) -> bool:
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
