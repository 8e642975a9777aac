"""The command `ferry`: finds the command's module, runs it, turns errors into one line and an exit code."""

from __future__ import annotations

import os
import sys

from torchferry import __version__

# Type checkers take it for true; importing it from typing takes as long as all the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    import signal
    from collections.abc import Callable

# stage of a migration -> command -> (module, what it does). Nothing is imported until a command is chosen: help must be
# instant.
STAGES = {
    "before anything is moved": {
        "doctor": ("doctor", "say whether a device can be used on this machine, and what makes it slow"),
        "scan": ("scan", "say what must change, what can't, and how much is automatic"),
        "ops": ("ops", "list the operators of a program, and say which of them a device has"),
        "case": ("case", "write and run a test of one operator: a device against the CPU"),
    },
    "move it, and prove it": {
        "convert": ("convert", "write a converted copy of a project, with reports"),
        "run": ("run", "run a CUDA program, unchanged, on a vendor's device or a simulated one"),
        "emulate": ("emulate", "set up a vendor's own plugin, to run without the vendor's hardware"),
        "migrate": ("migrate", "migrate a program: check, convert, run and prove it, step by step"),
        "prove": ("prove", "prove a migration: the original and the migrated program compute the same"),
    },
    "it crashes": {
        "explain": ("explain", "say what the errors in a log mean: which came first, why, what to do"),
        "bundle": (
            "bundle",
            "pack what a vendor needs to mend an operator into one archive, without private data",
        ),
    },
    "the loss differs": {
        "record": ("record", "record what every operator of a program is given, and what it makes of it"),
        "compare": ("compare", "hold two records of a run against each other: which operator is wrong"),
        "replay": ("replay", "call the operators of a record once more, alone, on another device"),
        "overflow": ("overflow", "find the first operator of a program that makes infinities or NaN"),
        "watch": ("watch", "keep light statistics of a long training: loss, gradients, activations"),
    },
    "it is slow": {
        "profile": ("profile", "profile a few steps of a program, unchanged: what takes the time"),
        "analyze": ("analyze", "read profiles of any vendor: the bottleneck, its proof, its remedy"),
        "oplog": ("oplog", "read a runtime's host logs: operators, shapes, compiles after the warm-up"),
    },
    "after the training": {
        "checkpoint": ("checkpoint", "say what is inside a checkpoint without running it; mend it"),
        "export": ("export", "make ONNX of a checkpoint, check it, and name the vendor's offline conversion"),
        "zoo": ("zoo", "make a migrated model ready for a vendor's model zoo, or say what it lacks"),
    },
    "look things up": {
        "vendors": ("vendors", "show the known accelerators and what is known about each"),
        "rules": ("rules", "list the conversion rules, or explain one"),
        "report": ("report", "render findings.json as HTML, Markdown, CSV, XLSX, SARIF ..."),
    },
}
DIVIDED = ("migrate",)  # commands of which the words after `--` are the program's
COMMANDS = {name: command for commands in STAGES.values() for name, command in commands.items()}

_EXIT_CODES = """exit codes:
  0  fine
  1  --check found something to do; `ferry prove`: the proof does not hold; `ferry compare`: an operator is wrong;
     `ferry overflow`: there is one; `ferry export`: onnxruntime computes something else; `ferry zoo check`: something
     is missing
  2  bad usage or bad input
  3  some files failed, the others were done; `ferry ops`, `ferry record`, `ferry profile`: the
     program failed half way; `ferry analyze`: a detector broke down; `ferry bundle`: a log could not be read
  130  interrupted (143: by SIGTERM)
  `ferry run` and `ferry watch` end with the program's own exit code"""


