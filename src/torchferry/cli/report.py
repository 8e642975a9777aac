"""ferry report: findings.json in another format."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from torchferry.cli import options, results
from torchferry.cli.output import report_options
from torchferry.text import Text

FORMAT_NAMES = ("text", "json", "sarif", "github", "md", "csv", "xlsx", "html")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments."""
    parser.add_argument(
        "findings",
        nargs="?",
        type=Path,
        metavar="FINDINGS.json|DIR",
        help="File written by `ferry scan --format json` or `ferry convert`, or a migration folder, of which one page is "
        "made (default: the .ferry folder of this project)",
    )
    parser.add_argument(
        "--format",
        choices=FORMAT_NAMES,
        help="the report to make (default: text, or what the suffix of -o says)",
    )
    options.add_output(parser, None, "where to write it; - is the standard output")
    options.add_language(parser)
    options.add_switch(parser, "--verbose", "show every item that needs attention")


def run(args: argparse.Namespace) -> int:
    """Read the findings and render them; of a migration folder make its page."""
    if args.findings is None or args.findings.is_dir():
        return results.make_page(args)
    from torchferry.conversion.rule import rule_docs
    from torchferry.report.findings import REPORTS
    from torchferry.report.findings.json import read_findings

    chosen = REPORTS.find(args.format or REPORTS.format_of(args.output))
    report = read_findings(args.findings)
    wanted = report_options(args, everything=args.verbose, rule_docs=rule_docs())
    output: Path | None = args.output
    if output is None and chosen.name in REPORTS.only_files:
        output = args.findings.with_suffix(chosen.suffix)
    if output is None or str(output) == "-":
        REPORTS.show(report, chosen.name, wanted)
        return 0
    REPORTS.write(report, output, wanted, chosen.name)
    said = Text("Report written to {path}", "报告已写入 {path}").format(path=output)
    print(said.in_language(options.language_of(args)), file=sys.stderr)
    return 0
