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


def add_language(parser: argparse.ArgumentParser) -> None:
    """The language of what is printed."""
    parser.add_argument(
        "--lang", choices=("en", "zh"), help="language of reports (default: TORCHFERRY_LANG, then the locale)"
    )
