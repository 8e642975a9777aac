"""torch.backends.musa: the adapter's switch for TensorFloat32, which the simulated device remembers and does not use."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import torch

_NAME = "torch.backends.musa"

musa = ModuleType(_NAME, __doc__)
musa.matmul = SimpleNamespace(allow_tf32=False)  # type: ignore[attr-defined]
sys.modules[_NAME] = musa
torch.backends.musa = musa  # type: ignore[attr-defined]
