"""Follows values from name to name, until one is used, or was made, as only a device (or a backend) can be.

The question is asked for a string that its own surroundings leave unclear, and breadth first: what is done with the
variable, what is done with the parameters that it is passed to, and so on. Other modules come last, when the own one
does not tell. The answer does not depend on which string of the project is asked about first.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from torchferry.conversion.inference.evidence import CONTAINERS, NameEvidence, RoleVerdict, Vocabulary
from torchferry.conversion.inference.roles import RoleFinder, StringRole
from torchferry.conversion.program.callees import passed_to, slots_of
from torchferry.conversion.program.functions import FUNCTIONS
from torchferry.conversion.program.reads import distant_reads_of, distant_sources_of, reads_of, sources_of
from torchferry.conversion.program.slots import (
    AnySite,
    Keys,
    Member,
    ReturnValue,
    Slot,
    Variable,
    around,
    keys_of,
    text_of,
)
from torchferry.conversion.site import FileContext, Site
from torchferry.source.names import called_name
from torchferry.source.scopes import all_arguments

_HOPS = 5
_SLOTS = 60  # a value that has been through more names than that says nothing


@dataclass(frozen=True)
class Signs:
    """What was seen at one step."""

    strong: bool = False  # only a value of this sort can be here
    weak: bool = False  # values of this sort are here
    odd: bool = False  # other words are here, too
    slots: tuple[Slot, ...] = ()  # where the value goes on to, or comes from


Step = Callable[[Slot], Iterable[Signs]]
Reads = Callable[[FileContext, Variable | Member | ReturnValue], Iterable[AnySite]]


class UseFlow:
    """Answers for one sort of value, starting from one module."""

    def __init__(self, context: FileContext, vocabulary: Vocabulary) -> None:
        self.context = context
        # An argument of an unknown function says nothing about what else the variable is for.
        self.vocabulary = replace(vocabulary, default=RoleVerdict.UNCLEAR)

    def tells(self, slots: tuple[Slot, ...]) -> bool:
        """Whether these slots keep values of the sort: by their uses, else by where the values come from."""
        if not slots:
            return False
        if self.is_used(slots) or self.is_given(slots):
            return True
        found, origins = self._search(slots, self._all_givings)
        return found or self.is_used(tuple(slot for slot in origins if slot not in slots))

    def is_used(self, slots: tuple[Slot, ...]) -> bool:
        """Whether a value is used as one of the sort."""
        everywhere = partial(self._uses, reads=(reads_of, distant_reads_of))
        return (
            self._search(slots, partial(self._uses, reads=(reads_of,)))[0]
            or self._search(slots, everywhere)[0]
        )

    def is_given(self, slots: tuple[Slot, ...]) -> bool:
        """Whether what is put into the slots is of the sort."""
        return self._search(slots, self._givings)[0]

    def _search(self, start: tuple[Slot, ...], step: Step) -> tuple[bool, tuple[Slot, ...]]:
        """Whether the signs are enough, and the slots that were seen on the way."""
        seen = dict.fromkeys(start)
        waiting, weak, odd = list(start), False, False
        for _ in range(_HOPS):
            further: list[Slot] = []
            for slot in waiting:
                for signs in step(slot):
                    if signs.strong:
                        return True, tuple(seen)
                    weak, odd = weak or signs.weak, odd or signs.odd
                    further += [item for item in signs.slots if item not in seen]
                    seen.update(dict.fromkeys(signs.slots))
            waiting = further
            if len(seen) > _SLOTS:
                break
        return weak and not odd, tuple(seen)

    def _uses(self, slot: Slot, reads: tuple[Reads, ...]) -> Iterator[Signs]:
        view = self.context.beside(slot.path)
        if view is None:
            return
        for read in reads:
            for site in read(view, slot.of if isinstance(slot, Keys) else slot):
                yield self._lookup(site) if isinstance(slot, Keys) else self._use(slot, site)

    def _use(self, slot: Slot, site: AnySite) -> Signs:
        compared = self._comparison(site)
        if compared is not None:
            return compared
        index = slot.index if isinstance(slot, ReturnValue) else None
        finder = RoleFinder(_as_expression(site), self.vocabulary, () if index is None else (index,))
        role = finder.judge()
        return Signs(strong=role.verdict is RoleVerdict.YES, slots=role.slots)

    def _comparison(self, site: AnySite) -> Signs | None:
        """`where == "cpu"`, `where in ("cpu", "cuda")`: values of the sort, or of another one."""
        compare = site.parent
        if not isinstance(compare, ast.Compare):
            return None
        words: set[str] = set()
        for side in (compare.left, *compare.comparators):
            if side is not site.node:
                items = side.elts if isinstance(side, CONTAINERS) else [side]
                words.update(text_of(item) for item in items if text_of(item))
                if not words and NameEvidence(_as_expression(site), self.vocabulary).holds_surely(side):
                    return Signs(strong=True)
        return self._words(words)

    def _words(self, words: set[str]) -> Signs:
        known = self.vocabulary.siblings
        odd = any(word not in known and not self.vocabulary.own.match(word) for word in words)
        return Signs(weak=not known.isdisjoint(words), odd=odd)

    def _lookup(self, site: AnySite) -> Signs:
        """What a table is asked for: `table[device.type]`, `table.get(where)`, `where in table`."""
        parent = site.parent
        evidence = NameEvidence(_as_expression(site), self.vocabulary)
        asked: list[ast.expr] = []
        if isinstance(parent, ast.Subscript) and parent.value is site.node:
            asked = [parent.slice]
        elif isinstance(parent, ast.Compare) and site.node in parent.comparators:
            asked = [parent.left]
        elif isinstance(parent, ast.Attribute):
            call = around(around(site) or site)
            if call and isinstance(call.node, ast.Call) and called_name(call.node) in ("get", "pop"):
                asked = call.node.args[:1]
        parts = [part for item in asked for part in (item.elts if isinstance(item, ast.Tuple) else [item])]
        if any(map(evidence.holds_surely, parts)):
            return Signs(strong=True)
        return Signs(slots=keys_of(passed_to(site)))

    def _givings(self, slot: Slot) -> Iterator[Signs]:
        view = self.context.beside(slot.path)
        if view is None or isinstance(slot, Keys):
            return
        for source in sources_of(view, slot):
            yield self._giving(source)

    def _all_givings(self, slot: Slot) -> Iterator[Signs]:
        yield from self._givings(slot)
        view = self.context.beside(slot.path)
        if view is not None and isinstance(slot, Variable):
            for source in distant_sources_of(view, slot):
                yield self._giving(source)

    def _giving(self, source: Site[ast.expr]) -> Signs:
        node = source.node
        if isinstance(node, ast.Constant):
            return self._words({text_of(node)} - {""})
        if isinstance(node, (ast.IfExp, ast.BoolOp)):
            parts = [node.body, node.orelse] if isinstance(node, ast.IfExp) else node.values
            signs = [self._giving(Site(source.context, part, source.place)) for part in parts]
            return Signs(
                any(item.strong for item in signs),
                any(item.weak for item in signs),
                any(item.odd for item in signs),
                tuple(slot for item in signs for slot in item.slots),
            )
        evidence = NameEvidence(source, self.vocabulary)
        return Signs(strong=evidence.holds_surely(node), slots=slots_of(source, node))


def role_of(site: Site[Any], vocabulary: Vocabulary) -> StringRole:
    """What the string at a site is for: by its place, else by what becomes of it."""
    role = RoleFinder(site, vocabulary).judge()
    if role.verdict is RoleVerdict.YES or not (role.slots or role.peers):
        return role
    answers = site.context.answers
    key = vocabulary.noun, role
    if key not in answers:
        flow = UseFlow(site.context, vocabulary)
        kept = tuple(slot for slot in role.slots if not _is_parameter(slot))
        answers[key] = flow.is_used(role.slots) or (
            role.verdict is RoleVerdict.UNCLEAR and (flow.is_given(kept) or flow.tells(role.peers))
        )
    return StringRole(RoleVerdict.YES) if answers[key] else role


def _is_parameter(slot: Slot) -> bool:
    """What else a function is called with says little about one argument: it may be a message to write."""
    return (
        isinstance(slot, Variable)
        and isinstance(slot.owner, FUNCTIONS)
        and any(argument.arg == slot.name for argument in all_arguments(slot.owner.args))
    )


def _as_expression(site: AnySite) -> Site[ast.expr]:
    assert isinstance(site.node, ast.expr)
    return Site(site.context, site.node, site.place)
