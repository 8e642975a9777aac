"""The edits that put an equivalent expression in the place of a call, and what becomes of the module's imports."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from torchferry.conversion.program.blocks import block_around, shares_its_line
from torchferry.conversion.renaming import find_rename
from torchferry.conversion.rule import Proposal
from torchferry.conversion.similar.signature import ArgumentPlace, Piece, SimilarChoice, UnboundError, filled
from torchferry.conversion.site import FileContext, Site
from torchferry.finding import Kind, Message
from torchferry.source.edits import Edit
from torchferry.source.names import dotted_name
from torchferry.source.scopes import BindingKind, import_qualifier
from torchferry.text import Text

_CONSTANT = Text("its argument `{name}` is a constant", "参数 `{name}` 是常量")
_PARENTHESES = Text("an argument has its own parentheses", "有参数带有自己的括号")
_COMMENTED = Text("a comment stands between an argument and its comma", "参数与其逗号之间有注释")
_SCRIPTED = Text("the function around it is compiled by torch.jit", "所在函数由 torch.jit 编译")

_BEHIND = re.compile(rb"[ \t]*,[ \t]*")
_COMMENT = re.compile(rb"#[^\r\n]*")
_EXTRA = re.compile(r"(\w+)=((?:[^,()]|\([^()]*\))+)")
_TIGHT = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.List, ast.Tuple, ast.Dict, ast.Set)
_LOOSE_PLACES = (ast.Assign, ast.AnnAssign, ast.Return, ast.Expr)


def write(site: Site[ast.Call], choice: SimilarChoice, use: str) -> list[Edit]:
    """Edits of a call for which an entry was chosen; `use` is its template with names as this place spells them.

    Raises UnboundError where nothing certain can be written.
    """
    if choice.entry.keeps_arguments:
        return _with_own_arguments(site, choice, use)
    defaults = {parameter.name: parameter.default for parameter in choice.parameters}
    pieces = filled(use, choice.arguments.keys(), defaults)
    for piece in pieces:
        if isinstance(piece, ArgumentPlace) and piece.is_object:
            if isinstance(choice.arguments[piece.name], ast.Constant):
                raise UnboundError(_CONSTANT.format(name=piece.name))
    edits = _in_place(site, choice, pieces) or _as_function(site, choice, pieces)
    # torch.jit knows no functions inside functions.
    decorators = getattr(site.scope.node, "decorator_list", ())
    is_scripted = any(site.qualified(node).startswith("torch.jit.") for node in decorators)
    if is_scripted and any(word in edit.text for edit in edits for word in ("lambda ", " for ")):
        raise UnboundError(_SCRIPTED)
    return edits


def _with_own_arguments(site: Site[ast.Call], choice: SimilarChoice, use: str) -> list[Edit]:
    """NAME(..., key=value): another function, arguments that it doesn't take removed, the named ones added."""
    call, module, entry = site.node, site.module, choice.entry
    name, _, rest = use.partition("(")
    edits = [module.replacement(call.func, name)]
    kept: list[ast.AST] = []
    in_order = True
    for argument, node in choice.arguments.items():
        holder = next((keyword for keyword in call.keywords if keyword.value is node), None)
        if argument not in entry.takes:
            continue
        in_order = in_order and entry.takes.index(argument) == len(kept)
        kept.append(holder or node)
        if holder is None and not in_order:
            edits += module.insertions_around(node, f"{argument}=", "")
    edits += _removals(site, kept)
    added = [f"{key}={value}" for key, value in _EXTRA.findall(rest) if key not in choice.arguments]
    if added:
        edits.append(module.insertion_after(kept[-1], ", " + ", ".join(added)))
    if len(edits) > 1 and not _is_plainly_written(site):
        raise UnboundError(_PARENTHESES)
    return edits


def _removals(site: Site[ast.Call], kept: list[ast.AST]) -> list[Edit]:
    """Take out the arguments that are not kept, each with the comma before or behind it; comments stay."""
    module, call = site.module, site.node
    everything = [*call.args, *call.keywords]
    edits: list[Edit] = []
    cuts_behind = True  # as at the beginning, where no comma stands before
    for number, node in enumerate(everything):
        if node in kept:
            cuts_behind = False
            continue
        start, end = module.start(node), module.end(node)
        before = module.end(everything[number - 1]) if number else start
        cuts_behind = cuts_behind or b"#" in module.data[before:start]
        if not cuts_behind:
            edits.append(Edit(before, end, ""))
            continue
        comma = _BEHIND.match(module.data, end)
        following = module.start(everything[number + 1]) if number + 1 < len(everything) else module.end(call)
        if comma is None and b"," in _COMMENT.sub(b"", module.data[end:following]):
            raise UnboundError(_COMMENTED)
        edits.append(Edit(start, comma.end() if comma else end, ""))
    return edits


