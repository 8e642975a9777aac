"""What autocast refuses in a module that does not train itself, but whose functions the project's training calls."""

from __future__ import annotations

from collections.abc import Iterator

from torchferry.convert.amp.changes import Changes
from torchferry.convert.amp.existing import existing_precision
from torchferry.convert.amp.imports import first_import, torch_name
from torchferry.convert.amp.overflow import WORDS, overflowing
from torchferry.convert.amp.regions import Regions
from torchferry.convert.amp.torch_form import LOST
from torchferry.convert.amp.unclear import UnclearError
from torchferry.convert.program import Program
from torchferry.convert.rule import Proposal
from torchferry.finding import Kind
from torchferry.text import Text

_REFUSED = Text(
    "autocast refuses binary cross entropy of probabilities: compute it in float32 under "
    "torch.cuda.amp.autocast(enabled=False); not done here: {reason}",
    "autocast 不允许对概率计算二元交叉熵：须在 torch.cuda.amp.autocast(enabled=False) 下以 float32 计算；此处未改：{reason}",
)
_LOSSES = (b"BCELoss", b"binary_cross_entropy")
# A module that trains, and has no mixed precision of its own.
_TRAINS = b".backward("
_HAS_PRECISION = (b"autocast", b"GradScaler")


def proposals(program: Program) -> Iterator[Proposal]:
    """Compute such losses in float32, outside of the autocast that their callers get; report masks."""
    data = program.module.data
    if not any(word in data for word in (*_LOSSES, *WORDS)) or not _is_trained(program):
        return
    if existing_precision(program.module) is not None:
        return
    yield from overflowing(program)
    if any(word in data for word in _LOSSES) and first_import(program) is not None:
        yield from _of_losses(program)


def _of_losses(program: Program) -> Iterator[Proposal]:
    changes = Changes(program.module)
    torch = torch_name(program, changes)
    regions = Regions(program, changes, f"{torch}.cuda.amp.autocast")
    added = len(changes.items)
    for node in regions.unsafe.lost():
        yield program.context.propose(Kind.TODO, node, LOST)
    try:
        regions.cover_helpers([])
    except UnclearError as problem:
        yield program.context.propose(Kind.TODO, problem.node, _REFUSED.format(reason=problem.reason))
        return
    if len(changes.items) > added:
        yield from changes.proposals()


def _is_trained(program: Program) -> bool:
    """Whether a module of the project trains and gets mixed precision, and any imports something of this one."""
    neighbours, path = program.context.neighbours, program.context.path
    if not neighbours.any_text(_TRAINS, *_HAS_PRECISION):
        return False
    return neighbours.is_imported(path)
