"""The ways in which a user's input can be wrong; caught once, in cli/main.py."""

from __future__ import annotations


class FerryError(Exception):
    """Bad usage or bad input: one line that says what was wrong, where, and what to do; or one for each mistake."""

    exit_code = 2

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


class InputError(FerryError):
    """The path to work on is missing, unreadable or of the wrong sort."""


class OutputError(FerryError):
    """The place to write to can't be used."""


class VendorError(FerryError):
    """A vendor is unknown, or its data does not fit the schema."""


class RuleFileError(FerryError):
    """A user's rule file has mistakes: one line for each."""


class ReportError(FerryError):
    """A findings file can't be read or a report format is unknown."""


class BuildError(FerryError):
    """The compiled part of the simulated device can't be built or used here."""


class RunError(FerryError):
    """A program can't be started as it was asked for."""
