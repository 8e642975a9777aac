"""What a rule does to the arguments of one call."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from torchferry.convert.arguments import add_argument
from torchferry.convert.custom.call_text import Argument, CallText
from torchferry.convert.custom.model import Slot, UserRule
from torchferry.convert.custom.template import Resolve, Template, needs_parentheses
from torchferry.convert.custom.words import parsed_argument
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

    def run(self) -> ArgumentEdits:
        changes = self.rule.arguments
        for slot, template in changes.replace:
            if self._take(slot):
                self._replace(slot, template)
        for old, new in changes.rename:
            if self._take(old):
                self._rename(old, new)
        self._remove([slot for slot in changes.remove if self._take(slot)])
        self._add([(slot, text) for slot, text in changes.add if self._take(slot)])
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
        return None

    def _problem(self, text: Text, **values: object) -> None:
        self.result.problems.append(text.format(**values))

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
        bare = template.bares_hole or not needs_parentheses(argument.value)
        opening, closing = ("", "") if bare else ("(", ")")
        self._edit(start, start, template.before + opening)
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
        removed: list[Argument] = []
        for slot in slots:
            argument = self._find(slot)
            if argument is not None and self._may_go(argument, slot):
                removed.append(argument)
        arguments = self.call.arguments
        gone = [argument in removed for argument in arguments]
        if removed and all(gone):
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
        elif before is not None and before.comma is not None and b"#" not in self._between(before.comma, first):
            self._edit(before.comma, last.end, "")
        else:
            self._edit(first.start, last.end, "")

    def _between(self, start: int, argument: Argument) -> bytes:
        return self.call.module.data[start : argument.start]

    def _may_go(self, argument: Argument, slot: Slot) -> bool:
        """Whether the arguments behind one keep their meaning without it; names them where a signature tells how."""
        if isinstance(argument.node, ast.keyword) or self.rule.rename:
            return True  # of a function that is another one now, the positions are another's, too
        positional = self.call.positional
        behind = positional[positional.index(argument) + 1 :]
        names = self.rule.signature[len(positional) - len(behind) : len(positional)]
        if len(names) < len(behind) or (behind and self.call.has_stars):
            self._problem(_MOVES, slot=slot)
            return False
        for item, name in zip(behind, names, strict=True):
            self._edit(item.start, item.start, f"{name}=")
        return True

    def _add(self, added: list[tuple[Slot, str]]) -> None:
        named: list[str] = []
        for slot, text in added:
            if isinstance(slot, int):
                self._insert(slot, text)
                continue
            count = len(self.result.problems)
            if self._find(slot) is None and len(self.result.problems) == count:
                named.append(f"{slot}={text}")
        if named:
            self.result.edits.append(add_argument(self.call.module, self.call.call, ", ".join(named)))

    def _insert(self, position: int, text: str) -> None:
        positional = self.call.positional
        if position < len(positional):
            argument = positional[position]
            if self.call.text(argument) != text:
                self._edit(argument.start, argument.start, f"{text}, ")
        elif self.call.has_stars:
            self._problem(_STARS, slot=position)
        elif position > len(positional):
            self._problem(_TOO_FEW, slot=position)
        elif self.call.arguments and len(self.call.arguments) > len(positional):
            start = self.call.arguments[len(positional)].start
            self._edit(start, start, f"{text}, ")
        else:
            self.result.edits.append(add_argument(self.call.module, self.call.call, text))


def is_keyword(text: str) -> bool:
    """Whether a text gives an argument by its name."""
    return isinstance(parsed_argument(text), ast.keyword)
