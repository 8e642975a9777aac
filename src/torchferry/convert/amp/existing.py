"""Mixed precision that a module has already, in whatever form."""

from __future__ import annotations

import ast

from torchferry.source.module import PythonModule

_NAMES = frozenset(
    {
        "autocast",
        "GradScaler",
        "scale_loss",
        "AmpOptimWrapper",
        "NativeScaler",
        "NativeScalerWithGradNormCount",
    }
    | {
        "FP16_Optimizer",
        "FP16Optimizer",
        "Accelerator",
        "manual_backward",
        "MixedPrecision",
        "network_to_half",
    }
)
_PACKAGES = frozenset(
    {"accelerate", "deepspeed", "lightning", "pytorch_lightning", "mmengine", "mmcv", "colossalai", "bmtrain"}
    | {"lightning_fabric", "composer", "fairseq", "detectron2", "catalyst", "ignite"}
)
_CASTS = frozenset({"half", "bfloat16"})
_HALVES = frozenset({"half", "float16", "bfloat16"})
_WORDS = tuple(word.encode() for word in (*_NAMES, *_PACKAGES, *_CASTS, *_HALVES, "apex"))


def existing_precision(module: PythonModule) -> ast.AST | None:
    """The first place that shows mixed precision, or a library that brings its own."""
    if not any(word in module.data for word in _WORDS):
        return None
    found = [node for node in ast.walk(module.tree) if _shows(node)]
    return min(found, key=lambda node: node.lineno, default=None)  # type: ignore[attr-defined]


def _shows(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in _NAMES
    if isinstance(node, ast.Name):
        return node.id in _NAMES
    if isinstance(node, ast.Import):
        return any(alias.name.partition(".")[0] in _PACKAGES or _is_apex(alias.name) for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        package = (node.module or "").partition(".")[0] if not node.level else ""
        names = {alias.name for alias in node.names}
        return package in _PACKAGES or not names.isdisjoint(_NAMES) or (package == "apex" and "amp" in names)
    return isinstance(node, ast.Call) and _casts(node)


def _casts(call: ast.Call) -> bool:
    """model.half(), x.to(torch.bfloat16), from_pretrained(name, torch_dtype=torch.float16)"""
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if method in _CASTS:
        return not call.args
    given = [*call.args, *(item.value for item in call.keywords)] if method == "to" else []
    given += [item.value for item in call.keywords if item.arg == "torch_dtype"]
    return any(isinstance(value, ast.Attribute) and value.attr in _HALVES for value in given)


def _is_apex(name: str) -> bool:
    return name.startswith("apex.amp")
