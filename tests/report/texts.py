"""All sentences of a module of words, however they are kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import ModuleType

from torchferry.report.records import Grade
from torchferry.text import Text


def texts_of(module: ModuleType) -> Iterator[Text]:
    for name, value in vars(module).items():
        if name.isupper():
            yield from _texts(value)


def _texts(value: object) -> Iterator[Text]:
    if isinstance(value, Text):
        yield value
    elif isinstance(value, Grade):
        yield from (value.name, value.meaning)
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, tuple):
        for each in value:
            yield from _texts(each)
