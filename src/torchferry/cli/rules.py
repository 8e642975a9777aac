"""`ferry rules`: the conversion rules, or one of them."""

from __future__ import annotations

import argparse
import sys

from torchferry.cli import options
from torchferry.cli.grammar import About, Example, Parser
from torchferry.conversion.rule import all_rules
from torchferry.errors import FerryError
from torchferry.text import Text

ABOUT = About(
    Text(
        "Every finding of `ferry scan` and `ferry convert` names the rule that made it, such as TF105.",
        "`ferry scan` 和 `ferry convert` 的每条发现都注明产生它的规则，例如 TF105。",
    ),
    (
        Example("ferry rules", Text("List all rules", "列出所有规则")),
        Example("ferry rules TF105", Text("Explain one rule", "解释一条规则")),
    ),
    page="rules/index.md",
)


def add_arguments(parser: Parser) -> None:
    """The options of `ferry rules`."""
    text = Text(
        "Id of a rule, for example TF105 (default: list all)", "规则编号，例如 TF105（默认：列出全部）"
    )
    parser.add("rule", nargs="?", metavar="RULE", text=text)
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
