"""List the conversion rules, or explain one."""

from __future__ import annotations

import argparse
import sys

from torchferry.cli import options
from torchferry.conversion.rule import all_rules
from torchferry.errors import FerryError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `ferry rules`."""
    parser.add_argument("rule", nargs="?", help="the id of a rule, e.g. TF105")
    options.add_language(parser)


def run(args: argparse.Namespace) -> int:
    """Print the table, or one rule."""
    language = options.language_of(args)
    if args.rule is None:
        for rule in all_rules():
            option = f" [--{rule.option.replace('_', '-')}]" if rule.option else ""
            print(f"{rule.id}  {rule.name:<24} {rule.summary.in_language(language)}{option}")
        return 0
    found = next((rule for rule in all_rules() if rule.id == args.rule.upper()), None)
    if found is None:
        raise FerryError(f"no rule {args.rule}; `ferry rules` lists them")
    function = found.check or found.rename or found.finish
    module = sys.modules.get(function.__module__ if function else "")
    documentation = (module.__doc__ or "").strip() if module else ""
    parts = [f"{found.id} {found.name}", found.summary.in_language(language), documentation]
    print("\n\n".join(part for part in parts if part))
    return 0
