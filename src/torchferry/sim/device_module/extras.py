"""What a vendor's module has beside CUDA's names: read from `extras.txt` in the vendor's folder.

One entry a line, KIND NAME [VALUE...]; values are JSON. Kinds:
  nothing NAME             a function that does nothing
  constant NAME VALUE      a function that answers a value
  switch NAME VALUE        an attribute that can be set, with its first value
  setter NAME KEY          a function that remembers its argument under a key
  getter NAME KEY VALUE    a function that answers what was remembered, VALUE before that
  negation NAME KEY VALUE  a function that answers the opposite of it
  nonfinite NAME           a function that says whether a tensor, or one of a list, holds inf or nan
  context NAME             a with block or decorator that does nothing
  alias NAME OTHER         another name for a function of the module
  property NAME VALUE      a field of get_device_properties
  cores NAME               such a field that counts cores: here those of the host
  capability_env VARIABLE  an environment variable that get_device_capability answers from
  own_scaler NAME          a gradient scaler that also takes dynamic=False and computes in float32 only
  function NAME MODULE:F   a function of another module, which is imported when it is called
  library NAME MODULE      a module below torch that has what another module has, which is imported when it is used
  in_torch NAME MODULE:F   the same, under a name below torch
  profile NAME FILE        a block that leaves a trace below the folder it is given
  profile_config NAME {}   what such a block collects: switches, and lists of values
  options NAME {}          a function that checks options of a compiler: lists of values, or what they must be
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.profiler

from torchferry.errors import VendorError
from torchferry.sim.device_module.devices import device_type
from torchferry.text import Text

EXTRAS_FILE = "extras.txt"


@dataclass(frozen=True)
class Extra:
    """One line of the file."""

    kind: str
    name: str  # dotted, below the module
    key: str = ""
    value: Any = None


@contextlib.contextmanager
def nothing_inside(*_: object, **__: object) -> Iterator[None]:
    """A block that changes nothing."""
    yield


_Maker = Callable[["Extra", dict[str, Any]], Callable[..., Any]]
# kind -> whether a key and a JSON value follow the name, what makes a function of such a line
_KINDS: Mapping[str, tuple[bool, bool, _Maker | None]] = {
    "nothing": (False, False, lambda extra, _: _answering(None)),
    "constant": (False, True, lambda extra, _: _answering(extra.value)),
    "switch": (False, True, None),
    "setter": (True, False, lambda extra, remembered: _setter(extra, remembered)),
    "getter": (True, True, lambda extra, remembered: lambda: remembered.get(extra.key, extra.value)),
    "negation": (
        True,
        True,
        lambda extra, remembered: lambda: not remembered.get(extra.key, not extra.value),
    ),
    "nonfinite": (False, False, lambda extra, _: has_inf_or_nan),
    "context": (False, False, lambda extra, _: nothing_inside),
    "alias": (True, False, None),
    "property": (False, True, None),
    "cores": (False, False, None),
    "capability_env": (False, False, None),
    "own_scaler": (False, False, None),
    "function": (True, False, lambda extra, _: imported_when_called(extra.key)),
    "in_torch": (True, False, None),
    "library": (True, False, None),
    "profile": (False, True, lambda extra, _: profile(extra.value)),
    "profile_config": (False, True, lambda extra, _: profile_config(extra.value)),
    "options": (False, True, lambda extra, _: options(extra.value)),
}


def load_extras(vendor_folder: Path) -> tuple[Extra, ...]:
    """Read a vendor's extras; without the file there are none."""
    file = vendor_folder / EXTRAS_FILE
    if not file.is_file():
        return ()
    lines = enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
    return tuple(
        _parse(file, number, line) for number, line in lines if line.strip() and not line.startswith("#")
    )


def _parse(file: Path, number: int, line: str) -> Extra:
    kind, _, rest = line.strip().partition(" ")
    if kind not in _KINDS:
        raise VendorError(
            Text(
                f"{file}: line {number}: unknown kind '{kind}'; known: {', '.join(_KINDS)}",
                f"{file}：第 {number} 行：未知的种类 '{kind}'；已知的有 {', '.join(_KINDS)}",
            )
        )
    has_key, has_value, _ = _KINDS[kind]
    parts = rest.split(None, has_key + has_value)
    if len(parts) != 1 + has_key + has_value:
        raise VendorError(
            Text(
                f"{file}: line {number}: '{kind}' takes {1 + has_key + has_value} words after it",
                f"{file}：第 {number} 行：'{kind}' 之后需要 {1 + has_key + has_value} 个词",
            )
        )
    try:
        value = json.loads(parts[-1]) if has_value else None
    except json.JSONDecodeError:
        raise VendorError(
            Text(
                f"{file}: line {number}: {parts[-1]!r} is not a JSON value; correct it",
                f"{file}：第 {number} 行：{parts[-1]!r} 不是 JSON 值；请改正",
            )
        ) from None
    return Extra(kind, parts[0], parts[1] if has_key else "", value)


def properties(extras: Iterable[Extra]) -> dict[str, Any]:
    """The fields of get_device_properties that the extras describe."""
    fields = {extra.name: extra.value for extra in extras if extra.kind == "property"}
    cores = {extra.name: os.cpu_count() or 1 for extra in extras if extra.kind == "cores"}
    return {**fields, **cores}


def functions(extras: Iterable[Extra]) -> dict[str, Callable[..., Any]]:
    """The functions that the extras describe, by dotted name."""
    remembered: dict[str, Any] = {}
    made = {}
    for extra in extras:
        make = _KINDS[extra.kind][2]
        if make is not None:
            made[extra.name] = make(extra, remembered)
    return made


