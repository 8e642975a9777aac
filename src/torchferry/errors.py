"""The ways in which a user's input can be wrong; caught once, in cli/main.py."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from torchferry.text import Text, user_language

if TYPE_CHECKING:
    from typing_extensions import Self


class FerryError(Exception):
    """Bad usage or bad input: one line that says what is wrong, where, and what to do; or one line for each mistake.

    `str(error)` is English, for logs and for callers from Python; a command shows the lines in the user's language.
    """

    exit_code = 2

    def __init__(self, *lines: str | Text) -> None:
        self.texts = tuple(line if isinstance(line, Text) else Text(line, line) for line in lines)
        super().__init__("\n".join(text.en for text in self.texts))

    def __reduce__(
        self,
    ) -> tuple[type[FerryError], tuple[Text, ...]]:  # from a worker process, in both languages
        return type(self), self.texts

    def to_json(self) -> str:
        """What another process needs to raise the same lines again."""
        return json.dumps(self.texts)

    @classmethod
    def from_json(cls, text: str) -> Self:
        return cls(*(Text(*pair) for pair in json.loads(text)))

    @property
    def text(self) -> Text:
        """All lines as one text in both languages, to be part of another sentence."""
        return Text("\n".join(text.en for text in self.texts), "\n".join(text.zh for text in self.texts))

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines in the user's language."""
        return tuple(text.in_language(user_language()) for text in self.texts)

    @property
    def shown(self) -> str:
        """All lines in the user's language."""
        return "\n".join(self.lines)


class InputError(FerryError):
    """The path to work on is missing, unreadable or of the wrong kind."""


class OutputError(FerryError):
    """The output can't be written there."""


class VendorError(FerryError):
    """A vendor is unknown, or its data does not fit the schema."""


class RuleFileError(FerryError):
    """A user's rule file has mistakes: one line for each."""


class ReportError(FerryError):
    """A findings file can't be read, or a report format is unknown."""


class BuildError(FerryError):
    """The compiled part of the simulated device can't be built or used here."""


class RunError(FerryError):
    """A program can't be started as requested."""
