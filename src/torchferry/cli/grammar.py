"""The grammar of our command lines: arguments and options, each explained in English and Chinese, read by argparse.

A help text is a `Text`, so nobody can write one in one language alone. `help_page.py` shows it, `completion.py` and
`manual.py` make scripts and man pages of the same records.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from torchferry.errors import FerryError
from torchferry.text import Language, Text, can_show, language_in, user_language


@dataclass(frozen=True)
class Example:
    """A command line that works, and what it does."""

    command: str
    does: Text


@dataclass(frozen=True)
class Section:
    """Rows under a title: a notation, for example."""

    title: Text
    rows: tuple[tuple[str, Text], ...]


@dataclass(frozen=True)
class About:
    """What the help of a command says beside its options."""

    description: Text
    examples: tuple[Example, ...] = ()
    usage: tuple[str, ...] = ()  # without the command's name; (): made from the arguments
    exit_codes: tuple[tuple[str, Text], ...] = ()  # what the common ones mean here
    sections: tuple[Section, ...] = ()
    page: str = ""  # of the docs


@dataclass(frozen=True)
class CommandArgument:
    """An argument or an option, as help, completion and man pages show it."""

    action: argparse.Action
    text: Text
    old: tuple[str, ...] = ()  # spellings that still work

    @property
    def flags(self) -> tuple[str, ...]:
        """Its spellings; none: it is known by its place."""
        return tuple(flag for flag in self.action.option_strings if flag not in self.old)

    @property
    def takes_value(self) -> bool:
        """Whether a word follows the option."""
        return self.action.nargs != 0

    @property
    def choices(self) -> tuple[str, ...]:
        """The values that it takes; none: any."""
        return tuple(map(str, self.action.choices or ()))

    @property
    def value(self) -> str:
        """What stands for its value."""
        metavar = self.action.metavar
        if isinstance(metavar, str):
            return metavar
        return f"{{{','.join(self.choices)}}}" if self.choices else self.action.dest.upper()

    @property
    def is_file(self) -> bool:
        """Whether its value is the path of something."""
        words = set(re.split(r"[^A-Z]+", self.value))
        return bool(
            words & {"FILE", "DIR", "PATH", "RECORD", "LOG", "TRACE", "SCRIPT", "PROGRAM", "SOURCE"}
        ) or (bool(words & {"MINE", "GOLDEN", "CHECKPOINT", "FINDINGS", "OUTPUT"}))

    @property
    def shown(self) -> str:
        """As it stands in the list of options."""
        if not self.flags:
            return self.value + (" ..." if self.action.nargs in ("*", "+") else "")
        flags = ", ".join(self.flags)
        if not self.takes_value:
            return flags
        return f"{flags} [{self.value}]" if self.action.nargs == "?" else f"{flags} {self.value}"


class UsageError(FerryError):
    """A command line that can't be understood; the line says where help is."""

    def __init__(self, said: Text, command: str) -> None:
        super().__init__(_SEE.format(said=said, command=f"{command} --help"))

    def __reduce__(self) -> tuple[type[FerryError], tuple[Text, ...]]:
        return FerryError, self.texts


class WrongValue(argparse.ArgumentTypeError):
    """What is wrong with the value of an option."""

    def __init__(self, said: Text) -> None:
        super().__init__(said.en)
        self.said = said