def _is_plainly_written(site: Site[ast.Call]) -> bool:
    """Whether nothing but commas, comments and white space stands between the arguments: no parentheses of their own."""
    module, call = site.module, site.node
    nodes = [*call.args, *call.keywords]
    ends = [module.end(call.func), *(module.end(node) for node in nodes)]
    starts = [*(module.start(node) for node in nodes), module.end(call)]
    gaps = [_COMMENT.sub(b"", module.data[end:start]) for end, start in zip(ends, starts, strict=True)]
    between = b"".join(gaps).translate(None, b" \t\r\n\f\\,")
    return between == b"()"


def _in_place(site: Site[ast.Call], choice: SimilarChoice, pieces: list[Piece]) -> list[Edit]:
    """The expression written around the arguments; nothing if that would change what is evaluated, or lose a comment."""
    module, call = site.module, site.node
    fixed = [node for node in choice.arguments.values() if not _is_repeatable(site, node)]
    slots = [piece for piece in pieces if isinstance(piece, ArgumentPlace)]
    order = [choice.arguments[slot.name] for slot in slots if choice.arguments[slot.name] in fixed]
    dropped = [node for node in fixed if node not in order]
    fixed = [node for node in fixed if node not in dropped]
    if order != sorted(fixed, key=module.start) or any(map(_may_act, dropped)):
        return []
    texts = [""]
    for piece in pieces:
        if isinstance(piece, str):
            texts[-1] += piece
            continue
        node = choice.arguments[piece.name]
        is_loose = _needs_parentheses(site, piece, node)
        opening, closing = ("(", ")") if is_loose else ("", "")
        if node in fixed:
            texts[-1] += opening
            texts.append(closing)
        else:
            texts[-1] += opening + module.segment(node) + closing
    # A statement has to begin with something that is written here, so that it is known to be meant.
    begins_statement = not texts[0] and module.start(site.place.statement) == module.start(call)
    if begins_statement or _must_be_wrapped(site, texts):
        texts[0] = "(" + texts[0]
        texts[-1] += ")"
    starts = [module.start(call), *(module.end(node) for node in order)]
    ends = [*(module.start(node) for node in order), module.end(call)]
    if any(_COMMENT.search(module.data[start:end]) for start, end in zip(starts, ends, strict=True)):
        return []
    return [Edit(start, end, text) for start, end, text in zip(starts, ends, texts, strict=True)]


def _as_function(site: Site[ast.Call], choice: SimilarChoice, pieces: list[Piece]) -> list[Edit]:
    """The expression as a function that the call's own arguments are handed to, once each and in their order."""
    body = "".join(piece if isinstance(piece, str) else piece.name for piece in pieces)
    names = [parameter.name for parameter in choice.parameters if parameter.name in choice.arguments]
    return [site.module.replacement(site.node.func, f"(lambda {', '.join(names)}: {body})")]


def _is_repeatable(site: Site[ast.Call], node: ast.expr) -> bool:
    """Whether an expression may be written several times, anywhere: nothing happens in it, no rule edits it."""
    if "\n" in site.module.segment(node) or "\r" in site.module.segment(node):
        return False
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.operand, ast.Constant) and not isinstance(node.operand.value, str)
    if isinstance(node, ast.Constant):
        return not isinstance(node.value, (str, bytes))
    if isinstance(node, ast.Subscript):  # of a list, by a place in it
        index = node.slice
        parts = [index.left, index.right] if isinstance(index, ast.BinOp) else [index]
        return all(_is_repeatable(site, part) for part in (node.value, *parts))
    if not dotted_name(node):
        return False
    qualified = site.qualified(node)
    return not qualified or find_rename(site.context, qualified) is None


def _may_act(node: ast.expr) -> bool:
    """Whether leaving out an expression could leave out something that it does; making an object is nothing."""
    calls = [inner for inner in ast.walk(node) if isinstance(inner, ast.Call)]
    acting = [inner for inner in ast.walk(node) if isinstance(inner, (ast.Await, ast.Yield, ast.NamedExpr))]
    return bool(acting) or any(call.args or call.keywords for call in calls)


def _needs_parentheses(site: Site[ast.Call], slot: ArgumentPlace, node: ast.expr) -> bool:
    if not slot.is_operand:
        return isinstance(node, (ast.NamedExpr, ast.Yield, ast.YieldFrom))
    if isinstance(node, ast.Constant) and not isinstance(node.value, (str, bytes)):
        return slot.is_object
    return not isinstance(node, _TIGHT) or "\n" in site.module.segment(node)


