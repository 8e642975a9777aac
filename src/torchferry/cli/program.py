"""The user's program on a command line: our options first, then the program and whatever is its own.

`ferry run --to VENDOR --nproc 2 train.py --epochs 3`: from the program on, every word belongs to it.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from torchferry.cli import options
from torchferry.cli.output import say
from torchferry.errors import RunError

if TYPE_CHECKING:
    from torchferry.launch.place import Place
    from torchferry.launch.program import Program

# torchrun's options that are handed on as they are -> whether they say where the processes meet
_TORCHRUN = {
    "nnodes": True,
    "node-rank": True,
    "master-addr": True,
    "master-port": True,
    "rdzv-backend": True,
    "rdzv-endpoint": True,
    "rdzv-id": True,
    "rdzv-conf": True,
    "local-addr": True,
    "max-restarts": False,
    "monitor-interval": False,
    "log-dir": False,
    "redirects": False,
    "tee": False,
}


def add_program(parser: argparse.ArgumentParser, *spellings: str) -> None:
    """The program; -m and these further spellings say that it is a module."""
    parser.allow_abbrev = False  # argparse would look for abbreviations among the program's own options, too
    parser.add_argument(
        "program",
        nargs=argparse.REMAINDER,
        metavar="PROGRAM",
        help="a script, or with -m a module; what follows it is handed to it",
    )
    parser.add_argument(
        "-m",
        *spellings,
        dest="is_module",
        action="store_true",
        help="the program is a module, as in python -m",
    )


def words_of(args: argparse.Namespace) -> list[str]:
    """The program and its arguments; a `--` before them only divides them from our options."""
    return list(args.program[1:] if args.program[:1] == ["--"] else args.program)


def program_of(args: argparse.Namespace, usage: str) -> Program:
    """The program that the command line names."""
    from torchferry.launch import program

    words = words_of(args)
    if not words:
        raise RunError(f"which program? {usage}")
    return program.program_of(words, args.is_module, torchrun_options(args))


def add_torchrun(parser: argparse.ArgumentParser) -> None:
    """How many processes, and how torchrun starts them."""
    group = parser.add_argument_group("several processes, through torchrun")
    group.add_argument(
        *_spellings("nproc", "nproc-per-node"), type=options.at_least_one, metavar="N", help="processes"
    )
    for name in _TORCHRUN:
        group.add_argument(*_spellings(name), dest=f"torchrun {name}", metavar="X", help="handed to torchrun")


def _spellings(*names: str) -> list[str]:
    """torchrun takes dashes and underscores."""
    return list(dict.fromkeys(f"--{form}" for name in names for form in (name, name.replace("-", "_"))))


def torchrun_options(args: argparse.Namespace) -> tuple[str, ...] | None:
    """torchrun's command line; None when it is not needed."""
    given = {name: getattr(args, f"torchrun {name}") for name in _TORCHRUN}
    chosen = {name: value for name, value in given.items() if value is not None}
    if args.nproc is None and not chosen:
        return None
    from torchferry.launch.program import torchrun_words

    says_where = any(_TORCHRUN[name] for name in chosen)
    values = [word for name, value in chosen.items() for word in (f"--{name}", value)]
    return torchrun_words(args.nproc or 1, values, alone=not says_where)


# Where the programs of `ferry record`, `overflow`, `watch` and `profile` run.


def add_place(parser: argparse.ArgumentParser) -> None:
    """Where and how the program runs."""
    group = parser.add_argument_group(
        "where the program runs (default: on this machine as it is; without a GPU, the CPU stands for CUDA)"
    )
    options.add_vendor_device(parser, group)
    add_converted(group, "with --to: ")
    add_as_is(group, "leave the program alone; it computes on this device by itself (default: cuda)")
    options.add_devices(
        group,
        "devices that the program sees where they are simulated or the CPU stands for them (default: one, with "
        "--nproc one for each process)",
    )
    options.add_seed(group, "of every generator, set at `import torch` (default: none is set)")
    options.add_timeout(
        group,
        "end a program that takes longer, and keep what was recorded (default: as long as it takes)",
    )
    options.add_quiet(parser, "no remarks and no progress on stderr")
    options.add_language(parser)
    add_torchrun(parser)


def add_converted(group: options.Options, when: str = "") -> None:
    """A program that needs no layer."""
    options.add_switch(
        group, "--converted", f"{when}the program is converted already, CUDA's names keep their meaning"
    )


def add_as_is(group: options.Options, text: str) -> None:
    """A program that nothing is changed for."""
    group.add_argument("--as-is", nargs="?", const="cuda", default="", metavar="DEVICE", help=text)


def place_of(args: argparse.Namespace) -> Place:
    """Where the program runs, if the options fit each other."""
    from torchferry.launch import plugin

    return plugin.place_of(
        options.vendor_of(args),
        args.sim,
        args.emulate,
        args.as_is,
        args.converted,
        vendor_paths=options.vendor_paths(args),
        devices=args.devices or args.nproc or 1,
    )


def say_if_simulated(args: argparse.Namespace, command: str, place: Place) -> None:
    """Say that the device is a simulated one, and why, to a user who did not ask for that."""
    from torchferry.launch import plugin

    if place.vendor is not None and place.is_simulated and not args.sim:
        say(args, command, plugin.not_installed(place.vendor))
