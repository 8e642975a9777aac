"""Drop-in for Ascend's ms_fmk_transplt: the same flags, the same files."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry import __version__
from torchferry.cli import main as ferry
from torchferry.errors import InputError, OutputError
from torchferry.finding import Kind
from torchferry.outcome import FileStatus, Report
from torchferry.report.findings import lists, words
from torchferry.report.findings.summary import WORST_FIRST, in_order, summarize
from torchferry.report.safe import one_line
from torchferry.text import Language, Text, user_language

if TYPE_CHECKING:
    from torchferry.conversion.write import Replace

_DESCRIPTION = "Convert CUDA PyTorch scripts to Ascend NPU, as ms_fmk_transplt.py does."
_EPILOG = """\
The converted scripts appear in DIR/xxx_msft, where xxx is the folder of the
scripts, with msFmkTranspltlog.txt, change_list.csv, unsupported_op.xlsx,
report.html and findings.json; where there is something to list also with
unsupported_api.csv, unknown_api.csv, cuda_op_list.csv, api_precision_advice.csv
and api_performance_advice.csv. On a terminal you are asked before an existing
xxx_msft is replaced; elsewhere one of an earlier run is replaced, and any other
is left alone with a message. The input is not touched.

`distributed -m MAIN [-t MODEL]` comes last. It makes a program for one card one
for many, and writes run_distributed_npu.sh, which starts it on all cards.

`ferry convert X --to ascend -o OUT` does the same with more choices: --diff,
--dry-run, --in-place, --select, --exclude.

