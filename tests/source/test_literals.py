"""String tokens inside an expression."""

from __future__ import annotations

import ast
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchferry.source.literals import LiteralError, string_tokens


def texts(source: str) -> list[list[str]]:
    """The literal texts of each token; positions must lead to the same bytes."""
    data = source.encode()
    tokens = string_tokens(data, 0, len(data))
    for token in tokens:
        assert data[token.end - len(token.quote) : token.end].decode() == token.quote
        for text in token.texts:
            assert data[text.start : text.end] == text.raw
    return [[text.raw.decode() for text in token.texts] for token in tokens]


_PREFIXES = [
    "",
    "r",
    "R",
    "u",
    "U",
    "b",
    "B",
    "f",
    "F",
    "br",
    "bR",
    "Br",
    "rb",
    "Rb",
    "RB",
    "fr",
    "Fr",
    "rf",
    "RF",
]


@pytest.mark.parametrize("quote", ["'", '"', "'''", '"""'])
@pytest.mark.parametrize("prefix", _PREFIXES)
def test_prefixes_and_quotes(prefix: str, quote: str) -> None:
    source = f"{prefix}{quote}cuda:0{quote}"
    assert texts(source) == [["cuda:0"]]
    (token,) = string_tokens(source.encode(), 0, len(source))
    assert (token.start, token.end) == (0, len(source))
    assert (token.prefix, token.quote) == (prefix.lower(), quote)
    assert token.is_f_string is ("f" in prefix.lower())


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param("''", [[""]], id="empty"),
        pytest.param('""""""', [[""]], id="empty triple"),
        pytest.param(r"'a\'b'", [[r"a\'b"]], id="escaped quote"),
        pytest.param(r"r'a\'b'", [[r"a\'b"]], id="escaped quote in a raw string"),
        pytest.param(r"'a\\'", [["a\\\\"]], id="escaped backslash before the quote"),
        pytest.param("'''a'b''c'''", [["a'b''c"]], id="quotes inside triple quotes"),
        pytest.param('"""a\n"b"\n"""', [['a\n"b"\n']], id="lines"),
        pytest.param("'a' \"b\"", [["a"], ["b"]], id="two tokens"),
        pytest.param("'a''b'", [["a"], ["b"]], id="two tokens without space"),
        pytest.param("'a'  # 'no'\n  'b'", [["a"], ["b"]], id="a comment between"),
        pytest.param("'a'  # it's\r\n  'b'", [["a"], ["b"]], id="a comment with a quote, CRLF"),
        pytest.param("'a' \\\n 'b'", [["a"], ["b"]], id="a continued line"),
        pytest.param("'a' \\\r\n 'b'", [["a"], ["b"]], id="a continued line, CRLF"),
        pytest.param("'a' \\\r 'b'", [["a"], ["b"]], id="a continued line, lone CR"),
        pytest.param("'a'\f'b'", [["a"], ["b"]], id="a form feed between"),
        pytest.param("'a' f'{x}b' rb'c'", [["a"], ["", "b"], ["c"]], id="mixed prefixes"),
        pytest.param("'{x}'", [["{x}"]], id="braces of a plain string"),
        pytest.param("'设备' 'cuda'", [["设备"], ["cuda"]], id="non-ASCII before"),
    ],
)
def test_tokens(source: str, expected: list[list[str]]) -> None:
    assert texts(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param("f'cuda:{i}'", ["cuda:", ""], id="field at the end"),
        pytest.param("f'{a}{b}'", ["", "", ""], id="fields side by side"),
        pytest.param("f'{{cuda}}'", ["{{cuda}}"], id="doubled braces"),
        pytest.param("f'{{{x}}}'", ["{{", "}}"], id="doubled braces around a field"),
        pytest.param("f'a{x!r}b'", ["a", "b"], id="conversion"),
        pytest.param("f'a{x:>{w}}b'", ["a", "b"], id="nested format spec"),
        pytest.param("f'a{x:%Y-%m}b'", ["a", "b"], id="format spec with letters"),
        pytest.param("""f'a{d["k"]}b'""", ["a", "b"], id="other quotes inside"),
        pytest.param("""f'a{d["}"]}b'""", ["a", "b"], id="a brace in a string inside"),
        pytest.param("f'a{({1: 2}[1])}b'", ["a", "b"], id="a dictionary inside"),
        pytest.param("f'a{x!r:^{w}.{p}}b'", ["a", "b"], id="conversion and nested spec"),
        pytest.param("f'a{(lambda: 1)()}b'", ["a", "b"], id="parentheses inside"),
        pytest.param(r"f'\n{x}\''", [r"\n", r"\'"], id="escapes"),
        pytest.param(r"f'\N{EM DASH}{x}'", [r"\N{EM DASH}", ""], id="a named character is text"),
        pytest.param(r"rf'\{x}'", ["\\", ""], id="raw: a backslash does not hide the field"),
        pytest.param('f"""a{\n  x\n}b"""', ["a", "b"], id="lines in a field"),
        pytest.param("f'a{x=}b'", ["a", "b"], id="self-documenting"),
        pytest.param("f'a{x!=y}b'", ["a", "b"], id="unequal"),
    ],
)
def test_f_strings(source: str, expected: list[str]) -> None:
    ast.parse(source)
    assert texts(source) == [expected]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param("f'a{d['k']}b'", ["a", "b"], id="the same quotes inside"),
        pytest.param("f'a{f'{x}'}b'", ["a", "b"], id="an f-string in the same quotes"),
        pytest.param("f'a{f'{f'{x}'}'}b'", ["a", "b"], id="three deep"),
        pytest.param("f'a{x:{'>'}{w}}b'", ["a", "b"], id="the same quotes in the spec"),
        pytest.param("f'a{x  # it is }\n}b'", ["a", "b"], id="a comment in a field"),
    ],
)
def test_f_strings_of_python_3_12(source: str, expected: list[str]) -> None:
    if sys.version_info >= (3, 12):
        ast.parse(source)
    assert texts(source) == [expected]


@pytest.mark.parametrize("source", ["'a", "f'{x'", "x", "'a' + 'b'", "f'{x}", "'''a''"])
def test_not_string_tokens(source: str) -> None:
    with pytest.raises(LiteralError):
        string_tokens(source.encode(), 0, len(source))


@given(st.text(max_size=20), st.sampled_from(["'", '"', "'''", '"""']), st.booleans())
def test_any_text_that_python_quotes_is_found_whole(text: str, quote: str, raw: bool) -> None:
    source = ("r" if raw else "") + quote + text + quote
    try:
        (statement,) = ast.parse(source).body
        value = ast.literal_eval(source)
    except (SyntaxError, ValueError):
        return
    if not isinstance(value, str) or statement.end_lineno is None:
        return
    data = source.encode()
    if data.count(b"\\\r") or not isinstance(statement, ast.Expr):
        return
    tokens = string_tokens(data, 0, len(data.rstrip()))
    assert tokens[0].start == 0
    assert "".join(ast.literal_eval(data[t.start : t.end].decode()) for t in tokens) == value
