"""What one rule does to one call."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.convert.custom.arguments import ArgumentEditor
from torchferry.convert.custom.call_text import call_text
from torchferry.convert.custom.imports import import_edits, needed_imports
from torchferry.convert.custom.model import Slot, UserRule
from torchferry.convert.rule import Proposal
from torchferry.convert.site import Site
from torchferry.finding import Kind
from torchferry.source.edits import Edit, apply_edits
from torchferry.source.names import called_name
from torchferry.text import Text

RENAMED = Text("your rule: {old} is {new}", "自定义规则：{old} 改为 {new}")
_CALL = Text("your rule for {name} ({place})", "自定义规则：{name}（{place}）")
_BY_HAND = Text(
    "your rule for {name} ({place}) can't be applied to a call written like this; change it by hand",
    "自定义规则 {name}（{place}）无法用于这种写法的调用，请手工修改",
)
_OWN = Text(
    "your rule for {name} ({place}) is about imported names; this file defines `{name}` itself, so it stays",
    "自定义规则 {name}（{place}）针对导入的名称；`{name}` 由本文件自己定义，保持不变",
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
    if rule.rename and isinstance(site.node.func, ast.Name) and _is_defined_here(site, rule):
        yield site.remark(Kind.INFO, _OWN.format(name=rule.match.name, place=rule.place))
    name_edits = _name_edits(site, rule)
    argument_edits: list[Edit] = []
    if rule.arguments:
        result = ArgumentEditor(call_text(site.module, site.node), rule, taken, site.qualified).run()
        argument_edits = result.edits
        for problem in result.problems:
            yield site.remark(Kind.TODO, problem)
    wrap_edits = _wrap_edits(site, rule, taken)
    edits = [*name_edits, *argument_edits, *wrap_edits]
    if not edits:
        return
    lines = needed_imports(rule, renames=bool(name_edits), wraps=bool(wrap_edits))
    imports = import_edits(site, lines, exact=bool(rule.needs))
    if not _is_sound(site, edits) or _meet(edits, imports):
        yield site.remark(Kind.TODO, _BY_HAND.format(name=rule.match.name, place=rule.place))
    elif isinstance(imports, Text):
        yield site.remark(Kind.TODO, imports)
    else:
        yield _change(site, rule, edits, imports)


def _change(site: Site[ast.Call], rule: UserRule, edits: list[Edit], imports: list[Edit]) -> Proposal:
    message = rule.message
    if message is None and rule.rename and not rule.changes_calls:
        message = RENAMED.format(old=rule.match.name, new=rule.rename)
    if message is None:
        message = _CALL.format(name=rule.match.name, place=rule.place)
    start, end = site.module.start(site.node), site.module.end(site.node)
    if len(edits) == 1 and edits[0].start < edits[0].end:
        start, end = edits[0].start, edits[0].end  # a single argument or name: that is the place
    return Proposal(Kind.CHANGE, start, end, message, (*edits, *imports))


def _is_defined_here(site: Site[ast.Call], rule: UserRule) -> bool:
    """Whether the name that a rule is about is a function or class of this file."""
    function = site.node.func
    if not isinstance(function, ast.Name) or function.id != rule.match.name:
        return False
    binding = site.module.binding_of(function.id, site.scope, function.lineno)
    return binding is not None and isinstance(
        binding.node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)
    )


def _name_edits(site: Site[ast.Call], rule: UserRule) -> list[Edit]:
    """The new name of a method, or of a function that nothing here imports or defines; imports are seen elsewhere."""
    function, module = site.node.func, site.module
    if not rule.rename:
        return []
    if isinstance(function, ast.Name):
        is_known = site.scope.owner_of(function.id) is not None or function.id in site.place.shadowed
        if is_known or function.id != rule.match.name:
            return []
        return [Edit(module.start(function), module.end(function), rule.rename)]
    if not isinstance(function, ast.Attribute) or site.qualified(function):
        return []
    if not rule.match.of_objects or function.attr == rule.rename:
        return []
    return [Edit(*module.attribute_span(function), rule.rename)]


def _wrap_edits(site: Site[ast.Call], rule: UserRule, taken: set[Slot]) -> list[Edit]:
    template = rule.wrap
    if template is None or _WHOLE_CALL in taken:
        return []
    taken.add(_WHOLE_CALL)
    if template.is_around(site.node, list(site.place.upwards()), site.qualified):
        return []
    opening, closing = ("", "") if template.is_atom else ("(", ")")
    start, end = site.module.start(site.node), site.module.end(site.node)
    return [
        Edit(start, start, opening + template.before),
        Edit(
            end - 1, end, ")" + template.after + closing
        ),  # behind what is added to the call, before what is to it
    ]


def _waits_for_another(site: Site[ast.Call], rule: UserRule) -> bool:
    """Whether a call that begins where this one does is wrapped first: `x.step().step()`. The other turn comes then."""
    start = site.module.start(site.node)
    for node in site.place.upwards():
        if not isinstance(node, ast.expr) or site.module.start(node) != start:
            return False
        if rule.match.is_last and called_name(node) == rule.match.name:
            return rule.wrap is not None and not rule.wrap.is_around(node, _above(site, node), site.qualified)
    return False


def _above(site: Site[ast.Call], node: ast.AST) -> list[ast.AST]:
    ancestors = list(site.place.upwards())
    return ancestors[ancestors.index(node) + 1 :]


def _is_sound(site: Site[ast.Call], edits: list[Edit]) -> bool:
    """Whether the edited call is still an expression; in an f-string, also whether its text is where it seems to be."""
    module, start = site.module, site.module.start(site.node)
    segment = module.data[start : module.end(site.node)]
    if any(isinstance(node, ast.JoinedStr) for node in site.place.upwards()):
        as_it_seems = _parsed(segment)
        if as_it_seems is None or ast.dump(as_it_seems) != ast.dump(site.node):
            return False
        if any(_NOT_IN_F_STRINGS.intersection(edit.text) for edit in edits):
            return False
    try:
        moved = [Edit(edit.start - start, edit.end - start, edit.text) for edit in edits]
        return _parsed(apply_edits(segment, moved)) is not None
    except ValueError:
        return False  # two edits meet


def _meet(edits: list[Edit], imports: list[Edit] | Text) -> bool:
    """Whether an import would be put where the call begins to be wrapped: in a first line without any import."""
    starts = {edit.start for edit in edits if edit.start == edit.end}
    return isinstance(imports, list) and any(edit.start in starts for edit in imports)


def _parsed(text: bytes) -> ast.expr | None:
    try:
        return ast.parse(b"(" + text + b"\n)", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
