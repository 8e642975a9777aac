"""TorchFerry carries PyTorch training code written for NVIDIA GPUs to other accelerators."""

TYPE_CHECKING = (
    False  # type checkers take it for true; importing it from typing takes as long as all the rest
)
if TYPE_CHECKING:
    from types import ModuleType

__version__ = "0.1.0"


def __getattr__(name: str) -> "ModuleType":
    """`torchferry.accuracy`, imported when it is asked for."""
    if name != "accuracy":
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    import importlib

    return importlib.import_module(f"{__name__}.{name}")
