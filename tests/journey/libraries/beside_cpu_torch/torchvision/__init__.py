"""The installed torchvision, made importable beside a CPU build of torch: programs of users import it by its name.

torchvision's wheels are CUDA builds. Their C++ operators can't be loaded here, and the package can't be imported
because it describes operators that then don't exist. This folder, first on PYTHONPATH, declares them and becomes the
installed package.
"""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from pathlib import Path

import torch

_HERE = Path(__file__).resolve().parents[1]
_NMS = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"

_declared = torch.library.Library("torchvision", "FRAGMENT")  # kept: the declarations go away with it
for _name in ("nms", "qnms"):
    if not hasattr(torch.ops.torchvision, _name):  # on the simulated device they are declared already
        _declared.define(f"{_name}{_NMS}")

_installed = PathFinder.find_spec(
    __name__, [entry for entry in sys.path if Path(entry or ".").resolve() != _HERE]
)
assert _installed is not None and _installed.loader is not None, "torchvision is not installed: make setup"
__file__ = _installed.origin
__spec__ = _installed
__path__ = list(_installed.submodule_search_locations or ())
_installed.loader.exec_module(sys.modules[__name__])
