"""Where in the program each call of a trace belongs: its phase, its module, the line of the user's code."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from torchferry.ops.model import Phase, Site
from torchferry.ops.trace.calls import Call, Surroundings, Timeline


class Sites:
    """Answers for the calls of one trace."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._setup_ends = _first_forward(timeline)
        self._known: dict[Site, Site] = {}

    def of(self, call: Call, inside: str) -> Site:
        """The site of a call that `inside` made."""
        around = call.surroundings
        phase = around.phase or self._phase_by_time(around, call.event.start)
        if phase is Phase.BACKWARD:
            made = self._made(around.sequence, call.event.start)
            site = Site(phase, made.module, made.place, around.node, inside)
        else:
            site = Site(phase, around.module, around.place, "", inside)
        return self._known.setdefault(site, site)

    def _made(self, sequence: int, before: int) -> Surroundings:
        """What the forward call lay in that made a step of the backward pass.

        All calls since the last step was made have the same number: the one that made it is the last of them.
        Each thread counts for itself, so it must also lie before the backward pass.
        """
        made = self._timeline.forward.get(sequence, ())
        index = bisect_left(made, before, key=lambda entry: entry[0])
        return made[index - 1][1] if index else Surroundings()

    def _phase_by_time(self, around: Surroundings, time: int) -> Phase:
        if around.module:
            return Phase.FORWARD
        if self._is_between_backward_and_step(time):
            return Phase.OPTIMIZER
        return Phase.SETUP if time < self._setup_ends else Phase.FORWARD

    def _is_between_backward_and_step(self, time: int) -> bool:
        """Clipping, scaling, averaging: what is done to gradients before the optimizer's step."""
        timeline = self._timeline
        index = bisect_right(timeline.step_starts, time)
        if index == len(timeline.step_starts):
            return False
        step = timeline.step_starts[index]
        last_backward = _last(timeline.backward_ends, time)
        earlier = max(_last(timeline.module_starts, time), timeline.step_starts[index - 1] if index else -1)
        nothing_between = _last(timeline.backward_ends, step) == last_backward
        return last_backward > earlier and nothing_between


def _last(times: list[int], until: int) -> int:
    """The last of the times that is not after this one; -1 if there is none."""
    index = bisect_right(times, until)
    return times[index - 1] if index else -1


def _first_forward(timeline: Timeline) -> int:
    """When setting up was over. Only a trace with modules tells; what autograd keeps belongs to the forward pass."""
    if not timeline.module_starts:
        return 0
    starts = [timeline.module_starts[0], *timeline.turn_starts[:1], *timeline.backward_ends[:1]]
    return min(starts)
