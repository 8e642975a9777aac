"""TF706 (opt-in): float64 becomes float32, for vendors that limit it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchferry.conversion.rule import Proposal, Rename, Rule
from torchferry.conversion.rules.torch_cuda_api import api_of
from torchferry.conversion.site import FileContext, Site
from torchferry.finding import Kind, Message
from torchferry.source.names import called_name
from torchferry.text import Text
from torchferry.vendors.model import Support
from torchferry.vendors.phrases import phrase

_NARROWED = Message(
    Text("Changed from float64 to float32", "由 float64 改为 float32"),
    why=Text("{company} limits float64: {limit}.", "{company} 对 float64 有限制：{limit}。"),
    do=Text("Check what depends on the precision.", "请检查依赖精度的部分。"),
)
_NO_DATA = Message(
    Text("float64 in a question or a list", "查询或列表中的 float64"),
    why=Text("It makes no data, so it stays.", "它不产生数据，因此保留。"),
)
_ON_THE_CPU = Message(
    Text("float64 on the CPU", "CPU 上的 float64"),
    why=Text("The CPU has float64, so it stays.", "CPU 支持 float64，因此保留。"),
)
_CPU = re.compile(r"(?:torch\.device\()?'cpu'")
_LEAVES_TORCH = frozenset({"numpy", "cpu", "tolist", "item"})
_CONTAINERS = (ast.Tuple, ast.List, ast.Set)
_ASKING = re.compile(r"(?:isinstance|issubclass|finfo|promote_types|can_cast|assert\w*)\Z")
_NAMES_FLOAT64 = re.compile(r"(?i)double|64")
_NAMES = {
    "torch.float64": "torch.float32",
    "torch.double": "torch.float",
    "torch.DoubleTensor": "torch.FloatTensor",
}
_ON_CUDA, _ON_CUDA_NARROWED = "torch.cuda.DoubleTensor", "torch.cuda.FloatTensor"
_TENSORS_OF_ARRAYS = frozenset({"torch.from_numpy", "torch.tensor", "torch.as_tensor"})


def _message(context: FileContext) -> Message | None:
    vendor = context.target.vendor
    limit = vendor.dtypes.get("float64", "")
    if not limit or limit == "unknown":
        return None
    return _NARROWED.format(company=vendor.company_name, limit=phrase(limit))


def _rename(qualified: str, context: FileContext) -> Rename | None:
    new = _on_the_device(context) if qualified == _ON_CUDA else _NAMES.get(qualified, "")
    message = _message(context) if new else None
    if message is None:
        return None
    return Rename(
        qualified, new, Kind.CHANGE, message, needs_prelude=qualified == _ON_CUDA, stays=_why_it_stays
    )


def _on_the_device(context: FileContext) -> str:
    """The target's own name for float32 tensors, "" if it has none: no second rule renames what this one has."""
    old, api = api_of(context.target, _ON_CUDA_NARROWED)
    return "" if api.support is Support.UNSUPPORTED else api.name + _ON_CUDA_NARROWED[len(old) :]


def _why_it_stays(site: Site[ast.Attribute]) -> Message | None:
    """A comparison, a table of types or a list of them would say something else with float32 in it."""
    node: ast.AST = site.node
    for parent in site.place.upwards():
        if isinstance(parent, (ast.Compare, ast.BoolOp, *_CONTAINERS, ast.MatchValue)):
            return _NO_DATA
        if isinstance(parent, ast.Dict):
            return _NO_DATA if node in parent.keys or _is_under_its_name(parent, node) else None
        if isinstance(parent, ast.Call):
            return None if node is parent.func else _why_a_call_keeps_it(parent)
        if not isinstance(parent, (ast.IfExp, ast.keyword)):
            return None
        node = parent
    return None


def _why_a_call_keeps_it(call: ast.Call) -> Message | None:
    if _ASKING.match(called_name(call)):
        return _NO_DATA
    devices = (ast.unparse(keyword.value) for keyword in call.keywords if keyword.arg == "device")
    return _ON_THE_CPU if any(_CPU.match(device) for device in devices) else None


def _is_under_its_name(table: ast.Dict, value: ast.AST) -> bool:
    """`{"float64": torch.float64}`"""
    for key, item in zip(table.keys, table.values, strict=True):
        if item is value:
            return isinstance(key, ast.Constant) and bool(_NAMES_FLOAT64.search(str(key.value)))
    return False


def _check(site: Site[ast.Call]) -> Iterator[Proposal]:
    message = _message(site.context)
    function = site.node.func
    if message is None:
        return
    if isinstance(function, ast.Attribute) and function.attr == "double" and not site.qualified(function):
        if isinstance(site.parent, ast.Attribute) and site.parent.attr in _LEAVES_TORCH:
            yield site.remark(Kind.INFO, _ON_THE_CPU)
        elif not site.node.args:
            edit = site.module.attribute_replacement(function, "float")
            yield site.change(message, edit, needs_prelude=False)
    elif site.qualified(function) in _TENSORS_OF_ARRAYS:
        for node in ast.walk(site.node):
            if isinstance(node, ast.Attribute) and site.qualified(node) == "numpy.float64":
                edit = site.module.attribute_replacement(node, "float32")
                yield site.change(message, edit, node=node, needs_prelude=False)


RULE = Rule(
    id="TF706",
    name="float32-data",
    summary=Text(
        "Uses float32 instead of float64 where the vendor limits float64", "厂商限制 float64 时改用 float32"
    ),
    triggers=("float64", "torch.double", ".double()", "DoubleTensor"),
    tracks=frozenset({"torch", "numpy", *_TENSORS_OF_ARRAYS}),
    roots=("torch",),
    option="float32_data",
    nodes=(ast.Call,),
    check=_check,
    rename=_rename,
)
