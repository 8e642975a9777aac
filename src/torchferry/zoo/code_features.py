"""What a training program uses, by what its names mean: parallel processes, mixed precision, the vendor's plugin."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from torchferry.source.module import PythonModule
from torchferry.source.scopes import Unit
from torchferry.source.walk import Place, walk_all
from torchferry.vendors.model import Vendor

# Libraries that do it for the program where its configuration asks for it.
_LAUNCHERS = (
    "accelerate.Accelerator",
    "lightning.Trainer",
    "lightning.pytorch.Trainer",
    "pytorch_lightning.Trainer",
    "transformers.Trainer",
    "deepspeed.initialize",
    "mmengine.runner.Runner",
)
DISTRIBUTED = (
    "torch.nn.parallel.DistributedDataParallel",
    "torch.nn.parallel.distributed.DistributedDataParallel",
    "torch.distributed.fsdp.FullyShardedDataParallel",
    "torch.distributed.fsdp.fully_shard",
    "apex.parallel.DistributedDataParallel",
)
_AMP = (
    "torch.autocast",
    "torch.amp.autocast",
    "torch.cuda.amp.autocast",
    "torch.cuda.amp.autocast_mode.autocast",
    "apex.amp.initialize",
)


class Use(NamedTuple):
    """One place."""

    name: str  # what the name there means: torch.nn.parallel.DistributedDataParallel
    file: str
    line: int

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


def uses(modules: Mapping[str, PythonModule]) -> Iterator[Use]:
    """Every name and attribute chain whose meaning imports tell, once for each line."""
    for file, module in modules.items():
        seen: set[tuple[str, int]] = set()
        for unit in module.scopes.units:
            for name, line in _names(module, unit):
                if (name, line) not in seen:
                    seen.add((name, line))
                    yield Use(name, file, line)


def _names(module: PythonModule, unit: Unit) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []

    def visit(node: ast.AST, place: Place) -> None:
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            resolved = module.resolve(node, place.scope, place.shadowed)
            if resolved is not None:
                found.append((resolved.qualified, node.lineno))

    walk_all(unit, visit)
    return found


def distributed_names() -> tuple[str, ...]:
    """Names that show training in several processes."""
    return (*DISTRIBUTED, *_LAUNCHERS)


def amp_names(vendor: Vendor) -> tuple[str, ...]:
    """Names that show mixed precision, those of the vendor among them."""
    own = [f"{vendor.torch_module}.amp.autocast"]
    own += [f"{vendor.amp_module}.autocast"] if vendor.amp_module else []
    return (*_AMP, *own, *_LAUNCHERS)


def is_launcher(name: str) -> bool:
    """Whether a library does it, so that the code alone does not prove it."""
    return name in _LAUNCHERS
