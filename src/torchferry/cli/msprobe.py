"""Drop-in for msprobe: `compare` of two of its dumps, with its options old and new, and its result table."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchferry.cli import main as ferry
from torchferry.cli import options
from torchferry.cli.ending import computing
from torchferry.cli.grammar import About, Example, Parser
from torchferry.cli.output import RECORD_EXTRA, need
from torchferry.errors import InputError, OutputError, RunError
from torchferry.report.progress import Counted, long_task
from torchferry.text import Text

if TYPE_CHECKING:
    from torchferry.accuracy.compare.model import RankComparison

_NAME = "msprobe"
_ABOUT = About(
    Text(
        "A drop-in for msprobe, with the options of its versions from 26 on and before. `ferry compare` does the same "
        "with more choices. The real msprobe may be installed beside it.",
        "msprobe 的替代命令，支持 26 及以后版本和更早版本的选项。`ferry compare` 功能相同，选项更多。可与真正的 msprobe 同时安装。",
    ),
    (
        Example(
            "msprobe compare -tp npu_dump -gp gpu_dump -o results",
            Text("Versions from 26 on", "26 及以后的版本"),
        ),
        Example(
            "msprobe -f pytorch compare -i compare.json -o results",
            Text(
                "Earlier versions; the file has npu_path and bench_path",
                "更早的版本；文件中含 npu_path 和 bench_path",
            ),
        ),
    ),
    exit_codes=(("1", Text("An operator is wrong", "有算子出错")),),
    page="how-to/msprobe.md",
)
_OFFLINE = "offline_data"
_WITHOUT_EFFECT = (
    ("-fm", "--fuzzy_match"),
    ("-da", "--diff_analyze"),
    ("-tensor_log", "--is_print_compare_log"),
    ("-s", "--stack_mode"),
    ("-c", "--compare_only"),
    ("-hl", "--highlight"),
    ("-f",),
)
_MAPPINGS = (
    ("-cm", "--cell_mapping"),
    ("-am", "--api_mapping"),
    ("-dm", "--data_mapping"),
    ("-lm", "--layer_mapping"),
)


def main(arguments: list[str] | None = None) -> int:
    """Run the drop-in; returns the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    return ferry.guarded(_NAME, lambda: ferry.run_parsed(_parser(), given, _compare))


def _parser() -> Parser:
    parser = Parser(
        _NAME, Text("Compare two dumps as msprobe does", "与 msprobe 相同：比较两份 dump"), _ABOUT
    )
    text = Text("Accepted; both are read", "可以给出；两者都能读取")
    parser.add("-f", "--framework", choices=("pytorch", "mindspore"), text=text)
    summary = Text("Compare two dumps, of ranks, steps or whole runs", "比较两份 dump：rank、步或整次运行")
    compare = parser.verb("compare", summary, _ABOUT, "verb")
    compare.add(
        "-tp", "--target_path", type=Path, metavar="MINE", text=Text("The dump to judge", "待测 dump")
    )
    compare.add(
        "-gp",
        "--golden_path",
        type=Path,
        metavar="GOLDEN",
        text=Text("The dump to compare with", "标杆 dump"),
    )
    text = Text("JSON file that names both, as in older versions", "指明两者的 JSON 文件（旧版本的用法）")
    compare.add("-i", "--input_path", type=Path, metavar="FILE", text=text)
    text = Text(
        "Folder for compare_result_TIME (default: ./output)",
        "存放 compare_result_TIME 的文件夹（默认：./output）",
    )
    place = Path("output")
    compare.add(
        "-o", "--output_path", type=Path, default=place, metavar="DIR", nargs="?", const=place, text=text
    )
    compare.add(
        "--xlsx",
        action="store_true",
        text=Text("Write a workbook; with -i it is one anyway", "写出工作簿；使用 -i 时本来就是"),
    )
    text = Text("offline_data: dump files of the runtime", "offline_data：运行时的 dump 文件")
    compare.add("-m", "--mode", choices=("auto", _OFFLINE), default="auto", text=text)
    for names in _WITHOUT_EFFECT:
        text = Text("Accepted; done anyway, or without effect here", "可以给出；本来就会执行，或在此无效")
        compare.add(*names, action="store_true", text=text)
    for names in _MAPPINGS:
        text = Text("Not supported: calls are matched automatically", "不支持：调用自动匹配")
        compare.add(*names, dest="mapping", nargs="?", const=names[1], metavar="FILE", text=text)
    options.add_quiet(compare)
    options.add_language(compare)
    return parser


