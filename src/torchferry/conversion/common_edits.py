"""Edits that many rules write: an argument of a call, a word of a literal."""

from __future__ import annotations

import ast
import re

from torchferry.conversion.site import Site
from torchferry.conversion.target import Spelling
from torchferry.source.edits import Edit
from torchferry.source.literals import LiteralError, LiteralText, LiteralToken
from torchferry.source.module import PythonModule

_COMMENT = re.compile(rb"#[^\r\n]*")


def set_argument(site: Site[ast.Call], name: str, value: str) -> list[Edit]:
    """Edits that give an argument a value, whether the call names it already or not; none if it has that value."""
    call, module = site.node, site.module
    for keyword in call.keywords:
        if keyword.arg == name:
            start, end = module.start(keyword.value), module.end(keyword.value)
            return [] if module.data[start:end] == value.encode() else [Edit(start, end, value)]
    if any(keyword.arg is None for keyword in call.keywords):
        return []  # **options may name it
    return [add_argument(module, call, f"{name}={value}")]


def add_argument(module: PythonModule, call: ast.Call, text: str) -> Edit:
    """The insertion of a last argument, before the closing parenthesis; minds a comma that is there already."""
    closing = module.end(call) - 1
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    if not arguments:
        return Edit(closing, closing, text)
    last = max(module.end(node) for node in arguments)
    # Comments blanked out, so that a comma in one is not taken for the call's.
    rest = _COMMENT.sub(lambda match: b" " * len(match.group()), module.data[last:closing])
    comma = rest.find(b",")
    if comma < 0:
        return Edit(closing, closing, f", {text}")
    return Edit(last + comma + 1, last + comma + 1, f" {text},")


def respell(module: PythonModule, node: ast.expr, word: str, spelling: Spelling) -> list[Edit]:
    """Edits that write `spelling` where a literal begins with `word`; none if the word is not written in one piece."""
    try:
        tokens = module.tokens(node)
    except LiteralError:
        return []
    for token in tokens:
        for text in token.texts[:1]:
            if text.raw.startswith(word.encode()):
                return _edits(module, node, tokens, token, text, word, spelling)
        if token.texts[0].raw or token.fields:
            break
    return []


def _edits(
    module: PythonModule,
    node: ast.expr,
    tokens: list[LiteralToken],
    token: LiteralToken,
    text: LiteralText,
    word: str,
    spelling: Spelling,
) -> list[Edit]:
    span = text.start, text.start + len(word)
    if spelling.word:
        return [Edit(*span, spelling.word)]
    is_all = text.raw == word.encode() and not token.fields and len(tokens) == 1
    if is_all:
        return [module.replacement(node, spelling.expression)]
    if token.is_f_string:
        return [Edit(*span, f"{{{spelling.expression}}}")]
    if b"{" in text.raw or b"%" in text.raw:  # a template for format() or %
        return [
            Edit(token.start, token.start, f"({spelling.expression} + "),
            Edit(*span, ""),
            Edit(token.end, token.end, ")"),
        ]
    return [Edit(token.start, token.start, "f"), Edit(*span, f"{{{spelling.expression}}}")]


def rewrite_inside(module: PythonModule, node: ast.expr, words: list[tuple[str, str]]) -> list[Edit]:
    """Edits of whole words anywhere in the literal text of a string."""
    edits: list[Edit] = []
    try:
        tokens = module.tokens(node)
    except LiteralError:
        return []
    for token in tokens:
        for text in token.texts:
            for old, new in words:
                position = text.raw.find(old.encode())
                if position >= 0:
                    start = text.start + position
                    edits.append(Edit(start, start + len(old.encode()), new))
    return edits
