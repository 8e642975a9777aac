"""The command `ferry`: finds the command's module, runs it, turns errors into one line and an exit code."""

from __future__ import annotations

import os
import sys

from torchferry import __version__
from torchferry.cli.commands import COMMANDS

DIVIDED = ("migrate",)  # commands of which the words after `--` are the program's

# Type checkers take it for true; importing it from typing takes as long as all the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    import signal
    from collections.abc import Callable

    from torchferry.cli.grammar import Parser
    from torchferry.text import Language


def main(arguments: list[str] | None = None) -> int:
    """Run `ferry`; returns the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if len(given) > 2 and given[0] == "--lang":  # before the command, as other tools take it
        given = [given[2], *given[:2], *given[3:]]
    elif len(given) > 1 and given[0].startswith("--lang="):
        given = [given[1], given[0], *given[2:]]
    if given and given[0] == "help":
        return guarded("ferry", lambda: show_help(given[1:]))
    if given and given[0] in COMMANDS:
        return as_command("ferry", lambda _: run_command(given[0], given[1:]), arguments)
    return guarded("ferry", lambda: _answer_at_once(given))


def _answer_at_once(given: list[str]) -> int:
    """Help, the version, a command that there is not."""
    if not given or given[0] in ("-h", "--help"):
        from torchferry.cli.overview import overview

        print(overview(_language(given)))
        return 0 if given else 2
    if given[0] in ("-V", "--version"):
        print(f"torchferry {__version__}")
        return 0
    import difflib

    near = difflib.get_close_matches(given[0], COMMANDS, 1)
    at = 1 if _language(given) == "zh" else 0
    hint = (f"did you mean `{near[0]}`?", f"是否想用 `{near[0]}`？") if near else _LISTS
    said = (f"no command `{given[0]}`; {hint[0]}", f"没有命令 `{given[0]}`；{hint[1]}")
    _complain("ferry", said[at])
    return 2


_LISTS = ("`ferry --help` lists all", "`ferry --help` 列出全部命令")


def _language(given: list[str]) -> Language:
    from torchferry.text import language_in, user_language

    return language_in(given) or user_language()


def show_help(words: list[str]) -> int:
    """`ferry help`, `ferry help COMMAND [ACTION]`, `ferry help --man DIR`."""
    names = [word for word in words if word in COMMANDS]
    if names:
        return run_command(names[0], [*words[words.index(names[0]) + 1 :], "--help"])
    if any(word.partition("=")[0] == "--man" for word in words):
        from torchferry.cli.manual import write_pages

        return write_pages(words, _language(words))
    return _answer_at_once(
        ["--help", *words] if not words or words[0] in ("--lang", "-h", "--help") else words
    )


def as_command(name: str, work: Callable[[list[str]], int], arguments: list[str] | None) -> int:
    """Run a command with these arguments; with those of the command line, this process is the command's own."""
    if arguments is not None:
        return guarded(name, lambda: work(arguments))
    import signal

    def interrupted(number: int, _frame: object) -> None:
        os.write(2, f"{name}: interrupted; nothing was written\n".encode())
        os._exit(128 + number)

    _answer_signals(interrupted)  # nothing is begun yet, so nothing is to be cleaned up
    code = guarded(name, lambda: work(sys.argv[1:]))
    _answer_signals(signal.SIG_DFL)  # Python ends: a handler of its own would print a traceback
    if code in (128 + signal.SIGINT, 128 + signal.SIGTERM):
        _end_without_waiting(code)
    return code


def _answer_signals(handler: Callable[[int, object], None] | signal.Handlers) -> None:
    import signal

    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:  # as in a shell script's background job
            signal.signal(number, handler)


