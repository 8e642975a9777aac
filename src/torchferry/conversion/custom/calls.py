"""What one rule does to one call."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torchferry.conversion.common_edits import add_argument
from torchferry.conversion.custom.model import (
    Resolve,
    Slot,
    Template,
    UserRule,
    module_of,
    needs_parentheses,
    parsed,
    parsed_import,
)
from torchferry.conversion.program.blocks import DEFINITIONS, add_imports
from torchferry.conversion.rule import Proposal
from torchferry.conversion.site import Site
from torchferry.finding import Kind, Message
from torchferry.source.edits import Edit, edited
from torchferry.source.module import PythonModule
from torchferry.source.names import called_name
from torchferry.source.scopes import ModuleScopes
from torchferry.text import Text

# Where the arguments of a call stand in the text, with their parentheses and commas.

_COMMENT = re.compile(rb"#[^\r\n]*")
_SPACE = b" \t\r\n\f\\"


@dataclass(frozen=True)
class WrittenArgument:
    """One argument of a call."""

    node: ast.expr | ast.keyword
    start: int  # with a keyword's name, stars and parentheses
    end: int
    value_start: int
    value_end: int
    comma: int | None  # where the comma behind it stands

    @property
    def name(self) -> str | None:
        return self.node.arg if isinstance(self.node, ast.keyword) else None

    @property
    def value(self) -> ast.expr:
        return self.node.value if isinstance(self.node, ast.keyword) else self.node


@dataclass(frozen=True)
class CallText:
    """A call as it is written."""

    module: PythonModule
    call: ast.Call
    arguments: tuple[WrittenArgument, ...]  # in the order of the text
    opening: int  # right behind the parenthesis
    closing: int

    @property
    def positional(self) -> list[WrittenArgument]:
        """The arguments that have a position: those before the first `*values`."""
        found: list[WrittenArgument] = []
        for argument in self.arguments:
            if isinstance(argument.node, ast.Starred):
                break
            if not isinstance(argument.node, ast.keyword):
                found.append(argument)
        return found

    @property
    def has_stars(self) -> bool:
        """Whether `*values` is among the arguments, so that positions behind it are not known."""
        return any(isinstance(argument.node, ast.Starred) for argument in self.arguments)

    @property
    def has_options(self) -> bool:
        """Whether `**options` is among the arguments, so that any name may be given."""
        return any(isinstance(item.node, ast.keyword) and item.name is None for item in self.arguments)

    def keyword(self, name: str) -> WrittenArgument | None:
        return next((argument for argument in self.arguments if argument.name == name), None)

    def text(self, argument: WrittenArgument) -> str:
        return self.module.data[argument.value_start : argument.value_end].decode("utf-8")


def call_text(module: PythonModule, call: ast.Call) -> CallText:
    """Find the arguments of a call in the text."""
    nodes: list[ast.expr | ast.keyword] = sorted([*call.args, *call.keywords], key=module.start)
    closing = module.end(call) - 1
    spans = [_value_span(module, call, node) for node in nodes]
    first = spans[0][0] if spans else closing
    opening = _find(module, b"(", module.end(call.func), max(first, closing)) + 1
    arguments: list[WrittenArgument] = []
    begin = opening
    for number, (node, (start, end)) in enumerate(zip(nodes, spans, strict=True)):
        behind = spans[number + 1][0] if number + 1 < len(spans) else closing
        comma = _find(module, b",", end, behind)
        until = comma if comma >= 0 else closing
        arguments.append(
            WrittenArgument(
                node,
                start - len(_blank(module, begin, start).lstrip(_SPACE)),
                end + len(_blank(module, end, until).rstrip(_SPACE)),
                start,
                end,
                comma if comma >= 0 else None,
            )
        )
        begin = until + 1
    return CallText(module, call, tuple(arguments), opening, closing)


def _value_span(module: PythonModule, call: ast.Call, node: ast.expr | ast.keyword) -> tuple[int, int]:
    value = node.value if isinstance(node, ast.keyword) else node
    start, end = module.start(value), module.end(value)
    if isinstance(value, ast.GeneratorExp) and end == module.end(call):
        return start + 1, end - 1  # `f(x for x in y)`: the parentheses are the call's
    return start, end


def _blank(module: PythonModule, start: int, end: int) -> bytes:
    """Text between arguments with its comments blanked out."""
    return _COMMENT.sub(lambda match: b" " * len(match.group()), module.data[start:end])


def _find(module: PythonModule, sign: bytes, start: int, end: int) -> int:
    found = _blank(module, start, end).find(sign)
    return start + found if found >= 0 else -1


# What a rule does to the arguments of one call.

_OPTIONS = Message(
    Text("Your rule not applied: `{slot}` may be in `**`", "自定义规则未应用：`{slot}` 可能在 `**` 中"),
    do=Text("Check the call by hand.", "请手动检查该调用。"),
)
_STARS = Message(
    Text(
        "Your rule not applied: argument {slot} may be in `*`",
        "自定义规则未应用：第 {slot} 个参数可能在 `*` 中",
    ),
    do=Text("Check the call by hand.", "请手动检查该调用。"),
)
_KEYWORDS = Message(
    Text("Your rule not applied to a call with named arguments", "自定义规则未应用于按名称传参的调用"),
    why=Text(
        "The call gives {names} by name, and the rule does not say which of them is argument {slot}.",
        "该调用按名称传入 {names}；规则未说明第 {slot} 个参数是哪一个。",
    ),
    do=Text("Give the rule a `signature` (in a .toml file).", "请在规则中写明 `signature`（.toml 文件）。"),
)
_MOVES = Message(
    Text("Your rule not applied: later arguments would move", "自定义规则未应用：其后的参数会前移"),
    why=Text(
        "Without argument {slot} those after it would move.", "删除第 {slot} 个参数后，其后的参数会前移。"
    ),
    do=Text("Give the rule a `signature`.", "请在规则中写明 `signature`。"),
)
_BOTH = Message(
    Text(
        "Your rule not applied: the call has both `{old}` and `{new}`",
        "自定义规则未应用：该调用同时有 `{old}` 和 `{new}`",
    ),
    do=Text("Choose one by hand.", "请手动选择其一。"),
)
_TOO_FEW = Message(
    Text("Your rule not applied: too few arguments", "自定义规则未应用：参数不足"),
    why=Text("A new argument can't stand at position {slot}.", "无法在位置 {slot} 插入新参数。"),
    do=Text("Change the call by hand.", "请手动修改该调用。"),
)


class ArgumentEditor:
    """Works out the edits of one rule for one call; `taken` are the arguments that rules before it have decided."""

    def __init__(self, call: CallText, rule: UserRule, taken: set[Slot], resolve: Resolve) -> None:
        self.call = call
        self.rule = rule
        self.taken = taken
        self.resolve = resolve
        self.edits: list[Edit] = []
        self.problems: list[Message] = []  # what must be done by hand
        # What is put before the byte at a position, from the left to the right: a new argument, a name, what is put
        # around a value.
        self.openings: dict[int, str] = {}

    def run(self) -> None:
        """Work out the edits and the problems."""
        changes = self.rule.arguments
        removed = [slot for slot in changes.remove if self._take(slot)]
        replaced = [(slot, template) for slot, template in changes.replace if self._take(slot)]
        for old, new in changes.rename:
            if self._take(old):
                argument = self.call.keyword(old)
                there = self.call.keyword(new)
                if argument is not None and there is not None:
                    self._problem(_BOTH, old=old, new=new)
                elif argument is not None:
                    self._edit(argument.start, argument.start + len(old.encode()), new)
                elif there is None and self.call.has_options:
                    self._problem(_OPTIONS, slot=old)
        added = [(slot, text) for slot, text in changes.add if self._take(slot)]
        for slot, text in added:
            if isinstance(slot, int):
                self._insert(slot, text)
        self._remove(removed)
        for slot, template in replaced:
            self._replace(slot, template)
        self._add_named([(slot, text) for slot, text in added if isinstance(slot, str)])
        for position, text in self.openings.items():
            # Put text before a byte: as a part of the byte before it, so that a call which begins here may do the same.
            if any(edit.start < position <= edit.end for edit in self.edits):
                self._edit(position, position, text)
            else:
                before = self.call.module.data[position - 1 : position].decode("ascii")
                self._edit(position - 1, position, before + text)

    def _take(self, slot: Slot) -> bool:
        names = self.rule.signature
        if isinstance(slot, str) and slot in names:
            slot = names.index(slot)
        is_free = slot not in self.taken
        self.taken.add(slot)
        return is_free

    def _find(self, slot: Slot) -> WrittenArgument | None:
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
        elif position is not None and position >= len(names):
            given = ", ".join(item.name for item in self.call.arguments if item.name)
            if given:
                self._problem(_KEYWORDS, slot=slot, names=given)
        return None

    def _problem(self, text: Message, **values: object) -> None:
        self.problems.append(text.format(**values))

    def _put_before(self, position: int, text: str) -> None:
        self.openings[position] = self.openings.get(position, "") + text

    def _edit(self, start: int, end: int, text: str) -> None:
        self.edits.append(Edit(start, end, text))

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

    def _remove_run(
        self, first: WrittenArgument, last: WrittenArgument, before: WrittenArgument | None
    ) -> None:
        following = [item for item in self.call.arguments if item.start > last.start]
        if following:
            self._edit(first.start, following[0].start, "")
        elif last.comma is not None:
            self._edit(first.start, last.comma + 1, "")
        else:
            comma = before.comma if before is not None else None
            has_comment = comma is not None and b"#" in self.call.module.data[comma : first.start]
            self._edit(first.start if comma is None or has_comment else comma, last.end, "")

    def _name_those_behind(self, removed: list[WrittenArgument], slots: Sequence[Slot]) -> bool:
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
            count = len(self.problems)
            if self._find(slot) is None and len(self.problems) == count:
                named.append(f"{slot}={text}")
        if named:
            self._append(", ".join(named))

    def _append(self, text: str) -> None:
        """Add a last argument; where a value is closed at the same byte, behind that."""
        edit = add_argument(self.call.module, self.call.call, text)
        same = [item for item in self.edits if item.start == item.end == edit.start]
        for item in same:
            self.edits.remove(item)
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


RENAMED = Text("Your rule: `{old}` changed to `{new}`", "自定义规则：`{old}` 改为 `{new}`")
_CALL = Text("Your rule for `{name}` ({place})", "自定义规则：`{name}`（{place}）")
_BY_HAND = Message(
    Text("Your rule for `{name}` not applied", "自定义规则 `{name}` 未应用"),
    why=Text(
        "The rule ({place}) can't change a call written like this.",
        "该规则（{place}）无法用于这种写法的调用。",
    ),
    do=Text("Change the call by hand.", "请手动修改该调用。"),
)
_OWN = Message(
    Text("Your rule for `{name}` not applied", "自定义规则 `{name}` 未应用"),
    why=Text(
        "The rule ({place}) is about imported names, and this file defines `{name}` itself.",
        "该规则（{place}）针对导入的名称，而本文件自己定义了 `{name}`。",
    ),
)
_WHOLE_CALL = "{call}"  # no argument has this name
_NOT_IN_F_STRINGS = frozenset("\"'\\{}#\n")


def changes_of_call(site: Site[ast.Call], rule: UserRule, taken: set[Slot]) -> Iterator[Proposal]:
    """The change that a rule makes of a call, and what it can't do."""
    if rule.kind is not Kind.CHANGE:
        if (rule.match.is_last or not site.name) and rule.message is not None:
            yield site.remark(rule.kind, rule.message)
        return
    if rule.wrap is not None and _waits_for_another(site, rule):
        return
    function = site.node.func
    if rule.rename and isinstance(function, ast.Name) and function.id == rule.match.name:
        binding = site.module.binding_of(function.id, site.scope, function.lineno)
        if binding is not None and isinstance(binding.node, DEFINITIONS):
            yield site.remark(Kind.INFO, _OWN.format(name=rule.match.name, place=rule.place))
    name_edits = _name_edits(site, rule)
    argument_edits: list[Edit] = []
    if rule.arguments:
        editor = ArgumentEditor(call_text(site.module, site.node), rule, taken, site.qualified)
        editor.run()
        argument_edits = editor.edits
        for problem in editor.problems:
            yield site.remark(Kind.TODO, problem)
    wrap_edits = _wrap_edits(site, rule, taken)
    edits = [*name_edits, *argument_edits, *wrap_edits]
    if not edits:
        return
    lines = needed_imports(rule, renames=bool(name_edits), wraps=bool(wrap_edits))
    imports = _import_edits(site, lines, exact=bool(rule.needs))
    # An import must not be put where the call begins to be wrapped: in a first line without any import.
    starts = {edit.start for edit in edits if edit.start == edit.end}
    meet = isinstance(imports, list) and any(edit.start in starts for edit in imports)
    if meet or not _is_sound(site, edits):
        yield site.remark(Kind.TODO, _BY_HAND.format(name=rule.match.name, place=rule.place))
    elif isinstance(imports, Message):
        yield site.remark(Kind.TODO, imports)
    else:
        message = rule.message or _CALL.format(name=rule.match.name, place=rule.place)
        if rule.message is None and rule.rename and not rule.arguments and rule.wrap is None:
            message = RENAMED.format(old=rule.match.name, new=rule.rename)
        start, end = site.module.start(site.node), site.module.end(site.node)
        if len(edits) == 1 and edits[0].start < edits[0].end:
            start, end = edits[0].start, edits[0].end  # a single argument or name: that is the place
        yield Proposal(Kind.CHANGE, start, end, message, (*edits, *imports))


