"""What a check finds: the interface between checks and reports."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from torchferry.text import Text


class Status(Enum):
    """The verdict on one thing, the worst first."""

    BLOCKS = "blocks"  # the device can't be used until it is put right
    DOUBT = "doubt"  # it may fail, or fails only for some programs
    COSTS = "costs"  # it costs speed
    COULD = "could"  # another setting may be faster: worth a try
    UNSEEN = "unseen"  # it can't be seen from here
    INFO = "info"  # a fact, neither good nor bad
    FINE = "fine"


class Reach(Enum):
    """What a command changes, and so who may run it."""

    SHELL = "shell"  # this shell and what it starts
    INSTALL = "install"  # packages of this Python, or how a program is started
    PROCESSES = "processes"  # other processes of this user
    ROOT = "root"  # the machine; needs privileges


class Command(NamedTuple):
    """A line that puts something right."""

    line: str
    reach: Reach


@dataclass(frozen=True)
class Result:
    """What one check says about one thing."""

    id: str  # of the check
    subject: str  # a variable, a file, a library
    status: Status
    found: Text  # what is there
    why: Text  # what it does, what it costs, what is recommended
    commands: tuple[Command, ...] = ()
    source: str = ""  # where that is known from


def library_path(folders: Sequence[str]) -> str:
    """The setting with which the loader looks in these folders first."""
    listed = shlex.quote(":".join(folders))
    return f'export LD_LIBRARY_PATH={listed}"${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"'
