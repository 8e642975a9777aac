"""The options that several commands share: each has one name, one help and one check."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchferry import units
from torchferry.text import Language, can_show, user_language

if TYPE_CHECKING:
    from torchferry.accuracy.cutting import NumberRange
    from torchferry.vendors.model import Vendor

Options = argparse._ActionsContainer  # a parser, or a group of its options

# Whose device.


def add_to(options: Options, text: str = "a name that `ferry vendors` lists", required: bool = False) -> None:
    """Add --to, which names a vendor."""
    options.add_argument("--to", required=required, metavar="VENDOR", help=text)


def add_vendor_path(options: Options) -> None:
    """Where a user's own vendors are."""
    text = "a folder with your own vendor data, or with several such folders"
    add_repeatable(options, "--vendor-path", "DIR", text, type=Path)


def vendor_of(args: argparse.Namespace) -> Vendor | None:
    """The vendor that --to names, None without it."""
    from torchferry.vendors.registry import get_vendor

    return get_vendor(args.to, args.vendor_path) if args.to else None


def vendor_paths(args: argparse.Namespace) -> tuple[str, ...]:
    """The folders of --vendor-path, for processes that may start elsewhere."""
    return tuple(str(path.resolve()) for path in args.vendor_path)


def names(text: str) -> list[str]:
    """Names that are written with commas, each once."""
    return list(dict.fromkeys(filter(None, (name.strip() for name in text.split(",")))))


def add_vendor_device(parser: argparse.ArgumentParser, group: Options) -> None:
    """A vendor's device, the real one or simulated."""
    add_to(
        group,
        "on this vendor's device, a name that `ferry vendors` lists: on its real plugin if that is installed, "
        "else simulated",
    )
    add_vendor_path(parser)
    add_means(
        group,
        "with --to: simulate, even if the vendor's plugin is installed",
        "with --to: the vendor's own plugin, on an emulated device; `ferry emulate setup` sets it up",
    )


def add_means(group: argparse._ArgumentGroup | Options, simulate: str, emulate: str) -> None:
    """A device that is not there in truth: ours, or the vendor's plugin without its hardware."""
    either = group.add_mutually_exclusive_group()
    either.add_argument("--sim", action="store_true", help=simulate)
    add_emulate(either, emulate)


def add_emulate(options: Options, text: str) -> None:
    """The vendor's plugin without its hardware, where the other ways are not a choice."""
    options.add_argument("--emulate", action="store_true", help=text)


def add_devices(options: Options, text: str) -> None:
    """How many devices a program sees."""
    options.add_argument("--devices", type=at_least_one, metavar="N", help=text)


def add_memory(options: Options, text: str) -> None:
    """Add --memory, the size of each device."""
    from torchferry.sim.environment import parse_memory

    options.add_argument("--memory", type=parse_memory, metavar="SIZE", help=text)


# How a program or a model is run.


def add_steps(options: Options, text: str, default: int | None = 1) -> None:
    """After how many steps a program is ended."""
    options.add_argument("--steps", type=steps, default=default, metavar="N", help=text)


def add_every(options: Options, text: str, default: int) -> None:
    """Which of the steps are looked at."""
    options.add_argument("--every", type=at_least_one, default=default, metavar="N", help=text)


def add_seed(options: Options, text: str, default: int | None = None) -> None:
    """What random numbers begin with."""
    options.add_argument("--seed", type=seed, default=default, metavar="N", help=text)


def add_timeout(options: Options, text: str, default: float | None = None) -> None:
    """How long a program may take."""
    options.add_argument("--timeout", type=seconds, default=default, metavar="SECONDS", help=text)


def add_part(options: Options, text: str) -> None:
    """A part of a checkpoint in place of all of it."""
    options.add_argument("--only", default="", metavar="PART", help=text)


def add_allow_pickle(options: Options) -> None:
    """The permission to run what a checkpoint names."""
    add_switch(
        options,
        "--allow-pickle",
        "let code run that the file names, where it can't be loaded otherwise: only for files that you trust",
    )


def add_model(group: Options, shapes: str, required: bool = False) -> None:
    """A model without a program, and what it is called with."""
    group.add_argument(
        "--model",
        required=required,
        metavar="FACTORY",
        help="package.module:name or file.py:name, of a class, a function or a module that is built already",
    )
    group.add_argument(
        "--init", default="", metavar="ARGUMENTS", help="for the factory, as `num_classes=10, depth=3`"
    )
    add_repeatable(group, "--input", "SHAPE", f"an argument of the model, as {shapes}")


def add_selection(group: Options) -> None:
    """Which operators, of all that are called."""
    text = "only operators of modules whose path fits, as layer1.*, *.attn"
    add_repeatable(group, "--module", "PATTERN", text, dest="modules")
    text = "only operators whose name fits, as aten::convolution*, mm, *norm*"
    add_repeatable(group, "--op", "PATTERN", text, dest="operators")
    text = "only operators of the forward pass, the backward pass or the optimizer"
    phases = ("forward", "backward", "optimizer")
    add_repeatable(group, "--phase", None, text, dest="phases", choices=phases)


# What is reported, and how.


