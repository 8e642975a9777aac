"""TF106: names under torch.cuda in strings: tensor types, annotations, what mock.patch and import_module are told."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchferry.conversion.common_edits import rewrite_inside
from torchferry.conversion.inference.roles import is_message
from torchferry.conversion.program.slots import text_of
from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.rules.torch_cuda_api import api_of
from torchferry.conversion.site import Site
from torchferry.finding import Kind, Message
from torchferry.source.names import called_name
from torchferry.source.scopes import all_arguments
from torchferry.text import Text
from torchferry.vendors.model import Support

_TYPE = re.compile(r"torch\.cuda\.(?:sparse\.)?[A-Z]\w*(?:Tensor|Storage)\Z")
_TEMPLATE = re.compile(r"torch\.cuda\.[^\s]*\Z")
_NAME = re.compile(r"torch\.cuda(?:\.[A-Za-z_]\w*)+\Z")
_BY_NAME = re.compile(r"(?i)patch|setattr|import|find_spec|get_function|locate|resolve_name|get_class")
_PUT_TOGETHER = Message(
    Text("Name under `torch.cuda` put together at run time", "运行时拼接的 `torch.cuda` 名称"),
    do=Text("Make it begin with `{module}.`", "请使其以 `{module}.` 开头。"),
)
_CHANGED = Text("Name in a string changed to `{new}`", "字符串中的名称改为 `{new}`")
_UNSUPPORTED = Message(
    Text("`{old}` has no equivalent on {company}", "{company} 没有与 `{old}` 等价的名称"),
    why=Text(
        "The string is looked up as a name, which fails on the target.",
        "该字符串会被按名称查找，在目标上会失败。",
    ),
    do=Text(
        "Remove it, or guard it so that it is used on CUDA only.", "请删除，或加判断使其只在 CUDA 上使用。"
    ),
)


def _check(site: Site[ast.expr]) -> Iterator[Proposal]:
    if isinstance(site.parent, (ast.JoinedStr, ast.Expr)):
        return
    node = site.node.values[0] if isinstance(site.node, ast.JoinedStr) and site.node.values else site.node
    value = text_of(node)
    # 'torch.cuda.%sTensor' % kind, 'torch.cuda.{}'.format(kind), 'torch.cuda.' + kind
    is_format = isinstance(site.parent, ast.Attribute) and site.parent.attr == "format"
    is_put_together = is_format or isinstance(site.parent, ast.BinOp)
    if _TEMPLATE.match(value) and (node is not site.node or is_put_together):
        if not is_message(site):
            yield site.remark(Kind.TODO, _PUT_TOGETHER.format(module=site.target.vendor.torch_module))
        return
    if node is not site.node or not (_TYPE.match(value) or (_NAME.match(value) and _is_name(site))):
        return
    vendor = site.target.vendor
    old, api = api_of(site.target, value)
    has_none = api.support is Support.UNSUPPORTED or (_TYPE.match(value) and site.target.is_portable)
    if has_none or "(" in api.name:
        yield site.remark(Kind.UNSUPPORTED, _UNSUPPORTED.format(company=vendor.company_name, old=old))
        return
    edits = rewrite_inside(site.module, site.node, [(old, api.name)])
    if edits:
        yield site.change(_CHANGED.format(new=api.name), *edits)


def _is_name(site: Site[ast.expr]) -> bool:
    """Whether the text is looked up as a name: an annotation, or an argument of a function that does so."""
    parent, statement = site.parent, site.place.statement
    if isinstance(parent, ast.Call):
        return bool(_BY_NAME.search(called_name(parent))) and site.node in parent.args
    if isinstance(statement, ast.AnnAssign):
        return statement.annotation is site.node
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)) and parent is None:
        annotations = [argument.annotation for argument in all_arguments(statement.args)]
        return site.node is statement.returns or any(site.node is item for item in annotations)
    return False


RULE = Rule(
    id="TF106",
    name="name-in-string",
    summary=Text(
        "Changes `'torch.cuda.FloatTensor'` and other names under `torch.cuda` in strings that are looked up",
        "修改会被按名称查找的字符串，如 `'torch.cuda.FloatTensor'` 等 `torch.cuda` 名称",
    ),
    triggers=("torch.cuda.",),
    nodes=(ast.Constant, ast.JoinedStr),
    check=_check,
)
