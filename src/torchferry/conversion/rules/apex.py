"""TF302: NVIDIA apex: fused layers and optimizers replaced where a drop-in is known, the rest reported."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.conversion.common_edits import add_argument
from torchferry.conversion.program.slots import mentions
from torchferry.conversion.renaming import find_rename
from torchferry.conversion.rule import Proposal, Rename, Rule
from torchferry.conversion.site import FileContext, Site
from torchferry.conversion.target import replacement_of, with_advice
from torchferry.finding import Kind, Message
from torchferry.text import Text
from torchferry.vendors.phrases import phrase

_REPLACED = Text("`{old}` replaced by `{new}`", "`{old}` 已替换为 `{new}`")
_KEPT = Message(
    Text("`apex` for CUDA", "面向 CUDA 的 `apex`"),
    why=Text(
        "NVIDIA's apex is built for CUDA; {company} has its own build.",
        "NVIDIA 的 apex 面向 CUDA 构建；{company} 有自己的版本。",
    ),
    do=Text("Install {company}'s build: {apex}", "请安装 {company} 的版本：{apex}"),
)
_REPORTED = Message(
    Text("`{old}` is a CUDA extension", "`{old}` 是 CUDA 扩展"),
    why=Text("It does not run on the target.", "它不能在目标上运行。"),
    do=Text(
        "Replace it by PyTorch operators, or build the vendor's apex.",
        "请用 PyTorch 算子替换，或构建厂商的 apex。",
    ),
)
_DEFAULT = Message(
    Text("Default `{argument}` of apex kept", "保留 apex 的默认值 `{argument}`"),
    why=Text("The default of `{new}` differs.", "`{new}` 的默认值不同。"),
)
_ARGUMENT = Message(
    Text("apex call with an argument that `{new}` lacks", "apex 调用使用了 `{new}` 没有的参数"),
    why=Text(
        "`{new}` has no argument `{argument}`, so the call was not replaced.",
        "`{new}` 没有参数 `{argument}`，因此未替换该调用。",
    ),
    do=Text(
        "Drop the argument or compute the same effect, then call `{new}`.",
        "请去掉该参数或用其他方式实现同样的效果，然后调用 `{new}`。",
    ),
)
_KEPT_FOR = Message(
    Text("`{old}` is a CUDA extension", "`{old}` 是 CUDA 扩展"),
    why=Text(
        "It was not replaced by `{new}`, because a call in this module passes an argument that `{new}` lacks.",
        "未替换为 `{new}`，因为本模块有调用传入了 `{new}` 没有的参数。",
    ),
    do=Text("Change that call, then replace the import.", "请先修改该调用，再替换导入。"),
)

# Arguments whose default in apex is not that of the function which takes its place.
_DEFAULTS = {
    "FusedAdam": ("weight_decay", "0.0", 5),
    "FusedLAMB": ("weight_decay", "0.01", 5),
    "FusedRMSNorm": ("eps", "1e-5", 1),
}
_BY_POSITION = Message(
    Text(
        "apex call with positional arguments that `{new}` orders differently",
        "apex 调用的位置参数与 `{new}` 顺序不同",
    ),
    why=Text(
        "The third argument of apex's optimizer is `bias_correction`, which `{new}` does not have, so the "
        "call was not replaced.",
        "apex 优化器的第三个参数是 `bias_correction`，而 `{new}` 没有它，因此未替换该调用。",
    ),
    do=Text("Pass the arguments by name, then convert again.", "请按名称传入参数，然后重新转换。"),
)
_WITH_BIAS_CORRECTION = frozenset({"FusedAdam", "FusedLAMB"})
_BEFORE_IT = 2  # params, lr
_ONLY_IN_APEX = frozenset(
    {"adam_w_mode", "set_grad_none", "bias_correction", "capturable", "master_weights", "grad_averaging"}
    | {"max_grad_norm", "use_nvlamb", "wd_after_momentum", "materialize_master_grads", "memory_efficient"}
)


def _rename(qualified: str, context: FileContext) -> Rename | None:
    if qualified != "apex" and not qualified.startswith("apex."):
        return None
    vendor = context.target.vendor
    entry = replacement_of(vendor, qualified)
    if entry is not None and entry.cuda == qualified and entry.automatic:
        if not entry.same_arguments and any(_calls_that_do_not_fit(context, qualified)):
            message = _KEPT_FOR.format(old=qualified, new=entry.automatic)
            return Rename(qualified, "", Kind.INFO, message, once=True)
        replaced = _REPLACED.format(old=qualified, new=entry.automatic)
        is_of_plugin = entry.automatic.partition(".")[0] == context.target.prelude_module
        return Rename(qualified, entry.automatic, Kind.CHANGE, replaced, needs_prelude=is_of_plugin)
    if vendor.has_apex and not (entry and entry.use):
        message = _KEPT.format(company=vendor.company_name, apex=phrase(vendor.apex))
    elif vendor.has_apex:
        message = with_advice(
            _KEPT.format(company=vendor.company_name, apex=phrase(vendor.apex)), vendor, qualified
        )
    else:
        message = with_advice(_REPORTED.format(old=qualified), vendor, qualified)
    return Rename(qualified, "", Kind.TODO, message, once=True)


def _calls_that_do_not_fit(context: FileContext, qualified: str) -> Iterator[ast.Call]:
    """The calls of a module that pass what only the function of apex takes."""
    last = qualified.rpartition(".")[2]
    imported = {name for name, binding in context.module.scopes.imports if binding.qualified == qualified}
    for name in sorted({last, *imported}):
        for site in mentions(context, name):
            call = site.parent
            if not isinstance(call, ast.Call) or call.func is not site.node:
                continue
            if _misfits(call, last) and site.qualified(site.node) == qualified:
                yield call


def _misfits(call: ast.Call, name: str) -> list[ast.keyword | ast.expr]:
    """The arguments of a call that what takes the place of a function of apex does not have."""
    found: list[ast.keyword | ast.expr] = [item for item in call.keywords if item.arg in _ONLY_IN_APEX]
    return found + (call.args[_BEFORE_IT : _BEFORE_IT + 1] if name in _WITH_BIAS_CORRECTION else [])


def _check(site: Site[ast.Call]) -> Iterator[Proposal]:
    """The arguments of a call whose function is replaced, or would be without them."""
    qualified = site.qualified(site.node.func)
    entry = replacement_of(site.target.vendor, qualified)
    if entry is None or entry.cuda != qualified or not entry.automatic or entry.same_arguments:
        return
    answer = find_rename(site.context, qualified)
    if answer is None or answer[0].id != RULE.id:
        return
    last = qualified.rpartition(".")[2]
    for argument in _misfits(site.node, last):
        if isinstance(argument, ast.keyword):
            message = _ARGUMENT.format(new=entry.automatic, argument=argument.arg)
        else:
            message = _BY_POSITION.format(new=entry.automatic)
        yield site.remark(Kind.TODO, message, argument)
    name, value, position = _DEFAULTS.get(last, ("", "", 0))
    given = len(site.node.args) > position or any(item.arg in (name, None) for item in site.node.keywords)
    if answer[1].new and name and not given and site.node.args:
        default = f"{name}={value}"
        yield site.change(
            _DEFAULT.format(argument=default, new=entry.automatic),
            add_argument(site.module, site.node, default),
            needs_prelude=False,
        )


RULE = Rule(
    id="TF302",
    name="apex",
    summary=Text(
        "Replaces fused layers and optimizers of apex and reports the rest",
        "替换 apex 的融合层和优化器，其余报告",
    ),
    triggers=("apex",),
    roots=("apex",),
    nodes=(ast.Call,),
    check=_check,
    names=("apex.",),
    rename=_rename,
    is_local=True,  # what a module passes to a function decides
)
