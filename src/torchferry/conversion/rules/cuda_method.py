"""TF103: tensor.cuda(...), module.cuda(...) and the like."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import Site, enclosing_class
from torchferry.finding import Kind, Message
from torchferry.source.edits import Edit
from torchferry.source.names import last_name
from torchferry.source.scopes import BindingKind, Scope
from torchferry.text import Text

_MOVED = Text("Moved to the {device} device", "移到 {device} 设备")
_OWN_METHOD = Message(
    Text("Own method `cuda()`", "自定义的 `cuda()` 方法"),
    why=Text(
        "The class defines `cuda()` itself, so the call stays.", "该类自行定义了 `cuda()`，因此保留该调用。"
    ),
)
_OWN_FUNCTION = Message(
    Text("Function `cuda()` of the module `{module}`", "模块 `{module}` 的函数 `cuda()`"),
    why=Text("It is not the method of a tensor, so the call stays.", "它不是张量的方法，因此保留该调用。"),
)
_POSITIONAL = Message(
    Text("`cuda()` with unpacked arguments", "使用解包参数的 `cuda()`"),
    why=Text("The arguments can't be told apart.", "无法区分各个参数。"),
    do=Text("Pass the arguments by keyword, then convert again.", "请改用关键字参数，然后重新转换。"),
)
_PARAMETERS = ("device", "non_blocking", "memory_format")


def _check(site: Site[ast.Call]) -> Iterator[Proposal]:
    function = site.node.func
    if not isinstance(function, ast.Attribute) or function.attr != "cuda":
        return
    resolved = site.resolve(function)
    if resolved is not None and resolved.qualified.startswith("torch."):
        return  # torch.Tensor.cuda(x) and the like are names, not methods of an object
    own = reason_to_leave(site, function)
    if own is not None:
        yield site.remark(Kind.INFO, own, function)
        return
    message = _MOVED.format(device=site.target.device.word or "current")
    if site.target.is_portable:
        edits = _portable_edits(site, function)
        if edits is None:
            yield site.remark(Kind.TODO, _POSITIONAL)
        else:
            yield site.change(message, *edits)
        return
    edit = site.module.attribute_replacement(function, site.target.vendor.tensor_method)
    yield site.change(message, edit)


def reason_to_leave(site: Site[Any], function: ast.Attribute) -> Message | None:
    """Why a cuda() is not the tensor's, None if it may be."""
    receiver = function.value
    if not isinstance(receiver, ast.Name):
        return None
    binding = site.module.binding_of(receiver.id, site.scope, receiver.lineno)
    if receiver.id not in site.place.shadowed and binding is not None:
        if isinstance(binding.node, ast.Import):
            return _OWN_FUNCTION.format(module=receiver.id)
        if binding.kind is BindingKind.ASSIGN and _builds_own_class(site, binding.value):
            return _OWN_METHOD
    if receiver.id == "self" and _defines_cuda(enclosing_class(site.scope)):
        return _OWN_METHOD
    return None


def _defines_cuda(scope: Scope | None) -> bool:
    return scope is not None and any(
        binding.kind is BindingKind.DEFINITION for binding in scope.bindings.get("cuda", ())
    )


def _builds_own_class(site: Site[ast.Call], value: ast.expr | None) -> bool:
    """Whether a value is an instance of a class of this module that has a cuda() of its own."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name):
        return False
    return any(
        isinstance(scope.node, ast.ClassDef) and scope.node.name == value.func.id and _defines_cuda(scope)
        for scope in site.module.scopes.scopes
    )


def _portable_edits(site: Site[ast.Call], function: ast.Attribute) -> list[Edit] | None:
    """`.cuda(i, non_blocking=True)` as `.to(...)`; None where the arguments can't be told apart."""
    call, module = site.node, site.module
    device = site.target.device.expression
    start, end = module.attribute_span(function)
    edits = [Edit(start, end, "to")]
    keyword = next((item for item in call.keywords if item.arg == "device"), None)
    argument = keyword.value if keyword else (call.args[0] if call.args else None)
    if len(call.args) > len(_PARAMETERS) or any(isinstance(item, ast.Starred) for item in call.args):
        return None
    for parameter, value in zip(_PARAMETERS[1:], call.args[1:], strict=False):
        edits += module.insertions_around(value, f"{parameter}=", "")
    name = "device=" if _is_of_storage(site) and not keyword else ""
    if argument is None:
        opening = module.data.index(b"(", end) + 1
        edits.append(Edit(opening, opening, f"{name}{device}, " if call.keywords else f"{name}{device}"))
    elif _names_a_device(site, argument):
        edits += module.insertions_around(argument, name, "")
    elif isinstance(argument, ast.Constant) and isinstance(argument.value, int) and not site.target.helper:
        edits.append(module.replacement(argument, f'{name}f"{{{device}}}:{argument.value}"'))
    elif site.target.helper or isinstance(argument, (ast.Name, ast.Attribute)):
        before, after = site.target.around_place(module.segment(argument))
        edits += module.insertions_around(argument, name + before, after)
    elif isinstance(argument, (ast.Subscript, ast.BinOp)):
        edits.append(module.insertion_after(argument, f' if {device} != "cpu" else {device}'))
    return edits


def _names_a_device(site: Site[ast.Call], argument: ast.expr) -> bool:
    """'cuda:0', f"cuda:{i}", torch.device(...): another rule makes it right for every device."""
    if isinstance(argument, ast.Call):
        return site.qualified(argument.func) == "torch.device"
    is_text = isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    return is_text or isinstance(argument, ast.JoinedStr)


def _is_of_storage(site: Site[ast.Call]) -> bool:
    """`map_location=lambda storage, place: storage.cuda()`: a storage takes the device by keyword only."""
    function = site.node.func
    if isinstance(function, ast.Attribute) and last_name(function.value).endswith("storage"):
        return True
    return any(isinstance(node, ast.keyword) and node.arg == "map_location" for node in site.place.upwards())


RULE = Rule(
    id="TF103",
    name="cuda-method",
    summary=Text(
        "Changes `.cuda()` on tensors, modules and losses to the target's method",
        "将张量、模块和损失函数的 `.cuda()` 改为目标的方法",
    ),
    triggers=("cuda",),
    nodes=(ast.Call,),
    check=_check,
)
