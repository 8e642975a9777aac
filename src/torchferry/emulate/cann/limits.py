"""Which dtypes and numbers of dimensions CANN's operator functions take of their tensors, read from `limits.tsv`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

LIMITS = Path(__file__).with_name("limits.tsv")
_ANY = "*"


@dataclass(frozen=True)
class ArgumentLimit:
    """What one argument takes."""

    argument: str
    dtypes: tuple[str, ...]  # as CANN's messages name them, without DT_; () for any
    dims: tuple[int, int] | None  # at least, at most; None for any number

    def __str__(self) -> str:
        dims = _ANY if self.dims is None else f"{self.dims[0]}-{self.dims[1]}"
        return f"{self.argument}:{','.join(self.dtypes) or _ANY}:{dims}"


def read_limits(text: str) -> dict[str, tuple[ArgumentLimit, ...]]:
    """Function -> limits of its arguments; what has none may have anything."""
    found = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            function, _, limits = line.partition("\t")
            found[function] = tuple(map(_limit, limits.split()))
    return found


def write_limits(limits: Mapping[str, Iterable[ArgumentLimit]]) -> str:
    """The lines of the table."""
    return "".join(f"{function}\t{' '.join(map(str, of))}\n" for function, of in sorted(limits.items()))


def _limit(text: str) -> ArgumentLimit:
    argument, dtypes, dims = text.split(":")
    least, _, most = dims.partition("-")
    return ArgumentLimit(
        argument,
        () if dtypes == _ANY else tuple(dtypes.split(",")),
        None if dims == _ANY else (int(least), int(most)),
    )
