"""TF815: settings of configurations written in Python that no other rule sees, because they are only names there."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from torchferry.conversion.python_config import is_python_config
from torchferry.conversion.renaming import find_rename
from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import Site
from torchferry.finding import Kind, Message
from torchferry.source.names import last_name
from torchferry.text import Text

_REMARKS = {
    "cudnn_benchmark": Message(
        Text("cuDNN setting in a configuration", "配置中的 cuDNN 设置"),
        why=Text("It can stay and has no effect on other devices.", "可以保留，在其他设备上不起作用。"),
    ),
    "gpu_ids": Message(
        Text("Device numbers in a configuration", "配置中的设备编号"),
        why=Text(
            "They count the devices of the target as they counted the GPUs.", "含义不变，改为对目标设备编号。"
        ),
    ),
}
_PROFILER = Message(
    Text("Profiler in a configuration records CUDA only", "配置中的性能分析器只记录 CUDA"),
    do=Text(
        "Record {company} with `{module}` in your own hook.", "请在自定义钩子中用 `{module}` 记录 {company}。"
    ),
)
_PROFILER_UNKNOWN = Message(
    Text("Profiler in a configuration records CUDA only", "配置中的性能分析器只记录 CUDA"),
    why=Text("Nothing of another device is recorded.", "不会记录其他设备的活动。"),
    do=Text(
        "Remove the activity, or choose it where the program runs.", "请去掉该活动，或在程序运行时选择。"
    ),
)
_NO_AMP = Message(
    Text("Mixed precision of mmengine on {device}", "mmengine 在 {device} 上的混合精度"),
    why=Text(
        "mmengine 0.10 supports CUDA and {known} only; on {device} it stops with an error.",
        "mmengine 0.10 只支持 CUDA 和 {known}，在 {device} 上会报错退出。",
    ),
    do=Text(
        "Register your own optimizer wrapper on top of `torch.autocast`.",
        "请基于 `torch.autocast` 注册自己的优化器封装。",
    ),
)
_FILLED_IN = Message(
    Text("Default of an environment variable that may name a device", "可能是设备名的环境变量默认值"),
    do=Text("If it names a device, write {new}.", "若表示设备，请改为 {new}。"),
)

_AMP = "AmpOptimWrapper"
# The device types that AmpOptimWrapper of mmengine accepts beside "cuda".
_WITH_AMP = ("npu", "mlu", "musa")
_DEFAULT = re.compile(r"\{\{\s*\$\w+\s*:\s*(?:cuda(?::\d+)?|nccl)\s*\}\}")


def _check(site: Site[ast.AST]) -> Iterator[Proposal]:
    node = site.node
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str) and "{{" in node.value and _DEFAULT.search(node.value):
            word = site.target.backend if "nccl" in node.value else site.target.device
            yield site.remark(Kind.TODO, _FILLED_IN.format(new=word.shown))
        return
    name, value = _setting(node)
    if name not in (*_CHECKS, *_REMARKS) or not is_python_config(site.module):
        return
    if name in _REMARKS:
        yield site.remark(Kind.INFO, _REMARKS[name])
    else:
        yield from _CHECKS[name](site, value)


def _setting(node: ast.AST) -> tuple[str, ast.expr | None]:
    if isinstance(node, ast.keyword):
        return node.arg or "", node.value
    return (last_name(node.targets[0]), node.value) if isinstance(node, ast.Assign) else ("", None)


def _check_profiler(site: Site[ast.AST], value: ast.expr | None) -> Iterator[Proposal]:
    vendor = site.target.vendor
    if vendor.profiler_module and not site.target.is_portable:
        message = _PROFILER.format(company=vendor.company_name, module=vendor.profiler_module)
        yield site.remark(Kind.TODO, message)
    else:
        yield site.remark(Kind.TODO, _PROFILER_UNKNOWN)


def _check_type(site: Site[ast.AST], value: ast.expr | None) -> Iterator[Proposal]:
    """type='AmpOptimWrapper', or the class itself."""
    name = value.value if isinstance(value, ast.Constant) else last_name(value)
    device = site.target.device.word
    if name == _AMP and device and device not in _WITH_AMP:
        yield site.remark(Kind.TODO, _NO_AMP.format(known=", ".join(_WITH_AMP), device=device), value)


def _check_imports(site: Site[ast.AST], value: ast.expr | None) -> Iterator[Proposal]:
    """custom_imports = dict(imports=['package.module', ...])"""
    for node in ast.walk(value) if value else ():
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found = find_rename(site.context, node.value)
            if found is not None and not found[1].new:
                yield site.remark(found[1].kind, found[1].message, node)


_CHECKS: dict[str, Callable[[Site[ast.AST], ast.expr | None], Iterator[Proposal]]] = {
    "activity_with_cuda": _check_profiler,
    "custom_imports": _check_imports,
    "type": _check_type,
}

RULE = Rule(
    id="TF815",
    name="python-config",
    summary=Text(
        "Reports settings of configurations written in Python (OpenMMLab) that mean something else on the "
        "target",
        "报告 Python 配置文件（OpenMMLab）中在目标上含义不同的设置",
    ),
    triggers=("cudnn_benchmark", "gpu_ids", "activity_with_cuda", _AMP, "custom_imports"),
    nodes=(ast.keyword, ast.Assign, ast.Constant),
    check=_check,
)
