"""What a dump's JSON file asks for. Imports no torch."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchferry.errors import InputError

MODES = ("input", "output", "all")
_SWITCH = ("on", "off")
_FIELDS = ("dump_list", "dump_path", "dump_mode", "dump_op_switch")


@dataclass(frozen=True)
class Configuration:
    """The fields of `dump`."""

    path: Path  # where the files go
    mode: str = "output"
    is_on: bool = False  # whether single operators are dumped
    layers: tuple[str, ...] = ()  # the only operators; none: all

    @property
    def with_inputs(self) -> bool:
        """Whether what an operator was given is wanted."""
        return self.mode in ("input", "all")

    @property
    def with_outputs(self) -> bool:
        """Whether what an operator made is wanted."""
        return self.mode in ("output", "all")

    def wants(self, operator: str) -> bool:
        """Whether an operator is to be dumped, by its name with or without its library and overload."""
        plain = operator.rpartition("::")[2]
        return not self.layers or any(
            name in self.layers for name in (operator, plain, plain.partition(".")[0])
        )


def read_configuration(file: str) -> Configuration:
    """The configuration in a file, if there is nothing wrong with it."""
    try:
        text = Path(file).read_text("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{file}: is no JSON; write the fields of `dump` there") from None
    except OSError as error:
        raise InputError(f"{file}: can't be read: {error.strerror}") from None
    try:
        given = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{file}: is no JSON: line {error.lineno}, column {error.colno}: {error.msg}; JSON has no comments, and a "
            "comma between two fields"
        ) from None
    dump = given.get("dump") if isinstance(given, dict) else None
    if not isinstance(dump, dict):
        raise InputError(f'{file}: the field "dump" is missing, with an object of {", ".join(_FIELDS)}')
    return _checked(file, dump)


def _checked(file: str, dump: dict[str, Any]) -> Configuration:
    path = dump.get("dump_path")
    if not isinstance(path, str) or not path:
        raise InputError(
            f"{file}: dump_path must name a folder, absolute or as seen from where the program runs"
        )
    return Configuration(
        Path(path).absolute(),
        _one_of(file, dump, "dump_mode", MODES, "output"),
        _one_of(file, dump, "dump_op_switch", _SWITCH, "off") == "on",
        tuple(_layers(file, dump.get("dump_list", []))),
    )


def _one_of(file: str, dump: dict[str, Any], name: str, known: tuple[str, ...], usual: str) -> str:
    value = dump.get(name, usual)
    if value not in known:
        raise InputError(f"{file}: {name} is {value!r}; it must be one of {', '.join(known)}")
    return str(value)


def _layers(file: str, given: Any) -> list[str]:
    """The names in a list of names, or of objects with `layer` (and `model_name`, which single operators have not)."""
    wrong = InputError(
        f'{file}: dump_list must be a list, of operators or of objects with "layer": [operators]'
    )
    if not isinstance(given, list):
        raise wrong
    found: list[str] = []
    for item in given:
        names = item.get("layer", []) if isinstance(item, dict) else [item]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise wrong
        found += names
    return found
