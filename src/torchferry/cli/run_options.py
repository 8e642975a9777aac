"""The options of `ferry run`."""

from __future__ import annotations

import argparse
from pathlib import Path

from torchferry.cli import options
from torchferry.sim.environment import parse_memory

# torchrun's options that are handed on as they are -> whether they say where the processes meet
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
_OF_THE_LAYER = ("--type-checks", "--capability", "--cuda-version", "--explain")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """All of them."""
    parser.allow_abbrev = False  # argparse would look for abbreviations among the program's own options, too
    parser.usage = "ferry run --to VENDOR [OPTIONS] (SCRIPT | -m MODULE) [ARGUMENTS of the program]"
    parser.add_argument(
        "script", nargs="?", metavar="SCRIPT", help="the program; what follows it is handed to it"
    )
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENTS", help=argparse.SUPPRESS)
    parser.add_argument("-m", "--module", action="store_true", help="SCRIPT is a module, as in python -m")
    parser.add_argument(
        "--to",
        metavar="VENDOR",
        help="a name that `ferry vendors` lists (default: the variable TORCHFERRY_TO)",
    )
    options.add_vendor_path(parser)
    parser.add_argument(
        "-q", "--quiet", action="store_true", help="no summary, no progress and no remarks on stderr"
    )
    parser.add_argument(
        "--no-diagnosis", action="store_true", help="do not say what a crash means, after its traceback"
    )
    options.add_language(parser)
    _add_layer_arguments(parser)
    _add_device_arguments(parser)
    add_torchrun_arguments(parser)


def _add_layer_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what CUDA's names mean")
    group.add_argument(
        "--converted",
        action="store_true",
        help="the program is converted already: CUDA's names keep their meaning",
    )
    group.add_argument(
        "--type-checks",
        choices=("both", "vendor"),
        help="what device.type equals: `cuda` and the vendor's type (default), or the vendor's alone",
    )
    group.add_argument(
        "--capability",
        metavar="X.Y",
        help="what get_device_capability answers (default: 8.0, a GPU with bfloat16)",
    )
    group.add_argument(
        "--cuda-version", metavar="X.Y", help="what torch.version.cuda says (default: as it is)"
    )
    group.add_argument(
        "--explain",
        action="store_true",
        help="list what is redirected; needs no SCRIPT, runs it if there is one",
    )


def _add_device_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("a simulated or emulated device")
    options.add_means(
        group,
        "simulate, even if the vendor's plugin is installed",
        "run the vendor's own plugin, on an emulated device; `ferry emulate setup` sets it up",
    )
    group.add_argument(
        "--native",
        action="store_true",
        help="with --emulate: CUDA's names mean what the vendor's own migration makes of them, not what TorchFerry does",
    )
    group.add_argument(
        "--devices",
        type=options.at_least_one,
        metavar="N",
        help="devices (default: as many as a typical server of the vendor has)",
    )
    group.add_argument(
        "--memory",
        type=parse_memory,
        metavar="SIZE",
        help="memory of each: 32GiB, 512MiB, a number of bytes (default: that of a typical one)",
    )
    group.add_argument(
        "--card",
        metavar="NAME",
        help="with --sim: another of the vendor's cards, as `ferry vendors NAME` lists them",
    )
    group.add_argument(
        "--strict",
        action="store_true",
        help="with --sim: an operator that the vendor lacks raises, never runs on the CPU",
    )
    group.add_argument(
        "--summary", type=Path, metavar="FILE.json", help="write what the run used of the device here"
    )


def add_torchrun_arguments(parser: argparse.ArgumentParser) -> None:
    """Those that `torchrun_options` hands on."""
    group = parser.add_argument_group("several processes, through torchrun")
    group.add_argument(
        *_spellings("nproc", "nproc-per-node"), type=options.at_least_one, metavar="N", help="processes"
    )
    for name in _TORCHRUN:
        group.add_argument(*_spellings(name), dest=f"torchrun {name}", metavar="X", help="handed to torchrun")


def _spellings(*names: str) -> list[str]:
    """torchrun takes dashes and underscores."""
    return list(dict.fromkeys(f"--{form}" for name in names for form in (name, name.replace("-", "_"))))


def options_of_the_layer(args: argparse.Namespace) -> list[str]:
    """Those that were given and that say something about the layer."""
    return [name for name in _OF_THE_LAYER if getattr(args, name[2:].replace("-", "_"))]


def torchrun_options(args: argparse.Namespace) -> tuple[str, ...] | None:
    """torchrun's command line; None when it is not needed."""
    given = {name: getattr(args, f"torchrun {name}") for name in _TORCHRUN}
    chosen = {name: value for name, value in given.items() if value is not None}
    if args.nproc is None and not chosen:
        return None
    # a port of torchrun's choice, unless the user says where the processes meet
    alone = [] if any(_TORCHRUN[name] for name in chosen) else ["--standalone"]
    values = [word for name, value in chosen.items() for word in (f"--{name}", value)]
    return (*alone, "--nproc-per-node", str(args.nproc or 1), *values)
