"""The times of collectives and what went over which link, as the toolkit's analysis writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from torchferry.emulate.cann.msprof.collectives import Collective, collective_of
from torchferry.emulate.cann.msprof.records import COMMUNICATION, Profile, StreamTask
from torchferry.emulate.cann.msprof.tables import microseconds

# Processes of one machine share memory: the way that boards of one machine have, and all of it at once.
_LINK = "HCCS"
_OTHER_LINKS = ("RDMA", "PCIE", "SIO")
_LARGE = 32e6  # bytes from which the toolkit calls a packet large, as it has it for this link


def write(profile: Profile, folder: Path) -> None:
    """Nothing where there are no collectives."""
    tasks = [task for task in profile.tasks if task.kind == COMMUNICATION]
    if not tasks:
        return
    folder.mkdir(parents=True, exist_ok=True)
    done = [(task, collective_of(task)) for task in tasks]
    times = {_key(one): _times(task, one) for task, one in done}
    links = {_key(one): _links(task, one) for task, one in done}
    (folder / "communication.json").write_text(json.dumps(times), "utf-8")
    (folder / "communication_matrix.json").write_text(json.dumps(links), "utf-8")


def _key(one: Collective) -> str:
    return f"{one.name}@{one.group}"


def _times(task: StreamTask, one: Collective) -> dict[str, Any]:
    waited, moved = task.waited / 1e6, (task.duration - task.waited) / 1e6
    size = one.bytes / 1e6
    return {
        "Communication Time Info": {
            "Start Timestamp(us)": float(microseconds(task.start)),
            "Elapse Time(ms)": task.duration / 1e6,
            "Transit Time(ms)": moved,
            "Wait Time(ms)": waited,
            "Synchronization Time(ms)": waited,
            "Idle Time(ms)": 0.0,
            "Wait Time Ratio": _ratio(waited, waited + moved),
            "Synchronization Time Ratio": _ratio(waited, waited + moved),
        },
        "Communication Bandwidth Info": {
            **{link: _bandwidth(0.0, 0.0) for link in _OTHER_LINKS},
            _LINK: _bandwidth(size, moved),
            "SDMA": _bandwidth(size, moved),
        },
    }


def _bandwidth(megabytes: float, milliseconds: float) -> dict[str, Any]:
    return {
        "Transit Size(MB)": megabytes,
        "Transit Time(ms)": milliseconds,
        "Bandwidth(GB/s)": _ratio(megabytes, milliseconds),
        "Large Packet Ratio": float(megabytes * 1e6 > _LARGE),
        "Size Distribution": {str(megabytes): [1, milliseconds]} if megabytes else {},
    }


def _links(task: StreamTask, one: Collective) -> dict[str, Any]:
    """What goes to several ranks goes to each of them."""
    moved = (task.duration - task.waited) / 1e6
    size = one.bytes / 1e6
    return {
        f"{source}-{target}": {
            "Transport Type": _LINK,
            "Transit Time(ms)": moved,
            "Transit Size(MB)": size,
            "Bandwidth(GB/s)": _ratio(size, moved),
        }
        for source, target in one.links
    }


def _ratio(part: float, whole: float) -> float:
    return round(part / whole, 4) if whole else 0.0