def _must_be_wrapped(site: Site[ast.Call], texts: list[str]) -> bool:
    """Whether the expression binds more loosely than the call did, in a place where that matters."""
    shape = ast.parse("x_".join(texts).strip(), mode="eval").body
    if isinstance(shape, (*_TIGHT, ast.Constant)):
        return False
    return "\n" in site.module.segment(site.node) or not isinstance(site.parent, _LOOSE_PLACES)


# The imports of a module whose calls were replaced: those that nothing uses any more go, missing ones come.

_REMOVED = Text("Import removed: its calls were replaced", "删除不再使用的导入：其调用已被替换")
_LEFT = Message(
    Text("Import of `{name}` still used", "仍在使用的导入 `{name}`"),
    why=Text("Its library is still imported, which runs on CUDA only.", "因此仍导入只支持 CUDA 的库。"),
)
_ADDED = Text("Line added for the replaced calls: `{line}`", "为替换后的调用添加：`{line}`")

ImportNode = ast.Import | ast.ImportFrom


def is_importable_beside(site: Site[ast.Call]) -> bool:
    """Whether a module-level import brings the called function, beside which another one can stand."""
    resolved = site.resolve(site.node.func)
    node = resolved.binding.node if resolved and resolved.binding else None
    return isinstance(node, (ast.Import, ast.ImportFrom)) and node in site.module.tree.body


