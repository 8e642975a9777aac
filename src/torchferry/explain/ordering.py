"""The cause before its consequences, and the process that failed first."""

from __future__ import annotations

from collections.abc import Sequence

from torchferry.explain.model import UNKNOWN_RANK, Failure, Finding, Log
from torchferry.vendors.error_patterns import Effect

_NEVER = float("inf")
_CLASSES = {Effect.ERROR: 0, Effect.CONSEQUENCE: 2, Effect.NOTICE: 4, Effect.HARMLESS: 5}
_UNCERTAIN, _NO_FAILURE = 1, 3

Key = tuple[int, float, int, int, int, int]


def in_order(logs: Sequence[Log]) -> tuple[Finding, ...]:
    """All findings: errors before consequences, the earlier before the later, within an episode the best known.

    Times decide between logs; within one log its lines do.
    """
    key = _Order(logs)
    return tuple(sorted((finding for log in logs for finding in log.findings), key=key))


def failures(ordered: Sequence[Finding]) -> tuple[Failure, ...]:
    """The first error of each process, in order; none if there is only one process.

    Where lines bear ranks, those without one are the launcher's.
    """
    failed = [finding for finding in ordered if finding.is_failure and finding.is_certain]
    if any(finding.rank is not None for finding in failed):
        failed = [finding for finding in failed if finding.rank is not None]
    first: dict[tuple[int, int | None, str], Failure] = {}
    for finding in failed:
        place = (-1 if finding.rank is not None else finding.source, finding.rank, finding.writer)
        first.setdefault(place, Failure(finding.source, finding.rank, finding))
    return tuple(first.values()) if len(first) > 1 else ()


class _Order:
    """How findings are ordered."""

    def __init__(self, logs: Sequence[Log]) -> None:
        self._times: dict[tuple[int, int], float] = {}
        for log in logs if len(logs) > 1 else ():
            for finding in log.findings:
                place = (finding.source, finding.episode)
                time = _NEVER if finding.time is None else finding.time
                self._times[place] = min(time, self._times.get(place, _NEVER))

    def __call__(self, finding: Finding) -> Key:
        place = (finding.source, finding.episode)
        rank = UNKNOWN_RANK if finding.pattern is None else finding.pattern.rank
        order = _CLASSES[finding.effect] if finding.is_certain else _UNCERTAIN
        if order <= _CLASSES[Effect.CONSEQUENCE] and not finding.is_failure:
            order = _NO_FAILURE
        return (order, self._times.get(place, _NEVER), *place, rank, finding.line)