PAGE_FORMATS = ("text", "json", "md", "csv", "html")  # as which any report that has a page can be printed


def add_reports(options: Options) -> None:
    """How reports that have a page are printed and written, and in which language."""
    add_format(options)
    add_outputs(options)
    add_language(options)


def add_format(options: Options, formats: Sequence[str] = PAGE_FORMATS, more: str = "") -> None:
    """How what is printed is written."""
    options.add_argument(
        "--format", choices=formats, default="text", help=f"of what is printed (default: text){more}"
    )


def add_json(options: Options, text: str = "print everything as JSON") -> None:
    """A short form of --format json."""
    options.add_argument(
        "--json", dest="format", action="store_const", const="json", default="text", help=text
    )


def add_outputs(options: Options, suffixes: str = ".txt, .json, .md, .csv, .xlsx, .html") -> None:
    """Add -o, which writes reports as files."""
    options.add_argument(
        "-o",
        "--output",
        action="append",
        type=Path,
        default=[],
        metavar="FILE",
        help=f"write a report; the suffix says which: {suffixes}; repeatable",
    )


def add_output(options: Options, default: str | None, text: str, name: str = "FILE") -> None:
    """The one file or folder that a command makes."""
    path = None if default is None else Path(default)
    options.add_argument("-o", "--output", type=Path, default=path, metavar=name, help=text)


def add_check(options: Options, when: str) -> None:
    """An exit code that ends a script."""
    options.add_argument("--check", action="store_true", help=f"exit with 1 if {when}")


def add_all(options: Options, text: str) -> None:
    """A report without a limit."""
    options.add_argument("--all", action="store_true", help=text)


def add_quiet(options: Options, text: str = "no progress on stderr") -> None:
    """Add --quiet."""
    options.add_argument("-q", "--quiet", action="store_true", help=text)


def add_jobs(options: Options, text: str, default: int, most: int | None = None) -> None:
    """How much is done at once."""
    options.add_argument("-j", "--jobs", type=whole_number(1, most), default=default, metavar="N", help=text)


def add_language(options: Options) -> None:
    """The language of what is printed."""
    options.add_argument(
        "--lang", choices=("en", "zh"), help="language of reports (default: TORCHFERRY_LANG, then the locale)"
    )
    add_color(options)


def language_of(args: argparse.Namespace) -> Language:
    """The language of what is printed: the one that --lang names, else the user's; English where the streams lack its
    characters."""
    language: Language = args.lang or user_language()
    return language if can_show(language, sys.stdout, sys.stderr) else "en"


def add_color(options: Options) -> None:
    """Add --color."""
    options.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="Colors of the printed report (default: auto, which follows the terminal, NO_COLOR and FORCE_COLOR)",
    )


def add_repeatable(options: Options, flag: str, metavar: str | None, text: str, **more: Any) -> None:
    """An option that may be given several times; `more` is for argparse."""
    options.add_argument(
        flag, action="append", default=[], metavar=metavar, help=f"{text}; repeatable", **more
    )


def add_switch(options: Options, flag: str, text: str) -> None:
    """An option that is given or not."""
    options.add_argument(flag, action="store_true", help=text)


def chosen(args: argparse.Namespace, kind: type[Any]) -> Any:
    """The options that a function takes as this kind of keywords, by the same names."""
    return {name: getattr(args, name) for name in kind.__annotations__}


# What the words after options mean: whole numbers, steps, seeds, times.

LARGEST_SEED = (1 << 32) - 1  # what PYTHONHASHSEED and numpy take


def whole_number(least: int, most: int | None = None) -> Callable[[str], int]:
    """What reads a number in this range, as the `type` of an option."""
    limits = f"from {least} on" if most is None else f"from {least} to {most}"

    def read(text: str) -> int:
        value = int(text) if text.isascii() and text.isdecimal() else least - 1
        if value < least or (most is not None and value > most):
            raise argparse.ArgumentTypeError(f"{text!r} is not a number {limits}")
        return value

    return read


at_least_one = whole_number(1)
seed = whole_number(0, LARGEST_SEED)


def number_ranges(text: str) -> tuple[NumberRange, ...]:
    """Numbers and ranges of them, with commas."""
    from torchferry.accuracy.cutting import number_ranges as read

    try:
        return read(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} names no numbers from 1 on; write 12, 12-20 or 3,12-20"
        ) from None


def steps(text: str) -> int | None:
    """A number of steps; None for `all`."""
    return None if text == "all" else at_least_one(text)


def seconds(text: str) -> float:
    """A time that is more than none."""
    value = number(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; write it in seconds, as 600")
    return value


def size(text: str) -> int:
    """A number of bytes, more than none."""
    value = units.bytes_of(text)
    if not value:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a size; write it as 50GB, 512MB or a number of bytes"
        )
    return value


def number(text: str) -> float:
    """NaN where it is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def number_from_zero(most: float, what: str) -> Callable[[str], float]:
    """What reads a number that is not negative and not above `most`, nor endless."""

    def read(text: str) -> float:
        value = number(text)
        if not 0 <= value <= most or value == math.inf:
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
        return value

    return read
