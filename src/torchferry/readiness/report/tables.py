"""The judgements of all vendors side by side, folded by operator, in the order in which the reports show them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from torchferry.readiness.model import Advice, Capture, OperatorSupport, Readiness, Use, UseJudgement
from torchferry.text import Text

_Item = TypeVar("_Item")
_Key = TypeVar("_Key")
_RANK = {support: rank for rank, support in enumerate(OperatorSupport)}


@dataclass(frozen=True)
class OperatorSupportRow:
    """One operator, on every device."""

    operator: str
    calls: int
    seconds: float
    share: float  # of the time of all operators of all devices; of the calls where no time is known
    uses: tuple[Use, ...]  # that with the most time first
    judgements: tuple[tuple[UseJudgement, ...], ...]  # for each device, in the order of the uses

    @property
    def supports(self) -> list[OperatorSupport | None]:
        """The worst support of each device; None where the operator does not arrive at it."""
        return [worst(judgement.support for judgement in each) for each in self.judgements]

    @property
    def is_problem(self) -> bool:
        """Whether any device has a problem with it."""
        return any(support is not None and support.is_problem for support in self.supports)


@dataclass(frozen=True)
class Problem:
    """Uses of one operator that one device has the same problem with."""

    operator: str
    support: OperatorSupport
    share: float
    judgements: tuple[UseJudgement, ...]  # that with the most time first

    @property
    def uses(self) -> list[Use]:
        """What was judged."""
        return [judgement.use for judgement in self.judgements]

    @property
    def calls(self) -> int:
        """All of them."""
        return sum(use.calls for use in self.uses)

    @property
    def moved_bytes(self) -> int:
        """To the CPU and back, in all calls."""
        return sum(judgement.moved_bytes for judgement in self.judgements)

    @property
    def reasons(self) -> list[Text]:
        """Each once."""
        return list(dict.fromkeys(judgement.reason for judgement in self.judgements))

    @property
    def advice(self) -> list[Advice]:
        """Each once."""
        return list(dict.fromkeys(each for judgement in self.judgements for each in judgement.advice))


class Overview:
    """All devices' judgements of one capture."""

    def __init__(self, readinesses: Sequence[Readiness]) -> None:
        if not readinesses:
            raise ValueError("a report needs a readiness")
        self.readinesses = tuple(readinesses)
        self.capture: Capture = readinesses[0].capture
        # Not the same for every device: one takes a composite operator whole, another its parts.
        judged = {use_key(each.use): each.use for one in readinesses for each in one.judgements}
        self.uses = list(judged.values())
        self.is_timed = any(use.seconds > 0 for use in self.uses)
        self._total = sum(map(self.weight, self.uses))
        self._totals = {
            id(one): sum(self.weight(each.use) for each in one.judgements) for one in self.readinesses
        }
        self.operators = self._operators()

    @property
    def labels(self) -> list[str]:
        """The devices' names, with the versions of their adapters."""
        return [label(readiness) for readiness in self.readinesses]

    def weight(self, use: Use) -> float:
        """What a use counts: its time, or its calls where no time is known."""
        return use.seconds if self.is_timed else float(use.calls)

    def share(self, uses: Iterable[Use]) -> float:
        """The part of all that these are."""
        return self.part(sum(map(self.weight, uses)))

    def part(self, weight: float) -> float:
        """The part of all that this weight is."""
        return weight / self._total if self._total else 0.0

    def share_on(self, readiness: Readiness, judgements: Iterable[UseJudgement]) -> float:
        """The part of what one device has to do that these are."""
        total = self._totals[id(readiness)]
        return sum(self.weight(each.use) for each in judgements) / total if total else 0.0

    def problems(self, readiness: Readiness) -> list[Problem]:
        """What a user has to look at on one device: the worst first, then that with the most time."""
        found = _grouped(readiness.problems, lambda each: (each.use.operator, each.support))
        problems = [
            Problem(operator, support, self.share_on(readiness, group), self._by_weight(group))
            for (operator, support), group in found.items()
        ]
        return sorted(problems, key=lambda each: (-_RANK[each.support], -each.share, each.operator))

    def by_support(self, readiness: Readiness) -> dict[OperatorSupport, list[UseJudgement]]:
        """A device's judgements, the best support first."""
        groups = _grouped(readiness.judgements, lambda each: each.support)
        return {support: groups[support] for support in OperatorSupport if support in groups}

    def _operators(self) -> list[OperatorSupportRow]:
        """The operators that any device has the worst trouble with first, then those with the most time."""
        columns = [_grouped(one.judgements, lambda each: each.use.operator) for one in self.readinesses]
        rows = []
        for operator, uses in _grouped(self.uses, lambda use: use.operator).items():
            rows.append(
                OperatorSupportRow(
                    operator,
                    calls=sum(use.calls for use in uses),
                    seconds=sum(use.seconds for use in uses),
                    share=self.share(uses),
                    uses=tuple(sorted(uses, key=lambda use: -self.weight(use))),
                    judgements=tuple(self._by_weight(column.get(operator, [])) for column in columns),
                )
            )
        return sorted(rows, key=lambda row: (-_worst_rank(row), -row.share, row.operator))

    def _by_weight(self, judgements: Iterable[UseJudgement]) -> tuple[UseJudgement, ...]:
        return tuple(sorted(judgements, key=lambda each: -self.weight(each.use)))


def use_key(use: Use) -> object:
    """What tells uses of a capture apart without comparing all that they hold; signatures and sites are shared."""
    return id(use.signature), id(use.site), use.expanded


def label(readiness: Readiness) -> str:
    """The vendor, and the version of its adapter."""
    return f"{readiness.vendor} {readiness.version}".strip()


def worst(supports: Iterable[OperatorSupport]) -> OperatorSupport | None:
    """The worst of several; None if there are none."""
    return max(supports, key=_RANK.__getitem__, default=None)


def _worst_rank(row: OperatorSupportRow) -> int:
    return max((_RANK[support] for support in row.supports if support is not None), default=0)


def _grouped(items: Iterable[_Item], key: Callable[[_Item], _Key]) -> dict[_Key, list[_Item]]:
    groups: dict[_Key, list[_Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups
