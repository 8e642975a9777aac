"""The options of `ferry case`."""

from __future__ import annotations

import argparse
from pathlib import Path

from torchferry.cli import common_options, values

_SECONDS = 120.0
_seed = values.whole_number(0, (1 << 63) - 1)  # of a torch.Generator

_NOTATION = """how --input is written:
  SHAPE[:DTYPE][:DISTRIBUTION][:LAYOUT]   a tensor, as in 10x20:int64 or 8x3x32x32:float16:normal:channels_last
    SHAPE         10x20; 10x or 10:float32 for one dimension; scalar for none
    DTYPE         any of torch's: float32 (default), bfloat16, bool, complex64, int8 ...
    DISTRIBUTION  normal, uniform(0,1), ints(0,10), ones, zeros, full(2.5), arange, nan, inf; +nan, +inf, +-inf
                  puts such values among others: normal+nan. Default: what suits the operator and the dtype
    LAYOUT        transposed, channels_last, channels_last_3d, expanded, sliced, strides(1,20), offset(3)
  2.5, [2,2], True, None, float16, 'sum'   a Python value; a single number is a number, not a shape
  list(2x3, 2x3)                           a list of tensors
  NAME=...                                 an argument by name, as in dim=1
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """All of them."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.usage = (
        'ferry case OPERATOR --to VENDOR [--input "10x20:int64" ...] [OPTIONS]\n'
        "       ferry case OPERATOR --to VENDOR --from FILE [--call N] [OPTIONS]\n"
        "       ferry case [OPERATOR] --from FILE --list"
    )
    parser.epilog = _NOTATION
    parser.add_argument(
        "operator",
        nargs="?",
        default="",
        metavar="OPERATOR",
        help="aten::max.dim, max, torch.max, torch.nn.functional.gelu, Tensor.scatter_, torch.nn.Conv2d, or a module "
        "or function of your own: package.module:Class or file.py:Class",
    )
    parser.add_argument("--to", metavar="VENDOR", help="a name that `ferry vendors` lists")
    common_options.add_vendor_path(parser)
    _add_inputs(parser)
    _add_output(parser)
    _add_run(parser)


def _add_inputs(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what it is called with")
    group.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="INPUT",
        help="one argument (see below); repeat in order",
    )
    group.add_argument(
        "--init",
        default="",
        metavar="ARGUMENTS",
        help="of a module: in_channels=16,out_channels=32,kernel_size=3",
    )
    group.add_argument(
        "--from",
        dest="source",
        type=Path,
        metavar="FILE",
        help="take the arguments from a record of operators (HDF5: with their contents) or from a capture of "
        "`ferry ops` (JSON: contents are made up); --input NAME=... changes one",
    )
    group.add_argument(
        "--call",
        type=values.at_least_one,
        metavar="N",
        help="which call of FILE: its number in a record, as `ferry compare` names it, or its place among those of a "
        "capture; --list shows them (default: the first)",
    )
    group.add_argument(
        "--site",
        default="",
        metavar="TEXT",
        help="of a capture: only calls whose line or module has this in it",
    )
    group.add_argument("--list", action="store_true", help="list the calls of FILE, and do nothing else")
    group.add_argument("--seed", type=_seed, default=0, metavar="N", help="of random contents (default: 0)")
    group.add_argument(
        "--import",
        dest="modules",
        action="append",
        default=[],
        metavar="MODULE",
        help="a module that the case imports once the device is there, as one that registers an operator",
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is written")
    group.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="the test's file (default: test_OPERATOR.py); - prints it",
    )
    group.add_argument("--force", action="store_true", help="replace FILE if it exists")
    group.add_argument(
        "--style",
        choices=("pytest", "unittest"),
        default="pytest",
        help="functions for pytest (default), or a TestCase with cpu_op_exec and <device>_op_exec that `python FILE` "
        "runs",
    )
    group.add_argument("--forward-only", action="store_true", help="do not test gradients")
    common_options.add_language(parser)


def _add_run(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("running it")
    group.add_argument(
        "--no-run", action="store_true", help="only write it; the CPU tries the call nevertheless"
    )
    common_options.add_emulate(
        group,
        "run it on the vendor's own plugin, on an emulated device, wherever the real one is; `ferry emulate setup` sets "
        "it up",
    )
    group.add_argument("--check", action="store_true", help="exit with 1 if the case fails")
    group.add_argument(
        "--time",
        action="store_true",
        help="measure one call, forward only, on the device, the CPU and a GPU of this machine, in turns",
    )
    group.add_argument(
        "--save-times", type=Path, metavar="FILE", help="with --time: write what was measured to a JSON file"
    )
    group.add_argument(
        "--times-of",
        type=Path,
        metavar="FILE",
        help="with --time: compare with such a file of another machine, as one with a GPU",
    )
    group.add_argument(
        "--shrink",
        action="store_true",
        help="if it fails, write the case with the smallest arguments that fail in the same way",
    )
    group.add_argument(
        "--timeout",
        type=values.seconds,
        default=_SECONDS,
        metavar="SECONDS",
        help=f"a run that takes longer has failed (default: {_SECONDS:g})",
    )
    group.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")
