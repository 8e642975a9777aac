"""Fills a model with the weights of a checkpoint; what does not fit is said name by name."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from torchferry.checkpoint.folders import read
from torchferry.checkpoint.loading import Loaded, NotPlainError, load_tree, refusal
from torchferry.checkpoint.model import Checkpoint
from torchferry.checkpoint.names import (
    Renaming,
    StateDict,
    at,
    differences,
    fit,
    renamed_to_fit,
    state_dict_at,
    state_dicts,
)
from torchferry.errors import FerryError, InputError
from torchferry.onnx_export.model import ExportRequest
from torchferry.text import Text

_TOOK = Text("weights: {name} of {path}, {count} tensors", "权重：{path} 的 {name}，{count} 个张量")
_WHOLE = Text("all", "全部内容")
_ALSO = Text("the file also has {names}; choose with --only", "文件中还有 {names}；可用 --only 选择")
_STRIPPED = Text("every name began with {prefix}, which was taken off", "所有名称均以 {prefix} 开头，已去掉")
_UNWRAPPED = Text("wrappers within {count} names were taken out", "已去掉 {count} 个名称中的包装层")
_LENIENT = Text(
    "{missing} weights are not in the file and are as the factory made them; {unexpected} of the file were not used; "
    "{misshapen} had another shape",
    "文件中缺少 {missing} 个权重，保持模型初始值；文件中有 {unexpected} 个未使用；{misshapen} 个形状不符",
)
_RAN = Text(
    "code that the file names has run, as --allow-pickle says", "已按 --allow-pickle 执行了文件引用的代码"
)


class WeightsMismatchError(FerryError):
    """A checkpoint whose names or shapes are not the model's: a line for each."""


def fill(model: torch.nn.Module, request: ExportRequest) -> list[Text]:
    """Load the checkpoint into the model; the answer is what there is to say about it."""
    path = Path(request.checkpoint)
    contents = read(path)
    state, said = _chosen(contents, request.only)
    weights, ran_code = _loaded(contents, state, request)
    said += [_RAN] if ran_code else []
    wanted = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    renaming = renamed_to_fit(weights, wanted)
    said += [_STRIPPED.format(prefix=renaming.stripped)] if renaming.stripped else []
    said += [_UNWRAPPED.format(count=renaming.unwrapped)] if renaming.unwrapped else []
    weights = {renaming.names[name]: tensor for name, tensor in weights.items()}
    found = fit({name: tuple(tensor.shape) for name, tensor in weights.items()}, wanted)
    if not found.is_whole:
        if not request.lenient:
            summary = (
                f"{path}: does not fit {request.model.factory}: {len(found.missing)} names missing, "
                f"{len(found.unexpected)} not in the model, {len(found.misshapen)} of another shape; check --model and "
                "--init, choose a part with --only, or go on with what fits with --lenient"
            )
            raise WeightsMismatchError(summary, *differences(found))
        said.append(
            _LENIENT.format(
                missing=len(found.missing), unexpected=len(found.unexpected), misshapen=len(found.misshapen)
            )
        )
        odd = {*found.unexpected, *(name for name, _, _ in found.misshapen)}
        weights = {name: tensor for name, tensor in weights.items() if name not in odd}
    model.load_state_dict(_with_versions(weights, state, renaming, model), strict=False)
    return said


def _with_versions(
    weights: Mapping[str, torch.Tensor], state: StateDict, renaming: Renaming, model: torch.nn.Module
) -> OrderedDict[str, torch.Tensor]:
    """Some layers read weights of another version differently; where the file does not say, it is the model's own."""
    whole: Any = OrderedDict(weights)
    whole._metadata = getattr(model.state_dict(), "_metadata", {})
    if isinstance(state.metadata, dict):
        whole._metadata = {
            renaming.of_module(str(name)): dict(version)
            for name, version in state.metadata.items()
            if isinstance(version, dict)
        }
    made: OrderedDict[str, torch.Tensor] = whole
    return made


def _chosen(contents: Checkpoint, only: str) -> tuple[StateDict, list[Text]]:
    if only:
        state = state_dict_at(tuple(only.split(".")), at(contents.tree, only))
        others: list[str] = []
    else:
        states = state_dicts(contents.tree)
        if not states:
            raise InputError(f"{contents.path}: no weights in it; `ferry checkpoint info` says what there is")
        state, others = states[0], [each.name for each in states[1:]]
    name = Text(state.name, state.name) if state.path else _WHOLE
    said = [_TOOK.format(name=name, path=contents.path, count=len(state.tensors))]
    return state, said + ([_ALSO.format(names=", ".join(others))] if others else [])


def _loaded(
    contents: Checkpoint, state: StateDict, request: ExportRequest
) -> tuple[dict[str, torch.Tensor], bool]:
    try:
        return Loaded(contents).tensors(state.tensors), False
    except NotPlainError as problem:
        if not request.allow_pickle:
            raise refusal(contents, problem) from None
    whole, _, ran_code = load_tree(contents, True)
    found: Any = at(whole, state.name) if state.path else whole
    if isinstance(found, torch.nn.Module):
        return dict(found.state_dict()), ran_code
    return {str(name): value for name, value in found.items() if isinstance(value, torch.Tensor)}, ran_code
