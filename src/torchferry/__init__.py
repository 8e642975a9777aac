"""TorchFerry carries PyTorch training code written for NVIDIA GPUs to other accelerators."""

TYPE_CHECKING = (
    False  # type checkers take it for true; importing it from typing takes as long as all the rest
)
if TYPE_CHECKING:
    from torchferry import accuracy, emulate, perf, runtime, sim
    from torchferry.api import (
        FerryError,
        analyze,
        checkpoint_fix,
        checkpoint_info,
        compare,
        convert,
        doctor,
        explain,
        export,
        migrate,
        ops,
        overflow,
        profile,
        prove,
        record,
        render,
        replay,
        run,
        save,
        scan,
        watch,
        zoo_check,
        zoo_new,
    )

__version__ = "0.1.0"

__all__ = [
    "FerryError",
    "accuracy",
    "analyze",
    "checkpoint_fix",
    "checkpoint_info",
    "compare",
    "convert",
    "doctor",
    "emulate",
    "explain",
    "export",
    "migrate",
    "ops",
    "overflow",
    "perf",
    "profile",
    "prove",
    "record",
    "render",
    "replay",
    "run",
    "runtime",
    "save",
    "scan",
    "sim",
    "watch",
    "zoo_check",
    "zoo_new",
]

_PACKAGES = ("accuracy", "emulate", "perf", "runtime", "sim")


def __getattr__(name: str) -> object:
    """A function of the API or a package, imported when it is asked for: `import torchferry` alone takes no time."""
    if name not in __all__:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    import importlib

    if name in _PACKAGES:
        return importlib.import_module(f"{__name__}.{name}")
    return getattr(importlib.import_module(f"{__name__}.api"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
