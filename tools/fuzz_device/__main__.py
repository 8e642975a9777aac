"""Runs random programs on the CPU and on the simulated device and prints the first difference of each.

python -m tools.fuzz_device --vendor ascend --programs 2000
python -m tools.fuzz_device --vendor ascend --seed 1234 --programs 1 --show    every step of one program
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

from torchferry.vendors.registry import get_vendor

ROOT = Path(__file__).resolve().parents[2]
_PER_PROCESS = 500


def main(arguments: list[str] | None = None) -> int:
    """1 if a program gave something else on the device."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--vendor", required=True, help="whose device; its limits are lifted")
    parser.add_argument("--programs", type=int, default=1000, metavar="N")
    parser.add_argument("--steps", type=int, default=25, metavar="N", help="of each program")
    parser.add_argument("--seed", type=int, default=0, help="of the first program; the others follow")
    parser.add_argument("--show", action="store_true", help="print every step")
    parser.add_argument("--progress", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.progress is not None:
        return _run_programs(options)
    return _run_processes(options)


def _run_processes(options: argparse.Namespace) -> int:
    """A program that takes its process down with it is reported, and the next ones get another process."""
    end, seed, different = options.seed + options.programs, options.seed, 0
    with tempfile.TemporaryDirectory() as folder:
        progress = Path(folder) / "seed"
        while seed < end:
            programs = min(end - seed, _PER_PROCESS)
            command = [
                sys.executable,
                "-m",
                "tools.fuzz_device",
                "--vendor",
                options.vendor,
                "--progress",
                str(progress),
            ]
            numbers = ["--seed", str(seed), "--programs", str(programs), "--steps", str(options.steps)]
            done = subprocess.run([*command, *numbers, *["--show"] * options.show], cwd=ROOT, check=False)
            last, found = map(int, progress.read_text().split())
            different += found
            if done.returncode < 0:
                different += 1
                print(f"program {last}: the process died of signal {-done.returncode}")
            elif done.returncode > 1:
                return done.returncode
            seed = last + 1
    print(f"{options.programs} programs, {different} of them different")
    return 1 if different else 0


def _run_programs(options: argparse.Namespace) -> int:
    from torchferry import sim

    sim.activate(options.vendor, devices=1)
    import torch

    from torchferry.sim import native
    from torchferry.sim.reference import compute_as_cuda

    from .program import first_difference

    native.set_limits(False)
    compute_as_cuda()
    torch.set_num_threads(1)
    device = get_vendor(options.vendor).device_type
    different = 0
    for seed in range(options.seed, options.seed + options.programs):
        options.progress.write_text(f"{seed} {different}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = first_difference(
                random.Random(seed), device, options.steps, print if options.show else None
            )
        if found:
            different += 1
            print(f"program {seed}: {found}", flush=True)
    options.progress.write_text(f"{seed} {different}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
