"""Where in the user's program something happens: a frame's nearest line that is not a library's."""

from __future__ import annotations

import os
import sysconfig
from types import FrameType

import torch

import torchferry

_PYTORCH_AND_OURS = tuple(
    os.path.dirname(os.path.abspath(package.__file__ or "")) + os.sep for package in (torch, torchferry)
)
_LIBRARIES = tuple(
    os.path.abspath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "purelib", "platlib")
)


def user_place(frame: FrameType | None) -> str:
    """`train.py:57`: the nearest line outside of all libraries, else outside of PyTorch; "" if there is none."""
    outside_pytorch = ""
    while frame is not None:
        name = os.path.abspath(frame.f_code.co_filename)
        if not name.startswith(_PYTORCH_AND_OURS) and os.path.isfile(name):
            place = f"{os.path.basename(name)}:{frame.f_lineno}"
            if not name.startswith(_LIBRARIES):
                return place
            outside_pytorch = outside_pytorch or place
        frame = frame.f_back
    return outside_pytorch