class Group:
    """Arguments under one title, or those of the parser itself."""

    def __init__(
        self, container: argparse._ActionsContainer, title: Text, arguments: list[CommandArgument]
    ) -> None:
        self._container = container
        self.title = title
        self.arguments = arguments
        self.notes: list[Text] = []

    def add(self, *names: str, text: Text, old: Sequence[str] = (), **more: Any) -> None:
        """Add an argument or an option; `old` spellings still work, with a word of warning, and are not shown."""
        action = self._container.add_argument(*names, *old, **more)
        if old:
            _warn_of(action, {spelling: new_spelling(names) for spelling in old})
        self.arguments.append(CommandArgument(action, text, tuple(old)))

    def accept(self, *names: str, **more: Any) -> None:
        """Take an option that help does not list, as `note` says of several at once."""
        self._container.add_argument(*names, **more)

    def note(self, text: Text) -> None:
        """A sentence under the group's options."""
        self.notes.append(text)

    def either(self, required: bool = False) -> Group:
        """Options of which only one may be given; they are listed here."""
        return Group(
            self._container.add_mutually_exclusive_group(required=required), self.title, self.arguments
        )


def new_spelling(names: Sequence[str]) -> str:
    """The name by which an option is shown in a sentence: the first long one."""
    return next((name for name in names if name.startswith("--")), names[0])


def _warn_of(action: argparse.Action, spellings: dict[str, str]) -> None:
    """Have an action say that one of its spellings is an old one; argparse knows actions by their class."""
    kind = type(action)

    class Warned(kind):  # type: ignore[misc, valid-type]
        def __call__(self, parser: Any, space: Any, values: Any, option_string: str | None = None) -> None:
            if option_string in spellings:
                parser.owner.warn(_OLD.format(old=option_string, new=spellings[option_string]))
            super().__call__(parser, space, values, option_string)

    action.__class__ = Warned