def _end_without_waiting(code: int) -> None:
    """Python would wait for threads that are still computing."""
    import atexit
    from contextlib import suppress

    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def parser_of(name: str) -> Parser:
    """The parser of a command, with all its arguments and options."""
    import importlib

    from torchferry.cli import results
    from torchferry.cli.grammar import Parser
    from torchferry.text import Text

    module, summary = COMMANDS[name]
    command = importlib.import_module(f"torchferry.cli.{module}")
    parser = Parser(f"ferry {name}", Text(*summary), command.ABOUT)
    command.add_arguments(parser)
    results.add_into(name, parser)
    return parser


def run_command(name: str, arguments: list[str]) -> int:
    """Run one command."""
    import importlib

    from torchferry.cli import results

    parser, words = parser_of(name), arguments
    if words == ["help"] and not os.path.exists("help"):  # as many tools take it
        words = ["--help"]
    words, rest = _divided(words) if name in DIVIDED else (words, [])
    parser.set_defaults(rest=rest)
    module = importlib.import_module(f"torchferry.cli.{COMMANDS[name][0]}")
    return int(run_parsed(parser, words, results.keeping(name, module.run)))


def _divided(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Our own words, and those after `--`."""
    place = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:place], arguments[place + 1 :]


def run_parsed(parser: Parser, arguments: list[str], run: Callable[[argparse.Namespace], int]) -> int:
    """Do the work that the arguments ask for; SIGTERM ends it like Ctrl-C."""
    from torchferry.cli.ending import stoppable
    from torchferry.text import language_in

    language = language_in(arguments)
    if language is not None:  # errors and other processes speak it too; `guarded` takes it back
        os.environ["TORCHFERRY_LANG"] = language
    args = parser.parse(arguments)
    with stoppable():
        return run(args)


def guarded(name: str, work: Callable[[], int]) -> int:
    """Run some work; bad input becomes one line and exit code 2, Ctrl-C becomes 130, SIGTERM 143."""
    # Python has none where the caller has closed it, as in `ferry scan . >&-`
    for stream in ("stdout", "stderr"):
        if getattr(sys, stream) is None:
            setattr(sys, stream, open(os.devnull, "w"))  # noqa: SIM115 (stays open until the end)
    language = os.environ.get("TORCHFERRY_LANG")
    try:
        return _answered(name, work)
    finally:
        if language is None:
            os.environ.pop("TORCHFERRY_LANG", None)
        else:
            os.environ["TORCHFERRY_LANG"] = language


def _answered(name: str, work: Callable[[], int]) -> int:
    encodings = (getattr(stream, "encoding", None) or "utf-8" for stream in (sys.stdout, sys.stderr))
    if not all(name.lower().startswith("utf") for name in encodings):
        from torchferry.report.streams import never_fail

        never_fail(sys.stdout, sys.stderr)
    try:
        return work()
    except KeyboardInterrupt as stop:
        _complain(name, str(stop) or _in_user_language(_INTERRUPTED))
        return int(getattr(stop, "exit_code", 130))
    except OSError as error:
        from torchferry.report.streams import discard_stdout

        discard_stdout()
        if isinstance(error, BrokenPipeError):  # the reader has seen enough, as in `ferry vendors | head`
            return 0
        place = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        _complain(name, f"{place}{error.strerror or error}")
        return 2
    except MemoryError:
        _complain(name, _in_user_language(_NO_MEMORY))
        return 2
    except Exception as error:
        from torchferry.errors import FerryError

        if not isinstance(error, FerryError):
            raise
        for line in error.lines:
            _complain(name, line)
        return error.exit_code


def _in_user_language(said: tuple[str, str]) -> str:
    from torchferry.text import Text, user_language

    return Text(*said).in_language(user_language())


_INTERRUPTED = ("interrupted; nothing was written", "已中断；未写出任何内容")
_NO_MEMORY = (
    "not enough memory on this machine for this input; nothing was written",
    "此机器的内存不足以处理该输入；未写出任何内容",
)


def _complain(name: str, problem: str) -> None:
    from torchferry.report.safe import one_line

    print(f"{name}: {one_line(problem)}", file=sys.stderr)
