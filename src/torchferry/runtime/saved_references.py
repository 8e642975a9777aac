"""Libraries that were imported before the layer: `from torch.cuda import is_available` holds the original."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

from torchferry.runtime.patches import Change, Patch, Replaced

# torch's own modules get what they need by name, except that those of torch.cuda copy names from one another; this
# package must keep the originals.
_LEFT_ALONE = ("torch", "torchferry")
_NOT_LEFT_ALONE = "torch.cuda."


def changes(replaced: Iterable[Replaced]) -> Iterator[Change]:
    """Put the new function wherever a module holds the original under a name of its own."""
    by_identity: dict[int, Replaced] = {}
    for entry in replaced:
        by_identity.setdefault(id(entry.original), entry)  # the name that is nearest to torch comes first
    for module in list(sys.modules.values()):
        if not isinstance(module, ModuleType) or _is_left_alone(module.__name__):
            continue
        for name, value in list(vars(module).items()):
            now = by_identity.get(id(value))
            if now is not None and now.original is value:
                yield Patch(f"{module.__name__}.{name}", module, name, now.value, _called(value))


def _is_left_alone(module: str) -> bool:
    return module.partition(".")[0] in _LEFT_ALONE and not module.startswith(_NOT_LEFT_ALONE)


def _called(value: Any) -> str:
    return f"what {getattr(value, '__module__', '')}.{getattr(value, '__name__', '')} is now"
