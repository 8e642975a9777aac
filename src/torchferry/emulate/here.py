"""What this process emulates, for those who ask in any process: nothing is imported to say that it is off."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchferry.emulate.activation import ActiveEmulation


def emulated() -> ActiveEmulation | None:
    """What is emulated in this process; None when nothing is."""
    activation = sys.modules.get("torchferry.emulate.activation")
    now: ActiveEmulation | None = None if activation is None else activation.active()
    return now
