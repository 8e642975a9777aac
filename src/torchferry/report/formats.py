"""The formats of reports, and what each kind of report is made by: render, write to a file, print."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TextIO, TypeVar, cast

from torchferry.errors import OutputError, ReportError, system_reason
from torchferry.files.aside import write_whole
from torchferry.finding import RuleDoc
from torchferry.report.streams import (
    ColorChoice,
    Styles,
    columns,
    language_for,
    reader_may_leave,
    styles_of,
    write_bytes,
    write_text,
)
from torchferry.text import Language, Text

if TYPE_CHECKING:
    from torchferry.report.bodies import PageBody
    from torchferry.report.records import Grade

Content = TypeVar("Content", contravariant=True)
RuleDocs = Mapping[str, RuleDoc]  # by the rule's id


@dataclass(frozen=True)
class Format:
    """A format of reports."""

    name: str
    suffixes: tuple[str, ...]  # how names of such files end

    @property
    def suffix(self) -> str:
        """How a new file's name ends."""
        return self.suffixes[0]


FORMATS = {
    entry.name: entry
    for entry in (
        Format("text", (".txt",)),
        Format("json", (".json",)),
        Format("sarif", (".sarif",)),
        Format("github", (".txt",)),
        Format("md", (".md",)),
        Format("msaccucmp", (".msaccucmp.csv", "_msaccucmp.csv")),
        Format("msprobe", (".msprobe.csv",)),
        Format("csv", (".csv",)),
        Format("xlsx", (".xlsx",)),
        Format("html", (".html",)),
    )
}
PAGE_FORMATS = ("text", "md", "csv", "xlsx", "html")  # what `report/page.py` makes of any page


@dataclass(frozen=True)
class Options:
    """What a caller may choose about a rendering; no choice changes what was found."""

    language: Language = "en"
    everything: bool = False  # also what needs no attention
    limit: int | None = None  # rows of a table; None: as many as the report thinks right
    width: int = 0  # columns; 0: those of files
    terminal: bool = False  # lines end at its width
    color: ColorChoice = "auto"
    styles: Styles = Styles.NONE  # that the terminal takes
    folder: Path | None = None  # where the program ran: pages show lines of code from below it
    rule_docs: RuleDocs = field(default_factory=dict)
    logs: Mapping[str, str] = field(default_factory=dict)  # name of a run -> what it said last

    def say(self, text: Text) -> str:
        """The text in the reader's language."""
        return text.in_language(self.language)

    def about_rule(self, rule: str) -> str:
        """What is known about a rule, in the reader's language; may be empty."""
        doc = self.rule_docs.get(rule)
        return self.say(doc.summary) if doc else ""


