"""Finds and runs the checks of a folder: a module that is added there is found, there is no list."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

from torchferry.doctor.model import Result, Status
from torchferry.text import Text

_FAILED = Text("{error}", "{error}")
_FAILED_WHY = Text(
    "the system did not let this check look, so that nothing is known of it",
    "系统不允许此项检查，因此情况未知",
)


def run_checks(folder: ModuleType, subject: object) -> list[Result]:
    """What all checks say. One that the system stops, as by a file server that is gone, does not stop the others."""
    results: list[Result] = []
    for found in pkgutil.iter_modules(folder.__path__):
        module = importlib.import_module(f"{folder.__name__}.{found.name}")
        try:
            results += module.check(subject)
        except OSError as error:
            results.append(
                Result(module.ID, module.ID, Status.UNSEEN, _FAILED.format(error=error), _FAILED_WHY)
            )
    return results