def help_text() -> str:
    """What `ferry --help` prints."""
    lines: list[str] = []
    for stage, commands in STAGES.items():
        lines += [f"{stage}:", *(f"  {name:<11} {summary}" for name, (_, summary) in commands.items()), ""]
    return "\n".join(
        [
            "usage: ferry COMMAND [OPTIONS]",
            "",
            "Carries PyTorch training code written for NVIDIA GPUs to other accelerators, stage by stage:",
            "",
            *lines,
            "  ferry COMMAND --help   the options of a command",
            "  ferry --version        the version",
            "",
            _EXIT_CODES,
        ]
    )


def main(arguments: list[str] | None = None) -> int:
    """Run `ferry`; returns the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if len(given) > 1 and given[0] == "help" and given[1] in COMMANDS:
        given = [given[1], "--help"]
    elif len(given) > 2 and given[0] == "--lang":  # before the command, as other tools take it
        given = [given[2], *given[:2], *given[3:]]
    if given and given[0] in COMMANDS:
        return as_command("ferry", lambda _: run_command(given[0], given[1:]), arguments)
    return guarded("ferry", lambda: _answer_at_once(given))


def _answer_at_once(given: list[str]) -> int:
    """Help, the version, a command that there is not: what needs no module but this one."""
    if not given or given[0] in ("-h", "--help", "help"):
        print(help_text())
        return 0 if given else 2
    if given[0] in ("-V", "--version"):
        print(f"torchferry {__version__}")
        return 0
    import difflib

    near = difflib.get_close_matches(given[0], COMMANDS, 1)
    hint = f"did you mean `{near[0]}`?" if near else f"known are {', '.join(COMMANDS)}"
    print(f"ferry: no command `{given[0]}`; {hint}", file=sys.stderr)
    return 2


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


def run_command(name: str, arguments: list[str]) -> int:
    """Run one command."""
    import argparse
    import importlib

    from torchferry.cli import results

    module = importlib.import_module(f"torchferry.cli.{COMMANDS[name][0]}")
    parser = argparse.ArgumentParser(prog=f"ferry {name}", description=module.__doc__)
    module.add_arguments(parser)
    run = results.keeping(name, parser, module.run)
    if "\n" in (parser.epilog or ""):  # lines that are to stay as they are
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
    arguments, rest = _divided(arguments) if name in DIVIDED else (arguments, [])
    parser.set_defaults(rest=rest)
    return int(run_parsed(parser, _with_values(parser, arguments), run))


def _divided(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Our own words, and those after `--`."""
    place = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:place], arguments[place + 1 :]


def run_parsed(
    parser: argparse.ArgumentParser, arguments: list[str], run: Callable[[argparse.Namespace], int]
) -> int:
    """Do the work that the arguments ask for; SIGTERM ends it like Ctrl-C."""
    from torchferry.cli.ending import stoppable

    args = parser.parse_args(arguments)
    if getattr(args, "lang", None):
        os.environ["TORCHFERRY_LANG"] = (
            args.lang
        )  # errors and other processes speak it too; `guarded` takes it back
    with stoppable():
        return run(args)


def _with_values(parser: argparse.ArgumentParser, arguments: list[str]) -> list[str]:
    """`--amp PATH` as `--amp=torch PATH`: an option whose value may be left out does not take a file for it."""
    options = {name: item for item in parser._actions if item.nargs == "?" for name in item.option_strings}
    words: list[str] = []
    for word, following in zip(arguments, [*arguments[1:], ""], strict=False):
        option = options.get(word)
        is_left_out = (
            option is not None and following not in (option.choices or ()) and os.path.exists(following)
        )
        words.append(f"{word}={option.const}" if option is not None and is_left_out else word)
    return words


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
        _complain(name, str(stop) or "interrupted; nothing was written")
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
        _complain(name, "there is not enough memory for this input on this machine; nothing was written")
        return 2
    except Exception as error:
        from torchferry.errors import FerryError

        if not isinstance(error, FerryError):
            raise
        for line in error.lines:
            _complain(name, line)
        return error.exit_code


def _complain(name: str, problem: str) -> None:
    from torchferry.report.safe import one_line

    print(f"{name}: {one_line(problem)}", file=sys.stderr)
