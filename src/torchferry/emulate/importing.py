"""Makes the plugin importable in this process alone.

Its folder does not go on sys.path: multiprocessing hands that on to the processes that it starts, and there PyTorch
would load the plugin before its toolkit is there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import Distribution, DistributionFinder, MetadataPathFinder
from pathlib import Path
from types import ModuleType

_ANY = DistributionFinder.Context()


class PluginFinder(DistributionFinder):
    """Finds what lies in one folder, packages and what is said of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)
        self._own = {entry.name.partition(".")[0] for entry in folder.iterdir()}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """A package of the folder; what is inside of one is found by its own path."""
        if path is not None or name not in self._own:
            return None
        return PathFinder.find_spec(name, [self.folder])

    def find_distributions(self, context: DistributionFinder.Context = _ANY) -> Iterable[Distribution]:
        """For those who ask whether, and which, plugin is there."""
        within = DistributionFinder.Context(name=context.name, path=[self.folder])
        return MetadataPathFinder.find_distributions(within)


def import_plugin(module: str, folder: Path, variables: Mapping[str, str]) -> None:
    """Import the plugin from its folder with these variables set; the environment is afterwards what it was."""
    if not any(isinstance(finder, PluginFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, PluginFinder(folder))
    with environment_kept():
        os.environ.update(variables)
        import_module(module)


@contextmanager
def environment_kept() -> Iterator[None]:
    """Take back what is changed in the environment meanwhile."""
    before = dict(os.environ)
    try:
        yield
    finally:
        for name in set(os.environ) - set(before):
            del os.environ[name]
        for name, value in before.items():
            if os.environ.get(name) != value:
                os.environ[name] = value
