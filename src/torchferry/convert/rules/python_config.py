"""TF815: settings of configurations written in Python that no other rule sees, because they are only names there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchferry.convert.python_config import is_python_config
from torchferry.convert.renaming import find_rename
from torchferry.convert.rule import Proposal, Rule, register
from torchferry.convert.site import Site
from torchferry.finding import Kind
from torchferry.source.names import last_name
from torchferry.text import Text

_NO_EFFECT = Text(
    "a setting of cuDNN's: it can stay, and has no effect elsewhere",
    "cuDNN 的设置：可以保留，在其他设备上不起作用",
)
_NUMBERS = Text(
    "numbers of devices: they count the target's as they counted the GPUs",
    "设备编号：含义不变，改为对目标设备编号",
)
_PROFILER = Text(
    "asks PyTorch's profiler for what CUDA does; record {company} with {module} in a hook of your own",
    "要求 PyTorch 的分析器记录 CUDA 活动；请在自定义钩子中用 {module} 记录 {company}",
)
_PROFILER_UNKNOWN = Text(
    "asks PyTorch's profiler for what CUDA does; elsewhere nothing of the device is recorded",
    "要求 PyTorch 的分析器记录 CUDA 活动；在其他设备上不会记录设备活动",
)
_NO_AMP = Text(
    "mmengine (0.10) has mixed precision for CUDA and for {known}, not for {device}: it stops with an error there; "
    "register a wrapper of your own on top of torch.autocast",
    "mmengine（0.10）的混合精度只支持 CUDA 和 {known}，不支持 {device}，会报错退出；请基于 torch.autocast 注册自己的封装",
)
_FILLED_IN = Text(
    "the default of an environment variable; if it names a device, write {new}",
    "环境变量的默认值；若表示设备，请改为 {new}",
)

_AMP = "AmpOptimWrapper"
# The device types that AmpOptimWrapper of mmengine accepts beside "cuda".
_WITH_AMP = ("npu", "mlu", "musa")
_DEFAULT = re.compile(r"\{\{\s*\$\w+\s*:\s*(?:cuda(?::\d+)?|nccl)\s*\}\}")
_NAMES = frozenset({"cudnn_benchmark", "gpu_ids", "activity_with_cuda"})


def _check(site: Site[ast.AST]) -> Iterator[Proposal]:
    node = site.node
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            yield from _check_string(site, node.value)
        return
    if isinstance(node, ast.Name):
        if node.id == _AMP:
            yield from _check_amp(site)
        return
    name = _set_name(node)
    if name in _NAMES and is_python_config(site.module):
        yield from _check_setting(site, name)


def _set_name(node: ast.AST) -> str:
    """The name of a setting: `name=...` in a call, or as a statement."""
    if isinstance(node, ast.keyword):
        return node.arg or ""
    return last_name(node.targets[0]) if isinstance(node, ast.Assign) else ""


def _check_setting(site: Site[ast.AST], name: str) -> Iterator[Proposal]:
    vendor = site.target.vendor
    if name == "gpu_ids":
        yield site.remark(Kind.INFO, _NUMBERS)
    elif name == "cudnn_benchmark":
        yield site.remark(Kind.INFO, _NO_EFFECT)
    elif vendor.profiler_module and not site.target.is_portable:
        yield site.remark(Kind.TODO, _PROFILER.format(company=vendor.company, module=vendor.profiler_module))
    else:
        yield site.remark(Kind.TODO, _PROFILER_UNKNOWN)


def _check_amp(site: Site[ast.AST]) -> Iterator[Proposal]:
    device = site.target.device.word
    if device and device not in _WITH_AMP and is_python_config(site.module):
        yield site.remark(Kind.TODO, _NO_AMP.format(known=", ".join(_WITH_AMP), device=device))


def _check_string(site: Site[ast.AST], value: str) -> Iterator[Proposal]:
    if value == _AMP:
        yield from _check_amp(site)
    elif _DEFAULT.search(value):
        word = site.target.backend if "nccl" in value else site.target.device
        yield site.remark(Kind.TODO, _FILLED_IN.format(new=word.word or word.expression))
    elif _is_custom_import(site) and is_python_config(site.module):
        found = find_rename(site.context, value)
        if found is not None and not found[1].new:
            yield site.remark(found[1].kind, found[1].message)


def _is_custom_import(site: Site[ast.AST]) -> bool:
    """custom_imports = dict(imports=['package.module', ...])"""
    return any(
        isinstance(node, ast.Assign) and last_name(node.targets[0]) == "custom_imports"
        for node in site.place.upwards()
    )


RULE = register(
    Rule(
        id="TF815",
        name="python-config",
        summary=Text(
            "configurations written in Python (OpenMMLab): settings that mean something else, or nothing, on the target",
            "用 Python 编写的配置（OpenMMLab）：在目标设备上含义不同或无效的设置",
        ),
        triggers=("cudnn_benchmark", "gpu_ids", "activity_with_cuda", _AMP, "custom_imports"),
        nodes=(ast.keyword, ast.Assign, ast.Constant, ast.Name),
        check=_check,
    )
)