class Parser(Group):
    """The arguments of a command, or of one of its verbs."""

    def __init__(self, command: str, summary: Text, about: About, reader: _WordReader | None = None) -> None:
        self.reader = reader or _WordReader(prog=command)
        self.reader.owner = self
        super().__init__(self.reader, OPTIONS, [])
        self.command = command
        self.summary = summary
        self.about = about
        self.groups: list[Group] = []
        self.verbs: dict[str, Parser] = {}  # that are chosen by the first argument
        self.others: dict[str, Parser] = {}  # that the command tells from a program of that name by itself
        self.language: Language = user_language()
        self._words: list[str] = []
        self._verb_dest = "action"
        self._verb_readers: argparse._SubParsersAction[_WordReader] | None = None

    def group(self, title: Text) -> Group:
        """A group of options under a title of its own."""
        group = Group(self.reader.add_argument_group(), title, [])
        self.groups.append(group)
        return group

    def verb(
        self, name: str, summary: Text, about: About, dest: str = "action", required: bool = True
    ) -> Parser:
        """A command below this one, such as `ferry checkpoint info`."""
        self._verb_dest = dest
        if self._verb_readers is None:
            self._verb_readers = self.reader.add_subparsers(dest=dest, metavar="ACTION", required=required)
        reader = self._verb_readers.add_parser(name)
        self.verbs[name] = Parser(f"{self.command} {name}", summary, about, reader)
        return self.verbs[name]

    def beside(self, parser: Parser) -> None:
        """A command below this one that reads its own words, as where a program could have its name."""
        self.others[parser.command.rpartition(" ")[2]] = parser

    @property
    def below(self) -> dict[str, Parser]:
        """All commands below this one."""
        return {**self.verbs, **self.others}

    def set_defaults(self, **values: Any) -> None:
        """What arguments are that no option sets."""
        self.reader.set_defaults(**values)

    def default_of(self, name: str) -> Any:
        """What an argument is where it is not given."""
        return self.reader.get_default(name)

    @property
    def all_arguments(self) -> Iterator[CommandArgument]:
        """Its own arguments and those of its groups."""
        for group in (self, *self.groups):
            yield from group.arguments

    @property
    def spellings(self) -> set[str]:
        """Every option that it takes, also those that help does not list."""
        return set(self.reader._option_string_actions)

    def warn(self, said: Text) -> None:
        """A line on stderr about how the command was called."""
        print(f"ferry: {said.in_language(self.language)}", file=sys.stderr)

    def parse(self, words: Sequence[str], language: Language | None = None) -> argparse.Namespace:
        """What the words say; SystemExit(0) after --help, UsageError where they can't be understood."""
        wanted = language or language_in(words) or user_language()
        self.speak(wanted if can_show(wanted, sys.stdout, sys.stderr) else "en")
        self._words = list(words)
        space, left = self._read(self._with_values(words))
        if left:
            raise self._unknown(left, getattr(space, self._verb_dest, ""))
        return space

    def _read(self, words: list[str]) -> tuple[argparse.Namespace, list[str]]:
        """Files may stand before and after options: `ferry bundle npu.h5 --call 12 logs/`."""
        if any(each.action.nargs in ("*", "+") for each in self.all_arguments if not each.flags):
            return self.reader.parse_known_intermixed_args(_without_separator(words))
        return self.reader.parse_known_args(words)

    def speak(self, language: Language) -> None:
        """Choose the language of help, warnings and errors."""
        self.language = language
        for each in self.verbs.values():
            each.speak(language)

    def wrong(self, said: Text) -> UsageError:
        """An error about this command line."""
        return UsageError(said, self.command)

    def missing(self, names: Sequence[str]) -> UsageError:
        """An error about arguments that are not there; a misspelled option explains it better."""
        runs_program = any(each.action.nargs == argparse.REMAINDER for each in self.all_arguments)
        given = [word for word in self._words if word.startswith("--") and word != "--"]
        unknown = [word for word in given if word.partition("=")[0] not in self.spellings]
        if unknown and not runs_program and not self.verbs:
            return self._unknown(unknown, "")
        return self.wrong(_MISSING.format(names=", ".join(map(self._with_value, names))))

    def _with_value(self, name: str) -> str:
        """`-o/--output`, as argparse names an option, with what follows it."""
        flag = name.rpartition("/")[2]
        found = [each for each in self.all_arguments if flag in each.action.option_strings]
        return f"{flag} {found[0].value}" if found and found[0].takes_value else name

    def _unknown(self, left: Sequence[str], verb: object) -> UsageError:
        parser = self.verbs.get(str(verb), self)
        word = next((each for each in left if each.startswith("-")), "")
        if not word:
            return parser.wrong(_TOO_MANY.format(words=" ".join(left)))
        near = close_to(word.partition("=")[0], parser._visible_flags)
        if not near:
            return parser.wrong(_NO_OPTION.format(word=word))
        return parser.wrong(_NO_OPTION_BUT.format(word=word, near=near))

    @property
    def _visible_flags(self) -> list[str]:
        return [flag for each in self.all_arguments for flag in each.flags]

    def _with_values(self, words: Sequence[str]) -> list[str]:
        """`--amp PATH` as `--amp=torch PATH`: an option whose value may be left out does not take a file for it."""
        import os

        options = {
            name: each.action
            for each in self.all_arguments
            if each.action.nargs == "?"
            for name in each.action.option_strings
        }
        whole: list[str] = []
        for word, following in zip(words, [*words[1:], ""], strict=False):
            option = options.get(word)
            is_left_out = (
                option is not None and following not in (option.choices or ()) and os.path.exists(following)
            )
            whole.append(f"{word}={option.const}" if option is not None and is_left_out else word)
        return whole


def _without_separator(words: Sequence[str]) -> list[str]:
    """`-- -project` as `./-project`: argparse forgets `--` where files may stand between options."""
    place = words.index("--") if "--" in words else len(words)
    return [*words[:place], *(f"./{each}" if each.startswith("-") else each for each in words[place + 1 :])]


def close_to(word: str, known: Sequence[str]) -> str:
    """What a misspelled word was to be: what it begins, else what is like it; "" if nothing is."""
    import difflib

    begun = [each for each in known if len(word) > 3 and each.startswith(word)]
    return next(iter(begun or difflib.get_close_matches(word, known, 1)), "")


