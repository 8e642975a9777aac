"""TF114: names in letters that Python reads as others: `torch.ｃｕｄａ` is torch.cuda to it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.tokens import names_of
from torchferry.finding import Kind
from torchferry.source.decode import SourceText, UndecodableError, decode
from torchferry.source.edits import Edit
from torchferry.text import Text

_READ_AS = Text(
    "Name written as `{name}`, as Python reads it (NFKC)", "名称按 Python 的读法（NFKC）写作 `{name}`"
)
# What the other rules look for; a file that only holds other such names is none of our business.
_OF_INTEREST = re.compile(r"(?i)cuda|nccl|torch")


def _is_worth(data: bytes) -> bool:
    """Whether a file holds a word of interest only once its letters are read as Python reads them."""
    if data.isascii():
        return False
    try:
        # The bytes of a file, or our UTF-8 of it below a line that names another encoding.
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        try:
            text = decode(data).text
        except UndecodableError:
            return False
    if unicodedata.is_normalized("NFKC", text):
        return False
    read = unicodedata.normalize("NFKC", text)
    return len(_OF_INTEREST.findall(read)) > len(_OF_INTEREST.findall(text))


def _repair(source: SourceText) -> Iterator[Proposal]:
    names = [(start, name, unicodedata.normalize("NFKC", name)) for start, name in names_of(source)]
    foreign = [item for item in names if item[1] != item[2] and item[2].isascii()]
    lines = {source.line_of(start) for start, _, read in foreign if _OF_INTEREST.search(read)}
    for start, name, read in foreign:
        if source.line_of(start) in lines:
            end = start + len(name.encode())
            edit = Edit(start, end, read)
            yield Proposal(Kind.CHANGE, start, end, _READ_AS.format(name=read), (edit,))


RULE = Rule(
    id="TF114",
    name="compatibility-names",
    summary=Text(
        "Writes names of CUDA in ASCII where they are in full-width or similar letters",
        "将用全角等字符书写的 CUDA 名称改为 ASCII",
    ),
    triggers=("",),
    repair=_repair,
    worth=_is_worth,
)
