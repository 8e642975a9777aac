"""A part of a checkpoint that is no tensor, in a word."""

from __future__ import annotations

from torchferry.checkpoint.model import DTENSOR, LOCAL_PART, SPARSE, Global, Known, Opaque, Tensor
from torchferry.checkpoint.names import parts
from torchferry.text import Text

_LONGEST_NUMBER = 1000  # bits
_ENTRIES = Text("dictionary of {count}", "{count} 个条目")
_SEQUENCES = {
    list: Text("list of {count}", "列表，长度 {count}"),
    tuple: Text("tuple of {count}", "元组，长度 {count}"),
}
_BYTES = Text("{count:,} bytes", "{count:,} 字节")
_SPARSE = Text("a sparse tensor", "稀疏张量")
_LOCAL = Text("DTensor: {part} of {whole}", "DTensor：{whole} 中的 {part}")
_LARGE = Text("a number of {count:,} bits", "{count:,} 位的整数")


def described(part: object) -> Text:
    """What it is."""
    if isinstance(part, dict):
        return _ENTRIES.format(count=len(part))
    if isinstance(part, (list, tuple)):
        return _SEQUENCES[tuple if isinstance(part, tuple) else list].format(count=len(part))
    if isinstance(part, (bytes, bytearray)):
        return _BYTES.format(count=len(part))
    if isinstance(part, Opaque):
        return _object(part)
    if isinstance(part, int) and part.bit_length() > _LONGEST_NUMBER:
        return _LARGE.format(count=part.bit_length())
    return _same(_name(part))


def _object(part: Opaque) -> Text:
    local = parts(part).get(LOCAL_PART)
    if part.class_name == DTENSOR and isinstance(local, Tensor):
        (whole,) = part.arguments
        return _LOCAL.format(part=_x(local.shape), whole=_x(whole))
    return _SPARSE if part.class_name == SPARSE else _same(part.class_name)


def _name(part: object) -> str:
    if isinstance(part, Global):
        return part.dotted
    if isinstance(part, Known):
        return f"{part.name}({', '.join(described(each).en for each in part.arguments)})"
    is_simple = isinstance(part, (str, int, float, type(None), complex))
    return repr(part) if is_simple else type(part).__name__


def _x(shape: object) -> str:
    return "x".join(map(str, shape)) if isinstance(shape, tuple) else "?"


def _same(text: str) -> Text:
    return Text(text, text)
