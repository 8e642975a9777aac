"""Importing this makes torch.cuda, `.cuda()`, "cuda" and "nccl" mean the simulated SDAA device."""

from torchferry.sim.shims import require_simulator
from torchferry.sim.shims.modules import migrate

migrate(require_simulator("torch_sdaa"))
