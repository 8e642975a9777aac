"""Finds in a user's model the operator that an exporter has stopped at: the layer, and the line of its file."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

import torch

import torchferry

_OPERATOR = re.compile(r"operator '?(?:aten::)?(\w+)|'?aten::(\w+)")
_SINCE = re.compile(r"added in version (\d+)")
_LINE = re.compile(r"^\s*(\S.*?\.py)\((\d+)\):", re.MULTILINE)
_NOT_THE_USERS = tuple(
    os.path.join(os.path.dirname(package.__file__ or ""), "") for package in (torch, torchferry)
)


def obstacle(said: Sequence[str], called: torch.nn.Module, tensors: tuple[torch.Tensor, ...]) -> str:
    """The operator that the exporters name, with its place; "": none of them names one."""
    found = next(filter(None, map(_OPERATOR.search, said)), None)
    if found is None:
        return ""
    name = found[1] or found[2]
    since = next(filter(None, map(_SINCE.search, said)), None)
    newer = f", which ONNX has from opset {since[1]} on" if since else ""
    return f"aten::{name}{_place(name, called, tensors)}{newer}"


def _place(name: str, called: torch.nn.Module, tensors: tuple[torch.Tensor, ...]) -> str:
    try:
        trace: Any = torch.jit.trace
        graph = trace(called, tensors, check_trace=False).inlined_graph
    except Exception:  # whatever a user's model raises while it is traced
        return ""
    node = next((node for node in graph.nodes() if node.kind() == f"aten::{name}"), None)
    if node is None:
        return ""
    layer = node.scopeName().split("/")[-1].removeprefix("__module.").removeprefix("model").strip(".")
    lines = [
        f"{file.removeprefix(os.getcwd() + os.sep)}:{line}"
        for file, line in _LINE.findall(node.sourceRange())
        if not file.startswith(_NOT_THE_USERS)
    ]
    return (f" in {layer}" if layer else "") + (f" ({lines[0]})" if lines else "")
