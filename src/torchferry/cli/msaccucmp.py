"""Drop-in for Ascend's msaccucmp: `compare` of two records or dumps, `convert` of dump files to numpy's."""

from __future__ import annotations

import argparse
import sys
from datetime import datetime
from pathlib import Path

from torchferry.cli import main as ferry
from torchferry.errors import InputError, OutputError

_EPILOG = """\
`ferry compare` and `ferry record convert` do the same with more choices.

exit codes: compare: those of `ferry compare`; convert: 0 fine; both: 2 bad usage or bad input, 130 interrupted"""


def main(arguments: list[str] | None = None) -> int:
    """Run `msaccucmp`; returns the exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    work = {"compare": _compare, "convert": _convert}
    return ferry.guarded(
        "msaccucmp", lambda: ferry.run_parsed(_parser(), given, lambda args: work[args.verb](args))
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="msaccucmp",
        description="Compare two records of operators, or convert dump files, as msaccucmp.py does.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="compare|convert")
    compare = verbs.add_parser("compare", help="two records or folders of dump files")
    compare.add_argument("-m", "--my_dump_path", type=Path, required=True, metavar="MINE")
    compare.add_argument("-g", "--golden_dump_path", type=Path, required=True, metavar="GOLDEN")
    compare.add_argument(
        "-out", "--output", type=Path, default=Path(), metavar="DIR", help="where result_TIME.csv goes"
    )
    convert = verbs.add_parser("convert", help="dump files to .npy files")
    convert.add_argument(
        "-d",
        "--dump_path",
        "--dump_file",
        required=True,
        metavar="FILE_OR_FOLDER",
        help="several with commas between",
    )
    convert.add_argument("-out", "--output", type=Path, default=Path(), metavar="DIR")
    convert.add_argument("-v", "--version", choices=("1", "2"), default="2", help="accepted; both are read")
    convert.add_argument(
        "-t", "--type", choices=("npy",), default="npy", help="what is written (default: npy)"
    )
    return parser


def _compare(args: argparse.Namespace) -> int:
    from torchferry.cli import compare

    _check_folder(args.output)
    file = args.output / f"result_{datetime.now():%Y%m%d%H%M%S}.msaccucmp.csv"
    parser = argparse.ArgumentParser()
    compare.add_arguments(parser)
    words = ["-m", str(args.my_dump_path), "-g", str(args.golden_dump_path), "-o", str(file), "-q"]
    code = compare.run(parser.parse_args(words))
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
            raise InputError(f"{place}: is no dump file of a runtime, nor a folder with some")
        with record:
            count += write_dump_files(record, args.output)
    print(f"msaccucmp: {args.output}: {count:,} tensors", file=sys.stderr)
    return 0


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise OutputError(f"{folder}: there is no such folder")


if __name__ == "__main__":
    sys.exit(main())
