"""TF304: sparse tensors, of which accelerators compute little: reported with what the vendor does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchferry.conversion.rule import Proposal, Rename, Rule
from torchferry.conversion.site import FileContext, Site
from torchferry.conversion.target import Target
from torchferry.finding import Kind, Message
from torchferry.text import Text
from torchferry.vendors.phrases import phrase

_LIMITED = Message(
    Text("Sparse tensors on {company}", "{company} 上的稀疏张量"),
    why=Text("{limit}", "{limit}"),
    do=Text("Use dense tensors, or keep these on the CPU.", "请改用稠密张量，或把它们留在 CPU 上。"),
)
_UNKNOWN = Message(
    Text("Sparse tensors on {company}", "{company} 上的稀疏张量"),
    why=Text("No public source says what the device does with them.", "没有公开资料说明该设备如何处理。"),
    do=Text(
        "Run `ferry ops` on the program and try these operators on the device.",
        "请对程序运行 `ferry ops`，并在设备上验证这些算子。",
    ),
)
_PORTABLE = Message(
    Text("Sparse tensors", "稀疏张量"),
    why=Text(
        "CUDA has kernels for them; other accelerators have few or none.",
        "CUDA 有稀疏张量算子；其他加速卡很少或没有。",
    ),
    do=Text(
        "Use dense tensors, or check the operators for each vendor with `ferry ops`.",
        "请改用稠密张量，或用 `ferry ops` 检查各厂商的算子。",
    ),
)
_NAMES = re.compile(
    r"torch\.(?:sparse(?:\.\w+)+|sparse_\w+_tensor|optim\.(?:sparse_adam\.)?SparseAdam|hspmm|smm|sspaddmm)\Z"
)
_EMBEDDINGS = frozenset(
    {"torch.nn.Embedding", "torch.nn.EmbeddingBag", "torch.nn.functional.embedding"}
    | {"torch.nn.Embedding.from_pretrained", "torch.nn.functional.embedding_bag"}
)
_METHOD = re.compile(r"to_sparse(?:_\w+)?\Z")


def _remark(target: Target) -> tuple[Kind, Message]:
    vendor = target.vendor
    if target.is_portable:
        return Kind.RISK, _PORTABLE
    limit = vendor.dtypes.get("sparse")
    if limit:
        return Kind.RISK, _LIMITED.format(company=vendor.company_name, limit=phrase(limit))
    return Kind.UNKNOWN, _UNKNOWN.format(company=vendor.company_name)


def _rename(qualified: str, context: FileContext) -> Rename | None:
    return Rename(qualified, "", *_remark(context.target)) if _NAMES.match(qualified) else None


def _check(site: Site[ast.Call]) -> Iterator[Proposal]:
    func = site.node.func
    is_made_sparse = isinstance(func, ast.Attribute) and bool(_METHOD.match(func.attr))
    if is_made_sparse or (site.name in _EMBEDDINGS and _is_sparse(site.node)):
        yield site.remark(*_remark(site.target))


def _is_sparse(call: ast.Call) -> bool:
    """Whether an embedding has sparse gradients, or may have."""
    return any(
        item.arg == "sparse" and not (isinstance(item.value, ast.Constant) and not item.value.value)
        for item in call.keywords
    )


RULE = Rule(
    id="TF304",
    name="sparse",
    summary=Text("Reports sparse tensors with what the vendor supports", "报告稀疏张量及厂商的支持情况"),
    triggers=("sparse", "Sparse", "hspmm", "sspaddmm"),
    roots=("torch",),
    nodes=(ast.Call,),
    check=_check,
    rename=_rename,
)