def import_changes(context: FileContext, said: list[Proposal], names: Collection[str]) -> Iterator[Proposal]:
    """What becomes of the imports; `names` are those of CUDA-only libraries that have an equivalent."""
    replaced = [proposal for proposal in said if proposal.edits and proposal.start in context.needed_imports]
    missing = sorted(set().union(*(context.needed_imports[proposal.start] for proposal in replaced)))
    line = "; ".join(f"import {module}" for module in missing)
    written = [edit for proposal in said for edit in proposal.edits]
    for node in _library_imports(context, names):
        unused = [alias for alias in node.names if _is_unused(context, alias, written)]
        is_first = bool(line) and node in context.module.tree.body
        change = _without(context, node, unused, line if is_first else "") if unused else None
        if change is not None:
            yield change
            line = "" if is_first else line
        yield from _left(context, node, names, [] if change is None else unused)
    if not line:
        return
    # Beside the import that brought the first replaced function.
    first = min(proposal.start for proposal in replaced if context.needed_imports[proposal.start])
    imports = [node for node in context.module.tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    roots = {"torch", "torchvision"}
    before = [node for node in imports if context.module.start(node) < first and _root(node) in roots]
    if before:  # on the line of the import, or below it where no comment follows there
        anchor = before[-1]
        rest = context.module.data[context.module.end(anchor) :].splitlines()[:1]
        joint = "; " if rest and rest[0].strip() else context.module.newline
        edit = context.module.insertion_after(anchor, joint + line)
        yield context.propose(Kind.CHANGE, anchor, _ADDED.format(line=line), edit)


def _left(
    context: FileContext, node: ImportNode, names: Collection[str], gone: list[ast.alias]
) -> Iterator[Proposal]:
    """Say of each name that is still imported, and whose equivalent is known, that it is."""
    for alias in node.names:
        if alias in gone:
            continue
        if isinstance(node, ast.ImportFrom):
            is_known = f"{import_qualifier(node)}.{alias.name}" in names
        else:
            is_known = has_only_known_uses(context, alias.name, names)
        if is_known:
            yield context.propose(Kind.TODO, alias, _LEFT.format(name=alias.name))


def has_only_known_uses(context: FileContext, module: str, names: Collection[str]) -> bool:
    """Whether `import module` is there for names of these alone."""
    tree = context.module.tree
    imports = [alias for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    roots = {
        alias.asname or module.partition(".")[0]: module if alias.asname else module.partition(".")[0]
        for alias in imports
        if alias.name == module
    }
    chains = {id(node): node for node in ast.walk(tree) if isinstance(node, (ast.Attribute, ast.Name))}
    for node in list(chains.values()):
        if isinstance(node, ast.Attribute):
            chains.pop(id(node.value), None)
    dotted = [dotted_name(node) for node in chains.values()]
    used = [
        f"{roots[root]}.{rest}" for root, _, rest in (name.partition(".") for name in dotted) if root in roots
    ]
    return bool(used) and all(name in names for name in used)


def _library_imports(context: FileContext, names: Collection[str]) -> list[ImportNode]:
    libraries = {name.partition(".")[0] for name in names}
    found = b"|".join(re.escape(library.encode()) for library in sorted(libraries))
    if not re.search(rb"\b(?:import|from)[ \t]+(?:" + found + rb")\b", context.module.data):
        return []
    nodes = list(ast.walk(context.module.tree))
    tried = {id(node) for block in nodes if isinstance(block, ast.Try) for node in block.body}
    return [
        node
        for node in nodes
        if isinstance(node, (ast.Import, ast.ImportFrom))
        and id(node) not in tried  # one that may fail can stay
        and not getattr(node, "level", 0)
        and _root(node) in libraries
    ]


def _is_unused(context: FileContext, alias: ast.alias, written: list[Edit]) -> bool:
    """Whether the name stands in replaced text, which does not bring it back, and nowhere else."""
    local = alias.asname or alias.name.partition(".")[0]
    brought_back = re.compile(rf"(?<![\w.]){local}\b")
    removing = [edit for edit in written if not brought_back.search(edit.text)]
    if not removing:
        return False
    uses = [
        context.module.start(use)
        for use in ast.walk(context.module.tree)
        if isinstance(use, ast.Name) and use.id == local
    ]
    return bool(uses) and all(any(edit.start <= use < edit.end for edit in removing) for use in uses)


def _without(context: FileContext, node: ImportNode, unused: list[ast.alias], line: str) -> Proposal | None:
    """An import without some of its names, and another one in its place; None where comments would be lost."""
    module = context.module
    start, end = module.start(node), module.end(node)
    kept = [alias for alias in node.names if alias not in unused]
    if kept and "#" in module.segment(node):
        return None
    text = line
    if kept:
        names = ", ".join(f"{alias.name} as {alias.asname}" if alias.asname else alias.name for alias in kept)
        head = f"from {import_qualifier(node)} import" if isinstance(node, ast.ImportFrom) else "import"
        text = f"{head} {names}" + (f"; {line}" if line else "")
    elif not line and not shares_its_line(module, node) and block_around(module.tree, node) != [node]:
        start = module.line_starts[node.lineno - 1]
        last = node.end_lineno or node.lineno
        end = module.line_starts[last] if last < len(module.line_starts) else len(module.data)
    elif not line:
        text = "pass"
    return context.propose(Kind.CHANGE, node, _REMOVED, Edit(start, end, text))


def _root(node: ImportNode) -> str:
    name = import_qualifier(node) if isinstance(node, ast.ImportFrom) else node.names[0].name
    return name.partition(".")[0]


# How a dotted name is written in a place, by the names that the module imports.


class ImportedSpelling:
    """Writes dotted names for one place, and notes the modules that would have to be imported for it."""

    def __init__(self, site: Site[ast.Call]) -> None:
        self._site = site
        self.missing: set[str] = set()

    def spell(self, dotted: str) -> str:
        """The name by way of the module's name in the call, else of the longest part of it that is imported."""
        root = dotted.partition(".")[0]
        if root == self._site.target.prelude_module:
            return dotted
        own = self._as_called()
        if own is not None and dotted.startswith(own[1] + "."):
            return own[0] + dotted[len(own[1]) :]
        known = [
            (qualified, name)
            for name, qualified in self._imported()
            if qualified.partition(".")[0] == root and (dotted + ".").startswith(qualified + ".")
        ]
        if not known:
            self.missing.add(root)
            return dotted
        qualified, name = max(known, key=lambda item: len(item[0]))
        return name + dotted[len(qualified) :]

    def _as_called(self) -> tuple[str, str] | None:
        """The name by which the user calls the module of the function, and what it stands for."""
        resolved = self._site.resolve(self._site.node.func)
        node: ast.expr = self._site.node.func
        if resolved is None or resolved.root is node:
            return None
        qualified = resolved.qualified
        while isinstance(node, ast.Attribute) and node is not resolved.root:
            qualified = qualified[: -len(node.attr) - 1]
            node = node.value
        return (self._site.module.segment(node), qualified) if isinstance(node, ast.Name) else None

    def _imported(self) -> list[tuple[str, str]]:
        """The module's own imports that mean the same in this place."""
        found = []
        for name, bindings in self._site.module.scopes.root.bindings.items():
            if len({binding.qualified for binding in bindings}) != 1:
                continue
            if bindings[0].kind is not BindingKind.IMPORT or bindings[0].weak:
                continue
            probe = ast.Name(id=name, ctx=ast.Load(), lineno=self._site.node.lineno, col_offset=0)
            resolved = self._site.module.resolve(probe, self._site.scope, self._site.place.shadowed)
            if resolved is not None and resolved.binding in bindings:
                found.append((name, bindings[0].qualified))
        return found
