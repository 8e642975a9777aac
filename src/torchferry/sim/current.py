"""What this process simulates, for those who ask in any process: the simulator is not imported to say that it is off."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchferry.sim.activation import ActiveSimulation


def simulated() -> ActiveSimulation | None:
    """What is simulated in this process; None when nothing is."""
    activation = sys.modules.get("torchferry.sim.activation")
    now: ActiveSimulation | None = None if activation is None else activation.active()
    return now


def fallback_calls() -> dict[str, int]:
    """Operators that the simulated device has computed on the CPU -> how often, up to now."""
    if simulated() is None:
        return {}
    from torchferry.sim import native

    return {
        use.name: use.calls
        for use in native.operator_uses()
        if use.verdict is native.OperatorVerdict.FALLS_BACK
    }