def _name_edits(site: Site[ast.Call], rule: UserRule) -> list[Edit]:
    """The new name of a method, or of a function that nothing here imports or defines; imports are seen elsewhere."""
    function, module = site.node.func, site.module
    if not rule.rename:
        return []
    if isinstance(function, ast.Name):
        is_known = site.scope.owner_of(function.id) is not None or function.id in site.place.shadowed
        if is_known or function.id != rule.match.name:
            return []
        return [module.replacement(function, rule.rename)]
    if not isinstance(function, ast.Attribute) or site.qualified(function):
        return []
    if not rule.match.of_objects or function.attr == rule.rename:
        return []
    return [module.attribute_replacement(function, rule.rename)]


def _wrap_edits(site: Site[ast.Call], rule: UserRule, taken: set[Slot]) -> list[Edit]:
    template = rule.wrap
    if template is None or _WHOLE_CALL in taken:
        return []
    taken.add(_WHOLE_CALL)
    if template.is_around(site.node, list(site.place.upwards()), site.qualified):
        return []
    opening, closing = ("", "") if template.is_atom else ("(", ")")
    start, end = site.module.start(site.node), site.module.end(site.node)
    # Behind what is added to the call, before what is added to what it stands in.
    last = Edit(end - 1, end, ")" + template.after + closing)
    return [Edit(start, start, opening + template.before), last]