class _ShowHelp(argparse.Action):
    def __call__(self, parser: Any, space: Any, values: Any, option_string: str | None = None) -> None:
        from torchferry.cli.help_page import help_page

        print(help_page(parser.owner, parser.owner.language))
        parser.exit()


class _WordReader(argparse.ArgumentParser):
    """argparse with errors of ours, in the user's language and on one line."""

    owner: Parser

    def __init__(self, prog: str | None = None, **more: Any) -> None:
        super().__init__(prog, **{**more, "add_help": False, "allow_abbrev": False})
        self.add_argument("-h", "--help", action=_ShowHelp, nargs=0, default=argparse.SUPPRESS)

    def error(self, message: str) -> NoReturn:
        found = re.fullmatch(_REQUIRED, message)
        if found:
            raise self.owner.missing(found[1].split(", "))
        raise self.owner.wrong(translated(message))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        known = [str(each) for each in action.choices]
        near = close_to(str(value), known)
        name = CommandArgument(action, Text("", ""))
        said = _NO_CHOICE_BUT if near else _NO_CHOICE
        place = new_spelling(action.option_strings) if action.option_strings else name.value
        raise self.owner.wrong(said.format(place=place, value=value, near=near, known=", ".join(known)))

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError as error:
            cause = error.__context__
            if not isinstance(cause, WrongValue):
                raise
            place = new_spelling(action.option_strings) if action.option_strings else f"{action.metavar}"
            raise self.owner.wrong(_AT.format(place=place, said=cause.said)) from None


# What argparse says itself -> the same in our words. Names of options come as `-o/--output`.
_WORDS = (
    (
        r"one of the arguments (?P<a>.+) is required",
        Text("one of these is missing: {a}", "缺少以下之一：{a}"),
    ),
    (
        r"argument (?P<a>.+): expected (one|at least one|\d+) arguments?",
        Text("{a}: its value is missing", "{a}：缺少取值"),
    ),
    (
        r"argument (?P<a>.+): not allowed with argument (?P<b>.+)",
        Text("{a} and {b} exclude each other; leave one out", "{a} 与 {b} 不能同时使用；请去掉其中一个"),
    ),
    (
        r"argument (?P<a>.+): ignored explicit argument (?P<b>.+)",
        Text("{a} takes no value, but has {b}", "{a} 不接受取值，却给出了 {b}"),
    ),
    (
        r"argument (?P<a>.+): invalid \S+ value: (?P<b>.+)",
        Text("{a}: {b} is not a valid value", "{a}：{b} 不是有效的取值"),
    ),
)
_REQUIRED = r"the following arguments are required: (.+)"
OPTIONS = Text("Options", "选项")
_MISSING = Text("missing: {names}", "缺少参数：{names}")
_SEE = Text("{said}; see `{command}`", "{said}；参见 `{command}`")
_OLD = Text("`{old}` is now `{new}`", "`{old}` 现已改为 `{new}`")
_AT = Text("{place}: {said}", "{place}：{said}")
_TOO_MANY = Text("unexpected argument: {words}", "多余的参数：{words}")
_NO_OPTION = Text("unknown option {word}", "未知选项 {word}")
_NO_OPTION_BUT = Text("unknown option {word} (did you mean {near}?)", "未知选项 {word}（是否想用 {near}？）")
_NO_CHOICE = Text("{place}: '{value}' is not one of {known}", "{place}：'{value}' 不在可选值 {known} 之中")
_NO_CHOICE_BUT = Text(
    "{place}: '{value}' is not one of {known} (did you mean {near}?)",
    "{place}：'{value}' 不在可选值 {known} 之中（是否想用 {near}？）",
)


def translated(message: str) -> Text:
    """A message of argparse in both languages; one that is not known, as it is."""
    for pattern, text in _WORDS:
        found = re.fullmatch(pattern, message, re.DOTALL)
        if found:
            return text.format(**found.groupdict())
    return Text(message, message)
