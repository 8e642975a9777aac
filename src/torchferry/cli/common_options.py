"""Options of commands that read source and of those that only start programs: nothing is imported for them."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_vendor_path(parser: argparse.ArgumentParser) -> None:
    """Where a user's own vendors are."""
    parser.add_argument(
        "--vendor-path",
        action="append",
        type=Path,
        default=[],
        metavar="DIR",
        help="a folder with your own vendor data",
    )


def add_vendor_device(parser: argparse.ArgumentParser, group: argparse._ArgumentGroup) -> None:
    """A vendor's device, the real one or simulated."""
    group.add_argument(
        "--to",
        metavar="VENDOR",
        help="on this vendor's device, a name that `ferry vendors` lists: on its real plugin if that is installed, "
        "else simulated",
    )
    add_vendor_path(parser)
    add_means(
        group,
        "with --to: simulate, even if the vendor's plugin is installed",
        "with --to: the vendor's own plugin, on an emulated device; `ferry emulate setup` sets it up",
    )


def add_means(group: argparse._ArgumentGroup, simulate: str, emulate: str) -> None:
    """A device that is not there in truth: ours, or the vendor's plugin without its hardware."""
    either = group.add_mutually_exclusive_group()
    either.add_argument("--sim", action="store_true", help=simulate)
    add_emulate(either, emulate)


def add_emulate(group: argparse._ActionsContainer, emulate: str) -> None:
    """The vendor's plugin without its hardware, where the other ways are not a choice."""
    group.add_argument("--emulate", action="store_true", help=emulate)


def add_language(parser: argparse.ArgumentParser) -> None:
    """The language of what is printed."""
    parser.add_argument(
        "--lang", choices=("en", "zh"), help="language of reports (default: TORCHFERRY_LANG, then the locale)"
    )


def add_model(group: argparse._ArgumentGroup, shapes: str, required: bool = False) -> None:
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
    group.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="SHAPE",
        help=f"an argument of the model, as {shapes}; repeatable",
    )
