"""`ferry prove`: the original on the CPU and the migrated program on simulated or emulated devices compute the same."""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.cli import next_step, options
from torchferry.cli.grammar import About, Example, Group, Parser
from torchferry.cli.output import note, show
from torchferry.cli.program import USAGE, add_program, add_torchrun, torchrun_options, words_of
from torchferry.errors import InputError, RunError
from torchferry.text import Text
from torchferry.vendors.registry import get_vendor

if TYPE_CHECKING:
    from torchferry.launch.program import Program
    from torchferry.proof.model import Proof
    from torchferry.proof.runs import ProofPlan

_DEFAULT_STEPS = 20
_tolerance = options.number_from_zero(math.inf, Text("a tolerance; write it as 1e-6", "容差；请写成 1e-6"))


ABOUT = About(
    Text(
        "Runs the original program on the CPU and the migrated one on the vendors' devices, simulated or emulated, with "
        "the same data and random numbers, and compares losses, gradients and weights of every step.",
        "用相同的数据和随机数，在 CPU 上运行原程序，在厂商的模拟设备或仿真设备上运行迁移后的程序，比较每一步的损失、梯度和权重。",
    ),
    (
        Example(
            "ferry prove --to ascend -- train.py --epochs 1",
            Text("Verify a program that `ferry run` migrates", "验证由 `ferry run` 迁移的程序"),
        ),
        Example(
            "ferry prove --to ascend --before app/train.py --after app_npu/train.py",
            Text("Verify a converted copy", "验证转换后的副本"),
        ),
        Example(
            "ferry prove --to ascend,cambricon -o proof -- train.py",
            Text("Two vendors; keep the report", "验证两个厂商并保存报告"),
        ),
    ),
    usage=(
        f"--to VENDOR[,VENDOR...] {USAGE}",
        "--to VENDOR[,VENDOR...] [OPTIONS] --before SCRIPT --after SCRIPT [-- ARGUMENTS]",
    ),
    exit_codes=(
        ("0", Text("The runs are equal for every vendor", "所有厂商的运行结果一致")),
        ("1", Text("They differ, or a run failed", "结果不一致，或运行失败")),
    ),
    page="how-to/prove.md",
)


def add_arguments(parser: Parser) -> None:
    """The options of `ferry prove`."""
    add_program(parser, "--module")
    options.add_to(parser, options.TO_SEVERAL, required=True, metavar="VENDOR[,VENDOR]")
    text = Text("The program before the conversion", "转换前的程序")
    parser.add("--before", old=("--original",), dest="original", metavar="SCRIPT", text=text)
    text = Text(
        "The program after the conversion; {vendor} in the path stands for each vendor's name",
        "转换后的程序；路径中的 {vendor} 代表各厂商的名称",
    )
    parser.add("--after", old=("--converted",), dest="converted", metavar="SCRIPT", text=text)
    options.add_vendor_path(parser)
    text = Text(
        "Keep proof.json, proof.html and the output of the runs in DIR",
        "将 proof.json、proof.html 和运行输出保存在 DIR",
    )
    options.add_output(parser, None, text, "DIR")
    options.add_format(parser)
    options.add_quiet(parser)
    options.add_language(parser)
    _add_common(parser.group(Text("What both runs have in common", "两次运行的共同设置")))
    group = parser.group(Text("What counts as equal", "一致的标准"))
    text = Text(
        "Relative tolerance (default: by dtype, as torch.testing.assert_close)",
        "相对容差（默认：按数据类型，同 torch.testing.assert_close）",
    )
    group.add("--rtol", type=_tolerance, metavar="X", text=text)
    text = Text("Absolute tolerance (default: by dtype, as above)", "绝对容差（默认：按数据类型，同上）")
    group.add("--atol", type=_tolerance, metavar="X", text=text)
    options.add_switch(
        group, "--exact", Text("Require results that are equal bit for bit", "要求结果逐位一致")
    )
    add_torchrun(parser)


def _add_common(group: Group) -> None:
    text = Text(
        "Stop each run after N steps, not counting those that a GradScaler skips; `all` runs it to its end (default: {steps})",
        "每次运行 N 步后停止，不计 GradScaler 跳过的步；`all` 表示运行到结束（默认：{steps}）",
    ).format(steps=_DEFAULT_STEPS)
    options.add_steps(group, text, _DEFAULT_STEPS)
    options.add_seed(
        group, Text("Random seed for every generator (default: 0)", "所有随机数生成器的种子（默认：0）"), 0
    )
    text = Text(
        "Start the migrated run with the weights of the original, whatever it initialized itself",
        "迁移后的运行从原程序的权重开始，不使用自身初始化的权重",
    )
    options.add_switch(group, "--same-weights", text)
    text = Text(
        "Number of devices the program sees (default: one per process)",
        "程序可见的设备数（默认：每个进程一个）",
    )
    options.add_devices(group, text)
    options.add_memory(group, Text("Memory of each device, for example 32GiB", "每个设备的显存，例如 32GiB"))
    text = Text(
        "Run the migrated program on the vendor's own plugin with an emulated device instead of a simulated one; "
        "`ferry emulate setup` installs it",
        "在仿真设备上用厂商自己的插件运行迁移后的程序，而非模拟设备；`ferry emulate setup` 负责安装",
    )
    options.add_emulate(group, text)
    text = Text(
        "Folder in which both runs start (default: the current one; with --before and --after, the root of each project)",
        "两次运行的起始文件夹（默认：当前文件夹；使用 --before 和 --after 时为各自项目的根目录）",
    )
    group.add("--cwd", type=Path, metavar="DIR", text=text)
    options.add_timeout(
        group,
        Text("Stop a run after SECONDS (default: no limit)", "超过 SECONDS 秒后停止运行（默认：不限时）"),
    )


