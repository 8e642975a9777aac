"""Help texts of commands, in one typography: as wide as the terminal, at most 100 columns, Chinese counted by its width."""

from __future__ import annotations

import re
import shutil
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from torchferry.cli.commands import COMMANDS, EXIT_CODES, OF_PROGRAMS, STAGES
from torchferry.cli.grammar import OPTIONS, About, Argument, Example, Group, Parser
from torchferry.text import Language, Text

WIDEST = 100
_NARROWEST = 40
_COLUMN = 26  # where explanations begin; what is longer has a line of its own
COLON = Text(":", "：")
_USAGE = Text("usage:", "用法：")
_ARGUMENTS = Text("Arguments", "参数")
_ACTIONS = Text("Actions", "子命令")
_EXAMPLES = Text("Examples", "示例")
_EXIT_CODES = Text("Exit codes", "退出码")
_HELP = Text("Show this help and exit", "显示本帮助并退出")
_PAGE = Text("Documentation: docs/en/{page}", "文档：docs/zh/{page}")
_MORE = Text("`{command} ACTION --help` explains an action", "`{command} ACTION --help` 可查看各子命令的说明")
_CARRIES = Text(
    "Migrate PyTorch training code written for NVIDIA GPUs to other accelerators, and verify the result.",
    "将为 NVIDIA GPU 编写的 PyTorch 训练代码迁移到其他加速卡，并验证结果。",
)
_GENERAL = (
    ("ferry COMMAND --help", Text("Show the options of a command", "显示某个命令的选项")),
    ("ferry help COMMAND", Text("The same", "同上")),
    (
        "ferry help --man DIR",
        Text("Write man pages of all commands into DIR", "将所有命令的 man 手册写入 DIR"),
    ),
    ("ferry --lang zh COMMAND", Text("Answer in Chinese (en: in English)", "使用中文输出（en：英文）")),
    ("ferry --version", Text("Show the version", "显示版本")),
)
# Neither begins a line.
_CLOSING = "，。；：！？、）」』》”’%…,.;:!?)]}"
_OPENING = "（「『《“‘([{"
_PIECE = re.compile(r"`[^`\s]+`|\s+|[^\s⺀-鿿＀-￯　-〿]+|.", re.DOTALL)


def columns() -> int:
    """As wide as the terminal or COLUMNS, within reason."""
    return max(_NARROWEST, min(WIDEST, shutil.get_terminal_size((80, 24)).columns))


def width_of(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def wrapped(text: str, width: int) -> list[str]:
    """The text in lines of at most so many columns; Chinese breaks between any two characters that may be parted."""
    lines, line = [], ""
    for piece in _together(text):
        if line and width_of((line + piece).rstrip()) > width:
            lines.append(line.rstrip())
            line = piece.lstrip()
        else:
            line += piece
    return [*lines, line.rstrip()]


def _together(text: str) -> Iterator[str]:
    """Pieces that stay on one line: a word, or a Chinese character with the punctuation that belongs to it."""
    held = ""
    for piece in _PIECE.findall(text):
        is_closing = piece[0] in _CLOSING
        if held and not is_closing and held[-1] not in _OPENING:
            yield held
            held = ""
        held += piece
    yield held


def rows(pairs: Iterable[tuple[str, str]], width: int, column: int = _COLUMN) -> Iterator[str]:
    """What is explained, and its explanation beside it or below it."""
    for left, right in pairs:
        lines = wrapped(right, width - column)
        if width_of(left) > column - 4:
            yield f"  {left}"
        else:
            yield f"  {left}{' ' * (column - 2 - width_of(left))}{lines.pop(0)}"
        yield from (" " * column + line for line in lines)


def column_of(pairs: Sequence[tuple[str, str]]) -> int:
    return min(_COLUMN, max(width_of(left) for left, _ in pairs) + 4)


def help_page(parser: Parser, language: Language, width: int = 0) -> str:
    """The help of a command."""
    width = width or columns()

    def say(text: Text) -> str:
        return text.in_language(language)

    colon = say(COLON)
    lines = [
        say(parser.summary),
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


def _in_usage(argument: Argument) -> str:
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


def overview(language: Language, width: int = 0) -> str:
    """What `ferry --help` shows."""
    width = width or columns()
    at = 1 if language == "zh" else 0
    colon = COLON.in_language(language)
    lines = [
        f"{_USAGE.in_language(language)} ferry COMMAND [OPTIONS]",
        "",
        *wrapped(_CARRIES.in_language(language), width),
    ]
    wide = max(map(len, COMMANDS)) + 4
    for stage, commands in STAGES.items():
        pairs = [(name, sentences[at]) for name, (_, sentences) in commands.items()]
        lines += ["", stage[at] + colon, *rows(pairs, width, wide)]
    general = [(left, text.in_language(language)) for left, text in _GENERAL]
    lines += ["", ("General", "通用")[at] + colon, *rows(general, width)]
    codes = [(code, sentences[at]) for code, sentences in EXIT_CODES.items()]
    lines += ["", _EXIT_CODES.in_language(language) + colon, *rows(codes, width, 7)]
    return "\n".join([*lines, *(f"  {line}" for line in wrapped(OF_PROGRAMS[at], width - 2))])
