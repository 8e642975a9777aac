"""Drop-in for Cambricon's torch_gpu2mlu: the same flag, the same lines, the same files."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from torchferry.cli import main as ferry
from torchferry.cli import options
from torchferry.cli.grammar import About, Example, Parser
from torchferry.finding import Kind
from torchferry.outcome import FileRecord, FileStatus, Report
from torchferry.report.findings import words
from torchferry.report.findings.summary import in_order
from torchferry.report.safe import one_line
from torchferry.text import Language, Text

_SUMMARY = Text(
    "Convert CUDA PyTorch scripts to Cambricon MLU, as torch_gpu2mlu.py does",
    "与 torch_gpu2mlu.py 相同：将 CUDA 的 PyTorch 脚本转换到寒武纪 MLU",
)
_ABOUT = About(
    Text(
        "Writes the converted scripts to X_mlu beside X, with report.md (every change, then what was not changed and "
        "why), report.html and findings.json. A single file main.py becomes main_mlu/main.py. An X_mlu of an earlier "
        "run is replaced; any other is left alone. X is not touched. `ferry convert X --to cambricon -o OUT` does the "
        "same with more choices.",
        "将转换后的脚本写入 X 旁边的 X_mlu，并附 report.md（先列全部修改，再列未修改之处及原因）、report.html 和 findings.json。"
        "单个文件 main.py 写成 main_mlu/main.py。先前运行的 X_mlu 会被替换，其他同名文件夹保持不变。X 不受影响。`ferry convert X "
        "--to cambricon -o OUT` 功能相同，选项更多。",
    ),
    (Example("torch_gpu2mlu -i my_project", Text("Convert into my_project_mlu", "转换到 my_project_mlu")),),
    exit_codes=(
        ("3", Text("Some files could not be converted; the others were", "部分文件未能转换，其余已转换")),
    ),
    page="how-to/drop-ins.md",
)


def main(arguments: list[str] | None = None) -> int:
    """Run `torch_gpu2mlu`; returns the exit code."""
    return ferry.as_command("torch_gpu2mlu", _run, arguments)


def _run(given: list[str]) -> int:
    return ferry.run_parsed(_parser(), given, lambda args: _convert(args.input, options.language_of(args)))


def _parser() -> Parser:
    parser = Parser("torch_gpu2mlu", _SUMMARY, _ABOUT)
    text = Text("Folder or single Python file", "文件夹或单个 Python 文件")
    parser.add("-i", "--input", required=True, type=Path, metavar="X", text=text)
    options.add_language(parser)
    return parser


def _convert(given: Path, language: Language) -> int:
    from torchferry.cli import conversion
    from torchferry.conversion.discover import check_input
    from torchferry.conversion.write import Replace
    from torchferry.errors import InputError

    root = check_input(given)
    source = Path(os.path.abspath(root))
    name = source.stem if source.is_file() else source.name
    if not name:
        raise InputError(
            Text(
                f"{source}: has no name to put _mlu after; give the folder of your scripts",
                f"{source}：没有可加 _mlu 的名称；请给出脚本所在的文件夹",
            )
        )
    out = source.parent / f"{name}_mlu"
    outcome = conversion.convert(
        root,
        out,
        conversion.make_plan("cambricon"),
        lambda report: {"report.md": render(report, language)},
        Replace.OURS,
    )
    conversion.say(
        f"Official PyTorch model scripts: {source}",
        f"Cambricon PyTorch model scripts: {out}",
        f"Migration Report: {out / 'report.md'}",
    )
    return conversion.finish(outcome, str(out / "report.md"))


# report.md in the table format of Cambricon's torch_gpu2mlu, and after it what was not changed.

# Escaped so that a cell shows the code as it is: what ends a cell, begins markup, or emphasises.
_SPECIAL = re.compile(r"[\\`|<*\[~]|(?<![^\W_])_|_(?![^\W_])")
_LEFT_KINDS = (Kind.UNSUPPORTED, Kind.TODO, Kind.UNKNOWN)
_LEFT = Text("Not Changed", "未修改")
_LEFT_ABOUT = Text(
    "These places need you; each says what and why.", "以下位置需要您处理；每一条都说明了做什么和为什么。"
)
_NOTHING_LEFT = Text("Nothing else needs your attention.", "没有其他需要您处理的内容。")
_DESCRIPTION_COLUMN = Text("Description", "说明")
_NUMBER = Text("No.", "序号")


def render(report: Report, language: Language) -> bytes:
    """The contents of report.md."""
    changes = ((file, change) for file in report.files for change in _changed_lines(file))
    lines = [
        # The words of the vendor's tool, which are English in its Chinese guide too.
        "# Cambricon PyTorch Model Migration Report",
        "## Cambricon PyTorch Changes",
        "| No. |  File  |  Description  |",
        "| --- | --- | --- |",
        *(
            f"| {number} | {escape(file.path)}:{line} | {description} |"
            for number, (file, (line, description)) in enumerate(changes, 1)
        ),
        "",
        *_left(report, language),
    ]
    return ("\n".join(lines) + "\n").encode("utf-8")


def _changed_lines(record: FileRecord) -> Iterator[tuple[int, str]]:
    """(line of the original, what became of it); an added line has the number of the one it follows."""
    for hunk in record.hunks:
        line = hunk.old_start - 1
        for tag, old, new in hunk.lines:
            line += tag != "+"
            before, after = escape(old.strip()), escape(new.strip())
            if tag == "~":
                yield line, f'change "{before}" to "{after}"'
            elif tag == "+" and after:
                yield max(line, 1), f'add "{after}"'
            elif tag == "-" and before:
                yield line, f'delete "{before}"'


def _left(report: Report, language: Language) -> Iterator[str]:
    findings = [finding for finding in in_order(report.findings) if finding.kind in _LEFT_KINDS]
    yield f"## {_LEFT.in_language(language)}"
    if not findings:
        yield from ("", _NOTHING_LEFT.in_language(language))
        return
    yield from ("", _LEFT_ABOUT.in_language(language), "")
    headings = (_NUMBER, words.FILE, words.KIND_COLUMN, _DESCRIPTION_COLUMN)
    yield f"| {' | '.join(heading.in_language(language) for heading in headings)} |"
    yield "| --- | --- | --- | --- |"
    failed = {record.path for record in report.files if record.status is FileStatus.FAILED}
    for number, finding in enumerate(findings, start=1):
        place = f"{escape(finding.path)}:{finding.line}"
        kind = words.STATUS[FileStatus.FAILED] if finding.path in failed else words.KIND[finding.kind].name
        message = escape(finding.message.in_language(language))
        if finding.before.strip():
            message = f'"{escape(finding.before.strip())}": {message}'
        yield f"| {number} | {place} | {kind.in_language(language)} | {message} |"


def escape(text: str) -> str:
    """Text for a table cell, on one line."""
    return _SPECIAL.sub(r"\\\g<0>", one_line(text))


if __name__ == "__main__":  # python -m torchferry.cli.torch_gpu2mlu
    sys.exit(main())
