"""Makefiles: the commands of their recipes, and the variables that they export."""

from __future__ import annotations

import re
from collections.abc import Sequence

from torchferry.convert.file import Conversion, FileJob
from torchferry.convert.rules.environment import VARIABLE
from torchferry.convert.texts.draft import Draft, Span, convert_with
from torchferry.convert.texts.shell import look_at_commands
from torchferry.convert.texts.shell_lexer import read_script
from torchferry.convert.texts.text_rules import SHELL
from torchferry.convert.texts.words import decide_variable
from torchferry.finding import Kind
from torchferry.source.decode import DecodedText
from torchferry.source.edits import Edit

_RECIPE = re.compile(r"(?m)^\t[@+-]*((?:[^\n]*\\\r?\n)*[^\n]*)")
_EXPORTED = re.compile(r"(?m)^(?:export[ \t]+)([A-Z_0-9]+)[ \t]*(?:[:?+]?=[ \t]*([^\r\n#]*))?")
_COMMENT = re.compile(r"(?m)^[ ]*#[^\n]*")
# $(NAME) and ${NAME} are make's own; $$ is the shell's dollar.
_MAKE_VARIABLE = re.compile(r"(?<!\$)\$(?:\([^()]*\)|\{[^{}]*\}|[@<^?*])")


def convert_makefile(decoded: DecodedText, path: str, job: FileJob) -> Conversion:
    """A Makefile."""
    return convert_with(_look, decoded, path, job)


def _look(draft: Draft) -> Sequence[Span]:
    masked = _MAKE_VARIABLE.sub(lambda match: "\x01" * len(match.group()), draft.chars).replace("$$", "\x01$")
    for match in _RECIPE.finditer(masked):
        look_at_commands(draft, read_script(masked, match.start(1), match.end(1)))
    for match in _EXPORTED.finditer(draft.chars):
        name, value = match.group(1), match.group(2)
        if not VARIABLE.match(name):
            continue
        decision = decide_variable(draft.target, name, None if value and "$" in value else value)
        if decision.kind is Kind.CHANGE and f"$({name})" not in draft.chars:
            edit = Edit(match.start(1), match.end(1), decision.new)
            draft.change(SHELL, match.start(1), match.end(1), decision.message, edit)
        else:
            kind = Kind.TODO if decision.kind is Kind.CHANGE else decision.kind
            draft.say(SHELL, kind, match.start(1), match.end(1), decision.message)
    for match in _COMMENT.finditer(draft.chars):
        draft.prose(*match.span())
    return ()
