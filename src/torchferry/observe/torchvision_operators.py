"""torchvision beside another build of torch: its compiled operators can't be loaded, and importing it fails.

The package describes operators to PyTorch that then don't exist. Declared first, they let it be imported: models and
transforms work, calling one of its compiled operators says that they could not be loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

_PACKAGE = "torchvision"
_NMS = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_DESCRIBED = ("nms", "qnms")  # what torchvision describes though it could not load them
_declared: list[Any] = []  # kept for the life of the process: declarations go away with it


class _BeforeImport:
    """Stands first among the finders of modules, and finds none: it is told when torchvision is looked for."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == _PACKAGE:
            sys.meta_path.remove(self)
            found = PathFinder.find_spec(_PACKAGE)
            if found is not None and found.origin and not _loads(Path(found.origin).parent):
                _declare()
        return None


def install() -> None:
    """Let torchvision be imported from here on, whatever build it is."""
    if _PACKAGE not in sys.modules:
        sys.meta_path.insert(0, _BeforeImport())


def _loads(package: Path) -> bool:
    """Whether the compiled half fits; torchvision asks again, and gets the same answer."""
    import torch

    libraries = sorted(package.glob("_C*.so"))
    try:
        for library in libraries:
            torch.ops.load_library(library)  # type: ignore[no-untyped-call]
    except (OSError, ImportError):
        return False
    return bool(libraries)


def _declare() -> None:
    import torch

    library: Any = torch.library.Library(_PACKAGE, "FRAGMENT")  # type: ignore[no-untyped-call]
    for name in _DESCRIBED:
        if not hasattr(torch.ops.torchvision, name):
            library.define(f"{name}{_NMS}")
    _declared.append(library)
