"""`ferry report`: findings.json in another format."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from torchferry.cli import options, results
from torchferry.cli.grammar import About, Example, Parser
from torchferry.cli.output import report_options
from torchferry.text import Text

FORMAT_NAMES = ("text", "json", "sarif", "github", "md", "csv", "xlsx", "html")


ABOUT = About(
    Text(
        "Makes one page of all results in a migration folder. From the findings.json of an earlier `ferry scan` or `ferry "
        "convert` it makes a report in any format, without reading the project again.",
        "将迁移文件夹中的全部结果汇总为一个页面。也可由先前 `ferry scan` 或 `ferry convert` 写出的 findings.json 生成任意格式的报告，"
        "不再读取项目。",
    ),
    (
        Example(
            "ferry report",
            Text("Make the page of this project's migration folder", "生成本项目迁移文件夹的页面"),
        ),
        Example("ferry report my_project_npu/findings.json", Text("Print the report", "输出报告")),
        Example("ferry report findings.json -o report.html", Text("Make a page", "生成网页")),
        Example(
            "ferry report findings.json --format sarif -o -",
            Text("Print SARIF for a code scanning service", "输出 SARIF，供代码扫描服务使用"),
        ),
    ),
    page="formats/reports.md",
)


def add_arguments(parser: Parser) -> None:
    """The options of `ferry report`."""
    text = Text(
        "File written by `ferry scan --format json` or `ferry convert`, or a migration folder, of which one page is made "
        "(default: the .ferry folder of this project)",
        "`ferry scan --format json` 或 `ferry convert` 写出的文件，或迁移文件夹（生成一个汇总页面；默认：本项目的 .ferry 文件夹）",
    )
    parser.add("findings", nargs="?", type=Path, metavar="FINDINGS.json|DIR", text=text)
    text = Text(
        "Format of the report (default: text, or by the suffix of -o)",
        "报告格式（默认：text，或由 -o 的后缀决定）",
    )
    parser.add("--format", choices=FORMAT_NAMES, text=text)
    options.add_json(parser)
    text = Text("Write the report to FILE; - is standard output", "将报告写入 FILE；- 表示标准输出")
    options.add_output(parser, None, text)
    text = Text(
        "Keep the ticks that a page has exported (ticks.json) in the migration folder; its next pages show them",
        "将页面导出的勾选（ticks.json）保存到迁移文件夹；之后生成的页面会显示它们",
    )
    parser.add("--ticks", type=Path, metavar="FILE", text=text)
    options.add_verbose(parser, old=())
    options.add_language(parser)


def run(args: argparse.Namespace) -> int:
    """Read the findings and render them; of a migration folder make its page."""
    if args.findings is None or args.findings.is_dir():
        return results.make_page(args)
    from torchferry.conversion.examples import rule_docs
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
