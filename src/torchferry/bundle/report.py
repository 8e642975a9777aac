"""What is said of an archive to who makes it: its files, what was taken out of them, what to look at."""

from __future__ import annotations

import json

from torchferry import __version__
from torchferry.bundle.model import Bundle
from torchferry.report.anonymous import KIND_NAMES, replaced_table, shown_original
from torchferry.report.formats import Options, Reports
from torchferry.report.json import picked
from torchferry.report.page import Column, Page, Table
from torchferry.report.safe import both_on_one_line, in_both_languages, printable
from torchferry.text import Text
from torchferry.units import size

REPORTS: Reports[Bundle] = Reports({"json": f"{__name__}:to_json"}, page=f"{__name__}:page_of")

_TITLE = Text("Archive for an issue", "用于提交问题的归档")
_WROTE = Text("{archive}: {count} files, {nbytes}", "{archive}：{count} 个文件，{nbytes}")
_WOULD = Text(
    "nothing was written; the archive would have {count} files, {nbytes}",
    "未写入：归档将包含 {count} 个文件，{nbytes}",
)
_LOOK = Text(
    "check it before you send it: private information that matches no pattern may remain; --hide "
    "WORD removes a word",
    "发送前请检查一遍：不符合任何模式的私有内容可能仍在其中；--hide WORD 可去除指定的词",
)
_UNREAD = Text("{file} was left out: {why}", "未包含 {file}：{why}")
_FILES = Text("Files", "文件")
_COLUMNS = (
    Column(Text("file", "文件名"), kind="code", is_whole=True),
    Column(Text("size", "大小"), is_number=True),
    Column(Text("content", "内容")),
)


def page_of(bundle: Bundle, options: Options) -> Page:
    """What is in the archive, then what is not."""
    told = {"count": len(bundle.parts), "nbytes": size(bundle.nbytes), "archive": bundle.archive}
    said = (_WROTE if bundle.archive else _WOULD).format(**told)
    rows = tuple((part.name, size(part.nbytes), part.what) for part in bundle.parts)
    unread = [_UNREAD.format(file=file, why=why) for file, why in bundle.unread.items()]
    notes = map(both_on_one_line, (*bundle.notes, *unread, _LOOK))
    verdicts = ((both_on_one_line(said), "bold"),)
    return Page(
        _TITLE, verdicts, (Table(_FILES, _COLUMNS, rows), replaced_table(bundle.replaced)), tuple(notes)
    )


def to_json(bundle: Bundle, options: Options) -> str:
    """The same for programs; for the eyes of the archive's owner alone, for it has what was taken out."""
    content = {
        "format": "torchferry-bundle",
        "version": 1,
        "tool": f"TorchFerry {__version__}",
        "archive": printable(bundle.archive) or None,
        "bytes": bundle.nbytes,
        "files": [
            {**picked(part, "name", "sha256"), "bytes": part.nbytes, "what": in_both_languages(part.what)}
            for part in bundle.parts
        ],
        "replaced": [
            {
                "kind": each.kind.value,
                "what": in_both_languages(KIND_NAMES[each.kind]),
                "original": printable(shown_original(each)),
                **picked(each, "placeholder", "count"),
            }
            for each in bundle.replaced
        ],
        "notes": [in_both_languages(note) for note in bundle.notes],
        "left_out": {printable(file): why for file, why in bundle.unread.items()},
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
