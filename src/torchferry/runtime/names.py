"""Words that mean two things: `device.type` is "npu", and equals "cuda" as well."""

from __future__ import annotations

from typing import Any


class TwoNames(str):
    """A string that also equals another one, so that code which asks for CUDA and code which knows the vendor agree.

    It prints, hashes and looks up as its own text.
    """

    also: str

    def __new__(cls, text: str, also: str) -> TwoNames:
        made = super().__new__(cls, text)
        made.also = also
        return made

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other) is True or str.__eq__(self.also, other) is True

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    def __contains__(self, part: object) -> bool:
        return isinstance(part, str) and (str.__contains__(self, part) or part in self.also)

    def startswith(self, *where: Any) -> bool:
        """Whether either name starts so."""
        return str.startswith(self, *where) or self.also.startswith(*where)

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)  # a file that is read elsewhere holds a plain string
