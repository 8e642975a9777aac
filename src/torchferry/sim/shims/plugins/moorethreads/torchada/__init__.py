"""torchada, the vendor's migration: importing it makes torch.cuda and "cuda" mean the simulated MUSA device."""

from torchferry.sim.shims import require_simulator

_vendor = require_simulator(__name__)

from torchferry.sim.shims.modules import migrate  # noqa: E402

migrate(_vendor)