def _waits_for_another(site: Site[ast.Call], rule: UserRule) -> bool:
    """Whether a call that begins where this one does is wrapped first: `x.step().step()`. The other turn comes then."""
    start = site.module.start(site.node)
    ancestors = list(site.place.upwards())
    for number, node in enumerate(ancestors, 1):
        if not isinstance(node, ast.expr) or site.module.start(node) != start:
            return False
        if rule.match.is_last and called_name(node) == rule.match.name:
            return rule.wrap is not None and not rule.wrap.is_around(node, ancestors[number:], site.qualified)
    return False


def _is_sound(site: Site[ast.Call], edits: list[Edit]) -> bool:
    """Whether the edited call is still an expression; in an f-string, also whether its text is where it seems to be."""
    data, start, end = site.module.data, site.module.start(site.node), site.module.end(site.node)
    if any(isinstance(node, ast.JoinedStr) for node in site.place.upwards()):
        as_it_seems = parsed(b"(" + data[start:end] + b"\n)")
        if as_it_seems is None or ast.dump(as_it_seems) != ast.dump(site.node):
            return False
        if any(_NOT_IN_F_STRINGS.intersection(edit.text) for edit in edits):
            return False
    try:
        return parsed(b"(" + edited(data, start, end, edits) + b"\n)") is not None
    except ValueError:
        return False  # two edits meet


