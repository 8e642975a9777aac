"""Bytes to text and back."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchferry.source.decode import DecodedText, UndecodableError, decode

_HAN = "设备"


@pytest.mark.parametrize(
    ("data", "encoding", "text"),
    [
        pytest.param(b"x = 1\n", "utf-8", "x = 1\n", id="ascii"),
        pytest.param(b"", "utf-8", "", id="empty"),
        pytest.param(f"# {_HAN}\n".encode(), "utf-8", f"# {_HAN}\n", id="utf-8 undeclared"),
        pytest.param(b"# coding: latin-1\n# \xe9\n", "latin-1", "# coding: latin-1\n# é\n", id="line 1"),
        pytest.param(
            b"#!/usr/bin/python\n# -*- coding: latin-1 -*-\n# \xe9\n",
            "latin-1",
            "#!/usr/bin/python\n# -*- coding: latin-1 -*-\n# é\n",
            id="line 2",
        ),
        pytest.param(
            b"\r\n# vim: set fileencoding=cp1252 :\r\nx='\x80'",
            "cp1252",
            "\r\n# vim: set fileencoding=cp1252 :\r\nx='€'",
            id="line 2 after a blank line, CRLF",
        ),
        pytest.param(
            b"#\r# coding=latin-1\rx='\xe9'", "latin-1", "#\r# coding=latin-1\rx='é'", id="line 2 of lone CRs"
        ),
        pytest.param(
            f"# -*- coding: gbk -*-\n# {_HAN}\n".encode("gbk"),
            "gbk",
            f"# -*- coding: gbk -*-\n# {_HAN}\n",
            id="gbk declared",
        ),
    ],
)
def test_declared_or_utf_8(data: bytes, encoding: str, text: str) -> None:
    decoded = decode(data)
    assert (decoded.text, decoded.encoding, decoded.guessed) == (text, encoding, False)
    assert decoded.encode(decoded.text) == data


@pytest.mark.parametrize(
    "first_lines",
    [
        pytest.param("\n\n# coding: latin-1\n", id="line 3"),
        pytest.param("x = 1\n# coding: latin-1\n", id="line 2 after code"),
        pytest.param('"""coding: latin-1"""\n', id="no comment"),
    ],
)
def test_a_cookie_elsewhere_says_nothing(first_lines: str) -> None:
    assert decode((first_lines + f"# {_HAN}\n").encode()).encoding == "utf-8"


def test_byte_order_mark_is_kept_and_not_part_of_the_text() -> None:
    data = codecs.BOM_UTF8 + f"x = '{_HAN}'\r\n".encode()
    decoded = decode(data)
    assert decoded.text == f"x = '{_HAN}'\r\n"
    assert decoded.encode(decoded.text) == data
    assert decoded.encode("y") == codecs.BOM_UTF8 + b"y"


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_undeclared_gbk_is_guessed_and_said_to_be(newline: str) -> None:
    data = f"# {_HAN}{newline}x = 1{newline}".encode("gbk")
    decoded = decode(data)
    assert decoded.text == f"# {_HAN}{newline}x = 1{newline}"
    assert decoded.guessed
    assert decoded.encode(decoded.text) == data


def test_undeclared_latin_1_gives_its_bytes_back() -> None:
    data = b"# caf\xe9 \xff\n"
    decoded = decode(data)
    assert decoded.guessed
    assert decoded.encode(decoded.text) == data


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param(codecs.BOM_UTF16_LE + "x".encode("utf-16-le"), "UTF-16", id="utf-16 little"),
        pytest.param(codecs.BOM_UTF16_BE + "x".encode("utf-16-be"), "UTF-16", id="utf-16 big"),
        pytest.param(b"# coding: klingon\n# \xe9\n", "klingon", id="unknown cookie"),
        pytest.param(b"# coding: utf-8\n# \xe9\n", "utf-8", id="cookie that is not true"),
        pytest.param(codecs.BOM_UTF8 + b"\xe9", "utf-8", id="mark that is not true"),
        pytest.param(b"# coding: rot13\n# \xe9\n", "rot13", id="a codec that is no encoding"),
        pytest.param(b"# coding: utf-7\n# \xe9\n", "utf-7", id="a codec that refuses"),
    ],
)
def test_refused(data: bytes, said: str) -> None:
    with pytest.raises(UndecodableError, match=said):
        decode(data)


def test_new_text_that_the_encoding_lacks_is_an_error_not_a_question_mark() -> None:
    with pytest.raises(UnicodeEncodeError):
        DecodedText("x", "latin-1").encode(_HAN)


_COOKIES = [b"", b"# coding: gbk\n", b"# coding: latin-1\r\n", b"#!x\n# coding=utf-8\n", codecs.BOM_UTF8]
_COOKIES += [b"# coding: shift_jis\n", b"# coding: utf-16\n", b"# coding: utf_8_sig\n", b"# coding: hex\n"]


@given(st.sampled_from(_COOKIES), st.binary(max_size=60))
def test_any_bytes_come_back_or_are_refused(cookie: bytes, body: bytes) -> None:
    data = cookie + body
    try:
        decoded = decode(data)
    except UndecodableError:
        return
    assert decoded.encode(decoded.text) == data


@given(st.text(max_size=60), st.sampled_from(["utf-8", "gb18030", "utf-8-sig", "latin-1"]))
def test_any_text_comes_back(text: str, encoding: str) -> None:
    try:
        data = text.encode(encoding)
        decoded = decode(data)
    except (UnicodeEncodeError, UndecodableError):
        return
    assert decoded.encode(decoded.text) == data
