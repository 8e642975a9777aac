"""A page for each command, from its parser: the same records of which help and man pages are made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tools.website.navigation import read_navigation

from torchferry.cli.commands import COMMANDS, EXIT_CODES, OF_PROGRAMS, STAGES
from torchferry.cli.grammar import Parser
from torchferry.cli.help_page import parts, usages
from torchferry.cli.main import parser_of
from torchferry.text import Language, Text

_TITLE = Text("Commands", "命令")
_INTRO = Text(
    "`ferry COMMAND --help` prints what these pages show. `--lang zh` answers in Chinese.",
    "`ferry 命令 --help` 显示与这些页面相同的内容。`--lang en` 使用英文输出。",
)
_EXIT_CODES = Text("Exit codes", "退出码")
_EXAMPLES = Text("Examples", "示例")
_GUIDE = Text("Guide: [{title}](../{page})", "指南：[{title}](../{page})")


def pages(language: Language) -> dict[str, str]:
    """Path -> text of the list of commands and of every command's page."""
    made = {f"commands/{name}.md": "\n".join(_page(parser_of(name), language)) for name in COMMANDS}
    return {"commands/index.md": "\n".join(_list(language)), **made}


def _list(language: Language) -> Iterator[str]:
    def say(text: Sequence[str]) -> str:
        return Text(*text).in_language(language)

    yield from (f"# {say(_TITLE)}", "", say(_INTRO), "")
    for stage, commands in STAGES.items():
        yield from (f"## {say(stage)}", "")
        colon = ": " if language == "en" else "："
        yield from (
            f"- [`ferry {name}`]({name}.md){colon}{say(each)}" for name, (_, each) in commands.items()
        )
        yield ""
    yield from (f"## {say(_EXIT_CODES)}", "")
    yield from _table([(code, say(means)) for code, means in EXIT_CODES.items()])
    yield from ("", say(OF_PROGRAMS) + ("." if language == "en" else "。"), "")


def _page(parser: Parser, language: Language, level: str = "#") -> Iterator[str]:
    yield from (f"{level} {parser.command}", "", parser.summary.in_language(language), "")
    yield from ("```text", *(f"{parser.command} {form}".rstrip() for form in usages(parser)), "```", "")
    yield from (parser.about.description.in_language(language), "")
    if parser.about.page and level == "#":
        guide = read_navigation().title_of(parser.about.page)
        yield from (_GUIDE.format(page=parser.about.page, title=guide).in_language(language), "")
    if parser.about.examples:
        yield from (f"{level}# {_EXAMPLES.in_language(language)}", "", "```bash")
        for each in parser.about.examples:
            yield from (f"# {each.does.in_language(language)}", each.command)
        yield from ("```", "")
    for title, pairs in parts(parser, language):
        yield from (f"{level}# {title}", "", *_parts(pairs), "")
    for below in parser.below.values():
        yield from _page(below, language, f"{level}#")


def _parts(pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    """A table of what is explained, and under it the notes, which explain nothing alone."""
    yield from _table([pair for pair in pairs if pair[0]])
    for name, note in pairs:
        if not name:
            yield from ("", note)


def _table(pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    if pairs:
        yield from ("| | |", "|---|---|")
    for name, text in pairs:
        yield f"| `{_cell(name)}` | {_cell(text)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
