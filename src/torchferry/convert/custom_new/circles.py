"""Rules that would never come to an end: a becomes b, and b becomes a."""

from __future__ import annotations

from torchferry.convert.custom.matching import RuleIndex
from torchferry.convert.custom.model import CustomRules, UserRule
from torchferry.errors import RuleFileError

LONGEST_CHAIN = 20  # a file is gone over as often at most
_SOME_MODULE = "some_module"


def check_circles(custom: CustomRules) -> None:
    """Raise RuleFileError for the first names that the rules would rename for ever."""
    vendors = frozenset[str]().union(*(rule.vendors for rule in custom.rules))
    for vendor in ("", *sorted(vendors)):
        rules = custom.for_vendor(vendor)
        index = RuleIndex(rules)
        for rule in rules:
            if rule.rename:
                _check_chain(index, rule)


def _check_chain(index: RuleIndex, first: UserRule) -> None:
    is_last = first.match.is_last
    name = f"{_SOME_MODULE}.{first.match.name}" if is_last else first.match.name
    steps: list[str] = []
    while (found := index.renaming(name)) is not None and found[2]:
        rule, old, new = found
        steps.append(f"{rule.place} makes {_shown(new)} of {_shown(old)}")
        name = new + name[len(old) :]
        if len(steps) > LONGEST_CHAIN:
            chain = ", ".join(steps[:3])
            raise RuleFileError(
                f"{first.place}: these renamings have no end: {chain}, ...; remove one of them, "
                "or write the final name in each"
            )


def _shown(name: str) -> str:
    return name.removeprefix(f"{_SOME_MODULE}.")
