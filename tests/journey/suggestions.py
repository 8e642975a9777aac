"""A newcomer who only types what the tool has told them: commands in a fresh home and a fresh folder, and their suggestions."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from torchferry.building.cache import folder as cache_folder_of

_NEXT = re.compile(r"^(?:ferry [a-z]+: )?(?:next|下一步)[^:：]*[:：] ?(?P<command>.*ferry .*)$")
_AT_THE_END = re.compile(r"^.*[^\s`][:：] ?(?P<command>ferry [a-z]+ .*)$")
_INDENTED = re.compile(r"^ {2,}(?P<command>\(?(?:cd .* && )?ferry [a-z]+ .*)$")
# What stands for something that the reader must fill in, where a command is only described.
_PLACEHOLDER = re.compile(r"\b(?:SCRIPT|VENDOR|FILE|DIR|SHAPE|MODULE:FACTORY|NAME|ARGS|RECORD)\b|\.\.\.|…")

ANSWERS = (
    0,
    1,
    3,
)  # found nothing, something, something in a part of it; 2 would be a command that can't be run


@dataclass
class Newcomer:
    """A person at a new machine on which TorchFerry is installed, and nothing else of it."""

    folder: Path  # where they work
    language: str = "en_US.UTF-8"
    typed: list[str] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        own = {
            "HOME": str(home),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}/usr/bin{os.pathsep}/bin",
            "LANG": self.language,
            "PYTHONUTF8": "1",  # the locale need not be installed here
            "OMP_NUM_THREADS": "1",
            # compiled once for all tests: a minute on a new machine
            "TORCHFERRY_CACHE": str(cache_folder_of("sim").parent),
        }
        return own | {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "CXX") if name in os.environ}

    def follow(self, command: str) -> subprocess.CompletedProcess[str]:
        """Type what was suggested: it must run, whatever it finds."""
        return self.type(command, *ANSWERS)

    def type(self, command: str, *codes: int) -> subprocess.CompletedProcess[str]:
        """Type it into bash; it must end with one of these exit codes, or with 0 if none is named."""
        self.typed.append(command)
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
        )
        assert done.returncode in (codes or (0,)), (
            f"$ {command}\n{done.returncode}\n{done.stdout}\n{done.stderr}"
        )
        return done


def suggested(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The commands of ours that an output says to type, as they are printed."""
    found = []
    for line in (*done.stdout.splitlines(), *done.stderr.splitlines()):
        match = _NEXT.match(line) or _AT_THE_END.match(line) or _INDENTED.match(line)
        if match:
            found.append(match["command"])
    assert not [command for command in found if _PLACEHOLDER.search(command)], found
    return found
