"""Ranks that do not all come to a meeting.

python -m tests.emulate.collectives.starts LIBRARIES FOLDER RANK RANKS CASE
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import sys
import time
from pathlib import Path

from tests.emulate.collectives.hccl import PARA, REMOTE, TCP_CONNECT, TIMEOUT, Libraries, raises
from tests.emulate.collectives.rank import wait_for


def root_that_has_gone(libraries: Libraries, folder: Path, rank: int, ranks: int) -> None:
    """Rank 0 makes the root info and is killed: the others are told at once."""
    if rank == 0:
        _publish(folder, libraries.root_info())
        os.kill(os.getpid(), signal.SIGKILL)
    info = wait_for(folder / "info")
    while _is_running(int((folder / "0.pid").read_text())):
        time.sleep(0.005)
    with raises(TCP_CONNECT, "EI0015", "The process of the root rank has exited"):
        libraries.communicator(info, ranks, rank)


def rank_that_never_comes(libraries: Libraries, folder: Path, rank: int, ranks: int) -> None:
    """The last one does not, within the time."""
    if rank < ranks - 1:
        with raises(TIMEOUT, "EI0015", f'List of unconnected ranks: "[{ranks - 1},]"'):
            libraries.communicator(libraries.root_info(), ranks, rank)


def rank_that_dies_at_the_door(libraries: Libraries, folder: Path, rank: int, ranks: int) -> None:
    """Rank 1 says who it is, and ends. Rank 2 is still to come."""
    if rank == 0:
        _publish(folder, libraries.root_info())
        with raises(REMOTE, "EI0015", "The process of rank 1 has exited"):
            libraries.communicator(wait_for(folder / "info"), ranks, rank)
    elif rank == 1:
        token = wait_for(folder / "info")[:32].rstrip(b"\0").decode()
        with socket.socket(socket.AF_UNIX) as door:
            door.connect(f"\0torchferry-hccl-{os.getuid()}-{token}")
            door.sendall(struct.pack("II", ranks, rank))


def other_number_of_ranks(libraries: Libraries, folder: Path, rank: int, ranks: int) -> None:
    if rank == 0:
        _publish(folder, libraries.root_info())
    with raises(PARA, "EI0015", "Rank 1 names 3 ranks, rank 0 names 2"):
        libraries.communicator(wait_for(folder / "info"), 2 + rank, rank)


def same_rank_twice(libraries: Libraries, folder: Path, rank: int, ranks: int) -> None:
    if rank == 0:
        _publish(folder, libraries.root_info())
    with raises(PARA, "EI0015", "Rank 0 has come twice"):
        libraries.communicator(wait_for(folder / "info"), ranks, 0)


def _publish(folder: Path, info: bytes) -> None:
    (folder / "new").write_bytes(info)
    (folder / "new").rename(folder / "info")


def _is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def main(libraries_folder: Path, folder: Path, rank: int, ranks: int, case: str) -> None:
    (folder / f"{rank}.pid").write_text(str(os.getpid()))
    libraries = Libraries(libraries_folder, devices=ranks)
    libraries.use_device(rank)
    globals()[case](libraries, folder, rank, ranks)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
    os._exit(0)
