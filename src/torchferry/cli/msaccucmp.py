"""Drop-in for Ascend's msaccucmp: `compare` of two records or dumps, `convert` of dump files to numpy's."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from torchferry.cli import main as ferry
from torchferry.cli.grammar import About, Example, Parser
from torchferry.errors import InputError, OutputError
from torchferry.text import Text

_SUMMARY = Text(
    "Compare two recordings, or convert dump files, as msaccucmp.py does",
    "与 msaccucmp.py 相同：比较两份记录，或转换 dump 文件",
)
_ABOUT = About(
    Text(
        "A drop-in for Ascend's msaccucmp. `ferry compare` and `ferry record convert` do the same with more choices.",
        "昇腾 msaccucmp 的替代命令。`ferry compare` 和 `ferry record convert` 功能相同，选项更多。",
    ),
    (
        Example(
            "msaccucmp compare -m npu_dump -g gpu_dump -out results",
            Text("Compare two folders of dumps", "比较两个 dump 文件夹"),
        ),
        Example(
            "msaccucmp convert -d npu_dump -out tensors",
            Text("Convert dump files to .npy", "将 dump 文件转换为 .npy"),
        ),
    ),
    exit_codes=(("1", Text("compare: an operator is wrong", "compare：有算子出错")),),
    page="how-to/compare.md",
)


def main(arguments: list[str] | None = None) -> int:
    """Run `msaccucmp`; returns the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    work = {"compare": _compare, "convert": _convert}
    return ferry.guarded(
        "msaccucmp", lambda: ferry.run_parsed(_parser(), given, lambda args: work[args.verb](args))
    )


def _parser() -> Parser:
    parser = Parser("msaccucmp", _SUMMARY, _ABOUT)
    about = replace(_ABOUT, examples=_ABOUT.examples[:1])
    compare = parser.verb(
        "compare",
        Text("Compare two recordings or folders of dump files", "比较两份记录或两个 dump 文件夹"),
        about,
        "verb",
    )
    compare.add(
        "-m",
        "--my_dump_path",
        type=Path,
        required=True,
        metavar="MINE",
        text=Text("The recording or dump to judge", "待测记录或 dump"),
    )
    compare.add(
        "-g",
        "--golden_dump_path",
        type=Path,
        required=True,
        metavar="GOLDEN",
        text=Text("The one to compare with", "标杆记录或 dump"),
    )
    text = Text(
        "Folder for result_TIME.csv (default: the current one)",
        "存放 result_TIME.csv 的文件夹（默认：当前文件夹）",
    )
    compare.add("-out", "--output", type=Path, default=Path(), metavar="DIR", text=text)
    about = replace(_ABOUT, examples=_ABOUT.examples[1:], exit_codes=())
    convert = parser.verb(
        "convert", Text("Convert dump files to .npy files", "将 dump 文件转换为 .npy 文件"), about, "verb"
    )
    text = Text("Files or folders, separated by commas", "文件或文件夹，以逗号分隔")
    convert.add("-d", "--dump_path", "--dump_file", required=True, metavar="PATH", text=text)
    text = Text(
        "Folder for the .npy files (default: the current one)", "存放 .npy 文件的文件夹（默认：当前文件夹）"
    )
    convert.add("-out", "--output", type=Path, default=Path(), metavar="DIR", text=text)
    text = Text("Accepted; both versions are read", "可以给出；两个版本都能读取")
    convert.add("-v", "--version", choices=("1", "2"), default="2", text=text)
    text = Text("Format to write (default: npy)", "写出的格式（默认：npy）")
    convert.add("-t", "--type", choices=("npy",), default="npy", text=text)
    return parser


def _compare(args: argparse.Namespace) -> int:
    from torchferry.cli import compare

    _check_folder(args.output)
    file = args.output / f"result_{datetime.now():%Y%m%d%H%M%S}.msaccucmp.csv"
    parser = Parser("msaccucmp compare", Text("", ""), compare.ABOUT)
    compare.add_arguments(parser)
    words = ["--mine", str(args.my_dump_path), "--golden", str(args.golden_dump_path), "-o", str(file), "-q"]
    code = compare.run(parser.parse(words))
    file.replace(file.with_name(file.name.replace(".msaccucmp", "")))
    return code


def _convert(args: argparse.Namespace) -> int:
    from torchferry.accuracy.file.convert import write_dump_files
    from torchferry.accuracy.file.dumps import open_dump

    _check_folder(args.output)
    count = 0
    for place in args.dump_path.split(","):
        record = open_dump(Path(place))
        if record is None:
            raise InputError(
                Text(
                    f"{place}: neither a dump file of a runtime nor a folder of them",
                    f"{place}：不是运行时的 dump 文件或其文件夹",
                )
            )
        with record:
            count += write_dump_files(record, args.output)
    print(f"msaccucmp: {args.output}: {count:,} tensors", file=sys.stderr)
    return 0


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise OutputError(Text(f"no such folder: {folder}", f"没有该文件夹：{folder}"))


if __name__ == "__main__":
    sys.exit(main())
