"""The changes to a program while they are being gathered: lines put in, statements guarded, names imported."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from itertools import takewhile

from torchferry.conversion.program.blocks import first_line, indent_of, is_elif, is_followed, shares_its_line
from torchferry.conversion.program.changes import ModuleChanges, Rank
from torchferry.conversion.program.module import ProgramModule
from torchferry.conversion.rule import Proposal
from torchferry.finding import Wording
from torchferry.source.edits import Edit, EditSet
from torchferry.source.module import PythonModule
from torchferry.source.scopes import BindingKind, import_qualifier
from torchferry.text import Text


class UnclearProgramError(Exception):
    """The program can't be rewritten with certainty: where that shows, and what the user is told."""

    def __init__(self, file: ProgramModule, node: ast.AST, message: Text) -> None:
        super().__init__(message.en)
        self.file = file
        self.node = node
        self.message = message


class FileChanges(ModuleChanges):
    """What is to be changed in one file of the program."""

    def __init__(self, file: ProgramModule) -> None:
        super().__init__(file.module)
        self.file = file
        self._guarded: dict[int, str] = {}  # by statement: the test
        self._imports: dict[str, str] = {}  # line -> name
        self._helpers: list[str] = []
        self._names: set[str] = set()  # of new variables

    def replace(self, node: ast.AST, message: Wording, *edits: Edit) -> None:
        """Replace text at or near a node."""
        self.at(node, message, *edits)

    def before(
        self, statement: ast.stmt, lines: Iterable[str], message: Wording, node: ast.AST | None = None
    ) -> None:
        """Put lines above a statement, indented like it; where others share its line, in the line."""
        self._check_not_elif(statement)
        lines = list(lines)
        first = self._first_on_line(statement)
        are_comments = all(line.startswith("#") for line in lines)
        if first is not None and (first is statement or are_comments):
            position = self.module.line_starts[first_line(first) - 1]
            text = self._lines(indent_of(self.module, first), lines)
        else:
            position = self.module.start(statement)
            text = "".join(f"{line}; " for line in self._in_line(statement, lines))
        self._insert(node or statement, message, Rank.ABOVE, position, text)

    def after(
        self, statement: ast.stmt, lines: Iterable[str], message: Wording, node: ast.AST | None = None
    ) -> None:
        """Put lines below a statement, indented like it; where others follow on its line, in the line."""
        self._check_not_elif(statement)
        lines = list(lines)
        last = statement.end_lineno or statement.lineno
        starts = self.module.line_starts
        first = self._first_on_line(statement)
        if first is None or is_followed(self.module, statement):
            position = self.module.end(statement)
            text = "".join(f"; {line}" for line in self._in_line(statement, lines))
        elif last < len(starts):
            position, text = starts[last], self._lines(indent_of(self.module, first), lines)
        else:
            position, head = len(self.module.data), self.module.newline + indent_of(self.module, first)
            text = "".join(head + line for line in lines)
        self._insert(node or statement, message, Rank.BELOW, position, text)

    def _lines(self, indent: str, lines: Iterable[str]) -> str:
        newline = self.module.newline
        return "".join(f"{indent}{line}{newline}" if line else newline for line in lines)

    def _insert(self, node: ast.AST, message: Wording, rank: Rank, position: int, text: str) -> None:
        self.at(node, message).edits.append((rank, Edit(position, position, text)))

    def _check_not_elif(self, statement: ast.stmt) -> None:
        if is_elif(self.module, statement):
            raise UnclearProgramError(self.file, statement, _SHARED_LINE)

    def _first_on_line(self, statement: ast.stmt) -> ast.stmt | None:
        """The statement of the same block with which the line begins; None behind the head of another one."""
        block = self.file.tree.position(statement).block
        for other in block[block.index(statement) :: -1]:
            if not indent_of(self.module, other).strip():
                return other
            if other.lineno != statement.lineno:
                break
        return None

    def _in_line(self, statement: ast.stmt, lines: list[str]) -> list[str]:
        """Lines as simple statements for the middle of a line, without comments."""
        code = [line for line in lines if not line.lstrip().startswith("#")]
        try:
            parsed = ast.parse("\n".join(code)).body
        except SyntaxError:
            parsed = []
        if not parsed or any(hasattr(item, "body") for item in parsed):
            raise UnclearProgramError(self.file, statement, _SHARED_LINE)
        return code if len(code) == len(parsed) else [ast.unparse(item) for item in parsed]

    def guard(self, statement: ast.stmt, test: str, message: Wording) -> None:
        """Make a statement run only where a test holds."""
        start = self.module.start(statement)
        if shares_its_line(self.module, statement):
            text = f"{test} and " if " or " not in test else f"({test}) and "
            self._insert(statement, message, Rank.START, start, text)
        else:
            indent, unit = indent_of(self.module, statement), self.indent_unit
            block = self.file.tree.position(statement).block
            place = block.index(statement)
            above = block[place - 1] if place else statement
            # The statement on the lines right above may be guarded by the same test.
            continues = self._guarded.get(id(above)) == test and above.end_lineno == statement.lineno - 1
            head = "" if continues else f"if {test}:{self.module.newline}{indent}"
            edits = [Edit(start, start, head + unit)]
            self._guarded[id(statement)] = test
            inside: set[int] = set()  # lines that begin inside a string
            for node in ast.walk(statement):
                if isinstance(node, (ast.Constant, ast.JoinedStr)) and node.end_lineno:
                    inside.update(range(node.lineno + 1, node.end_lineno + 1))
            for line in range(statement.lineno + 1, (statement.end_lineno or statement.lineno) + 1):
                if line not in inside and self.module.line_text(line).strip():
                    position = self.module.line_starts[line - 1]
                    edits.append(Edit(position, position, unit))
            self.at(statement, message).edits += [(Rank.BLOCK, edit) for edit in edits]

    def delete(self, statement: ast.stmt, message: Wording) -> None:
        """Delete a statement with its lines; what can't do without one gets `pass`."""
        module, last = self.module, statement.end_lineno or statement.lineno
        block = self.file.tree.position(statement).block
        has_lines = not shares_its_line(module, statement) and last < len(module.line_starts)
        if len(block) > 1 and has_lines:
            edit = Edit(module.line_starts[statement.lineno - 1], module.line_starts[last], "")
        else:
            edit = Edit(module.start(statement), module.end(statement), "pass")
        self.at(statement, message, edit)

    @property
    def indent_unit(self) -> str:
        """What one more level of indentation is in this file."""
        for node in ast.walk(self.module.tree):
            body = getattr(node, "body", None)
            if isinstance(node, ast.stmt) and isinstance(body, list) and body[0].lineno > node.lineno:
                inner, outer = indent_of(self.module, body[0]), indent_of(self.module, node)
                if inner.startswith(outer) and len(inner) > len(outer) and not inner.strip():
                    return inner[len(outer) :]
        return "    "

    def name_of(self, qualified: str, preferred: str) -> str:
        """How this file calls something of torch or the standard library; imports it if it does not yet."""
        bound = self.module.scopes.root.bindings
        for name, bindings in bound.items():
            if any(item.kind is BindingKind.IMPORT and item.qualified == qualified for item in bindings):
                anchor = import_anchor(self.module)
                if anchor and bindings[0].line <= (anchor.end_lineno or anchor.lineno):
                    return name
                # It comes too late for what is put below the first imports.
                return self._import(qualified, name)
        taken = {name for scope in self.module.scopes.scopes for name in scope.bindings}
        return self._import(qualified, preferred if preferred not in taken else f"torch_{preferred}")

    def _import(self, qualified: str, name: str) -> str:
        package, _, last = qualified.rpartition(".")
        if not package:
            line = f"import {qualified}" if name == qualified else f"import {qualified} as {name}"
        elif qualified in _MODULES:
            line = f"import {qualified} as {name}"
        else:
            line = f"from {package} import {last}" + ("" if name == last else f" as {name}")
        self._imports[line] = name
        return name

    def free_name(self, preferred: str, taken: set[str]) -> str:
        """A name for a new variable, that nothing else has."""
        name, number = preferred, 1
        while name in taken | self._names:
            number += 1
            name = f"{preferred}_{number}"
        self._names.add(name)
        return name

    def add_helper(self, lines: list[str]) -> None:
        """Put a function below the imports."""
        self._helpers.append("".join(f"{line}{self.module.newline}" for line in lines))

    def checked(self, added: Wording) -> list[Proposal]:
        """What was gathered, if no two changes meet; `added` explains the imports."""
        self._add_imports(added)
        found = list(self.proposals())
        self._check(found)
        return found

    def _add_imports(self, message: Wording) -> None:
        if not (self._imports or self._helpers):
            return
        lines = sorted(self._imports, key=lambda line: ("torch" in line, line.startswith("from"), line))
        text = "".join(f"{line}{self.module.newline}" for line in lines)
        text += "".join(f"{self.module.newline * 2}{helper}" for helper in self._helpers)
        anchor = import_anchor(self.module)
        text += self.module.newline * max(0, 2 - _blank_lines(self.module, anchor)) if self._helpers else ""
        # The number of lines above the new ones.
        above = (anchor.end_lineno or anchor.lineno) if anchor else first_line(self.module.tree.body[0]) - 1
        if anchor and above >= len(self.module.line_starts):
            raise UnclearProgramError(self.file, anchor, _SHARED_LINE)
        place = anchor or self.module.tree.body[0]
        self._insert(place, message, Rank.IMPORT, self.module.line_starts[above], text)

    def _check(self, proposals: list[Proposal]) -> None:
        accepted = EditSet()
        for proposal in proposals:
            if any(map(accepted.conflicts, proposal.edits)):
                line = self.module.line_of(proposal.start)
                nodes = (
                    node for node in ast.walk(self.module.tree) if isinstance(node, (ast.stmt, ast.expr))
                )
                node = next(node for node in nodes if self.module.start(node) == proposal.start)
                raise UnclearProgramError(self.file, node, _MEETING.format(line=line))
            accepted.add(proposal.edits)


