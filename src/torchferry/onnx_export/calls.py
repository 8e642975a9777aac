"""A model as a function of a flat list of tensors: whatever it takes and gives, dictionaries and lists included."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import torch

from torchferry.errors import InputError, RunError
from torchferry.onnx_export.model import DynamicAxis
from torchferry.readiness.cases.model import TensorInput
from torchferry.readiness.models.request import InputValue, ModelInputs, parse_inputs
from torchferry.readiness.models.step import built, drawn
from torchferry.text import Text

Axes = dict[str, dict[int, str]]  # input or output -> axis -> symbol


@dataclass(frozen=True)
class TensorSlot:
    """Where a tensor belongs: its number in the flat list."""

    number: int


@dataclass(frozen=True)
class ModelSignature:
    """What a model is called with."""

    names: tuple[str, ...]
    tensors: tuple[TensorInput, ...]
    args: tuple[Any, ...]  # with slots for tensors
    kwargs: Mapping[str, Any]
    axes: Axes

    def draw(self, sizes: Mapping[str, int], seed: int) -> tuple[torch.Tensor, ...]:
        """Random inputs; a symbol that is in `sizes` has that size."""
        torch.manual_seed(seed)
        found: list[torch.Tensor] = []
        for name, tensor in self._pairs():
            free = self.axes.get(name, {})
            shape = tuple(sizes.get(free.get(axis, ""), size) for axis, size in enumerate(tensor.shape))
            found.append(drawn(replace(tensor, shape=shape)))
        return tuple(found)

    def given_sizes(self) -> dict[str, int]:
        """The size of each symbol in the inputs as they were written."""
        return {
            symbol: tensor.shape[axis]
            for name, tensor in self._pairs()
            for axis, symbol in self.axes.get(name, {}).items()
        }

    def _pairs(self) -> Iterator[tuple[str, TensorInput]]:
        return zip(self.names, self.tensors, strict=True)


def signature_of(
    model: torch.nn.Module, inputs: Sequence[str], names: Sequence[str], dynamic: Sequence[DynamicAxis]
) -> ModelSignature:
    """What the user wrote, as slots of a flat list with a name for each."""
    parsed = parse_inputs(inputs)
    found: list[tuple[str, TensorInput]] = []
    args = tuple(
        _slotted(value, label, found)
        for value, label in zip(parsed.args, _labels(model, parsed), strict=True)
    )
    kwargs = {name: _slotted(value, name, found) for name, value in parsed.kwargs.items()}
    if not found:
        raise InputError(
            Text(
                "--input: none of the values is a tensor, so nothing would be computed; give at least one tensor",
                "--input：所有值都不是张量，没有可计算的内容；请至少给出一个张量",
            )
        )
    if names and len(names) != len(found):
        raise InputError(
            Text(
                f"--input-names: {len(names)} names for {len(found)} tensors; give one name for each",
                f"--input-names：{len(found)} 个张量对应了 {len(names)} 个名称；请一一对应",
            )
        )
    chosen = tuple(names) or tuple(name for name, _ in found)
    tensors = tuple(tensor for _, tensor in found)
    return ModelSignature(chosen, tensors, args, kwargs, _axes(chosen, tensors, dynamic))


def _labels(model: torch.nn.Module, inputs: ModelInputs) -> list[str]:
    """Names for arguments without one: `input`, or those of the forward pass where there are several."""
    if len(inputs.args) == 1:
        return ["input"]
    parameters = list(inspect.signature(model.forward).parameters.values())
    plain = [each.name for each in parameters if each.kind is not inspect.Parameter.VAR_POSITIONAL]
    return [plain[index] if index < len(plain) else f"input_{index}" for index in range(len(inputs.args))]


def _slotted(value: InputValue, label: str, found: list[tuple[str, TensorInput]]) -> Any:
    if isinstance(value, TensorInput):
        found.append((label, value))
        return TensorSlot(len(found) - 1)
    if isinstance(value, dict):
        return {key: _slotted(part, f"{label}.{key}", found) for key, part in value.items()}
    if isinstance(value, list):
        return [_slotted(part, f"{label}.{index}", found) for index, part in enumerate(value)]
    return built(value, torch.device("cpu"))


def _axes(names: Sequence[str], tensors: Sequence[TensorInput], dynamic: Sequence[DynamicAxis]) -> Axes:
    axes: Axes = {}
    for each in dynamic:
        if each.input and each.input not in names:
            raise InputError(
                Text(
                    f"--dynamic {each.input}:{each.axis}: no such input; the inputs are {', '.join(names)}",
                    f"--dynamic {each.input}:{each.axis}：没有该输入；现有输入为 {', '.join(names)}",
                )
            )
        for name, tensor in zip(names, tensors, strict=True):
            fits = each.axis < len(tensor.shape)
            if each.input == name and not fits:
                raise InputError(
                    Text(
                        f"--dynamic {name}:{each.axis}: {name} has only {len(tensor.shape)} axes, counted from 0",
                        f"--dynamic {name}:{each.axis}：{name} 只有 {len(tensor.shape)} 个轴（从 0 开始计数）",
                    )
                )
            if fits and each.input in ("", name):
                axes.setdefault(name, {})[each.axis] = each.symbol
    return axes


class TensorForward(torch.nn.Module):
    """The model behind a forward pass from tensors to tensors."""

    def __init__(self, model: torch.nn.Module, signature: ModelSignature) -> None:
        super().__init__()
        self.model = model
        self._args, self._kwargs = signature.args, dict(signature.kwargs)
        self.output_names: tuple[str, ...] = ()  # as the last call has found them

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        args = [_filled(value, tensors) for value in self._args]
        kwargs = {name: _filled(value, tensors) for name, value in self._kwargs.items()}
        outputs = list(_leaves(self.model(*args, **kwargs), ""))
        self.output_names = _output_names([path for path, _ in outputs])
        return tuple(tensor for _, tensor in outputs)


def _filled(value: Any, tensors: Sequence[torch.Tensor]) -> Any:
    if isinstance(value, TensorSlot):
        return tensors[value.number]
    if isinstance(value, dict):
        return {key: _filled(part, tensors) for key, part in value.items()}
    if isinstance(value, list):
        return [_filled(part, tensors) for part in value]
    return value


def _leaves(value: Any, path: str) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors of what a model gives, by their keys, fields or positions; what is None is left out."""
    if isinstance(value, torch.Tensor):
        yield path, value
        return
    if isinstance(value, dict):
        inside = dict(value)
    elif is_dataclass(value) and not isinstance(value, type):
        inside = {field.name: getattr(value, field.name) for field in fields(value)}
    elif hasattr(value, "_fields"):
        inside = value._asdict()
    elif isinstance(value, (list, tuple)):
        inside = dict(enumerate(value))
    elif value is None or isinstance(value, (bool, int, float, str)):
        return
    else:
        raise RunError(
            Text(
                f"the model returns a {type(value).__name__}, which ONNX does not support; wrap the model so that "
                "it returns tensors, or turn that output off, as with --input use_cache=False",
                f"模型返回 {type(value).__name__}，ONNX 不支持；请包装模型使其返回张量，或关闭该输出，例如 "
                "--input use_cache=False",
            )
        )
    for key, part in inside.items():
        yield from _leaves(part, f"{path}.{key}" if path else str(key))


def _output_names(paths: Sequence[str]) -> tuple[str, ...]:
    if len(paths) == 1:
        only = paths[0]
        return (only if only and not only.isdecimal() else "output",)
    return tuple(f"output_{path}" if path.split(".")[0].isdecimal() else path for path in paths)
