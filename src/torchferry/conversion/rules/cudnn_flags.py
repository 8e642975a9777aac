"""TF709 (opt-in): settings of CUDA's libraries dropped where they mean nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.conversion.program.blocks import block_around, indent_of, is_docstring, shares_its_line
from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import Site
from torchferry.finding import Kind, Message
from torchferry.source.edits import Edit
from torchferry.text import Text
from torchferry.vendors.model import Support

_DROPPED = Text(
    "`{name}` removed: it sets a CUDA library that {company} does not use",
    "已删除 `{name}`：它设置的 CUDA 库在 {company} 上不使用",
)
_STAYS = Message(
    Text("Setting of cuDNN kept", "保留 cuDNN 设置"),
    why=Text(
        "The code still runs on CUDA, where the setting has an effect.",
        "这份代码仍可在 CUDA 上运行，该设置有效。",
    ),
)
_LISTED = Message(
    Text("`{name}` kept", "保留 `{name}`"),
    why=Text(
        "{company} lists it as supported or has its own form of it.",
        "{company} 标明支持，或有自己的对应设置。",
    ),
)
_FLAGS = ("torch.backends.cudnn.", "torch.backends.cuda.matmul.")


def _check(site: Site[ast.Assign]) -> Iterator[Proposal]:
    names = [site.qualified(target) for target in site.node.targets]
    if not all(name.startswith(_FLAGS) for name in names) or not isinstance(site.node.value, ast.Constant):
        return
    vendor = site.target.vendor
    if site.target.is_portable:
        yield site.remark(Kind.INFO, _STAYS)
    elif not any(vendor.api(name).support in (Support.SAME, Support.RENAMED) for name in names):
        message = _DROPPED.format(name=names[0], company=vendor.company_name)
        yield site.change(message, _removal(site), needs_prelude=False)
    else:
        yield site.remark(Kind.INFO, _LISTED.format(name=names[0], company=vendor.company_name))


def _removal(site: Site[ast.Assign]) -> Edit:
    """The whole line where it holds nothing else and its block something else; `pass` in its place otherwise."""
    module, node = site.module, site.node
    start, end = module.start(node), module.end(node)
    line_end = module.data.find(module.newline.encode(), end)
    rest = module.data[end : line_end if line_end >= 0 else len(module.data)]
    is_alone = not shares_its_line(module, node) and not indent_of(module, node).strip() and not rest.strip()
    if not is_alone or _holds_the_block_open(site):
        return Edit(start, end, "pass")
    first = module.line_starts[node.lineno - 1]
    after = line_end + len(module.newline) if line_end >= 0 else len(module.data)
    return Edit(first, after, "")


def _holds_the_block_open(site: Site[ast.Assign]) -> bool:
    """Whether it is the first of a block that keeps nothing else, a docstring aside."""
    block = block_around(site.scope.node, site.node)
    assignments = [item for item in block if isinstance(item, ast.Assign)]
    flags = [
        item
        for item in assignments
        if all(site.qualified(target).startswith(_FLAGS) for target in item.targets)
    ]
    others = [item for item in block if item not in flags and not is_docstring(item)]
    return not others and flags[0] is site.node


RULE = Rule(
    id="TF709",
    name="cudnn-flags",
    summary=Text(
        "Removes settings of cuDNN and cuBLAS where the device has neither",
        "设备没有 cuDNN 和 cuBLAS 时删除其设置",
    ),
    triggers=("cudnn", "backends.cuda"),
    option="drop_cudnn_flags",
    nodes=(ast.Assign,),
    check=_check,
)
