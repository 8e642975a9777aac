"""TF401: environment variables of CUDA and NCCL."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchferry.conversion.common_edits import rewrite_inside
from torchferry.conversion.inference.roles import is_message
from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import Site
from torchferry.conversion.target import Target
from torchferry.finding import Kind
from torchferry.source.edits import Edit
from torchferry.source.names import called_name, last_name
from torchferry.text import Text
from torchferry.vendors.model import SAME_VALUES, Vendor

VARIABLE = re.compile(
    r"(?:CUDA_[A-Z0-9_]+|NVIDIA_[A-Z0-9_]+|(?:TORCH_)?NCCL_[A-Z0-9_]+|PYTORCH_(?:NO_)?CUDA_[A-Z0-9_]+|"
    r"PYTORCH_NVML_[A-Z0-9_]+|CUBLAS_[A-Z0-9_]+|CUDNN_[A-Z0-9_]+|TORCH_CUDNN_[A-Z0-9_]+|"
    r"TORCH_CUDA_[A-Z0-9_]+|TORCH_ALLOW_TF32_CUBLAS_OVERRIDE)\Z"
)
_IN_COMMAND = re.compile(r"\b(CUDA_VISIBLE_DEVICES|NCCL_[A-Z0-9_]+)\s*=")
ENVIRONMENT = re.compile(r"(?i)environ|getenv|putenv|setenv|delenv|(?:^|_)envs?$|env_vars?$")
_NOT_ENVIRONMENT = Text(
    "left as it is: not seen to name an environment variable here", "保持不变：此处看不出是环境变量名"
)
_OTHER_MEANING = Text(
    "{company} has {new} where CUDA has {old}; its value means something else",
    "{company} 以 {new} 对应 {old}；取值含义不同",
)
RENAMED = Text("the target reads {new} instead", "目标设备读取 {new}")
_REPORTED = Text(
    "NCCL does not run here; {company} reads {new} instead", "此处不运行 NCCL；{company} 读取 {new}"
)
_NONE = Text(
    "{company} has no variable like {old}; it is ignored there", "{company} 没有与 {old} 对应的变量，会被忽略"
)
_UNKNOWN = Text(
    "nothing public names a variable of {company} for {old}", "没有公开资料说明 {company} 与 {old} 对应的变量"
)
_PORTABLE = Text(
    "{old} only reaches CUDA; each vendor has a variable of its own",
    "{old} 只对 CUDA 有效；各厂商有自己的变量",
)
_HANDED_ON = Text(
    "{helper} hands {old} on as {new} if it is set before {helper} is imported",
    "若在导入 {helper} 之前设置 {old}，{helper} 会将其传给 {new}",
)
_COMMAND = Text(
    "a command line that sets {old}; the target reads {new} instead",
    "命令行中设置了 {old}；目标设备读取 {new}",
)


def _check(site: Site[ast.AST]) -> Iterator[Proposal]:
    node = site.node
    if isinstance(node, ast.keyword):  # dict(os.environ, CUDA_VISIBLE_DEVICES="0")
        if VARIABLE.match(node.arg or ""):
            yield from _renamed(site, node.arg or "")
        return
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return
    if isinstance(site.parent, ast.Expr) or is_message(site):
        return
    if VARIABLE.match(node.value) and not isinstance(site.parent, ast.JoinedStr):
        if node.value != "CUDA_VISIBLE_DEVICES" and not _reaches_environment(site):
            yield site.remark(Kind.INFO, _NOT_ENVIRONMENT)
        else:
            yield from _renamed(site, node.value)
    elif match := _IN_COMMAND.search(node.value):
        new = mapped_variable(site.target.vendor, match.group(1)) or "-"
        yield site.remark(Kind.TODO, _COMMAND.format(old=match.group(1), new=new))


def _renamed(site: Site[ast.AST], name: str) -> Iterator[Proposal]:
    remark = _remark(site, name)
    if remark is not None:
        yield remark
        return
    new = mapped_variable(site.target.vendor, name) or ""
    edits: list[Edit] = []
    if isinstance(site.node, ast.Constant):
        edits = rewrite_inside(site.module, site.node, [(name, new)])
    elif called_name(site.parent) in ("dict", "update", "setenv", "patch"):
        start = site.module.start(site.node)
        edits = [Edit(start, start + len(name), new)]
    if edits:
        yield site.change(RENAMED.format(new=new), *edits, needs_prelude=False)


def _remark(site: Site[ast.AST], name: str) -> Proposal | None:
    """Why a variable is not simply renamed; None if it is."""
    new = mapped_variable(site.target.vendor, name)
    helper = site.target.helper
    if helper and new and name == "CUDA_VISIBLE_DEVICES":
        kind = Kind.INFO if site.scope.parent is None else Kind.TODO
        return site.remark(kind, _HANDED_ON.format(old=name, helper=helper.name, new=new))
    if new and "NCCL" in name and not helper:
        return site.remark(Kind.TODO, _REPORTED.format(company=site.target.vendor.company_name, new=new))
    reason = why_not_renamed(site.target, name, SAME_VALUES)
    return site.remark(*reason) if reason else None


def why_not_renamed(target: Target, name: str, same_values: frozenset[str]) -> tuple[Kind, Text] | None:
    """Why the vendor's name can't simply be put in a variable's place; None if it can."""
    vendor = target.vendor
    if target.is_portable:
        return Kind.INFO, _PORTABLE.format(old=name)
    new = mapped_variable(vendor, name)
    if new is None:
        return Kind.TODO, _UNKNOWN.format(company=vendor.company_name, old=name)
    if not new:
        return Kind.UNSUPPORTED, _NONE.format(company=vendor.company_name, old=name)
    if name not in same_values:
        return Kind.TODO, _OTHER_MEANING.format(company=vendor.company_name, old=name, new=new)
    return None


def _reaches_environment(site: Site[ast.AST]) -> bool:
    """Whether a string is used as the name of an environment variable, by what stands around it."""
    return any(ENVIRONMENT.search(name) for node in site.place.upwards() for name in _names_at(node))


def _names_at(node: ast.AST) -> list[str]:
    """What a part of an expression says of the string in it: os.environ[...], os.getenv(...), env=..., x in env."""
    if isinstance(node, ast.keyword):
        return [node.arg or ""]
    said: list[ast.expr] = []
    if isinstance(node, ast.Subscript):
        said = [node.value]
    elif isinstance(node, ast.Call):
        said = [node.func, *([node.func.value] if isinstance(node.func, ast.Attribute) else [])]
    elif isinstance(node, ast.Compare):
        said = node.comparators
    elif isinstance(node, ast.Assign):
        said = node.targets
    return list(map(last_name, said))


def mapped_variable(vendor: Vendor, name: str) -> str | None:
    """The vendor's variable, "" if it has none, None if nobody knows."""
    if name == "CUDA_VISIBLE_DEVICES":
        return vendor.visible_devices_env or None
    return vendor.env_map.get(name)


RULE = Rule(
    id="TF401",
    name="environment",
    summary=Text(
        "CUDA_VISIBLE_DEVICES and its kin become the vendor's variables; NCCL's are reported",
        "CUDA_VISIBLE_DEVICES 等变量换成厂商的变量；NCCL 变量会被报告",
    ),
    triggers=("CUDA", "NCCL", "CUBLAS_", "NVIDIA_", "CUDNN_"),
    nodes=(ast.Constant, ast.keyword),
    check=_check,
)
