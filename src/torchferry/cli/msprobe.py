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
from torchferry.cli.output import need
from torchferry.errors import InputError, OutputError, RunError
from torchferry.report.progress import Counted, long_task

if TYPE_CHECKING:
    from torchferry.accuracy.compare.model import RankComparison

_NAME = "msprobe"
_EPILOG = """\
Versions from 26 on: compare -tp MINE -gp GOLDEN -o DIR. Versions before: -f pytorch compare -i compare.json -o DIR,
where the file names npu_path and bench_path. `ferry compare MINE GOLDEN` does the same with more choices.

The real msprobe may be installed beside this: it keeps its name.

exit codes: those of `ferry compare`; 2 bad usage or bad input; 130 interrupted"""
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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=_NAME,
        description="Compare two dumps as msprobe does.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-f", "--framework", choices=("pytorch", "mindspore"), help="accepted; both are read")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="compare")
    compare = verbs.add_parser("compare", help="two dumps, of ranks, steps or whole runs", allow_abbrev=False)
    compare.add_argument("-tp", "--target_path", type=Path, metavar="MINE", help="the dump to judge")
    compare.add_argument(
        "-gp", "--golden_path", type=Path, metavar="GOLDEN", help="the dump to hold it against"
    )
    compare.add_argument(
        "-i",
        "--input_path",
        type=Path,
        metavar="FILE",
        help="both, in a JSON file, as older versions have it",
    )
    compare.add_argument(
        "-o", "--output_path", type=Path, default=Path("output"), metavar="DIR", nargs="?", const=Path("output"),
        help="where compare_result_TIME goes (default: ./output)",
    )  # fmt: skip
    compare.add_argument("--xlsx", action="store_true", help="a workbook; with -i it is one anyway")
    compare.add_argument(
        "-m",
        "--mode",
        choices=("auto", _OFFLINE),
        default="auto",
        help=f"{_OFFLINE}: dump files of the runtime",
    )
    for names in _WITHOUT_EFFECT:
        compare.add_argument(
            *names, action="store_true", help="accepted; it is done anyway, or has no effect here"
        )
    for names in _MAPPINGS:
        compare.add_argument(
            *names, dest="mapping", nargs="?", const=names[1], help="is not there: calls are matched"
        )
    options.add_quiet(compare)
    options.add_language(compare)
    return parser


def _compare(args: argparse.Namespace) -> int:
    if args.mapping is not None:
        raise RunError("mapping files are not there; calls are matched by module, API, shapes and order")
    mine, golden, is_old = _paths(args)
    if args.mode == _OFFLINE:
        from torchferry.cli import msaccucmp

        _folder(args.output_path)
        return msaccucmp.main(["compare", "-m", str(mine), "-g", str(golden), "-out", str(args.output_path)])
    need("records are read with", "numpy")
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
            raise RunError("which dumps? name both with -tp and -gp, or a file with both with -i")
        return args.target_path, args.golden_path, False
    try:
        named: Any = json.loads(args.input_path.read_text("utf-8"))
        return Path(named["npu_path"]), Path(named["bench_path"]), True
    except OSError as error:
        raise InputError(f"{args.input_path}: can't be read: {error.strerror or error}") from None
    except (ValueError, TypeError, KeyError):
        raise InputError(f'{args.input_path}: should be {{"npu_path": "...", "bench_path": "..."}}') from None


def _folder(place: Path) -> None:
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{place}: can't be made: {error.strerror or error}") from None


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
