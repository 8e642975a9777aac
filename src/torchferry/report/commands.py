"""Commands that a report suggests, written so that they run as they are printed: copied into a shell, word for word."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Sequence

from torchferry.report.safe import path_bytes
from torchferry.text import Text

NEXT = Text("next: {command}", "下一步：{command}")
# What no line of a terminal shows as it is: controls, separators, and bytes of names that are no text.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def command_line(*words: str | os.PathLike[str]) -> str:
    """The words of a command as the user's shell takes them."""
    texts = [os.fspath(word) for word in words]
    return subprocess.list2cmdline(texts) if os.name == "nt" else " ".join(map(_quoted, texts))


def ferry_command(*words: str | os.PathLike[str]) -> str:
    """A command of ours, ready to be copied."""
    return command_line("ferry", *words)


def in_folder(folder: str | os.PathLike[str], command: str) -> str:
    """A command that is started in another folder, after which the shell is where it was."""
    return command if os.fspath(folder) in ("", ".") else f"({command_line('cd', folder)} && {command})"


def next_step(*words: str | os.PathLike[str]) -> Text:
    """The line that hands over to the next command."""
    return NEXT.format(command=ferry_command(*words))


def vendor_path_words(paths: Sequence[str | os.PathLike[str]]) -> list[str]:
    """The option that a command needs to know the user's own vendors, as the one before it did."""
    return [word for path in paths for word in ("--vendor-path", os.fspath(path))]


def _quoted(word: str) -> str:
    """For a POSIX shell; with escapes, as bash and zsh read them, where a letter can't be seen."""
    if not _UNSEEN.search(word):
        return shlex.quote(word)
    shown = (
        chr(byte) if 32 <= byte < 127 and byte not in b"'\\" else f"\\x{byte:02x}"
        for byte in path_bytes(word)
    )
    return f"$'{''.join(shown)}'"
