"""`ferry completion`: scripts with which bash, zsh and fish complete commands, options and values, made from the parsers."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchferry.cli import options
from torchferry.cli.commands import COMMANDS
from torchferry.cli.grammar import About, CommandArgument, Example, Parser
from torchferry.cli.output import write
from torchferry.text import Language, Text

if TYPE_CHECKING:
    from collections.abc import Callable

ABOUT = About(
    Text(
        "Print a script that completes commands, options, their values, vendors and files. It is made for this version: "
        "print it again after an upgrade.",
        "输出补全脚本，可补全命令、选项、选项取值、厂商和文件。脚本与当前版本对应：升级后请重新生成。",
    ),
    (
        Example('eval "$(ferry completion bash)"', Text("In ~/.bashrc", "写入 ~/.bashrc")),
        Example(
            "ferry completion zsh > ~/.zfunc/_ferry",
            Text("In a folder of $fpath, before compinit", "写入 $fpath 中的文件夹，在 compinit 之前"),
        ),
        Example(
            "ferry completion fish > ~/.config/fish/completions/ferry.fish", Text("For fish", "用于 fish")
        ),
    ),
    page="commands/command-line.md",
)
_SEVERAL = ("*", "+")


def add_arguments(parser: Parser) -> None:
    """The options of `ferry completion`."""
    text = Text("Shell that reads the script", "读取脚本的 shell")
    parser.add("shell", choices=("bash", "zsh", "fish"), metavar="SHELL", text=text)
    options.add_language(parser)


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    from torchferry.cli.main import parser_of

    scripts: dict[str, Callable[[dict[str, Parser], Language], Iterator[str]]]
    scripts = {"bash": _bash, "zsh": _zsh, "fish": _fish}
    parsers = {name: parser_of(name) for name in COMMANDS}
    write("".join(f"{line}\n" for line in scripts[args.shell](parsers, options.language_of(args))))
    return 0


def _all(parsers: dict[str, Parser]) -> Iterator[tuple[str, Parser]]:
    """Every command and those below it: "scan", "checkpoint info"."""
    for name, parser in parsers.items():
        yield name, parser
        yield from ((f"{name} {verb}", each) for verb, each in parser.below.items())


def values_of(argument: CommandArgument) -> tuple[str, ...]:
    """What an argument may be, as far as that is known."""
    if argument.choices:
        return argument.choices
    if argument.flags[:1] == ("--to",) or argument.value == "VENDOR":
        from torchferry.vendors.registry import get_vendor, vendor_names

        vendors = [get_vendor(name) for name in vendor_names()]
        return (*(vendor.name for vendor in vendors), *(vendor.device_type for vendor in vendors))
    if argument.action.dest == "rule" and not argument.flags:
        from torchferry.conversion.rule import all_rules

        return tuple(rule.id for rule in all_rules())
    return ()


def _placed(parser: Parser) -> list[CommandArgument]:
    return [each for each in parser.all_arguments if not each.flags]


def _flagged(parser: Parser) -> list[CommandArgument]:
    return [each for each in parser.all_arguments if each.flags]


def _needs_value(argument: CommandArgument) -> bool:
    return argument.takes_value and argument.action.nargs != "?"


_BASH = """\
_ferry() {
    local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"
    local place=1 command="" word
    COMPREPLY=()
    [[ ${COMP_WORDS[1]} == --lang && $COMP_CWORD -gt 2 ]] && place=3
    if (( place == COMP_CWORD )); then
        COMPREPLY=($(compgen -W "$_ferry_commands" -- "$current"))
        return
    fi
    command="${COMP_WORDS[place]}"
    for (( place++; place < COMP_CWORD; place++ )); do
        word="${COMP_WORDS[place]}"
        if [[ -n ${_ferry_options[$command $word]+x} ]]; then
            command="$command $word"
        elif [[ " ${_ferry_valued[$command]} " == *" $word "* ]]; then
            (( place++ ))
        elif [[ $word != -* && " $_ferry_programs " == *" $command "* ]]; then
            return  # the program's own words: files
        fi
    done
    if [[ " ${_ferry_valued[$command]} " == *" $previous "* ]]; then
        COMPREPLY=($(compgen -W "${_ferry_values[$command $previous]}" -- "$current"))
        [[ " ${_ferry_files[$command]} " == *" $previous "* ]] || compopt +o default +o bashdefault
    elif [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W "${_ferry_options[$command]}" -- "$current"))
    elif [[ -n ${_ferry_values[$command]} ]]; then
        COMPREPLY=($(compgen -W "${_ferry_values[$command]}" -- "$current"))
    fi
}
complete -o default -o bashdefault -F _ferry ferry"""


def _bash(parsers: dict[str, Parser], language: Language) -> Iterator[str]:
    tables: dict[str, dict[str, str]] = {name: {} for name in ("options", "valued", "values", "files")}
    for name, parser in _all(parsers):
        flagged = _flagged(parser)
        tables["options"][name] = " ".join(flag for each in flagged for flag in (*each.flags,)) + " --help"
        valued = [each for each in flagged if _needs_value(each)]
        tables["valued"][name] = " ".join(flag for each in valued for flag in each.flags)
        tables["files"][name] = " ".join(flag for each in valued if each.is_file for flag in each.flags)
        words = [*parser.below, *(value for each in _placed(parser) for value in values_of(each))]
        tables["values"][name] = " ".join(words)
        for each in valued:
            for flag in each.flags if values_of(each) else ():
                tables["values"][f"{name} {flag}"] = " ".join(values_of(each))
    yield "# Completion of ferry for bash 4 and later; made by `ferry completion bash`."
    yield f"_ferry_commands={shlex.quote(' '.join([*parsers, 'help', '--help', '--version', '--lang']))}"
    programs = [name for name, each in parsers.items() if _runs_program(each)]
    yield f"_ferry_programs={shlex.quote(' '.join(programs))}"
    for table, rows in tables.items():
        yield f"declare -gA _ferry_{table}=("
        yield from (f"    [{shlex.quote(key)}]={shlex.quote(value)}" for key, value in rows.items() if value)
        yield ")"
    yield _BASH


def _runs_program(parser: Parser) -> bool:
    return any(each.action.nargs == argparse.REMAINDER for each in parser.all_arguments)


def _zsh(parsers: dict[str, Parser], language: Language) -> Iterator[str]:
    yield "#compdef ferry"
    yield "# Made by `ferry completion zsh`."
    yield "_ferry() {"
    yield "  local -a known"
    yield "  if [[ ${words[2]} == --lang && $CURRENT -gt 3 ]]; then shift 2 words; (( CURRENT -= 2 )); fi"
    yield "  if (( CURRENT == 2 )); then"
    yield from _zsh_choice(
        {name: each.summary.in_language(language) for name, each in parsers.items()}, "    "
    )
    yield "  fi"
    yield "  shift words; (( CURRENT-- ))"
    yield "  case ${words[1]} in"
    for name, parser in parsers.items():
        yield f"    {name})"
        yield from _zsh_command(parser, language)
        yield "      ;;"
    yield "  esac"
    yield "}"
    yield 'if [[ ${funcstack[1]} == _ferry ]]; then _ferry "$@"; else compdef _ferry ferry; fi'


def _zsh_choice(known: dict[str, str], indent: str) -> Iterator[str]:
    words = " ".join(shlex.quote(f"{name}:{does}") for name, does in known.items())
    yield f"{indent}known=({words})"
    yield f"{indent}_describe command known; return"


def _zsh_command(parser: Parser, language: Language) -> Iterator[str]:
    if parser.below:
        yield "      case ${words[2]} in"
        for verb, each in parser.below.items():
            yield f"        {verb}) shift words; (( CURRENT-- )); _arguments -s {_zsh_words(each, language)}; return ;;"
        yield "      esac"
        if parser.verbs:
            yield "      if (( CURRENT == 2 )); then"
            summaries = {verb: each.summary.in_language(language) for verb, each in parser.below.items()}
            yield from _zsh_choice(summaries, "        ")
            yield "      fi"
    yield f"      _arguments -s {_zsh_words(parser, language)}"


def _zsh_words(parser: Parser, language: Language) -> str:
    words = [word for each in _flagged(parser) for word in _zsh_option(each, language)]
    words.append(f"--help[{'显示帮助' if language == 'zh' else 'Show help'}]")
    for each in _placed(parser):
        if each.action.nargs == argparse.REMAINDER:
            words.append(f"*::{each.value}:_files")
            continue
        count = "*" if each.action.nargs in _SEVERAL else ""
        words.append(f"{count}:{each.value}:{_zsh_values(each)}")
    return " ".join(map(shlex.quote, words))


def _zsh_option(argument: CommandArgument, language: Language) -> Iterator[str]:
    does = argument.text.in_language(language)
    for letter in "\\[]:":
        does = does.replace(letter, f"\\{letter}")
    repeated = "*" if isinstance(argument.action, argparse._AppendAction) else ""
    value = f":{argument.value}:{_zsh_values(argument)}" if argument.takes_value else ""
    if argument.action.nargs == "?":
        value = f":{value}"
    yield from (f"{repeated}{flag}[{does}]{value}" for flag in argument.flags)


def _zsh_values(argument: CommandArgument) -> str:
    known = values_of(argument)
    return f"({' '.join(known)})" if known else "_files" if argument.is_file else " "


def _fish(parsers: dict[str, Parser], language: Language) -> Iterator[str]:
    yield "# Completion of ferry for fish; made by `ferry completion fish`."
    for name, parser in parsers.items():
        does = shlex.quote(parser.summary.in_language(language))
        yield f"complete -c ferry -n __fish_use_subcommand -f -a {name} -d {does}"
    for name, parser in _all(parsers):
        command, _, verb = name.partition(" ")
        here = f"__fish_seen_subcommand_from {command}" + (
            f"; and __fish_seen_subcommand_from {verb}" if verb else ""
        )
        if parser.below:
            beyond = f"{here}; and not __fish_seen_subcommand_from {' '.join(parser.below)}"
            for each, below in parser.below.items():
                does = shlex.quote(below.summary.in_language(language))
                yield f"complete -c ferry -n {shlex.quote(beyond)} -f -a {each} -d {does}"
        for argument in parser.all_arguments:
            yield from _fish_argument(argument, shlex.quote(here), language)


def _fish_argument(argument: CommandArgument, here: str, language: Language) -> Iterator[str]:
    known = shlex.quote(" ".join(values_of(argument)))
    if not argument.flags:
        if known != "''":
            yield f"complete -c ferry -n {here} -f -a {known}"
        return
    flags = " ".join(
        f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in argument.flags
    )
    value = ""
    if _needs_value(argument):
        value = f" -x -a {known}" if known != "''" else " -r" if argument.is_file else " -x"
    does = shlex.quote(argument.text.in_language(language))
    yield f"complete -c ferry -n {here} {flags}{value} -d {does}"
