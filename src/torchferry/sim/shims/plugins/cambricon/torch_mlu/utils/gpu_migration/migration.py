"""The migration itself, under the name that programs import."""

from torchferry.sim.shims import require_simulator
from torchferry.sim.shims.modules import migrate


def apply_monkey_patches() -> None:
    """Replace CUDA's names; doing it again does nothing."""
    migrate(require_simulator("torch_mlu"))
