"""Prove a migration: the original on the CPU and the migrated program on simulated devices, or on the vendor's own
plugin, compute the same.
"""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from torchferry.cli import options
from torchferry.cli.output import note, show
from torchferry.cli.program import add_program, add_torchrun, torchrun_options, words_of
from torchferry.errors import InputError, RunError
from torchferry.vendors.registry import get_vendor

if TYPE_CHECKING:
    from torchferry.launch.program import Program
    from torchferry.proof.model import Proof
    from torchferry.proof.runs import ProofPlan

_DEFAULT_STEPS = 20
_tolerance = options.number_from_zero(math.inf, "a tolerance; write it as 1e-6")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `ferry prove`."""
    parser.usage = (
        "ferry prove --to VENDOR[,VENDOR...] [OPTIONS] [--] (SCRIPT | -m MODULE) [ARGUMENTS of the program]\n"
        "       ferry prove --to VENDOR[,VENDOR...] [OPTIONS] --original SCRIPT --converted SCRIPT [-- ARGUMENTS]"
    )
    add_program(parser, "--module")
    parser.add_argument(
        "--to", required=True, metavar="VENDORS", help="names that `ferry vendors` lists, with commas"
    )
    parser.add_argument("--original", metavar="SCRIPT", help="the program before the conversion")
    parser.add_argument(
        "--converted",
        metavar="SCRIPT",
        help="the converted program; {vendor} in the path stands for each vendor's name",
    )
    options.add_vendor_path(parser)
    options.add_output(parser, None, "keep proof.json, proof.html and the runs' output here", "DIR")
    options.add_quiet(parser)
    options.add_language(parser)
    group = parser.add_argument_group("what both runs have in common")
    options.add_steps(
        group,
        "end each run after so many steps, those that a GradScaler skips not counted; `all`: let it run to its "
        f"end (default: {_DEFAULT_STEPS})",
        _DEFAULT_STEPS,
    )
    options.add_seed(group, "of every generator (default: 0)", 0)
    options.add_switch(
        group,
        "--same-weights",
        "the migrated run begins with the weights of the original, whatever it drew itself",
    )
    options.add_devices(
        group, "devices that the program sees (default: one, with --nproc one for each process)"
    )
    options.add_memory(group, "memory of each device, as 32GiB")
    options.add_emulate(
        group,
        "run the migrated program on the vendor's own plugin, on an emulated device, instead of a simulated one; "
        "`ferry emulate setup` sets it up",
    )
    group.add_argument(
        "--cwd",
        type=Path,
        metavar="DIR",
        help="the folder that both runs start in (default: this one; of --original and --converted, each the root of "
        "its own project)",
    )
    options.add_timeout(group, "end a run that takes longer (default: each takes as long as it takes)")
    group = parser.add_argument_group("what is close enough")
    group.add_argument(
        "--rtol",
        type=_tolerance,
        metavar="X",
        help="relative (default: by dtype, as torch.testing.assert_close)",
    )
    group.add_argument("--atol", type=_tolerance, metavar="X", help="absolute (default: by dtype, as above)")
    options.add_switch(group, "--exact", "nothing but equal bit for bit")
    add_torchrun(parser)


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
        note(f"what was there is kept as {earlier}: it holds things that no proof has written")
    return 0 if proof.holds else 1


def _plan(args: argparse.Namespace) -> ProofPlan:
    from torchferry.proof.prover import places_of, refuse_unprovable
    from torchferry.proof.runs import ProofPlan

    vendors = [get_vendor(name, args.vendor_path) for name in options.names(args.to)]
    if not vendors:
        raise RunError("which devices? ferry prove --to VENDOR[,VENDOR...] -- SCRIPT")
    for vendor in vendors:
        refuse_unprovable(vendor, args.emulate)
    original, converted = _programs(args)
    devices, paths = args.devices or args.nproc or 1, options.vendor_paths(args)
    places = places_of(vendors, args.emulate, converted is not None, devices, args.memory, paths)
    if args.cwd is not None and not args.cwd.is_dir():
        raise InputError(f"{args.cwd}: no such folder; --cwd names the one that both runs start in")
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
        raise RunError("--original and --converted belong together: the same program before and after")
    if not args.original and not words:
        raise RunError("which program? ferry prove --to VENDOR -- SCRIPT [ARGUMENTS]")
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