# Dotted names of modules; other dotted names are imported from theirs.
_MODULES = frozenset({"torch.distributed"})
_SHARED_LINE = Text(
    "several statements stand on one line, and a line must be put between them; write each on its own line",
    "多条语句写在同一行，无法在其间插入新行；请分行书写",
)
_MEETING = Text(
    "two changes of the rewrite for several cards meet at line {line}", "多卡改写的两处修改在第 {line} 行冲突"
)


def import_anchor(module: PythonModule) -> ast.stmt | None:
    """The last import of the block that imports torch, else of the first block; else the docstring."""
    body = module.tree.body
    imports = [node for node in body if isinstance(node, (ast.Import, ast.ImportFrom))]
    of_torch = [
        node
        for node in imports
        for name in (
            [import_qualifier(node)]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
        )
        if name.partition(".")[0] == "torch"
    ]
    if not imports:
        has_docstring = body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
        return body[0] if has_docstring else None
    first = body.index((of_torch or imports)[0])
    block = takewhile(lambda node: isinstance(node, (ast.Import, ast.ImportFrom)), body[first:])
    return [*block][-1]


def _blank_lines(module: PythonModule, anchor: ast.stmt | None) -> int:
    first = ((anchor.end_lineno or anchor.lineno) if anchor else 0) + 1
    texts = map(module.line_text, range(first, len(module.line_starts) + 1))
    return len([*takewhile(lambda text: not text.strip(), texts)])


class ProgramChanges:
    """The changes of all files."""

    def __init__(self) -> None:
        self._files: dict[str, FileChanges] = {}

    def of(self, file: ProgramModule) -> FileChanges:
        """The changes of one file."""
        if file.path not in self._files:
            self._files[file.path] = FileChanges(file)
        return self._files[file.path]

    def proposals(self, added: Wording) -> dict[str, list[Proposal]]:
        """By path: everything that was gathered."""
        return {path: changes.checked(added) for path, changes in self._files.items()}
