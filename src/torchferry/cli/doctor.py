"""Look for what makes this machine slow: processors, memory, limits, libraries, the vendor's variables."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from torchferry.cli import doctor_options
from torchferry.errors import ReportError
from torchferry.text import user_language

if TYPE_CHECKING:
    from torchferry.doctor.host.examine import Examination

add_arguments = doctor_options.add_arguments


def run(args: argparse.Namespace) -> int:
    """Examine, report; the answer is an exit code."""
    from torchferry.doctor.host.examine import examine, installed_vendor
    from torchferry.doctor.host.machine import this_machine
    from torchferry.doctor.model import Status
    from torchferry.vendors.registry import get_vendor

    if args.fix and args.format != "text":
        raise ReportError("--fix prints commands, --format a report; leave one of them out")
    vendor = get_vendor(args.to, args.vendor_path) if args.to else installed_vendor(args.vendor_path)
    examination = examine(this_machine(args.nproc), vendor, is_guess=not args.to)
    _report(args, examination)
    return int(args.check and examination.count(Status.COSTS) > 0)


def _report(args: argparse.Namespace, examination: Examination) -> None:
    from torchferry.cli.ending import reader_may_leave
    from torchferry.doctor.report import page_of, to_json, to_script
    from torchferry.report.page import print_page, to_markdown

    language = args.lang or user_language()
    everything = args.all or args.format == "md"
    page = page_of(examination, language, everything=everything, is_whole_doctor=args.part is None)
    with reader_may_leave():
        if args.fix:
            _write(to_script(examination, language))
        elif args.format == "json":
            _write(to_json(examination))
        elif args.format == "md":
            _write(to_markdown(page, language))
        else:
            print_page(page, language)


def _write(text: str) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()
