"""Runs a user's program under the check, and gathers what its processes found. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from torchferry.accuracy.overflow.model import GIVEN, SUFFIX, End, OverflowEvent, OverflowFindings, load
from torchferry.accuracy.record.settings import OverflowSettings
from torchferry.errors import RunError
from torchferry.files.aside import temporary_folder
from torchferry.launch.environment import environment_at
from torchferry.launch.place import Place
from torchferry.launch.program import Program
from torchferry.launch.supervise import Ending, own_stderr, run_supervised
from torchferry.text import Text


@dataclass(frozen=True)
class Checked:
    """How a run ended, and what was found in it."""

    program: str
    ending: Ending
    processes: tuple[OverflowFindings, ...]  # in the order of ranks

    @property
    def first(self) -> tuple[OverflowFindings, OverflowEvent] | None:
        """The process that was first to make something that is not finite, and what it made. Those that got it from
        others come after."""
        found = [(each, each.first) for each in self.processes]
        events = [(each, event) for each, event in found if event is not None]
        return min(events, key=lambda one: (one[1].why == GIVEN, one[1].time), default=None)

    @property
    def failed(self) -> bool:
        """Whether the program ended ill, by itself."""
        is_ours = any(each.end in (End.FOUND, End.STEPS) for each in self.processes)
        return bool(self.ending.exit_code) and not is_ours and not self.ending.signal


_TOO_SLOW = Text(
    "{program}: exceeded --timeout before anything was checked; allow more time",
    "{program}：在检查任何内容之前就超过了 --timeout；请延长时限",
)
_ENDED = Text(
    "{program}: ended with exit code {code} before anything was checked; its output is above",
    "{program}：在检查任何内容之前就以退出码 {code} 结束；其输出见上文",
)
_NO_MODULE = Text(
    "{program}: called no module with parameters, so nothing was checked; --whole checks everything a program calls",
    "{program}：没有调用带参数的模块，因此未做检查；--whole 会检查程序调用的全部算子",
)


def run_checked(
    program: Program, settings: OverflowSettings, place: Place, timeout: float | None = None
) -> Checked:
    """Run it; what it prints goes to stderr."""
    with temporary_folder() as folder:
        settings = replace(
            settings,
            folder=folder,
            program=program.shown(),
            device=place.device_type,
            vendor=place.vendor_name,
            simulated=place.is_simulated,
        )
        environment = environment_at(place, settings)
        ending = run_supervised(program.command(), environment, stdout=own_stderr(), seconds=timeout)
        files = sorted(Path(folder).glob(f"*{SUFFIX}"))
        found = sorted(map(load, files), key=lambda each: each.rank)
    if not found and not ending.signal:
        why = _NO_MODULE
        if ending.out_of_time:
            why = _TOO_SLOW
        elif ending.exit_code:
            why = _ENDED
        raise RunError(why.format(program=program.target, code=ending.exit_code))
    return Checked(settings.program, ending, tuple(found))
