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
        if ending.out_of_time:
            why = "took longer than --timeout allows, and nothing was checked"
        elif ending.exit_code:
            why = f"ended with exit code {ending.exit_code} before anything was checked; its output is above"
        else:
            why = "called no module that has parameters, so nothing was checked; --whole checks all that a program calls"
        raise RunError(f"{program.target}: {why}")
    return Checked(settings.program, ending, tuple(found))