# The imports that new code needs.

_TAKEN = Message(
    Text(
        "Your rule not applied: `{name}` means something else here",
        "自定义规则未应用：`{name}` 在此处另有所指",
    ),
    why=Text("The new code needs `{line}`.", "新代码需要 `{line}`。"),
    do=Text("Change the code by hand.", "请手动修改代码。"),
)


def needed_imports(rule: UserRule, renames: bool = False, wraps: bool = False) -> tuple[str, ...]:
    """The imports that a rule's new code needs: those it names, else what its new name or its wrapping says."""
    if rule.needs:
        return rule.needs
    names = rule.wrap.names() if wraps and rule.wrap is not None else []
    if renames and rule.may_import:
        names.append(rule.rename)
    modules = {
        module_of(name) for name in names if "." in name and not hasattr(builtins, name.partition(".")[0])
    }
    return tuple(f"import {module}" for module in sorted(modules))


def _import_edits(site: Site[ast.Call], lines: tuple[str, ...], exact: bool) -> list[Edit] | Message:
    """The insertions of what is not there yet; a message if a name is taken."""
    missing: list[str] = []
    for line in lines:
        statement = parsed_import(line)
        if statement is None:
            continue
        for alias in statement.names:
            name = (alias.asname or alias.name).partition(".")[0]
            if not _is_there(site.module.scopes, statement, alias, exact):
                if site.scope.owner_of(name) is not None and not _is_package(site, statement, alias, name):
                    return _TAKEN.format(line=line, name=name)
                missing.append(line)
                break
    return add_imports(site.module, missing)


def _is_there(
    scopes: ModuleScopes, statement: ast.Import | ast.ImportFrom, alias: ast.alias, exact: bool
) -> bool:
    """Whether the module imports this already; if not `exact`, an import of its package will do."""
    bindings = scopes.root.bindings
    if isinstance(statement, ast.ImportFrom):
        qualified = "." * statement.level + f"{statement.module or ''}.{alias.name}"
        return any(item.qualified == qualified for item in bindings.get(alias.asname or alias.name, ()))
    if alias.asname:
        return any(item.qualified == alias.name for item in bindings.get(alias.asname, ()))
    root = alias.name.partition(".")[0]
    if not any(item.qualified == root for item in bindings.get(root, ())):
        return False
    return (
        not exact
        or alias.name == root
        or any(f"{name}.".startswith(f"{alias.name}.") for name in scopes.modules)
    )


def _is_package(
    site: Site[ast.Call], statement: ast.Import | ast.ImportFrom, alias: ast.alias, name: str
) -> bool:
    """Whether the name stands for the package of a module that is still to be imported."""
    owner = site.scope.owner_of(name)
    return (
        owner is not None
        and isinstance(statement, ast.Import)
        and not alias.asname
        and all(item.qualified == name for item in owner.bindings[name])
    )