def imported_when_called(name: str) -> Callable[..., Any]:
    """A function that is called as module:function; nothing is imported before it is."""
    module, _, leaf = name.partition(":")

    def call(*args: Any, **kwargs: Any) -> Any:
        return getattr(importlib.import_module(module), leaf)(*args, **kwargs)

    call.__name__ = call.__qualname__ = leaf
    return call


def _answering(value: Any) -> Callable[..., Any]:
    def answer(*_: object, **__: object) -> Any:
        return value

    return answer


def _setter(extra: Extra, remembered: dict[str, Any]) -> Callable[..., None]:
    def remember(*args: Any, **kwargs: Any) -> None:
        values = [*args, *kwargs.values()]
        if len(values) != 1:
            raise TypeError(f"{extra.name}() takes one argument, got {len(values)}")
        remembered[extra.key] = values[0]

    return remember


def has_inf_or_nan(tensors: Any) -> bool:
    """Whether a tensor, or one of a list of tensors, holds inf or nan."""
    if isinstance(tensors, torch.Tensor):
        return not bool(torch.isfinite(tensors).all())
    return any(has_inf_or_nan(tensor) for tensor in tensors)


_FOLDER = "folder"
_NUMBER = "number"


def profile_config(fields: Mapping[str, Any]) -> type:
    """The class of settings with these fields. A field is a switch with its first position, or one of a list of
    values of which the first is the default."""

    class profileConfig:  # noqa: N801  as classes of such modules are named
        """The settings of the vendor's profiler."""

        def __init__(self, *args: Any, **given: Any) -> None:
            if len(args) > len(fields):
                raise TypeError(f"profileConfig() takes {len(fields)} settings, got {len(args)}")
            given = {**dict(zip(fields, args, strict=False)), **given}
            unknown = sorted(given.keys() - fields.keys())
            if unknown:
                raise TypeError(f"profileConfig() got an unexpected keyword argument '{unknown[0]}'")
            self.settings = {
                name: _checked(name, given[name], known)
                if name in given
                else (known[0] if isinstance(known, list) else known)
                for name, known in fields.items()
            }

    return profileConfig


def _checked(name: str, value: Any, known: Any) -> Any:
    if isinstance(known, list):
        if value not in known:
            raise ValueError(f"value of {name} should be in {known} but got {value}")
    elif not isinstance(value, (bool, int)):
        raise TypeError(f"value of {name} should be True or False but got {value!r}")
    return value


def profile(file: str) -> type:
    """The class of profilers whose blocks leave such a file below a folder that exists: {time} and {process} in its
    name are filled in."""

    class profile:  # noqa: N801  as classes of such modules are named
        """Collects what is called in a block. Kernels run on the CPU here: their times are those of the operators."""

        def __init__(
            self, profiler_result_path: str = "./", use_e2e_profiler: bool = False, config: Any = None
        ) -> None:
            self.result_path = profiler_result_path
            self.use_e2e_profiler = use_e2e_profiler
            self._config = {} if config is None else dict(config.settings)
            self._watch: Any = None

        def __enter__(self) -> Any:
            if not os.path.isdir(self.result_path):
                raise AssertionError(
                    f"profiler_result_path: {self.result_path} not exists; make the folder first"
                )
            self._watch = torch.profiler.profile(
                activities=[torch.profiler.ProfilerActivity.CPU],
                record_shapes=True,
                with_stack=self.use_e2e_profiler,  # it adds what the framework does
            )
            self._watch.start()
            return self

        def __exit__(self, *_error: object) -> None:
            self._watch.add_metadata_json("profileConfig", json.dumps(self._config))
            self._watch.stop()
            name = file.format(time=time.strftime("%Y%m%d%H%M%S"), process=os.getpid())
            path = _unused(Path(self.result_path), Path(name))
            path.parent.mkdir(parents=True, exist_ok=True)
            self._watch.export_chrome_trace(str(path))

    return profile


def _unused(folder: Path, file: Path) -> Path:
    """A file in a folder of its own: blocks within one second get a number."""
    own, *below = file.parts
    numbers = itertools.chain([""], (f"_{number}" for number in itertools.count(1)))
    free = next(number for number in numbers if not (folder / f"{own}{number}").exists())
    return folder.joinpath(f"{own}{free}", *below)


def options(known: Mapping[str, Any]) -> Callable[[Any], None]:
    """A function that takes a dictionary of options, and checks it. Of an option are known: a list of its values,
    ["number", least, most], "folder" for one that must exist, or null for what may be anything."""

    def set_option(option: dict[str, Any]) -> None:
        """Set options of the device's compiler. There is none here: they are checked, nothing else."""
        if not isinstance(option, dict):
            raise TypeError(f"{device_type()} option must be a dict.")
        for name, value in option.items():
            if name not in known:
                raise RuntimeError(f"invalid {device_type()} option name:{name}")
            _check_option(name, str(value), known[name])

    return set_option


def _check_option(name: str, value: str, known: Any) -> None:
    if known is None:
        return
    if known == _FOLDER:
        if not os.path.isdir(value):
            raise ValueError(f"value of {name} should be a folder that exists but got {value}")
    elif known[0] == _NUMBER:
        if not (value.isdigit() and known[1] <= int(value) <= known[2]):
            raise ValueError(
                f"value of {name} should be a number from {known[1]} to {known[2]} but got {value}"
            )
    elif value not in known:
        raise ValueError(f"value of {name} should be in {known} but got {value}")
