"""TF115: `x.cuda(async=True)` of old code: async is a keyword since Python 3.7, the argument is non_blocking."""

from __future__ import annotations

import re
import tokenize
from collections.abc import Iterator

from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.tokens import tokens_of
from torchferry.finding import Kind
from torchferry.source.decode import SourceText
from torchferry.source.edits import Edit
from torchferry.text import Text

_RENAMED = Text(
    "`async=` renamed to `non_blocking=` (`async` is a keyword since Python 3.7)",
    "`async=` 改为 `non_blocking=`（自 Python 3.7 起 `async` 是关键字）",
)
_NAME = "async"
_NEW = "non_blocking"
_AS_ARGUMENT = re.compile(rb"[(,\s]async\s*=[^=]")
_COPIES = frozenset({"cuda", "to", "copy_", "cpu", "type"})  # of torch, which has renamed it
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_STATEMENTS = frozenset({"def", "for", "with"})


def _repair(source: SourceText) -> Iterator[Proposal]:
    """All of them or none: a function of a library may have an argument of this name that is still called so."""
    tokens = list(tokens_of(source))
    places: list[int] = []  # where the text uses `async` as a name
    given: set[str] = set()  # functions that get it as an argument
    own: set[str] = set()  # functions of the text that have such a parameter
    # The brackets that are open: the function's name, and whether it is defined.
    around: list[tuple[str, bool]] = []
    for index, token in enumerate(tokens):
        if token.text in _OPENING:
            before = tokens[index - 1] if index else None
            is_named = token.text == "(" and before is not None and before.kind == tokenize.NAME
            is_definition = is_named and index > 1 and tokens[index - 2].text == "def"
            around.append((before.text if before and is_named else "", is_definition))
        elif token.text in _CLOSING and around:
            around.pop()
        elif token.text == _NAME:
            following = tokens[index + 1].text if index + 1 < len(tokens) else ""
            if following in _STATEMENTS:
                continue
            if index > 0 and tokens[index - 1].text == ".":
                return
            places.append(token.start)
            name, is_definition = around[-1] if around else ("", False)
            if is_definition:
                own.add(name)
            elif following == "=" and around:
                given.add(name)
    if not given <= _COPIES | own:
        return
    for start in places:
        end = start + len(_NAME)
        yield Proposal(Kind.CHANGE, start, end, _RENAMED, (Edit(start, end, _NEW),))


RULE = Rule(
    id="TF115",
    name="async-argument",
    summary=Text(
        "Renames `async=` in copies to the device, from before Python 3.7, to `non_blocking=`",
        "将 Python 3.7 之前设备拷贝中的 `async=` 改为 `non_blocking=`",
    ),
    triggers=(_NAME,),
    repair=_repair,
    worth=lambda data: _AS_ARGUMENT.search(data) is not None,
)
