"""TF706 (opt-in): float64 becomes float32, for vendors that limit it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.convert.rule import Proposal, Rename, Rule, register
from torchferry.convert.site import FileContext, Site
from torchferry.finding import Kind
from torchferry.source.edits import Edit
from torchferry.text import Text

_NARROWED = Text(
    "float32 instead of float64, which {company} limits ({limit}); check what depends on the precision",
    "用 float32 代替 float64（{company} 对其有限制：{limit}）；请检查依赖精度的部分",
)
_NAMES = {
    "torch.float64": "torch.float32",
    "torch.double": "torch.float",
    "torch.DoubleTensor": "torch.FloatTensor",
    "torch.cuda.DoubleTensor": "torch.cuda.FloatTensor",
}
_TENSORS_OF_ARRAYS = frozenset({"torch.from_numpy", "torch.tensor", "torch.as_tensor"})


def _message(context: FileContext) -> Text | None:
    """The reason, None where the vendor has no limit that is known."""
    vendor = context.target.vendor
    limit = vendor.dtypes.get("float64", "")
    return _NARROWED.format(company=vendor.company, limit=limit) if limit and limit != "unknown" else None


def _rename(qualified: str, context: FileContext) -> Rename | None:
    new = _NAMES.get(qualified)
    message = _message(context) if new else None
    if new is None or message is None:
        return None
    return Rename(qualified, new, Kind.CHANGE, message, needs_prelude=False)


def _check(site: Site[ast.Call]) -> Iterator[Proposal]:
    message = _message(site.context)
    function = site.node.func
    if message is None:
        return
    if isinstance(function, ast.Attribute) and function.attr == "double" and not site.qualified(function):
        start, end = site.module.attribute_span(function)
        if not site.node.args:
            yield site.change(message, Edit(start, end, "float"), needs_prelude=False)
    elif site.qualified(function) in _TENSORS_OF_ARRAYS:
        for node in ast.walk(site.node):
            if isinstance(node, ast.Attribute) and site.qualified(node) == "numpy.float64":
                start, end = site.module.attribute_span(node)
                yield site.change(message, Edit(start, end, "float32"), node=node, needs_prelude=False)


RULE = register(
    Rule(
        id="TF706",
        name="float32-data",
        summary=Text(
            "float32 instead of float64 where the vendor limits it", "厂商限制 float64 时改用 float32"
        ),
        triggers=(
            "float64",
            "torch.double",
            ".double()",
            "DoubleTensor",
        ),
        tracks=frozenset({"torch", "numpy", *_TENSORS_OF_ARRAYS}),
        roots=("torch",),
        option="float32_data",
        nodes=(ast.Call,),
        check=_check,
        rename=_rename,
    )
)
