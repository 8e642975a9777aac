"""Help texts of commands, in one typography."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchferry.cli.commands import EXIT_CODES
from torchferry.cli.grammar import OPTIONS, About, CommandArgument, Example, Group, Parser
from torchferry.cli.layout import COLUMN, columns, rows, width_of, wrapped
from torchferry.text import Language, Text

COLON = Text(":", "：")
_USAGE = Text("usage:", "用法：")
_ARGUMENTS = Text("Arguments", "参数")
_ACTIONS = Text("Actions", "子命令")
_EXAMPLES = Text("Examples", "示例")
_EXIT_CODES = Text("Exit codes", "退出码")
_HELP = Text("Show this help and exit", "显示本帮助并退出")
_PAGE = Text("Documentation: docs/en/{page}", "文档：docs/zh/{page}")
_MORE = Text("`{command} ACTION --help` explains an action", "`{command} ACTION --help` 可查看各子命令的说明")


def column_of(pairs: Sequence[tuple[str, str]]) -> int:
    return min(COLUMN, max(width_of(left) for left, _ in pairs) + 4)


def help_page(parser: Parser, language: Language, width: int = 0) -> str:
    """The help of a command."""
    width = width or columns()

    def say(text: Text) -> str:
        return text.in_language(language)

    colon = say(COLON)
    lines = [
        *wrapped(say(parser.summary), width),
        "",
        *_usage(parser, say(_USAGE)),
        "",
        *wrapped(say(parser.about.description), width),
    ]
    if parser.about.examples:
        lines += ["", say(_EXAMPLES) + colon, *_examples(parser.about.examples, language, width)]
    for title, pairs in parts(parser, language):
        lines += ["", *wrapped(title + colon, width), *rows(pairs, width, column_of(pairs))]
    if parser.below:
        lines += ["", *wrapped(say(_MORE).format(command=parser.command), width)]
    if parser.about.page:
        lines += ["", say(_PAGE.format(page=parser.about.page))]
    return "\n".join(lines)


def _usage(parser: Parser, head: str) -> Iterator[str]:
    for number, form in enumerate(usages(parser)):
        yield f"{head if not number else ' ' * width_of(head)} {parser.command} {form}".rstrip()


def usages(parser: Parser) -> tuple[str, ...]:
    """The forms in which a command is called, without its name."""
    return parser.about.usage or (_made_usage(parser),)


def _made_usage(parser: Parser) -> str:
    words = [_in_usage(each) for each in parser.all_arguments if not each.flags]
    words += [
        f"{each.flags[-1]} {each.value}"
        for each in parser.all_arguments
        if each.flags and each.action.required
    ]
    return " ".join([*(["ACTION"] if parser.verbs else []), *words, "[OPTIONS]"])


def _in_usage(argument: CommandArgument) -> str:
    count = argument.action.nargs
    word = argument.value + (" ..." if count in ("*", "+") else "")
    return f"[{word}]" if count in ("*", "?") else word


def _examples(examples: Sequence[Example], language: Language, width: int) -> Iterator[str]:
    for each in examples:
        yield f"  {each.command}"
        yield from (f"      {line}" for line in wrapped(each.does.in_language(language), width - 6))


def parts(parser: Parser, language: Language) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Every titled list of the help: arguments, options, notations, exit codes."""

    def say(text: Text) -> str:
        return text.in_language(language)

    placed = [each for each in parser.arguments if not each.flags]
    if parser.below:
        yield say(_ACTIONS), [(name, say(each.summary)) for name, each in parser.below.items()]
    if placed:
        yield say(_ARGUMENTS), [(each.shown, say(each.text)) for each in placed]
    plain = Group(parser.reader, OPTIONS, [each for each in parser.arguments if each.flags])
    for group in (plain, *parser.groups):
        pairs = [(each.shown, say(each.text)) for each in group.arguments]
        pairs += [("", say(note)) for note in group.notes]
        if group is plain:
            pairs.append(("-h, --help", say(_HELP)))
        if pairs:
            yield say(group.title), pairs
    for section in parser.about.sections:
        yield say(section.title), [(left, say(right)) for left, right in section.rows]
    yield say(_EXIT_CODES), [(code, say(means)) for code, means in exit_codes(parser.about)]


def exit_codes(about: About) -> list[tuple[str, Text]]:
    """What a command's exit codes mean; those of all commands, where it says nothing else."""
    common = {code: Text(*EXIT_CODES[code]) for code in ("0", "2")}
    return sorted({**common, **dict(about.exit_codes)}.items())
