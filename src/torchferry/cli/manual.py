"""Man pages of all commands, made from the parsers: `ferry help --man DIR`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from torchferry import __version__
from torchferry.cli.commands import COMMANDS
from torchferry.cli.grammar import About, Parser
from torchferry.cli.help_page import parts, usages
from torchferry.cli.overview import overview
from torchferry.report.formats import write_file
from torchferry.text import Language, Text

_NAME = Text("NAME", "名称")
_SYNOPSIS = Text("SYNOPSIS", "概要")
_DESCRIPTION = Text("DESCRIPTION", "描述")
_EXAMPLES = Text("EXAMPLES", "示例")
_SEE_ALSO = Text("SEE ALSO", "另见")
_WRITTEN = Text("{count} man pages written to {folder}", "已将 {count} 个 man 手册写入 {folder}")
_ABOUT = About(
    Text("Writes a man page for each command.", "为每个命令写出 man 手册。"), page="commands/command-line.md"
)


def write_pages(words: Sequence[str], language: Language) -> int:
    """What `ferry help --man DIR` does."""
    parser = Parser("ferry help", Text("Show help, or write man pages", "显示帮助，或写出 man 手册"), _ABOUT)
    text = Text("Write man pages of all commands into DIR", "将所有命令的 man 手册写入 DIR")
    parser.add("--man", type=Path, metavar="DIR", required=True, text=text)
    parser.add("--lang", choices=("en", "zh"), text=Text("Language of the pages", "手册的语言"))
    folder: Path = parser.parse(words, language).man
    folder.mkdir(parents=True, exist_ok=True)
    pages = man_pages(language)
    for name, page in pages.items():
        write_file(folder / name, page.encode())
    print(_WRITTEN.format(count=len(pages), folder=folder).in_language(language))
    return 0


def man_pages(language: Language) -> dict[str, str]:
    """File name -> man page."""
    from torchferry.cli.main import parser_of

    pages = {"ferry.1": "\n".join(_general(language)) + "\n"}
    for name in COMMANDS:
        parser = parser_of(name)
        for each in (parser, *parser.below.values()):
            pages[f"{each.command.replace(' ', '-')}.1"] = "\n".join(_page(each, language)) + "\n"
    return pages


def _general(language: Language) -> Iterator[str]:
    yield _head("ferry")
    yield from (
        f".SH {_NAME.in_language(language)}",
        "ferry \\- TorchFerry",
        f".SH {_DESCRIPTION.in_language(language)}",
        ".nf",
    )
    yield from map(_line, overview(language, 76).splitlines())
    yield ".fi"


def _page(parser: Parser, language: Language) -> Iterator[str]:
    def say(text: Text) -> str:
        return text.in_language(language)

    yield _head(parser.command.replace(" ", "-"))
    yield f".SH {say(_NAME)}"
    yield f"{escaped(parser.command.replace(' ', '-'))} \\- {escaped(say(parser.summary))}"
    yield f".SH {say(_SYNOPSIS)}"
    for number, form in enumerate(usages(parser)):
        yield from (*([".br"] if number else []), f"{_bold(parser.command)} {escaped(form)}")
    yield from (f".SH {say(_DESCRIPTION)}", _line(say(parser.about.description)))
    if parser.about.examples:
        yield f".SH {say(_EXAMPLES)}"
        for each in parser.about.examples:
            yield from (".TP", _bold(each.command), _line(say(each.does)))
    for title, pairs in parts(parser, language):
        yield f".SH {escaped(title.upper())}"
        for left, right in pairs:
            yield from ((".TP", _bold(left), _line(right)) if left else (".PP", _line(right)))
    yield from (f".SH {say(_SEE_ALSO)}", _line(", ".join(f"{each}(1)" for each in _neighbours(parser))))


def _neighbours(parser: Parser) -> list[str]:
    above = parser.command.split(" ")[:-1]
    names = ["ferry"] + (["-".join(above)] if len(above) > 1 else [])
    return [*names, *(each.command.replace(" ", "-") for each in parser.below.values())]


def _head(name: str) -> str:
    return f'.TH "{escaped(name.upper())}" 1 "" "TorchFerry {__version__}"'


def _bold(text: str) -> str:
    return f"\\fB{escaped(text)}\\fR"


def _line(text: str) -> str:
    """Text that troff does not take for a request."""
    return re.sub(r"^([.'])", r"\\&\1", escaped(text))


def escaped(text: str) -> str:
    """Text as troff shows it: dashes that can be copied, and no escapes of its own."""
    return text.replace("\\", "\\e").replace("-", "\\-")