exit codes: 0 fine, 2 bad usage or bad input, 3 some files failed and the others
were done, 130 interrupted"""


def main(arguments: list[str] | None = None) -> int:
    """Run `ms_fmk_transplt`; returns the exit code."""
    return ferry.as_command(
        "ms_fmk_transplt", lambda given: ferry.run_parsed(_parser(), given, _convert), arguments
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ms_fmk_transplt",
        usage="%(prog)s -i X -o DIR [-r FILE.json] [-s] [-sim] [distributed -m MAIN [-t MODEL]]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("-i", "--input", required=True, type=Path, metavar="X", help="a folder, or a single Python file")
    add("-o", "--output", required=True, type=Path, metavar="DIR", help="where xxx_msft is put")
    add("-r", "--rule", type=Path, metavar="FILE.json", help="your own rules; FILE.toml does as well")
    add(
        "-s",
        "--specify-device",
        action="store_true",
        help="take the device from the variable DEVICE_ID; may defeat a script's own distributed set-up",
    )
    add(
        "-sim",
        "--similar",
        action="store_true",
        help="replace APIs that the device lacks by similar ones; accuracy or speed may differ",
    )
    add(
        "-v",
        "--version",
        dest="torch_version",
        metavar="VERSION",
        help="accepted; the scripts' torch version",
    )
    parser.set_defaults(main=None, target_model=None)
    commands = parser.add_subparsers(metavar="distributed", prog="ms_fmk_transplt ...")
    distributed = commands.add_parser("distributed", help="make a program for one card one for many")
    distributed.add_argument(
        "-m", "--main", required=True, type=Path, metavar="MAIN", help="the script that starts the training"
    )
    distributed.add_argument(
        "-t",
        "--target_model",
        metavar="MODEL",
        help="the model's variable, if it is not found by itself",
    )
    return parser


def _convert(args: argparse.Namespace) -> int:
    from torchferry.cli import conversion
    from torchferry.cli.output import note
    from torchferry.conversion.custom.json_format import load_custom_rules
    from torchferry.conversion.discover import check_input
    from torchferry.conversion.settings import Distributed, PassSettings

    root = check_input(args.input)
    settings = PassSettings()
    if args.main is not None:
        if not args.main.is_file():
            raise InputError(f"{args.main}: no such file; -m names the script that starts the training")
        if not args.main.resolve().is_relative_to(root.resolve()):
            raise InputError(f"{args.main}: is not in {root}; -m names a script of the input")
        folder = (root.parent if root.is_file() else root).resolve()
        main = args.main.resolve().relative_to(folder).as_posix()
        settings = PassSettings(Distributed(main, args.target_model or ""))
    source = Path(os.path.abspath(root))
    folder = source.parent if source.is_file() else source
    if not folder.name:
        raise InputError(f"{folder}: has no name to put _msft after; give the folder of your scripts")
    out = Path(os.path.abspath(args.output)) / f"{folder.name}_msft"
    custom = load_custom_rules(args.rule, other=".json") if args.rule else None
    opt_ins = {
        "specify_device": args.specify_device,
        "similar": args.similar,
        "distributed": args.main is not None,
    }
    chosen = frozenset(name for name, is_chosen in opt_ins.items() if is_chosen)
    plan = conversion.make_plan("ascend", chosen, custom, settings)
    outcome = conversion.convert(
        root,
        out,
        plan,
        lambda report: make_files(report, str(source), _shown_options(args), user_language()),
        _may_replace(out),
    )
    conversion.say(
        f"converted scripts: {out}",
        f"change list: {out / lists.CHANGES}",
        f"unsupported operators: {out / lists.UNSUPPORTED_SHEET}",
        f"log: {out / LOG}",
    )
    if args.output.suffix == ".py":
        note(
            f"-o names a folder: the scripts are written to {out}; `ferry convert -o FILE.py` writes one file"
        )
    return conversion.finish(outcome, str(out / LOG))


def _may_replace(out: Path) -> Replace:
    """Ask on a terminal; elsewhere only what an earlier run has made may go."""
    from torchferry.conversion.discover import is_converted_copy
    from torchferry.conversion.write import Replace

    if not (sys.stdin.isatty() and sys.stderr.isatty()) or not (out.is_dir() and any(out.iterdir())):
        return Replace.OURS
    foreign = "" if is_converted_copy(out) else ", which this tool has not made,"
    print(f"{out} exists. Delete it{foreign} and write it anew? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise OutputError(f"{out}: left as it is; choose another output folder")
    return Replace.ANYTHING


def _shown_options(args: argparse.Namespace) -> list[str]:
    shown = ["--specify-device"] if args.specify_device else []
    if args.similar:
        shown.append("--similar")
    if args.rule:
        shown.append(f"--rule {args.rule}")
    if args.main is not None:
        model = f" --target_model {args.target_model}" if args.target_model else ""
        shown.append(f"distributed --main {args.main}{model}")
    return shown


# The files that Ascend's ms_fmk_transplt leaves: the log, and the lists. They carry no time: two runs over the same project
# write the same bytes.

LOG = "msFmkTranspltlog.txt"

_STARTED = Text(
    "TorchFerry {version} reads {source} for {vendor}", "TorchFerry {version} 读取 {source}，目标 {vendor}"
)
_OPTIONS = Text("options: {options}", "选项：{options}")
_NO_OPTIONS = Text("none", "无")
_FILE = Text("{path}: {status}; {counts}", "{path}：{status}；{counts}")
_FAILED = Text("{path}: {status}: {reason}", "{path}：{status}：{reason}")
_DONE = Text(
    "done: {seen} files seen, {changed} changed, {failed} not processed; {automatic} of {sites} places converted",
    "完成：扫描 {seen} 个文件，修改 {changed} 个，未处理 {failed} 个；{sites} 处中自动转换 {automatic} 处",
)
_LEVELS = {Kind.UNSUPPORTED: "ERROR", Kind.TODO: "WARNING", Kind.UNKNOWN: "WARNING", Kind.RISK: "WARNING"}


def make_files(report: Report, source: str, options: list[str], language: Language) -> dict[str, bytes]:
    """The log and the lists, by name."""
    lines = map(one_line, _log_lines(report, source, options, language))
    log = "".join(f"{line}\n" for line in lines).encode("utf-8")
    return {LOG: log, **lists.make_lists(report, language)}


def _log_lines(report: Report, source: str, options: list[str], language: Language) -> Iterator[str]:
    def info(text: Text, **values: object) -> str:
        return f"[INFO] {text.format(**values).in_language(language)}"

    yield info(_STARTED, version=__version__, source=source, vendor=report.vendor)
    yield info(_OPTIONS, options=" ".join(options) or _NO_OPTIONS.in_language(language))
    summary = summarize(report)
    for record in report.files:
        status = words.STATUS[record.status].in_language(language)
        if record.status is FileStatus.FAILED:
            failed = _FAILED.format(path=record.path, status=status, reason=record.reason)
            yield f"[ERROR] {failed.in_language(language)}"
        else:
            counts = summary.by_file.get(record.path, {})
            found = ((words.KIND[kind].name, counts.get(kind, 0)) for kind in WORST_FIRST)
            said = ", ".join(f"{name.in_language(language)} {count}" for name, count in found if count)
            yield info(_FILE, path=record.path, status=status, counts=said)
    for finding in in_order(report.findings):
        if finding.kind in _LEVELS:
            kind = words.KIND[finding.kind].name.in_language(language)
            message = finding.message.in_language(language)
            yield f"[{_LEVELS[finding.kind]}] {finding.path}:{finding.line}: {kind}: {finding.before}: {message}"
    yield info(
        _DONE,
        seen=summary.files_seen,
        changed=summary.files_changed,
        failed=summary.files_failed,
        automatic=summary.automatic,
        sites=summary.sites,
    )


if __name__ == "__main__":  # python -m torchferry.cli.ms_fmk_transplt
    sys.exit(main())
