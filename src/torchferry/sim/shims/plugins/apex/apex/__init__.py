"""apex for the simulated device: mixed precision, optimizers and parallel wrappers, computed by torch's operators."""

from torchferry.sim.shims import require_simulator

require_simulator(__name__)

from . import amp, contrib, optimizers, parallel  # noqa: E402

__all__ = ["amp", "contrib", "optimizers", "parallel"]
