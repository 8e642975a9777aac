"""What a rule is, the registry that finds all of them, and the rules of a run."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from torchferry.finding import Kind, Wording
from torchferry.source.edits import Edit
from torchferry.text import Text

if TYPE_CHECKING:
    from torchferry.conversion.site import FileContext, Site
    from torchferry.conversion.target import Target
    from torchferry.source.decode import SourceText


@dataclass(frozen=True)
class Proposal:
    """What a rule says about a place: a change with its edits, or a remark without."""

    kind: Kind
    start: int  # bytes of the place, for its text and its line
    end: int
    message: Wording
    edits: tuple[Edit, ...] = ()
    needs_prelude: bool = False  # the edited code works only after the target's prelude line
    url: str = ""


@dataclass(frozen=True)
class Rename:
    """What becomes of a dotted name: `old` is the part of it that `new` replaces; no `new` leaves it as it is."""

    old: str
    new: str
    kind: Kind
    message: Wording
    remark: tuple[Kind, Wording] | None = None  # said in addition to the change
    needs_prelude: bool = True
    once: bool = False  # a remark about a library: said where it is imported, not at each use
    imports: tuple[str, ...] = ()  # added where the new name can't be reached otherwise
    # Why a place keeps the old name, unless a later rule renames it; None if it does not keep it.
    stays: Callable[[Site[Any]], Wording | None] | None = None


Preparation = Callable[["Target"], "Rule"]
NodeCheck = Callable[["Site[Any]"], Iterator[Proposal]]
NameCheck = Callable[[str, "FileContext"], "Rename | None"]
ModuleCheck = Callable[["FileContext", "list[Proposal]"], Iterator[Proposal]]
Repair = Callable[["SourceText"], Iterator[Proposal]]
Restructuring = Callable[["FileContext"], Iterator[Proposal]]


@dataclass(frozen=True)
class Rule:
    """One rule: an id, what it is for, and one way of looking at code."""

    id: str
    name: str
    summary: Text
    triggers: tuple[str, ...]  # a file without any of these words is not looked at,
    imports: tuple[str, ...] = ()  # unless it imports one of these packages
    tracks: frozenset[str] = frozenset()  # dotted names whose uses `check` wants to see, under any alias
    roots: tuple[str, ...] = ()  # the packages whose names `rename` knows; empty means any
    is_users: bool = False  # from the user's rule file
    option: str = ""  # the opt-in option that turns it on; "" means always on
    nodes: tuple[type[ast.AST], ...] = ()
    check: NodeCheck | None = None  # called for each node of these types
    names: tuple[str, ...] = ()  # and only where its dotted name (a call's: of the function) begins so
    rename: NameCheck | None = None  # called for each dotted name that the code uses
    per_project: bool = False  # one fact about the project: its first place is reported, with their number
    is_local: bool = False  # `rename` answers differently from module to module
    finish: ModuleCheck | None = None  # called once per module, after all others
    follows: tuple[str, ...] = ()  # rules without which `finish` has nothing to do; empty: any will do
    prepare: Preparation | None = None  # makes the rule for one target, where its words depend on it
    # Called before the text is parsed: writes in another way what Python, or its tree, would not show us as it stands.
    repair: Repair | None = None
    # Called once per module, before all others: makes another program for CUDA of it, which the others then convert.
    restructure: Restructuring | None = None
    worth: Callable[[bytes], bool] | None = (
        None  # of a pass or a repair: whether a file with a trigger needs a look
    )

    def is_called_for(self, data: bytes) -> bool:
        """Whether a file holds something for the rule, by its bytes."""
        return any(word.encode() in data for word in self.triggers) and (
            self.worth is None or self.worth(data)
        )


_REGISTRY: dict[str, Rule] = {}


def register(rule: Rule) -> Rule:
    """Make a rule known under its id."""
    if rule.id in _REGISTRY:
        raise ValueError(f"rule id {rule.id} is taken by {_REGISTRY[rule.id].name}")
    _REGISTRY[rule.id] = rule
    return rule


def report_rule(rule_id: str, name: str, summary: Text) -> Rule:
    """Make a rule known under which others report what they find: it looks at nothing itself."""
    return register(Rule(id=rule_id, name=name, summary=summary, triggers=()))


# Modules that make rules with `report_rule`.
_REPORTING = ("torchferry.conversion.texts.native_ops", "torchferry.conversion.texts.text_rules")


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, by id: the `RULE` of each module in `conversion.rules`, and those under which others report."""
    package = importlib.import_module("torchferry.conversion.rules")
    for module in pkgutil.iter_modules(package.__path__):
        register(importlib.import_module(f"{package.__name__}.{module.name}").RULE)
    for module_name in _REPORTING:
        importlib.import_module(module_name)
    return tuple(_REGISTRY[key] for key in sorted(_REGISTRY))


