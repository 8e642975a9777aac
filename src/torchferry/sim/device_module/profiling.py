"""A profiler of the device's module itself, as vendors had before torch.profiler, and options of their compilers."""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch.profiler

from torchferry.sim.device_module.identity import device_type

_FOLDER = "folder"
_NUMBER = "number"


def profile_config(fields: Mapping[str, Any]) -> type:
    """The class of settings with these fields. A field is a switch with its first position, or one of a list of
    values of which the first is the default."""

    class profileConfig:  # noqa: N801  as classes of such modules are named
        """What is collected."""

        def __init__(self, *args: Any, **given: Any) -> None:
            if len(args) > len(fields):
                raise TypeError(f"profileConfig() takes {len(fields)} settings, got {len(args)}")
            given = {**dict(zip(fields, args, strict=False)), **given}
            unknown = sorted(given.keys() - fields.keys())
            if unknown:
                raise TypeError(f"profileConfig() got an unexpected keyword argument '{unknown[0]}'")
            self.settings = {
                name: _checked(name, given[name], known) if name in given else _default(known)
                for name, known in fields.items()
            }

    return profileConfig


def _default(known: Any) -> Any:
    return known[0] if isinstance(known, list) else known


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