def _compare(args: argparse.Namespace) -> int:
    if args.mapping is not None:
        raise RunError(
            Text(
                "mapping files are not supported; calls are matched by module, API, shapes and order",
                "不支持映射文件；调用按模块、接口、形状和顺序自动匹配",
            )
        )
    mine, golden, is_old = _paths(args)
    if args.mode == _OFFLINE:
        from torchferry.cli import msaccucmp

        _folder(args.output_path)
        return msaccucmp.main(["compare", "-m", str(mine), "-g", str(golden), "-out", str(args.output_path)])
    need(RECORD_EXTRA, "numpy")
    from torchferry.accuracy.compare.comparing import ComparingPlan, compare_files
    from torchferry.accuracy.report import REPORTS
    from torchferry.cli.compare import COMPARING, exit_code
    from torchferry.report.formats import Options

    _folder(args.output_path)
    with computing(), long_task(COMPARING, args.quiet, Counted.BYTES, options.language_of(args)) as show:
        comparisons = compare_files(mine, golden, ComparingPlan(progress=show))
    files = _write_tables(comparisons, args.output_path, is_workbook=args.xlsx or is_old, is_old=is_old)
    REPORTS.show(comparisons, "text", Options(language=options.language_of(args)))
    for file in files:
        print(f"{_NAME}: {file}", file=sys.stderr)
    return exit_code(comparisons, check=False)


def _paths(args: argparse.Namespace) -> tuple[Path, Path, bool]:
    """Mine, golden, and whether they were named as older versions want it."""
    if args.input_path is None:
        if args.target_path is None or args.golden_path is None:
            raise RunError(
                Text(
                    "which dumps? name both with -tp and -gp, or a file with both with -i",
                    "哪些 dump？请用 -tp 和 -gp 指定两者，或用 -i 指定包含两者的文件",
                )
            )
        return args.target_path, args.golden_path, False
    try:
        named: Any = json.loads(args.input_path.read_text("utf-8"))
        return Path(named["npu_path"]), Path(named["bench_path"]), True
    except OSError as error:
        raise InputError(
            Text(
                f"{args.input_path}: can't be read: {error.strerror or error}",
                f"{args.input_path}：无法读取：{error.strerror or error}",
            )
        ) from None
    except (ValueError, TypeError, KeyError):
        raise InputError(
            Text(
                f'{args.input_path}: must be {{"npu_path": "...", "bench_path": "..."}}',
                f'{args.input_path}：必须为 {{"npu_path": "...", "bench_path": "..."}}',
            )
        ) from None


def _folder(place: Path) -> None:
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            Text(
                f"{place}: can't be made: {error.strerror or error}",
                f"{place}：无法创建：{error.strerror or error}",
            )
        ) from None


def _write_tables(
    comparisons: Sequence[RankComparison], folder: Path, *, is_workbook: bool, is_old: bool
) -> list[Path]:
    from torchferry.accuracy.report.msprobe import table_of
    from torchferry.files.aside import write_whole
    from torchferry.report.csv import csv_lines, flat
    from torchferry.report.xlsx import Sheet, workbook

    now, files = f"{datetime.now():%Y%m%d%H%M%S}", []
    for comparison in comparisons:
        table = table_of(comparison, is_old=is_old)
        rank = "" if is_old and len(comparisons) == 1 else f"rank{comparison.mine.rank}_"
        file = folder / f"compare_result_{rank}{now}.{'xlsx' if is_workbook else 'csv'}"
        rows = map(flat, table.rows)
        if is_workbook:
            data = workbook([Sheet("Sheet1", [(name, 20) for name in table.columns], rows)])
            write_whole(file, data)
        else:
            lines = (line for part in ([table.columns], rows) for line in csv_lines(part, mark=False))
            write_whole(file, (line.encode("utf-8", "replace") for line in lines))
        files.append(file)
    return files


if __name__ == "__main__":
    sys.exit(main())
