"""Writes which dtypes and numbers of dimensions CANN's operator functions take: `python -m tools.cann_limits REPOSITORY ...`.

Each REPOSITORY is a git folder of one of CANN's open operator repositories (ops-math, ops-nn, ops-cv, ops-transformer).
What an operator's document states counts; where the checks of its source name other dtypes, both are allowed. What
could not be read has no limit.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from torchferry.emulate.cann.entries import LIMITS, implemented_interfaces, write_limits

from .collecting import Read, limits
from .repositories import Repository

_HEAD = """# What CANN's operator functions take of their tensors on an Atlas A2 (Ascend 910B): a name, then ARGUMENT:DTYPES:DIMENSIONS.
# Made by `python -m tools.cann_limits`; an argument that is not named, and *, stand for what could not be read: no limit.
"""


def main(arguments: list[str] | None = None) -> int:
    """Read, write, count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repositories", type=Path, nargs="+", metavar="REPOSITORY")
    options = parser.parse_args(arguments)
    repositories = sorted(map(Repository, options.repositories), key=lambda one: one.name)
    read = Read()
    for repository in repositories:
        for path, text in repository.texts(".md", ".cpp"):
            read.add(path, text)
    counts: Counter[str] = Counter()
    found = limits(read, implemented_interfaces(), counts)
    sources = [f"# source: {one.name} | {one.version()}\n" for one in repositories]
    LIMITS.write_text("".join([_HEAD, *sources, write_limits(found)]), "utf-8")
    print(f"{len(found)} functions; dtypes of arguments: {dict(counts)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
