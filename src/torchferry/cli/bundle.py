"""Pack one archive for a vendor's issue tracker: a test of the operator, its tensors, versions, the decisive log lines."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from torchferry.cli import options
from torchferry.cli.output import need, show
from torchferry.errors import OutputError
from torchferry.report.progress import Counted, long_task
from torchferry.text import Text
from torchferry.vendors.registry import get_vendor

_OUTPUT = "issue.zip"
_SECONDS = 120.0
_EPILOG = """SOURCE is at most one of a record with --call N (as `ferry compare` names it) and a test that `ferry case` has written, and
any number of logs or folders of logs. Paths, names of users and machines, addresses, e-mails, keys and values of variables
are replaced by placeholders; the list of what was taken out is printed. Nothing is sent anywhere.

examples:
  ferry bundle npu.h5 --call 12 --to ascend                the call of a record, into issue.zip
  ferry bundle npu.h5 --call 12 logs/ --to ascend --dry-run   only look at what would be in it
  ferry bundle test_gelu.py train.log --to ascend --hide projectx -o gelu.tar.gz

exit codes: 0 written, or with --dry-run looked at; 2 bad usage or bad input, or too large; 3 written, but some of the logs could
not be read; 130, 143 interrupted, nothing was written"""


_PACKING = Text("packing", "正在打包")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `ferry bundle`."""
    parser.usage = "ferry bundle SOURCE... --to VENDOR [--call N] [-o FILE] [OPTIONS]"
    parser.epilog = _EPILOG
    parser.add_argument(
        "sources", nargs="+", type=Path, metavar="SOURCE", help="a record or a test of `ferry case`, and logs"
    )
    options.add_to(
        parser, "whose device the issue is about; a name that `ferry vendors` lists", required=True
    )
    options.add_vendor_path(parser)
    parser.add_argument(
        "--call",
        type=options.at_least_one,
        metavar="N",
        help="which call of the record (default: its only one)",
    )
    options.add_output(parser, _OUTPUT, f"the archive, .zip or .tar.gz (default: {_OUTPUT})")
    options.add_switch(parser, "--force", "replace FILE if it exists")
    parser.add_argument(
        "--most",
        type=_size,
        metavar="SIZE",
        help="the archive is no larger: the record, then the recorded inputs are left out (default: 25MB)",
    )
    options.add_repeatable(parser, "--hide", "WORD", "also take this word out, as a project's name")
    options.add_switch(
        parser, "--dry-run", "write nothing, only list what would be in it and what is taken out"
    )
    options.add_switch(parser, "--no-run", "do not run the test on the device")
    options.add_emulate(parser, "run the test on the vendor's own plugin, on an emulated device")
    options.add_timeout(
        parser, f"a run of the test that takes longer has failed (default: {_SECONDS:g})", _SECONDS
    )
    options.add_format(parser)
    options.add_quiet(parser)
    options.add_language(parser)


def run(args: argparse.Namespace) -> int:
    """Make the archive, say what is in it; the answer is an exit code."""
    from torchferry.bundle.archive import check_archive_name
    from torchferry.bundle.making import check_sources, make_bundle
    from torchferry.bundle.model import MOST, BundleRequest
    from torchferry.bundle.report import REPORTS

    request = BundleRequest(
        tuple(args.sources),
        get_vendor(args.to, args.vendor_path),
        args.call,
        options.language_of(args),
        args.most or MOST,
        tuple(args.hide),
        tuple(args.vendor_path),
        not args.no_run,
        args.emulate,
        args.timeout,
        args.quiet,
    )
    check_archive_name(args.output)
    if not args.dry_run:
        _check_output(args)
    check_sources(request)
    need("a test calls operators of", "torch")
    with long_task(_PACKING, args.quiet, Counted.BYTES, options.language_of(args)) as progress:
        made = make_bundle(request, args.output, is_dry=args.dry_run, show=progress)
    show(REPORTS, made, args)
    return 3 if made.unread else 0


def _check_output(args: argparse.Namespace) -> None:
    path: Path = args.output
    if not path.parent.is_dir() or path.is_dir() or not os.access(path.parent, os.W_OK):
        raise OutputError(f"{path}: can't be written there; name a file in a folder that exists")
    if os.path.lexists(path) and not args.force:
        raise OutputError(f"{path}: exists already; --force replaces it, -o FILE names another")


def _size(text: str) -> int:
    from torchferry.errors import RunError
    from torchferry.sim.environment import parse_memory

    try:
        return parse_memory(text)
    except RunError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no size; write it as 25MB, 1GiB or a number of bytes"
        ) from None
