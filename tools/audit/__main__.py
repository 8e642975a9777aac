"""Command line of the audit.

    python -m tools.audit ORIGINAL CONVERTED FINDINGS --device npu --backend hccl --plugin torch_npu
    python -m tools.audit ORIGINAL --classify-only [--sample 50 --seed 1 --sample-file sample.tsv]

Exit codes: 0 nothing wrong, 1 something is, 2 bad usage.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .check import check_folder
from .classify import classify_folder
from .findings import Findings, load
from .model import Site, Vendor
from .report import classes, sample, table, write_sample, write_wrong


def main(argv: list[str] | None = None) -> int:
    """Classifies, checks, prints."""
    parser = _parser()
    options = parser.parse_args(argv)
    if not options.original.is_dir():
        parser.error(f"no such folder: {options.original}")
    if options.classify_only:
        sites = [site for file in classify_folder(options.original) for site in file.sites]
        print(classes(sites))
        _sample([(site, "") for site in sites], options)
        return 0
    if options.converted is None or not options.converted.is_dir():
        parser.error("name the converted folder, or use --classify-only")
    if not (options.device and options.backend and options.plugin):
        parser.error("--device, --backend and --plugin are needed to check a conversion")
    findings = load(options.findings) if options.findings else Findings()
    vendor = Vendor(options.device, options.backend, options.plugin)
    verdicts = list(check_folder(options.original, options.converted, findings, vendor))
    print(table(verdicts))
    if options.list:
        write_wrong(verdicts, options.list)
    _sample([(item.site, item.outcome) for item in verdicts if item.site is not None], options)
    return 0 if all(item.ok for item in verdicts) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.audit", description="an independent judge of a conversion"
    )
    parser.add_argument("original", type=Path, help="folder before the conversion")
    parser.add_argument("converted", type=Path, nargs="?", help="folder after it")
    parser.add_argument("findings", type=Path, nargs="?", help="findings.json of the conversion")
    parser.add_argument("--device", help="the vendor's device type, e.g. npu")
    parser.add_argument("--backend", help="the vendor's distributed backend, e.g. hccl")
    parser.add_argument("--plugin", help="the vendor's torch plugin, e.g. torch_npu")
    parser.add_argument("--classify-only", action="store_true", help="only classify the original's sites")
    parser.add_argument("--list", type=Path, metavar="FILE", help="write what is wrong as JSON lines")
    parser.add_argument(
        "--sample", type=int, default=0, metavar="N", help="choose N random sites to read by hand"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample")
    parser.add_argument("--sample-file", type=Path, default=Path("sample.tsv"), help="where the sample goes")
    return parser


def _sample(items: list[tuple[Site, str]], options: argparse.Namespace) -> None:
    if options.sample:
        write_sample(sample(items, options.sample, options.seed), options.original, options.sample_file)
        print(f"sample: {options.sample_file}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