def prepared(rules: Iterable[Rule], target: Target) -> list[Rule]:
    """Rules as they are for one target."""
    return [rule.prepare(target) if rule.prepare is not None else rule for rule in rules]


_NAME = re.compile(rb"\w+")
# All but the letters of names is a space.
_NAMES_ALONE = bytes(byte if _NAME.match(bytes((byte,))) else 32 for byte in range(256))
_FREQUENT = b"cuda"


class WordSearch:
    """Finds which of many words a file holds."""

    def __init__(self, words: Iterable[bytes]) -> None:
        # Each with the longest part of a name in it.
        self._words = [(word, max(_NAME.findall(word), key=len, default=b"")) for word in words]

    def found_in(self, data: bytes) -> list[bytes]:
        # Most words are in no file: looked for among its names, each once, they cost less than in all of it.
        names = b" ".join(set(data.translate(_NAMES_ALONE).split()))
        return [word for word, name in self._words if name in names and word in data]


class RuleSet:
    """A selection of rules."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        # The first answer counts: the user's, then that of a rule which was asked for, then the others'.
        renaming = [rule for rule in self.rules if rule.rename is not None]
        self.renaming = tuple(sorted(renaming, key=lambda rule: (not rule.is_users, not rule.option)))
        self.repairing = tuple(rule for rule in self.rules if rule.repair is not None)
        self.restructuring = tuple(rule for rule in self.rules if rule.restructure is not None)
        self.finishing = tuple(rule for rule in self.rules if rule.finish is not None)
        self.tracked = frozenset[str]().union(*(rule.tracks for rule in self.rules))
        self.imports = frozenset(name.encode() for rule in self.rules for name in rule.imports)

    @cached_property
    def options(self) -> tuple[str, ...]:
        """The opt-in options whose rules are here, those of passes first."""
        chosen = sorted(
            (rule for rule in self.rules if rule.option), key=lambda rule: rule.restructure is None
        )
        return tuple(dict.fromkeys(rule.option for rule in chosen))

    @cached_property
    def users(self) -> RuleSet:
        """The user's own rules."""
        return RuleSet(rule for rule in self.rules if rule.is_users)

    @cached_property
    def built_in(self) -> RuleSet:
        """All but the user's own."""
        return RuleSet(rule for rule in self.rules if not rule.is_users)

    @cached_property
    def words(self) -> tuple[bytes, ...]:
        """The words that make a file worth reading, whatever else it holds."""
        return _needed(rule for rule in self.rules if rule.worth is None)

    @cached_property
    def line_words(self) -> tuple[bytes, ...]:
        """The words that make a line worth reading; passes find their lines themselves."""
        return _needed(rule for rule in self.rules if rule.restructure is None and rule.worth is None)

    @cached_property
    def _worth_reading(self) -> WordSearch:
        return WordSearch(self.words)

    @cached_property
    def _worth_a_line(self) -> WordSearch:
        return WordSearch(self.line_words)

    def line_words_in(self, data: bytes) -> list[bytes]:
        """The words that make a line worth reading and that a file holds."""
        return self._worth_a_line.found_in(data)

    def is_called_for(self, data: bytes) -> bool:
        """Whether a file holds a word that makes it worth reading."""
        if _FREQUENT in self.words and _FREQUENT in data:
            return True  # as of most files that any is in
        return bool(self._worth_reading.found_in(data)) or any(
            rule.worth is not None and rule.is_called_for(data) for rule in self.rules
        )

    @cached_property
    def import_pattern(self) -> re.Pattern[bytes]:
        """Finds the imports that make a file worth reading, where one begins a line; others are seen when read."""
        if not self.imports:
            return re.compile(rb"(?!)")
        packages = b"|".join(re.escape(name) for name in sorted(self.imports))
        return re.compile(rb"\n[ \t]*(?:import|from)[ \t]+(?:" + packages + rb")\b")

    @cached_property
    def by_node(self) -> dict[type[ast.AST], tuple[Rule, ...]]:
        """The rules that ask for a type of node."""
        types = {node_type for rule in self.rules for node_type in rule.nodes}
        return {
            node_type: tuple(rule for rule in self.rules if node_type in rule.nodes) for node_type in types
        }


def _needed(rules: Iterable[Rule]) -> tuple[bytes, ...]:
    """The triggers of rules, short ones first: most files that hold any hold `cuda`. Those with another inside go."""
    needed: list[bytes] = []
    words = {word.encode() for rule in rules for word in rule.triggers}
    for word in sorted(words, key=lambda word: (len(word), word)):
        if not any(other in word for other in needed):
            needed.append(word)
    return tuple(needed)
