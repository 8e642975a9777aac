"""Prints what the layer changes in a process; run as a module in the environment of a run."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from torchferry.launch.supervise import Ending, Stream, run_supervised
from torchferry.text import Text, user_language

_OUR_VARIABLES = "TORCHFERRY_"  # they tell child processes what to do, nothing that a program writes


def explain(environment: Mapping[str, str], stdout: Stream = None) -> Ending:
    """Have a process of its own print the table."""
    return run_supervised([sys.executable, "-m", __name__], environment, stdout=stdout, is_ours=True)


_WRITES = Text("the program writes", "程序中的写法")
_MEANS = Text("it now means", "现在的含义")


def table(rows: list[tuple[str, str]]) -> str:
    """What is written, and what it means, in two columns."""
    from rich.cells import cell_len

    language = user_language()
    head = (_WRITES.in_language(language), _MEANS.in_language(language))
    width = max(cell_len(name) for name, _ in [head, *rows])
    return "\n".join(
        f"{name}{' ' * (width - cell_len(name))}  {means}".rstrip() for name, means in [head, *rows]
    )


def _main() -> None:
    import torch  # noqa: F401  activates the layer

    from torchferry.runtime import changes

    rows = dict.fromkeys((change.name, change.means) for change in changes())
    print(table([row for row in rows if not row[0].startswith(_OUR_VARIABLES)]))


if __name__ == "__main__":
    try:
        _main()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough, as in `ferry run --list-redirects | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
