"""How large a record will become, said as soon as it is known that there is no room for all of it."""

from __future__ import annotations

import sys
from pathlib import Path

from torchferry.text import Text, user_language
from torchferry.units import size

_TOO_MANY = Text(
    "{file}: a step takes {step}, so {count} steps take {whole}; the recording is limited to {most} "
    "and ends after about {fitting} steps. {less}",
    "{file}：每步需要 {step}，{count} 步共需 {whole}；记录上限为 {most}，约 {fitting} 步后结束。{less}",
)
_NO_END = Text(
    "{file}: a step takes {step}; the recording is limited to {most} and ends after about {fitting} "
    "steps. {less}",
    "{file}：每步需要 {step}；记录上限为 {most}，约 {fitting} 步后结束。{less}",
)
_HALF = Text(
    "{file}: the forward pass takes {half}, the whole step about twice that; the recording is "
    "limited to {most} and ends within this step. {less}",
    "{file}：前向需要 {half}，整步约为其两倍；记录上限为 {most}，将在这一步中结束。{less}",
)
_LESS = Text(
    "Use --modules-only, --in-module, --op, --slice or --every to record less",
    "用 --modules-only、--in-module、--op、--slice 或 --every 可减少记录的内容",
)
_MANY = 1000  # steps, after which nobody minds that a record without an end has one


class Forecast:
    """For one file; said once, on stderr."""

    def __init__(self, path: Path, wanted: int | None) -> None:
        """`wanted`: so many steps are to be recorded; None: all up to the program's end."""
        self._file = str(path)
        self._wanted = wanted
        self._recorded = 0  # steps
        self._before = 0  # bytes, when the last of them began
        self._is_said = False

    def forward_ended(self, nbytes: int, most: int) -> None:
        """The first backward pass begins."""
        if not self._recorded and 2 * nbytes > most:
            self._say(_HALF, half=size(nbytes), most=size(most))

    def step_ended(self, nbytes: int, most: int) -> None:
        """A step that was recorded is over."""
        self._recorded += 1
        taken, self._before = nbytes - self._before, nbytes
        fitting = self._recorded + max(most - nbytes, 0) // max(taken, 1)
        known = {"step": size(taken), "most": size(most), "fitting": f"{fitting:,}"}
        if self._wanted is None:
            if fitting < _MANY:
                self._say(_NO_END, **known)
        elif fitting < self._wanted:
            whole = nbytes + (self._wanted - self._recorded) * taken
            self._say(_TOO_MANY, count=f"{self._wanted:,}", whole=size(whole), **known)

    def _say(self, text: Text, **known: str) -> None:
        if not self._is_said:
            self._is_said = True
            said = text.format(file=self._file, less=_LESS, **known)
            print(f"torchferry: {said.in_language(user_language())}", file=sys.stderr, flush=True)