def run(args: argparse.Namespace) -> int:
    """Run the proof; 0 if it holds for every vendor, 1 if not."""
    from torchferry.building.build import silent
    from torchferry.proof.prover import run_proof
    from torchferry.proof.report import REPORTS
    from torchferry.proof.runs import shown

    def show_proof(proof: Proof, kept: Path) -> None:
        _show_crashes(proof, kept)
        show(REPORTS, proof, args)

    language = options.language_of(args)
    watch = None if args.quiet else partial(shown, language=language)
    progress = silent if args.quiet else None
    earlier, proof = run_proof(_plan(args), args.output, language, watch, show_proof, progress)
    if earlier:
        note(_KEPT.format(path=earlier))
    if proof.holds:
        _say_next(args)
    return 0 if proof.holds else 1


def _say_next(args: argparse.Namespace) -> None:
    vendors = options.names(args.to)
    if args.quiet or not args.converted or args.nproc or args.is_module or len(vendors) != 1:
        return
    found = next_step.after_proof(Path(args.original), Path(args.converted), vendors[0], args.vendor_path)
    for line in found:
        print(line.in_language(options.language_of(args)), file=sys.stderr)


_KEPT = Text(
    "what was there is kept as {path}: it holds things that no proof has written",
    "原有内容保留为 {path}：其中有并非由验证写出的内容",
)


def _plan(args: argparse.Namespace) -> ProofPlan:
    from torchferry.proof.prover import places_of, refuse_unprovable
    from torchferry.proof.runs import ProofPlan

    vendors = [get_vendor(name, args.vendor_path) for name in options.names(args.to)]
    if not vendors:
        raise RunError(
            Text(
                "which devices? ferry prove --to VENDOR[,VENDOR...] -- SCRIPT",
                "哪些设备？ferry prove --to VENDOR[,VENDOR...] -- SCRIPT",
            )
        )
    for vendor in vendors:
        refuse_unprovable(vendor, args.emulate)
    original, converted = _programs(args)
    devices, paths = args.devices or args.nproc or 1, options.vendor_paths(args)
    places = places_of(vendors, args.emulate, converted is not None, devices, args.memory, paths)
    if args.cwd is not None and not args.cwd.is_dir():
        raise InputError(
            Text(
                f"no such folder: {args.cwd}; --cwd names the folder in which both runs start",
                f"没有该文件夹：{args.cwd}；--cwd 指定两次运行的起始文件夹",
            )
        )
    return ProofPlan(
        original=original,
        converted=converted,
        places=places,
        devices=devices,
        steps=args.steps,
        seed=args.seed,
        same_weights=args.same_weights,
        timeout=args.timeout,
        cwd=None if args.cwd is None else args.cwd.resolve(),
        exact=args.exact,
        rtol=args.rtol,
        atol=args.atol,
    )


def _programs(args: argparse.Namespace) -> tuple[Program, Program | None]:
    """The original, and the converted one if there is one; what follows `--` are the arguments of both."""
    from torchferry.launch.program import Program

    words = words_of(args)
    if bool(args.original) != bool(args.converted):
        raise RunError(
            Text(
                "--before and --after go together: the same program before and after the conversion",
                "--before 和 --after 须一起使用：同一程序转换前和转换后",
            )
        )
    if not args.original and not words:
        raise RunError(
            Text(
                "which program? ferry prove --to VENDOR -- SCRIPT [ARGUMENTS]",
                "哪个程序？ferry prove --to VENDOR -- SCRIPT [ARGUMENTS]",
            )
        )
    target, arguments = (args.original, words) if args.original else (words[0], words[1:])
    torchrun = torchrun_options(args)
    original = Program(target, args.is_module, tuple(arguments), torchrun)
    if not args.converted:
        return original, None
    return original, replace(original, target=args.converted)


def _show_crashes(proof: Proof, kept: Path) -> None:
    """The run's own words first, then a line of ours."""
    from torchferry.proof.model import ProofVerdict
    from torchferry.proof.recordings import last_words

    crashed = [result for result in proof.results if result.verdict is ProofVerdict.CRASHED]
    for result in crashed[:1] if proof.reference.exit_code else crashed:
        log = (result.run or proof.reference).stderr
        reason = "" if result.reason is None else result.reason.en
        whose = "" if result.run is None else f"{result.vendor}: "
        print(f"{last_words(kept / log)}\nferry prove: {whose}{reason}", file=sys.stderr, flush=True)
