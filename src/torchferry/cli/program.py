"""The user's program on a command line: our options first, then the program and whatever is its own.

`ferry run --to VENDOR --nproc 2 train.py --epochs 3`: from the program on, every word belongs to it.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from torchferry.cli import options
from torchferry.cli.grammar import Group, Parser
from torchferry.cli.output import say
from torchferry.errors import RunError
from torchferry.text import Text

if TYPE_CHECKING:
    from torchferry.launch.place import Place
    from torchferry.launch.program import Program

# torchrun's options that are passed on as they are -> whether they say where the processes meet
_TORCHRUN = {
    "nnodes": True,
    "node-rank": True,
    "master-addr": True,
    "master-port": True,
    "rdzv-backend": True,
    "rdzv-endpoint": True,
    "rdzv-id": True,
    "rdzv-conf": True,
    "local-addr": True,
    "max-restarts": False,
    "monitor-interval": False,
    "log-dir": False,
    "redirects": False,
    "tee": False,
}


USAGE = "[OPTIONS] [--] (SCRIPT | -m MODULE) [ARGUMENTS of the program]"


def add_program(parser: Parser, *spellings: str) -> None:
    """The program; -m and these further spellings say that it is a module."""
    text = Text(
        "A script, or with -m a module; everything after it is passed to the program",
        "脚本，或配合 -m 使用的模块；其后的所有内容都传给该程序",
    )
    parser.add("program", nargs=argparse.REMAINDER, metavar="PROGRAM", text=text)
    text = Text("Run PROGRAM as a module, like `python -m`", "将 PROGRAM 作为模块运行，同 `python -m`")
    parser.add("-m", *spellings, dest="is_module", action="store_true", text=text)


def words_of(args: argparse.Namespace) -> list[str]:
    """The program and its arguments; a `--` before them only divides them from our options."""
    return list(args.program[1:] if args.program[:1] == ["--"] else args.program)


def program_of(args: argparse.Namespace, usage: str) -> Program:
    """The program that the command line names."""
    from torchferry.launch import program

    words = words_of(args)
    if not words:
        raise RunError(Text(f"which program? {usage}", f"哪个程序？{usage}"))
    return program.program_of(words, args.is_module, torchrun_options(args))


_NPROC = Text("Number of processes on this machine", "本机的进程数")
_OF_TORCHRUN = Text(
    "All options of torchrun are accepted and passed on: --nnodes, --node-rank, --master-addr, --rdzv-endpoint ...",
    "接受 torchrun 的全部选项并原样传递：--nnodes、--node-rank、--master-addr、--rdzv-endpoint 等",
)


def add_torchrun(parser: Parser) -> None:
    """How many processes, and how torchrun starts them."""
    group = parser.group(options.SEVERAL_PROCESSES)
    group.add("--nproc", type=options.at_least_one, metavar="N", text=_NPROC)
    group.accept(*_spellings("nproc-per-node"), dest="nproc", type=options.at_least_one)
    for name in _TORCHRUN:
        group.accept(*_spellings(name), dest=f"torchrun {name}")
    group.note(_OF_TORCHRUN)


def _spellings(*names: str) -> list[str]:
    """torchrun takes dashes and underscores."""
    return list(dict.fromkeys(f"--{form}" for name in names for form in (name, name.replace("-", "_"))))


def torchrun_options(args: argparse.Namespace) -> tuple[str, ...] | None:
    """torchrun's command line; None when it is not needed."""
    given = {name: getattr(args, f"torchrun {name}") for name in _TORCHRUN}
    chosen = {name: value for name, value in given.items() if value is not None}
    if args.nproc is None and not chosen:
        return None
    from torchferry.launch.program import torchrun_words

    says_where = any(_TORCHRUN[name] for name in chosen)
    values = [word for name, value in chosen.items() for word in (f"--{name}", value)]
    return torchrun_words(args.nproc or 1, values, alone=not says_where)


# Where the programs of `ferry record`, `overflow`, `watch` and `profile` run.


_WHERE = Text(
    "Where the program runs (default: on this machine as it is; without a GPU the CPU stands in for CUDA)",
    "程序在哪里运行（默认：直接在本机运行；没有 GPU 时由 CPU 代替 CUDA）",
)
_DEVICES = Text(
    "Number of devices the program sees where they are simulated or replaced by the CPU (default: one per process)",
    "设备为模拟或由 CPU 代替时，程序可见的设备数（默认：每个进程一个）",
)
SEED = Text(
    "Random seed for every generator, set at `import torch` (default: not set)",
    "所有随机数生成器的种子，在 `import torch` 时设置（默认：不设置）",
)
TIMEOUT = Text(
    "Stop the program after SECONDS and keep what was recorded (default: no limit)",
    "超过 SECONDS 秒后停止程序，保留已记录的内容（默认：不限时）",
)


def add_place(parser: Parser) -> None:
    """Where and how the program runs."""
    group = parser.group(_WHERE)
    options.add_vendor_device(parser, group)
    add_converted(group)
    add_device(group)
    options.add_devices(group, _DEVICES)
    options.add_seed(group, SEED)
    options.add_timeout(group, TIMEOUT)
    options.add_quiet(parser)
    options.add_language(parser)
    add_torchrun(parser)


_CONVERTED = Text(
    "Leave CUDA's names as they are: the program is already converted",
    "不重定向 CUDA 名称：程序已完成转换",
)
_AS_IS = Text(
    "Run the program unchanged on a device that this PyTorch has, such as cuda or xpu (default: cuda)",
    "在本机 PyTorch 自带的设备上直接运行程序，例如 cuda 或 xpu（默认：cuda）",
)


def add_converted(group: Group) -> None:
    """A program that needs no layer."""
    options.add_switch(group, "--converted", _CONVERTED)


def add_device(group: Group) -> None:
    """A program that nothing is changed for."""
    group.add(
        "--device", old=("--as-is",), nargs="?", const="cuda", default="", metavar="DEVICE", text=_AS_IS
    )


def place_of(args: argparse.Namespace) -> Place:
    """Where the program runs, if the options fit each other."""
    from torchferry.launch import plugin

    return plugin.place_of(
        options.vendor_of(args),
        args.sim,
        args.emulate,
        args.device,
        args.converted,
        vendor_paths=options.vendor_paths(args),
        devices=args.devices or args.nproc or 1,
    )


def say_if_simulated(args: argparse.Namespace, command: str, place: Place) -> None:
    """Say that the device is a simulated one, and why, to a user who did not ask for that."""
    from torchferry.launch import plugin

    if place.vendor is not None and place.is_simulated and not args.sim:
        say(args, command, plugin.not_installed(place.vendor))
