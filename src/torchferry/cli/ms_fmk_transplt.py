"""Drop-in for Ascend's ms_fmk_transplt: the same flags, the same files."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry import __version__
from torchferry.cli import main as ferry
from torchferry.cli import options
from torchferry.cli.grammar import About, Example, Parser
from torchferry.errors import InputError, OutputError
from torchferry.finding import Kind
from torchferry.outcome import FileStatus, Report
from torchferry.report.findings import lists, words
from torchferry.report.findings.summary import WORST_FIRST, in_order, summarize
from torchferry.report.safe import one_line
from torchferry.text import Language, Text

if TYPE_CHECKING:
    from torchferry.conversion.write import Replace

_SUMMARY = Text(
    "Convert CUDA PyTorch scripts to Ascend NPU, as ms_fmk_transplt.py does",
    "与 ms_fmk_transplt.py 相同：将 CUDA 的 PyTorch 脚本转换到昇腾 NPU",
)
_ABOUT = About(
    Text(
        "Writes the converted scripts to DIR/xxx_msft, where xxx is the folder of the scripts, with "
        "msFmkTranspltlog.txt, change_list.csv, unsupported_op.xlsx, report.html and findings.json; further lists where "
        "there is something to list. On a terminal you are asked before an existing xxx_msft is replaced; elsewhere one "
        "of an earlier run is replaced, and any other is left alone. The input is not touched. `ferry convert X --to "
        "ascend -o OUT` does the same with more choices.",
        "将转换后的脚本写入 DIR/xxx_msft（xxx 为脚本文件夹名），并附 msFmkTranspltlog.txt、change_list.csv、unsupported_op.xlsx、"
        "report.html 和 findings.json；有内容时还有其他清单。在终端上替换已有的 xxx_msft 前会询问；否则只替换先前运行的结果，其他"
        "文件夹保持不变。输入不受影响。`ferry convert X --to ascend -o OUT` 功能相同，选项更多。",
    ),
    (
        Example(
            "ms_fmk_transplt -i my_project -o .",
            Text("Convert into my_project_msft", "转换到 my_project_msft"),
        ),
        Example(
            "ms_fmk_transplt -i my_project -o . distributed -m my_project/train.py",
            Text("Also rewrite the program for all cards", "同时将程序改写为多卡训练"),
        ),
    ),
    usage=("-i X -o DIR [-r FILE.json] [-s] [-sim] [distributed -m MAIN [-t MODEL]]",),
    exit_codes=(
        ("3", Text("Some files could not be converted; the others were", "部分文件未能转换，其余已转换")),
    ),
    page="how-to/drop-ins.md",
)


def main(arguments: list[str] | None = None) -> int:
    """Run `ms_fmk_transplt`; returns the exit code."""
    return ferry.as_command(
        "ms_fmk_transplt", lambda given: ferry.run_parsed(_parser(), given, _convert), arguments
    )


def _parser() -> Parser:
    parser = Parser("ms_fmk_transplt", _SUMMARY, _ABOUT)
    text = Text("Folder or single Python file", "文件夹或单个 Python 文件")
    parser.add("-i", "--input", required=True, type=Path, metavar="X", text=text)
    text = Text("Folder in which xxx_msft is written", "写入 xxx_msft 的文件夹")
    parser.add("-o", "--output", required=True, type=Path, metavar="DIR", text=text)
    parser.add(
        "-r",
        "--rule",
        type=Path,
        metavar="FILE.json",
        text=Text("Your own rules; a .toml file works as well", "自定义规则；也可以是 .toml 文件"),
    )
    text = Text(
        "Take the device from the variable DEVICE_ID; may conflict with a script's own distributed set-up",
        "从环境变量 DEVICE_ID 获取设备；可能与脚本自身的分布式设置冲突",
    )
    parser.add("-s", "--specify-device", action="store_true", text=text)
    text = Text(
        "Replace APIs that the device lacks by similar ones; accuracy or speed may differ",
        "将设备缺少的接口替换为相似接口；精度或速度可能不同",
    )
    parser.add("-sim", "--similar", action="store_true", text=text)
    text = Text("Accepted: the torch version of the scripts", "可以给出：脚本的 torch 版本")
    parser.add("-v", "--version", dest="torch_version", metavar="VERSION", text=text)
    options.add_language(parser)
    parser.set_defaults(main=None, target_model=None)
    summary = Text("Rewrite the program for all cards; comes last", "将程序改写为多卡训练；写在最后")
    distributed = parser.verb(
        "distributed", summary, replace(_ABOUT, usage=("-m MAIN [-t MODEL]",)), required=False
    )
    text = Text("Script that starts the training", "启动训练的脚本")
    distributed.add("-m", "--main", required=True, type=Path, metavar="MAIN", text=text)
    text = Text(
        "Variable that holds the model, if it is not found automatically",
        "保存模型的变量名（未能自动识别时）",
    )
    distributed.add("-t", "--target_model", metavar="MODEL", text=text)
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
            raise InputError(
                Text(
                    f"no such file: {args.main}; -m names the script that starts the training",
                    f"没有该文件：{args.main}；-m 指定启动训练的脚本",
                )
            )
        if not args.main.resolve().is_relative_to(root.resolve()):
            raise InputError(
                Text(
                    f"{args.main}: not in {root}; -m names a script of the input",
                    f"{args.main}：不在 {root} 中；-m 指定输入中的脚本",
                )
            )
        folder = (root.parent if root.is_file() else root).resolve()
        main = args.main.resolve().relative_to(folder).as_posix()
        settings = PassSettings(Distributed(main, args.target_model or ""))
    source = Path(os.path.abspath(root))
    folder = source.parent if source.is_file() else source
    if not folder.name:
        raise InputError(
            Text(
                f"{folder}: has no name to put _msft after; give the folder of your scripts",
                f"{folder}：没有可加 _msft 的名称；请给出脚本所在的文件夹",
            )
        )
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
        lambda report: make_files(report, str(source), _shown_options(args), options.language_of(args)),
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
            Text(
                f"-o names a folder: the scripts are written to {out}; `ferry convert -o FILE.py` writes one file",
                f"-o 指定文件夹：脚本写入 {out}；`ferry convert -o FILE.py` 可只写一个文件",
            )
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
        raise OutputError(
            Text(
                f"{out}: left unchanged; choose another output folder",
                f"{out}：保持不变；请选择其他输出文件夹",
            )
        )
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
