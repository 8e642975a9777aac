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
from torchferry.finding import Kind, Message, Severity
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
_NOT_ENVIRONMENT = Message(
    Text("String that looks like an environment variable", "形似环境变量名的字符串"),
    why=Text("Nothing shows that it names one here.", "此处看不出它是环境变量名。"),
)
_OTHER_MEANING = Message(
    Text("`{old}`: the equivalent `{new}` takes other values", "`{old}`：对应的 `{new}` 取值不同"),
    why=Text(
        "{company} reads `{new}`, whose value means something else.",
        "{company} 读取 `{new}`，其取值含义不同。",
    ),
    do=Text("Set `{new}` by its own documentation.", "请按 `{new}` 自己的文档设置。"),
)
RENAMED = Text("Environment variable renamed to `{new}`", "环境变量改名为 `{new}`")
_REPORTED = Message(
    Text("NCCL variable: {company} reads `{new}`", "NCCL 变量：{company} 读取 `{new}`"),
    why=Text("NCCL does not run on the target.", "NCCL 不在目标上运行。"),
    do=Text("Set `{new}` if you need this setting.", "若需要该设置，请设置 `{new}`。"),
)
_NONE = Message(
    Text("`{old}` has no equivalent on {company}", "{company} 没有与 `{old}` 对应的变量"),
    why=Text("It is ignored on the target.", "在目标上会被忽略。"),
    do=Text(
        "Check that nothing depends on its effect; the line can stay.",
        "请确认没有代码依赖它的作用；该行可以保留。",
    ),
    severity=Severity.CHECK,
)
_UNKNOWN = Message(
    Text("Equivalent of `{old}` on {company} is unknown", "{company} 与 `{old}` 对应的变量未知"),
    why=Text(
        "No public source names one, and the variable is ignored on the target.",
        "没有公开资料给出对应变量，该变量在目标上会被忽略。",
    ),
    do=Text(
        "Ask {company} for its equivalent if the program needs this setting; the line can stay.",
        "若程序需要该设置，请向 {company} 确认对应变量；该行可以保留。",
    ),
    severity=Severity.CHECK,
)
_PORTABLE = Message(
    Text("`{old}` only affects CUDA", "`{old}` 只对 CUDA 有效"),
    why=Text("Each vendor has its own variable.", "各厂商有自己的变量。"),
    do=Text("Set the variable of the vendor where the program runs.", "请在运行环境中设置该厂商的变量。"),
)
_HANDED_ON = Message(
    Text("`{old}` is passed on as `{new}`", "`{old}` 会作为 `{new}` 传递"),
    why=Text(
        "`{helper}` passes it on if the variable is set before the import.",
        "若在导入之前设置，`{helper}` 会传递它。",
    ),
    do=Text("Set it before `{helper}` is imported.", "请在导入 `{helper}` 之前设置。"),
)
_COMMAND = Message(
    Text("Command line that sets `{old}`", "设置 `{old}` 的命令行"),
    why=Text("The target reads `{new}` instead.", "目标设备读取 `{new}`。"),
    do=Text("Change the variable in the command.", "请修改命令中的变量。"),
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


def why_not_renamed(target: Target, name: str, same_values: frozenset[str]) -> tuple[Kind, Message] | None:
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
        "Renames `CUDA_VISIBLE_DEVICES` and similar variables, and reports those of NCCL",
        "将 `CUDA_VISIBLE_DEVICES` 等变量改为厂商的变量，并报告 NCCL 变量",
    ),
    triggers=("CUDA", "NCCL", "CUBLAS_", "NVIDIA_", "CUDNN_"),
    nodes=(ast.Constant, ast.keyword),
    check=_check,
)
