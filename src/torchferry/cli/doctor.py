"""Say whether a vendor's device can be used on this machine, what is in the way, and what makes the machine slow."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from torchferry.cli import options
from torchferry.cli.output import show, write
from torchferry.errors import ReportError

if TYPE_CHECKING:
    from torchferry.examination.host.machine import Machine

_EPILOG = """Without PART the whole machine is looked at: driver, toolkit, plugin and whether their versions match, device files,
the vendor's own command, libraries, variables, the network, and the host. With `host` only what costs speed: processors,
memory, limits, libraries for images, the variables of the vendor's runtime. Nothing is changed, no privileges are needed.

exit codes: 0 fine; 1 with --check: the machine is not ready, or not known to be, or with `host`: something costs speed;
2 bad usage"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `ferry doctor`."""
    parser.usage = "ferry doctor [PART] [OPTIONS]"
    parser.epilog = _EPILOG
    parser.add_argument(
        "part",
        nargs="?",
        choices=("host",),
        default=None,
        metavar="PART",
        help="host (default: the whole machine)",
    )
    options.add_to(
        parser, "the vendor whose device is to be used (default: the one of whom something is installed here)"
    )
    parser.add_argument(
        "--nproc",
        type=options.whole_number(1, 1024),
        default=1,
        metavar="N",
        help="processes that will train on this machine: they share its processors (default: 1)",
    )
    parser.add_argument(
        "--try",
        dest="trial",
        action="store_true",
        help="also start a process that imports the plugin and computes on each device",
    )
    options.add_emulate(
        parser,
        "with --to: look at what programs need to run the vendor's own plugin on an emulated device",
    )
    options.add_all(parser, "explain also what is fine, or can't be seen from here")
    options.add_switch(parser, "--fix", "print only commands that put things right; run none")
    options.add_format(parser)
    options.add_json(parser, "the same as --format json")
    options.add_check(parser, "the machine is not ready, or with `host` if something costs speed")
    options.add_vendor_path(parser)
    options.add_language(parser)


def run(args: argparse.Namespace) -> int:
    """Examine, report; the answer is an exit code."""
    from torchferry.examination.host.machine import this_machine

    if args.trial and args.part == "host":
        raise ReportError(
            "--try computes on the devices, at which `host` does not look; leave one of them out"
        )
    if args.emulate and (args.part == "host" or not args.to):
        raise ReportError("--emulate: of which vendor? It goes with --to VENDOR, and without `host`")
    if args.fix and args.format != "text":
        raise ReportError("--fix prints commands, --format a report; leave one of them out")
    machine = this_machine(args.nproc)
    return _host(args, machine) if args.part == "host" else _whole(args, machine)


def _host(args: argparse.Namespace, machine: Machine) -> int:
    from torchferry.examination.examine import examine_host, installed_vendor
    from torchferry.examination.report import HOST_REPORTS, to_script
    from torchferry.report.checks import Status

    vendor = options.vendor_of(args) or installed_vendor(args.vendor_path)
    found = examine_host(machine, vendor, is_guess=not args.to)
    if args.fix:
        write(to_script(found.results, options.language_of(args)))
    else:
        show(HOST_REPORTS, found, args, everything=args.all or args.format == "md")
    return int(args.check and found.count(Status.COSTS) > 0)


def _whole(args: argparse.Namespace, machine: Machine) -> int:
    import socket

    from torchferry.examination.examine import examine_machine
    from torchferry.examination.report import REPORTS, for_strangers, to_script

    report = examine_machine(
        machine, args.to, args.vendor_path, trial=args.trial, emulated=args.emulate, everything=args.all
    )
    if args.fix:
        write(to_script(report.results, options.language_of(args)))
        return int(args.check and not report.is_ready)
    if args.format == "md":
        report = for_strangers(report, machine.environment, socket.gethostname() if report.device else "")
    show(REPORTS, report, args, everything=args.all or args.format == "md")
    return int(args.check and not report.is_ready)
