"""Pages are made to be sent: the folders and the name of the machine that made them are taken out of the whole page."""

from __future__ import annotations

import os
import re
import socket
from functools import partial
from pathlib import Path

HOST = "HOST"  # what stands for the machine's name


def without_private(text: str) -> str:
    """The text without the current folder, the user's home and the machine's name."""
    here, home = os.getcwd(), str(Path.home())
    if here.count(os.sep) > 1:  # else it is too common a name
        text = re.sub(rf"{re.escape(here)}(/|(?![\w.-]))", partial(_without_folder, "."), text)
    if home != os.sep:
        text = re.sub(rf"{re.escape(home)}(/|(?![\w.-]))", partial(_without_folder, "~"), text)
    host = socket.gethostname()
    if re.search(r"[\d-]", host) and len(host) > 3:  # else it may be a word
        text = re.sub(rf"(?<![\w.-]){re.escape(host)}(?![\w-])", HOST, text)
    return text


def _without_folder(shown: str, match: re.Match[str]) -> str:
    if not match[1]:
        return shown
    return "" if shown == "." else f"{shown}/"
