"""The options that make a program for one card one for many."""

from __future__ import annotations

import argparse
from pathlib import Path

from torchferry.convert.settings import Distributed
from torchferry.errors import FerryError, InputError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--distributed, and what it needs to know."""
    group = parser.add_argument_group("one process per card")
    group.add_argument(
        "--distributed",
        action="store_true",
        help="rewrite the training program that --main starts for all cards, with DistributedDataParallel; a launch "
        "script is added",
    )
    group.add_argument(
        "--main", type=Path, metavar="FILE", help="the script that starts the training, in the project"
    )
    group.add_argument(
        "--model",
        default="",
        metavar="NAME",
        help="the variable that holds the model; several with commas (default: found)",
    )
    group.add_argument(
        "--batch",
        choices=["keep", "split"],
        help="the script's batch size is that of each card (keep, the default), or of all together (split)",
    )
    group.add_argument(
        "--sync-batchnorm",
        action="store_true",
        help="BatchNorm over the batches of all cards (SyncBatchNorm)",
    )


def distributed_settings(args: argparse.Namespace) -> Distributed | None:
    """What the options say; None if the rewrite is not asked for."""
    if not args.distributed:
        given = [
            name
            for name, value in (
                ("--main", args.main),
                ("--model", args.model),
                ("--batch", args.batch),
                ("--sync-batchnorm", args.sync_batchnorm),
            )
            if value
        ]
        if given:
            raise FerryError(f"{given[0]} goes with --distributed; say that as well, or leave it out")
        return None
    if args.main is None:
        raise FerryError("--distributed: which script starts the training? Name it with --main FILE")
    main = _main_script(args.path, args.main)
    return Distributed(main, args.model, args.batch == "split", args.sync_batchnorm)


def _main_script(root: Path, main: Path) -> str:
    """The script relative to the project; it may be given so, or as seen from here."""
    folder = (root.parent if root.is_file() else root).resolve()
    for place in (folder / main, main):
        found = place.resolve()
        if found.is_file() and found.is_relative_to(folder):
            if found.suffix not in (".py", ".pyw"):
                raise InputError(
                    f"--main {main}: is no Python file; name the script that starts the training"
                )
            return found.relative_to(folder).as_posix()
    if main.is_file():
        raise InputError(f"--main {main}: is not in {root}; name a script of the project")
    raise InputError(f"--main {main}: no such file in {root}; name the script that starts the training")
