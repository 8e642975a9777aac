"""What a page that is made for strangers does not say: the host's name, addresses, and whose home it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from torchferry.doctor.host.variables import VARIABLE
from torchferry.doctor.model import Result
from torchferry.text import Text

# Elsewhere four numbers with dots between are a version.
_WITH_ADDRESSES = ("network", VARIABLE)
_ADDRESS = re.compile(
    r"\b(?!127\.|0\.0\.0\.0)(?:\d{1,3}\.){3}\d{1,3}\b|(?<![\w:])(?=[0-9a-fA-F]*:[0-9a-fA-F]*:)[0-9a-fA-F:]{4,}"
)


def without_names(
    results: Iterable[Result], environment: Mapping[str, str], hostname: str = ""
) -> tuple[Result, ...]:
    """The same results, to be shown to strangers."""
    home = environment.get("HOME", "").rstrip("/")

    def hidden(text: str, *, addresses: bool) -> str:
        if len(home) > 1:
            text = re.sub(rf"{re.escape(home)}(?![\w.-])", "~", text)
        if addresses and hostname:
            text = re.sub(rf"(?<![\w.-]){re.escape(hostname)}(?![\w-])", "HOST", text)
        return _ADDRESS.sub("ADDRESS", text) if addresses else text

    return tuple(_hidden(result, hidden) for result in results)


def _hidden(result: Result, hidden: Callable[..., str]) -> Result:
    addresses = result.id in _WITH_ADDRESSES

    def both(text: Text) -> Text:
        return Text(*(hidden(each, addresses=addresses) for each in text))

    commands = [
        command._replace(line=hidden(command.line, addresses=addresses)) for command in result.commands
    ]
    return replace(result, found=both(result.found), why=both(result.why), commands=tuple(commands))
