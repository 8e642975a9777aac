"""torchvision and timm beside a CPU build of torch: import them from here."""

from __future__ import annotations

from torchferry.observe import torchvision_operators

torchvision_operators.install()

import timm  # noqa: E402
import torchvision  # noqa: E402

__all__ = ["timm", "torchvision"]
