"""The mode that dumps: every operator that the device computes, as a file of its own."""

from __future__ import annotations

import json
import re
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import torch

from torchferry.accuracy.dump.message import DumpedTensor, dump_file
from torchferry.accuracy.model import group_name
from torchferry.errors import InputError, not_readable
from torchferry.files.aside import write_whole
from torchferry.observe.modes import ObservingMode, unobserved
from torchferry.observe.operators import (
    SKIPPED_NAMESPACES,
    base_name,
    is_view,
    leaves_uninitialised,
    why_unreadable,
)
from torchferry.sim import simulated
from torchferry.text import Text

_MODEL = "0"  # single operators belong to none
_NOT_IN_NAMES = re.compile(r"[./\\\s]")


class DumpingMode(ObservingMode):  # type: ignore[no-untyped-call]
    """Writes {dump_path}/{time}/{device}/{model}/{op_type}.{op_name}.{task}.{stream}.{microseconds}."""

    def __init__(self, configuration: Configuration, device: str) -> None:
        super().__init__()
        self.is_paused = False
        self.files = 0
        self._configuration = configuration
        self._device = device
        self._folder = configuration.path / datetime.now().strftime("%Y%m%d%H%M%S")

    def observe(self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make the call; what went in is kept as it was before it."""
        if self.is_paused or not self._is_wanted(func, (*args, *kwargs.values())):
            return func(*args, **kwargs)
        given: list[DumpedTensor] = []
        if self._configuration.mode != "output":
            given = [_dumped(tensor) for tensor in _tensors((*args, *kwargs.values()))]
        result = func(*args, **kwargs)
        made = list(_tensors([result]))
        if all(tensor.device.type == self._device for tensor in made):
            self._write(func, given, made)
        return result

    def _is_wanted(self, func: Any, values: Iterable[Any]) -> bool:
        """Copies from the host, views and what makes tensors without contents are no operators of the device."""
        if not isinstance(func, torch._ops.OpOverload) or func.namespace in SKIPPED_NAMESPACES:
            return False
        if is_view(func) or leaves_uninitialised(base_name(func)):
            return False
        tensors = list(_tensors(values))
        if any(map(why_unreadable, tensors)) or (tensors and tensors[0].device.type != self._device):
            return False
        operator: str = func.name()  # type: ignore[no-untyped-call]
        return self._configuration.wants(operator)

    def _write(self, func: Any, given: list[DumpedTensor], made: list[torch.Tensor]) -> None:
        results = [_dumped(tensor) for tensor in made] if self._configuration.mode != "input" else []
        now = time.time_ns() // 1000
        name = group_name(func.name())
        kind = _NOT_IN_NAMES.sub("_", base_name(func))
        file = f"{kind}.{name}.{self.files}.0.{now}"
        index = made[0].device.index if made and made[0].device.index is not None else 0
        folder = self._folder / str(index) / _MODEL
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(Path(folder / file), dump_file(name, now, given, results))
        self.files += 1


def _tensors(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)


def _dumped(tensor: torch.Tensor) -> DumpedTensor:
    with unobserved():
        host = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()
        data = host.reshape(-1).view(torch.uint8).numpy().tobytes() if host.numel() else b""
    return DumpedTensor(str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape), data)


# What a vendor's module has for this: one dump at a time is begun, configured, ended.

_begun: list[DumpingMode | None] = []  # at most one: the mode, once it is configured


def init_dump() -> None:
    """Begin a dump, which is configured by `set_dump`."""
    if _begun:
        raise RuntimeError("a dump is already in progress; end it with finalize_dump()")
    _begun.append(None)


def set_dump(cfg_file: str) -> None:
    """Dump what the simulated device computes as the file says, from now on."""
    if not _begun:
        raise RuntimeError("no dump is in progress; call init_dump() first")
    configuration = read_configuration(cfg_file)
    _switch_off()
    if not configuration.is_on:
        warnings.warn(f'{cfg_file}: dump_op_switch is not "on", so no operator is dumped', stacklevel=3)
        return
    now = simulated()
    assert now is not None
    mode = _begun[0] = DumpingMode(configuration, now.vendor.device_type)
    mode.switch_on()


def finalize_dump() -> None:
    """End the dump."""
    if not _begun:
        raise RuntimeError("no dump is in progress; call init_dump() first")
    _switch_off()
    _begun.clear()


def _switch_off() -> None:
    mode, _begun[0] = _begun[0], None
    if mode is not None:
        mode.switch_off()


# What a dump's JSON file asks for. Imports no torch.

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
        raise InputError(
            Text(
                f"{file}: not valid JSON; write the fields of `dump` as a JSON object",
                f"{file}：不是合法的 JSON；请将 `dump` 的字段写成 JSON 对象",
            )
        ) from None
    except OSError as error:
        raise not_readable(file, error) from None
    try:
        given = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(
            Text(
                f"{file}: not valid JSON: line {error.lineno}, column {error.colno}: {error.msg}; JSON allows no "
                "comments and needs a comma between two fields",
                f"{file}：不是合法的 JSON：第 {error.lineno} 行第 {error.colno} 列：{error.msg}；JSON 不允许注释，"
                "字段之间要有逗号",
            )
        ) from None
    dump = given.get("dump") if isinstance(given, dict) else None
    if not isinstance(dump, dict):
        raise InputError(
            Text(
                f'{file}: the field "dump" is missing; add an object with {", ".join(_FIELDS)}',
                f'{file}：缺少字段 "dump"；请添加包含 {", ".join(_FIELDS)} 的对象',
            )
        )
    path = dump.get("dump_path")
    if not isinstance(path, str) or not path:
        raise InputError(
            Text(
                f"{file}: dump_path must name a folder, absolute or relative to where the program starts",
                f"{file}：dump_path 必须是文件夹，可以是绝对路径，也可以相对于程序启动的位置",
            )
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
        raise InputError(
            Text(
                f"{file}: {name} is {value!r}; it must be one of {', '.join(known)}",
                f"{file}：{name} 的值为 {value!r}；必须是 {', '.join(known)} 之一",
            )
        )
    return str(value)


def _layers(file: str, given: Any) -> list[str]:
    """The names in a list of names, or of objects with `layer` (and `model_name`, which single operators have not)."""
    wrong = InputError(
        Text(
            f'{file}: dump_list must be a list of operators, or of objects with "layer": [operators]',
            f'{file}：dump_list 必须是算子列表，或由 "layer": [算子] 形式的对象组成的列表',
        )
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
