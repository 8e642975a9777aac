"""The files of the two sides of a comparison: one record, or those of all processes of a run; and how they are compared."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from torchferry.accuracy.compare.comparing import ComparingPlan, compare_ranks_alike
from torchferry.accuracy.compare.model import RankComparison
from torchferry.accuracy.compare.ranks import compare_ranks
from torchferry.accuracy.compare.stages import RanksComparison
from torchferry.accuracy.compare.updates import gradient_shapes
from torchferry.accuracy.file.reader import Record, open_record, open_records
from torchferry.accuracy.model import Kept

_OF_RANK = re.compile(r"(.+)\.rank\d+(\.[^.]*)?")


@dataclass(frozen=True)
class RecordFiles:
    """One side: a record by its name, or files of several ranks of one run."""

    name: Path
    files: tuple[
        Path, ...
    ] = ()  # each by its name, as a shell lists them; otherwise what the name stands for

    def opened(self) -> list[Record]:
        """The records of all of its processes, by rank."""
        found = [open_record(each) for each in self.files] if self.files else open_records(self.name)
        return sorted(found, key=lambda each: each.header.rank)


def grouped(paths: Sequence[Path]) -> list[RecordFiles]:
    """The sides that these files are: gpu.rank0.h5 and gpu.rank1.h5 are one."""
    groups: dict[Path, list[Path]] = {}
    for path in paths:
        groups.setdefault(_whole(path), []).append(path)
    found = []
    for whole, files in groups.items():
        if len(files) > 1 and all(_OF_RANK.fullmatch(each.name) for each in files):
            found.append(RecordFiles(whole, tuple(files)))
        else:
            found += [RecordFiles(each) for each in files]
    return found


def _whole(path: Path) -> Path:
    """gpu.h5 for gpu.rank0.h5."""
    match = _OF_RANK.fullmatch(path.name)
    return path.with_name(f"{match[1]}{match[2] or ''}") if match else path


def compare_sides(
    mine: RecordFiles, golden: RecordFiles | None, work: ComparingPlan | None = None
) -> list[RankComparison] | RanksComparison:
    """Rank by rank where both have as many, laid out alike; otherwise what all of them make up together."""
    with ExitStack() as stack:
        ours = [stack.enter_context(each) for each in mine.opened()]
        theirs = [stack.enter_context(each) for each in golden.opened()] if golden is not None else None
        if golden is not None and theirs is not None and _are_laid_out_otherwise(ours, theirs):
            progress = work.progress if work is not None else None
            return compare_ranks(ours, theirs, (str(mine.name), str(golden.name)), progress)
        return compare_ranks_alike(
            ours, theirs, (mine.name, golden.name if golden is not None else None), work
        )


def _are_laid_out_otherwise(mine: Sequence[Record], golden: Sequence[Record]) -> bool:
    """Of runs that are there with all of their processes, and with the elements of their tensors."""
    every = (*mine, *golden)
    is_whole = all(side and len(side) == side[0].header.world for side in (mine, golden))
    if not is_whole or any(each.header.kept is not Kept.TENSORS or each.header.replayed for each in every):
        return False
    if len(mine) != len(golden):
        return True
    return len(mine) > 1 and any(
        gradient_shapes(one) != gradient_shapes(other) for one, other in zip(mine, golden, strict=True)
    )
