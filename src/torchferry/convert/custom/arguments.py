"""What a rule does to the arguments of one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from torchferry.convert.arguments import add_argument
from torchferry.convert.custom.call_text import Argument, CallText
from torchferry.convert.custom.model import Slot, UserRule
from torchferry.convert.custom.template import Resolve, Template, needs_parentheses
from torchferry.source.edits import Edit
from torchferry.text import Text

_OPTIONS = Text(
    "your rule: `{slot}` may be among what ** passes; look at the call by hand",
    "自定义规则：`{slot}` 可能在 ** 传入的内容中，请手工检查该调用",
)
_STARS = Text(
    "your rule: argument {slot} may be among what * passes; look at the call by hand",
    "自定义规则：第 {slot} 个参数可能在 * 传入的内容中，请手工检查该调用",
)
_KEYWORDS = Text(
    "your rule: the call gives {names} by name; which of them argument {slot} is, the rule does not say (`signature` "
    "in a .toml file does); left as it is",
    "自定义规则：该调用按名称传入 {names}；规则未说明第 {slot} 个参数是哪一个（.toml 规则可用 `signature` 说明）；保持不变",
)
_MOVES = Text(
    "your rule: without argument {slot} those behind it would move; give the rule a `signature`",
    "自定义规则：删除第 {slot} 个参数后，其后的参数会前移；请在规则中写明 `signature`",
)
_BOTH = Text(
    "your rule: the call has both `{old}` and `{new}`; choose by hand",
    "自定义规则：该调用同时有 `{old}` 和 `{new}`，请手工选择",
)
_TOO_FEW = Text(
    "your rule: the call has too few arguments for a new one at position {slot}",
    "自定义规则：该调用的参数不足，无法在位置 {slot} 插入参数",
)


@dataclass
class ArgumentEdits:
    """The edits of one call, and what must be done by hand."""

    edits: list[Edit] = field(default_factory=list)
    problems: list[Text] = field(default_factory=list)


class ArgumentEditor:
    """Works out the edits of one rule for one call; `taken` are the arguments that rules before it have decided."""

    def __init__(self, call: CallText, rule: UserRule, taken: set[Slot], resolve: Resolve) -> None:
        self.call = call
        self.rule = rule
        self.taken = taken
        self.resolve = resolve
        self.result = ArgumentEdits()
        self.openings: dict[int, str] = {}  # what is put before the byte at a position

    def run(self) -> ArgumentEdits:
        """The edits. Openings come from the left to the right: a new argument, a name, what is put around a value."""
        changes = self.rule.arguments
        removed = [slot for slot in changes.remove if self._take(slot)]
        replaced = [(slot, template) for slot, template in changes.replace if self._take(slot)]
        for old, new in changes.rename:
            if self._take(old):
                self._rename(old, new)
        added = [(slot, text) for slot, text in changes.add if self._take(slot)]
        for slot, text in added:
            if isinstance(slot, int):
                self._insert(slot, text)
        self._remove(removed)
        for slot, template in replaced:
            self._replace(slot, template)
        self._add_named([(slot, text) for slot, text in added if isinstance(slot, str)])
        for position, text in self.openings.items():
            self._open(position, text)
        return self.result

    def _take(self, slot: Slot) -> bool:
        names = self.rule.signature
        if isinstance(slot, str) and slot in names:
            slot = names.index(slot)
        is_free = slot not in self.taken
        self.taken.add(slot)
        return is_free

    def _find(self, slot: Slot) -> Argument | None:
        """The argument, given by position or by name; notes where that can't be known."""
        names = self.rule.signature
        if isinstance(slot, str):
            found = self.call.keyword(slot)
            position = names.index(slot) if slot in names else None
        else:
            found = self.call.keyword(names[slot]) if slot < len(names) else None
            position = slot
        if found is not None:
            return found
        positional = self.call.positional
        if position is not None and position < len(positional):
            return positional[position]
        if position is not None and self.call.has_stars:
            self._problem(_STARS, slot=slot)
        elif isinstance(slot, str) and self.call.has_options:
            self._problem(_OPTIONS, slot=slot)
        elif position is not None and position >= len(names) and self._keywords():
            self._problem(_KEYWORDS, slot=slot, names=self._keywords())
        return None

    def _keywords(self) -> str:
        """The arguments that are given by name."""
        return ", ".join(item.name for item in self.call.arguments if item.name)

    def _problem(self, text: Text, **values: object) -> None:
        self.result.problems.append(text.format(**values))

    def _open(self, position: int, text: str) -> None:
        """Put text before a byte: as a part of the byte before it, so that a call which begins here may do the same."""
        if any(edit.start < position <= edit.end for edit in self.result.edits):
            self._edit(position, position, text)
        else:
            before = self.call.module.data[position - 1 : position].decode("ascii")
            self._edit(position - 1, position, before + text)

    def _put_before(self, position: int, text: str) -> None:
        self.openings[position] = self.openings.get(position, "") + text

    def _edit(self, start: int, end: int, text: str) -> None:
        self.result.edits.append(Edit(start, end, text))

    def _replace(self, slot: Slot, template: Template) -> None:
        argument = self._find(slot)
        if argument is None:
            return
        start, end = argument.value_start, argument.value_end
        if not template.has_hole:
            if self.call.text(argument) != template.text:
                self._edit(start, end, template.text)
            return
        if template.is_form_of(argument.value, self.resolve):
            return
        bare = template.bares_hole or not needs_parentheses(argument.value, template.after)
        opening, closing = ("", "") if bare else ("(", ")")
        self._put_before(start, template.before + opening)
        self._edit(end, end, closing + template.after)

    def _rename(self, old: str, new: str) -> None:
        argument = self.call.keyword(old)
        there = self.call.keyword(new)
        if argument is not None and there is not None:
            self._problem(_BOTH, old=old, new=new)
        elif argument is not None:
            self._edit(argument.start, argument.start + len(old.encode()), new)
        elif there is None and self.call.has_options:
            self._problem(_OPTIONS, slot=old)

    def _remove(self, slots: Sequence[Slot]) -> None:
        found = [(slot, self._find(slot)) for slot in slots]
        removed = [argument for _, argument in found if argument is not None]
        if not removed or not self._name_those_behind(removed, slots):
            return
        arguments = self.call.arguments
        gone = [argument in removed for argument in arguments]
        if all(gone):
            self._edit(self.call.opening, self.call.closing, "")
            return
        for number, argument in enumerate(arguments):
            if gone[number] and not (number and gone[number - 1]):
                last = next((place for place in range(number, len(gone)) if not gone[place]), len(gone)) - 1
                self._remove_run(argument, arguments[last], arguments[number - 1] if number else None)

    def _remove_run(self, first: Argument, last: Argument, before: Argument | None) -> None:
        """Remove arguments that stand side by side."""
        following = [item for item in self.call.arguments if item.start > last.start]
        if following:
            self._edit(first.start, following[0].start, "")
        elif last.comma is not None:
            self._edit(first.start, last.comma + 1, "")
        elif (
            before is not None and before.comma is not None and b"#" not in self._between(before.comma, first)
        ):
            self._edit(before.comma, last.end, "")
        else:
            self._edit(first.start, last.end, "")

    def _between(self, start: int, argument: Argument) -> bytes:
        return self.call.module.data[start : argument.start]

    def _name_those_behind(self, removed: list[Argument], slots: Sequence[Slot]) -> bool:
        """Give the arguments that would move their names; False if these are not known."""
        positional = self.call.positional
        first = next((number for number, item in enumerate(positional) if item in removed), len(positional))
        behind = [
            (number, item) for number, item in enumerate(positional) if number > first and item not in removed
        ]
        if not behind and not (self.call.has_stars and first < len(positional)):
            return True
        if self.rule.rename:
            return True  # of a function that is another one now, the positions are another's, too
        names = self.rule.signature
        if len(names) < len(positional) or self.call.has_stars:
            self._problem(_MOVES, slot=", ".join(map(str, slots)))
            return False
        for number, item in behind:
            self._put_before(item.start, f"{names[number]}=")
        return True

    def _add_named(self, added: list[tuple[str, str]]) -> None:
        named: list[str] = []
        for slot, text in added:
            count = len(self.result.problems)
            if self._find(slot) is None and len(self.result.problems) == count:
                named.append(f"{slot}={text}")
        if named:
            self._append(", ".join(named))

    def _append(self, text: str) -> None:
        """Add a last argument; where a value is closed at the same byte, behind that."""
        edit = add_argument(self.call.module, self.call.call, text)
        same = [item for item in self.result.edits if item.start == item.end == edit.start]
        for item in same:
            self.result.edits.remove(item)
        self._edit(edit.start, edit.end, "".join(item.text for item in same) + edit.text)

    def _insert(self, position: int, text: str) -> None:
        positional = self.call.positional
        if position < len(positional):
            argument = positional[position]
            if self.call.text(argument) != text:
                self._put_before(argument.start, f"{text}, ")
        elif self.call.has_stars:
            self._problem(_STARS, slot=position)
        elif position > len(positional):
            self._problem(_TOO_FEW, slot=position)
        elif self.call.arguments and len(self.call.arguments) > len(positional):
            self._put_before(self.call.arguments[len(positional)].start, f"{text}, ")
        else:
            self._append(text)
