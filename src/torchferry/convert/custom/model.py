"""What a user's rule says, whichever format it was written in."""

from __future__ import annotations

from dataclasses import dataclass, field

from torchferry.convert.custom.template import Template
from torchferry.finding import Kind
from torchferry.text import Text

Slot = int | str  # an argument of a call: its position, counted from 0, or its name


@dataclass(frozen=True)
class Pattern:
    """The names that a rule is about."""

    name: str  # a dotted name, or a last word
    is_full: bool = True  # the dotted name itself, and what lies below it
    is_last: bool = False  # the last word of any dotted name
    of_objects: bool = False  # also a method of an object, of which no import tells the name


@dataclass(frozen=True)
class ArgumentChanges:
    """What becomes of the arguments of a call; values are Python expressions."""

    add: tuple[tuple[Slot, str], ...] = ()
    remove: tuple[Slot, ...] = ()
    rename: tuple[tuple[str, str], ...] = ()
    replace: tuple[tuple[Slot, Template], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.add or self.remove or self.rename or self.replace)


@dataclass(frozen=True)
class UserRule:
    """One rule: where it applies, and what happens there."""

    id: str  # as reports and `# ferry: ignore[...]` name it
    place: str  # "my_rules.toml:12"
    match: Pattern
    rename: str = ""  # the new dotted name; of a pattern for last words, the new last word
    may_import: bool = False  # an import is added where the new name is not at hand
    needs: tuple[str, ...] = ()  # import statements that the new code needs
    arguments: ArgumentChanges = field(default_factory=ArgumentChanges)
    signature: tuple[str, ...] = ()  # the names of the positional arguments, in order
    wrap: Template | None = None
    vendors: frozenset[str] = frozenset()  # empty means all
    kind: Kind = Kind.CHANGE  # anything else only says its message
    message: Text | None = None

    @property
    def changes_calls(self) -> bool:
        return bool(self.arguments) or self.wrap is not None


@dataclass(frozen=True)
class CustomRules:
    """The rules of all files, in their order."""

    rules: tuple[UserRule, ...] = ()

    def for_vendor(self, name: str) -> tuple[UserRule, ...]:
        """The rules that apply when code is converted to this vendor."""
        return tuple(rule for rule in self.rules if not rule.vendors or name in rule.vendors)
