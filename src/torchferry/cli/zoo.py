"""Make a migrated model ready for a vendor's model zoo, or say what is missing in one that is."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.cli import options
from torchferry.cli.output import show
from torchferry.errors import FerryError, InputError
from torchferry.report.commands import next_step, vendor_path_words
from torchferry.report.safe import one_line

if TYPE_CHECKING:
    from torchferry.zoo.new import NewDelivery

_EPILOG = """`new` makes the folder PATH from a project: its code converted, a README in Chinese and in English, requirements,
scripts that start a training, the logs of both runs, the licence. It never overwrites anything. `check` says what is
missing in such a folder, and compares the migrated model's log with the original's and with the README.

exit codes: 0 complete; 1 `check`: something is missing; 2 bad usage or input; 3 `new`: some files could not be converted"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `ferry zoo`."""
    parser.usage = "ferry zoo (new | check) PATH [OPTIONS]"
    parser.epilog = _EPILOG
    parser.add_argument("action", choices=("new", "check"), metavar="ACTION", help="new or check")
    parser.add_argument(
        "path", type=Path, metavar="PATH", help="the folder, as in PyTorch/contrib/Classification/ResNet50"
    )
    options.add_to(parser, "whose model zoo it is for (default: the only vendor that has one)")
    group = parser.add_argument_group("for `new`")
    group.add_argument("--from", dest="origin", type=Path, metavar="DIR", help="the original project")
    group.add_argument(
        "--main",
        metavar="SCRIPT",
        help="the script that trains (default: the likeliest, if one is clearly ahead)",
    )
    group.add_argument(
        "--arguments", metavar="TEXT", help="arguments with which it trains only shortly, as one text"
    )
    options.add_switch(group, "--amp", "add mixed precision where there is none")
    options.add_switch(group, "--distributed", "make a program for one card one for many; needs --main")
    options.add_switch(
        group, "--channels-last", "put models and images in channels_last (NHWC), as the zoo's guide offers"
    )
    group.add_argument(
        "--results", type=Path, metavar="FILE", help="log, CSV or JSON of the migrated program's run"
    )
    group.add_argument("--original", type=Path, metavar="FILE", help="the same of the original's run")
    group.add_argument("--source", metavar="URL", help="where the original comes from")
    group.add_argument("--commit", metavar="ID", help="which state of it")
    group.add_argument("--dataset", metavar="TEXT", help="the data set and where it is to be had")
    group = parser.add_argument_group("for `check`")
    options.add_switch(
        group, "--run", "run the short training, on a simulated device if there is no real one"
    )
    options.add_emulate(
        group,
        "with --run: on the vendor's own plugin with an emulated toolkit; `ferry emulate setup` fetches it once",
    )
    group.add_argument(
        "--tolerance",
        type=options.number_from_zero(1, "a number from 0 to 1"),
        metavar="X",
        help="by how much losses may be greater on average, as 0.05 (default: the zoo's own rule)",
    )
    options.add_format(group)
    options.add_vendor_path(parser)
    options.add_language(parser)


_FOR_BOTH = ("action", "path", "to", "format", "vendor_path", "lang")
_FOR_CHECK = ("run", "emulate", "tolerance")
_SHOWN = 5


def run(args: argparse.Namespace) -> int:
    """Make or check; the answer is an exit code."""
    for_new = [name for name in vars(args) if name not in _FOR_BOTH + _FOR_CHECK]
    others = _FOR_CHECK if args.action == "new" else for_new
    given = [name for name in others if getattr(args, name) not in (None, False)]
    if given:
        shown = "--from" if given[0] == "origin" else f"--{given[0].replace('_', '-')}"
        raise FerryError(f"{shown} is not for `ferry zoo {args.action}`; leave it out")
    return _new(args) if args.action == "new" else _check(args)


def _new(args: argparse.Namespace) -> int:
    from torchferry.vendors.zoo import find_zoo
    from torchferry.zoo.delivery import DeliveryRequest
    from torchferry.zoo.new import make_delivery, plan_for_zoo

    if args.origin is None:
        raise FerryError("which project? ferry zoo new PATH --from DIR")
    vendor, table = find_zoo(args.to, args.vendor_path)
    request = DeliveryRequest(
        args.path,
        args.origin,
        args.main or "",
        args.arguments or "",
        args.results,
        args.original,
        args.source or "",
        args.commit or "",
        args.dataset or "",
    )
    chosen = {name: getattr(args, name) for name in ("amp", "distributed", "channels_last")}
    made = make_delivery(request, vendor, table, plan_for_zoo(request, vendor, chosen))
    for line in _told(args, made, table.address or table.name):
        print(one_line(line))
    return 3 if made.outcome.failed else 0


def _told(args: argparse.Namespace, made: NewDelivery, address: str) -> Iterator[str]:
    changed = sum(item.new_data is not None for item in made.outcome.outcomes)
    yield f"made {args.path}: {changed} files converted, {len(made.outcome.added)} added"
    if made.main:
        chosen = [str(each) for each in made.candidates if each.path == made.main and not args.main]
        yield from (f"trains: {each}; say --main if it is another" for each in chosen)
    else:
        known = ", ".join(map(str, made.candidates[:_SHOWN]))
        if not known and made.notebooks:
            known = (
                "none found, only notebooks: make a script of one, as with `jupyter nbconvert --to script`"
            )
        yield f"note: which script trains is not clear: {known or 'none found'}; say --main, or fill it in"
    if made.left_out:
        names = [f"{name} ({why})" for name, why in made.left_out[:_SHOWN]]
        more = f", and {len(made.left_out) - _SHOWN} more" if len(made.left_out) > _SHOWN else ""
        yield f"left out: {', '.join(names)}{more}"
    if made.not_required:
        taken = ", ".join(made.not_required)
        yield f"taken out of requirements.txt: {taken}; the vendor brings its own"
    given = ["--to", args.to] if args.to else []
    said = next_step("zoo", "check", args.path, *given, *vendor_path_words(args.vendor_path))
    yield said.in_language(options.language_of(args))
    yield f"then: put it into your fork of {address}, commit it, and open a pull request"


def _check(args: argparse.Namespace) -> int:
    from torchferry.vendors.zoo import find_zoo
    from torchferry.zoo.delivery import Delivery
    from torchferry.zoo.review import REPORTS, review, run_short_training

    if not args.path.is_dir():
        raise InputError(f"{args.path}: no such folder; `ferry zoo new` makes one")
    if args.emulate and not args.run:
        raise FerryError("--emulate says where the short training runs; add --run, or leave it out")
    vendor, table = find_zoo(args.to, args.vendor_path)
    delivery = Delivery(args.path, vendor, table, args.tolerance)
    paths = options.vendor_paths(args)
    ran = (run_short_training(delivery, paths, args.emulate),) if args.run else ()
    found = review(delivery, ran)
    show(REPORTS, found, args)
    return 0 if found.is_complete else 1
