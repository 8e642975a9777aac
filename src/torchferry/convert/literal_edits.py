"""Edits of a word at the start of a string literal, as another word or as an expression."""

from __future__ import annotations

import ast

from torchferry.convert.target import Spelling
from torchferry.source.edits import Edit
from torchferry.source.literals import LiteralError, LiteralText, LiteralToken
from torchferry.source.module import PythonModule


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
        return [Edit(module.start(node), module.end(node), spelling.expression)]
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