@dataclass(frozen=True)
class Reports(Generic[Content]):
    """A kind of report: its formats, and the function that renders each, named `module:function`.

    A function takes the content and `Options`, and returns text, bytes, or pieces of either. Its module is imported when
    the format is asked for. `page` names one that returns a `Page`, from which the formats of PAGE_FORMATS are made that
    have no function of their own; `document` is the name of a JSON format that holds the content field by field.
    """

    renderers: Mapping[str, str] = field(default_factory=dict)
    page: str = ""
    body: str = ""
    document: str = ""
    verdict: str = ""  # names a function that returns a `Grade`: the whole report in one line
    other: str = ""  # the format of files with a suffix of their own; none: that is an error
    only_files: tuple[str, ...] = ("xlsx",)  # what makes no sense on a terminal

    @property
    def names(self) -> tuple[str, ...]:
        """The formats, in the order of the shared table."""
        own = {*self.renderers, *(PAGE_FORMATS if self.page else ())}
        own |= {name for name, made_of in (("json", self.document), ("html", self.body)) if made_of}
        return tuple(name for name in FORMATS if name in own)

    def format_of(self, path: Path | None) -> str:
        """The format that a file's name asks for; text where there is no file."""
        if path is None:
            return "text"
        for name in self.names:
            if path.name.lower().endswith(FORMATS[name].suffixes):
                return name
        if self.other:
            return self.other
        known = dict.fromkeys(FORMATS[name].suffix for name in self.names)
        problem = _UNKNOWN_SUFFIX.format(path=path, names=", ".join(known))
        raise ReportError(problem)

    def find(self, name: str) -> Format:
        """The format of this name, or an error that lists the names."""
        if name not in self.names:
            problem = _UNKNOWN_FORMAT.format(name=name, names=", ".join(self.names))
            raise ReportError(problem)
        return FORMATS[name]

    def grade(self, content: Content, options: Options | None = None) -> Grade | None:
        """The whole report in one line; the first verdict of its page, unless it has a function for that."""
        if self.verdict:
            return cast("Grade", _named(self.verdict)(content))
        from torchferry.report.records import Grade, tone_of

        page = _named(self.page)(content, options or Options()) if self.page else None
        if page is None or not page.verdicts:
            return None
        said, style = page.verdicts[0]
        return Grade(said, tone_of(style))

    def page_body(self, content: Content, options: Options | None = None) -> PageBody:
        """What the report's page shows, to stand in a page of several."""
        if self.body:
            return cast("PageBody", _named(self.body)(content, options or Options()))
        from torchferry.report.page import to_body

        chosen = replace(options or Options(), everything=True)  # what needs no attention is folded
        return to_body(_named(self.page)(content, chosen), chosen)

    def pieces(self, content: Content, format_name: str, options: Options | None = None) -> Iterator[bytes]:
        """The bytes of a file, piece by piece: a large report need not be in memory whole."""
        made = self._renderer(self.find(format_name).name)(content, options or Options())
        for piece in [made] if isinstance(made, (str, bytes)) else made:
            yield piece.encode("utf-8", "replace") if isinstance(piece, str) else piece

    def render(self, content: Content, format_name: str, options: Options | None = None) -> bytes:
        """The bytes of a file."""
        return b"".join(self.pieces(content, format_name, options))

    def write(
        self, content: Content, path: Path, options: Options | None = None, format_name: str = ""
    ) -> None:
        """Write the format that the file's name asks for, or the one that is named; whole or not at all."""
        write_file(path, self.pieces(content, format_name or self.format_of(path), options))

    def show(
        self,
        content: Content,
        format_name: str = "text",
        options: Options | None = None,
        stream: TextIO | None = None,
    ) -> None:
        """Print; the text format has colours and the width of the terminal if the stream is one."""
        target = stream or sys.stdout
        with reader_may_leave():
            if format_name == "text":
                given = fitted(options or Options(), target)
                write_text(target, self.render(content, "text", given).decode("utf-8"))
            else:
                write_bytes(target, self.pieces(content, format_name, options))

    def _renderer(self, name: str) -> Callable[[Content, Options], str | bytes | Iterable[str | bytes]]:
        if name in self.renderers:
            return cast("Callable[[Content, Options], str]", _named(self.renderers[name]))
        if name == "json":
            from torchferry.report.json import document

            return lambda content, _: document(self.document, content)
        if name == "html":
            from torchferry.report.bodies import whole_page

            return lambda content, options: whole_page(self.page_body(content, options), options.language)
        page_of, from_page = _named(self.page), _named(f"torchferry.report.page:{_FROM_PAGE[name]}")
        return lambda content, options: from_page(page_of(content, options), options)


def fitted(options: Options, stream: TextIO) -> Options:
    """The options for what is printed to a stream: its width, its styles, a language that it can show."""
    return replace(
        options,
        language=language_for(stream, options.language),
        width=columns(stream),
        terminal=stream.isatty(),
        styles=styles_of(stream, options.color),
    )


_FROM_PAGE = {"text": "to_text", "md": "to_markdown", "csv": "to_csv", "xlsx": "to_xlsx"}
_UNKNOWN_FORMAT = Text(
    "unknown report format '{name}'; choose one of {names}", "未知的报告格式 '{name}'；可选：{names}"
)
_UNKNOWN_SUFFIX = Text(
    "{path}: unknown kind of report; end the name in one of {names}",
    "{path}：未知的报告类型；文件名应以下列之一结尾：{names}",
)
_UNWRITABLE = Text(
    "{path}: can't be written ({reason}); choose another file", "{path}：无法写入（{reason}）；请选择其他文件"
)


def write_file(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Write a file that a user has named; it appears whole or not at all."""
    try:
        write_whole(path, data)
    except OSError as error:
        problem = _UNWRITABLE.format(path=path, reason=system_reason(error))
        raise OutputError(problem) from error


def _named(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(":")
    return cast("Callable[..., Any]", getattr(import_module(module), function))
