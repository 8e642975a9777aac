"""One rank of a test: loads the emulated libraries, joins the others, does one thing after the other.

python -m tests.emulate.collectives.rank LIBRARIES FOLDER RANK RANKS MODULE NAME...
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from pathlib import Path

from tests.emulate.collectives.checks import Group
from tests.emulate.collectives.hccl import Communicator, Libraries


def join(libraries: Libraries, folder: Path, rank: int, ranks: int) -> Communicator:
    """The root info goes through a file, as a store would carry it."""
    place = folder / "root-info"
    if rank == 0:
        (folder / "root-info-new").write_bytes(libraries.root_info())
        (folder / "root-info-new").rename(place)
    return libraries.communicator(wait_for(place), ranks, rank)


def wait_for(file: Path) -> bytes:
    """What another rank has written, as soon as it has."""
    while not file.exists():
        time.sleep(0.005)
    return file.read_bytes()


def main(libraries_folder: Path, folder: Path, rank: int, ranks: int, module: str, names: list[str]) -> None:
    libraries = Libraries(libraries_folder, devices=max(ranks, 1))
    libraries.use_device(rank)
    group = Group(libraries, join(libraries, folder, rank, ranks), rank, ranks, folder)
    checks = importlib.import_module(module)
    for name in names or [found for found in vars(checks) if found.startswith("check_")]:
        try:
            getattr(checks, name)(group)
        except BaseException:
            print(f"rank {rank}: {name}", file=sys.stderr)
            raise
    group.communicator.destroy()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5], sys.argv[6:])
    sys.stdout.flush()
    os._exit(0)  # as quickly as a process of PyTorch's may end: streams are still there
