"""TF302: NVIDIA apex: fused layers and optimizers replaced where a drop-in is known, the rest reported."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchferry.convert.arguments import add_argument
from torchferry.convert.renaming import find_rename
from torchferry.convert.replacements import replacement_of, with_advice
from torchferry.convert.rule import Proposal, Rename, Rule, register
from torchferry.convert.site import FileContext, Site
from torchferry.finding import Kind
from torchferry.text import Text

_REPLACED = Text("{old} is a CUDA extension; {new} takes its place", "{old} 是 CUDA 扩展；由 {new} 代替")
_KEPT = Text(
    "apex is built for CUDA; {company} has a build of its own: {apex}",
    "apex 面向 CUDA 构建；{company} 提供自己的版本：{apex}",
)
_REPORTED = Text("{old} is a CUDA extension", "{old} 是 CUDA 扩展")
_DEFAULT = Text(
    "keeps apex's default {argument}, which differs from that of {new}",
    "保留 apex 的默认值 {argument}，它与 {new} 的不同",
)
_ARGUMENT = Text(
    "{new} has no argument `{argument}`: decide what it should become",
    "{new} 没有参数 `{argument}`：请决定如何处理",
)

# Arguments whose default in apex is not that of the function which takes its place.
_DEFAULTS = {
    "FusedAdam": ("weight_decay", "0.0", 5),
    "FusedLAMB": ("weight_decay", "0.01", 5),
    "FusedRMSNorm": ("eps", "1e-5", 1),
}
_BY_POSITION = Text(
    "its third argument is bias_correction, which {new} does not have: give the arguments from there on by name",
    "第三个参数是 bias_correction，而 {new} 没有它：请从此处起按名称传参",
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
        message = _REPLACED.format(old=qualified, new=entry.automatic)
        is_of_plugin = entry.automatic.partition(".")[0] == context.target.prelude_module
        return Rename(qualified, entry.automatic, Kind.CHANGE, message, needs_prelude=is_of_plugin)
    if vendor.has_apex:
        message = _KEPT.format(company=vendor.company_name, apex=vendor.apex)
    else:
        message = _REPORTED.format(old=qualified)
    return Rename(qualified, "", Kind.TODO, with_advice(message, vendor, qualified), once=True)


def _check(site: Site[ast.Call]) -> Iterator[Proposal]:
    """The arguments of a call whose function is replaced."""
    qualified = site.qualified(site.node.func)
    answer = find_rename(site.context, qualified) if qualified else None
    if answer is None or answer[0] is not RULE or not answer[1].new:
        return
    found = answer[1]
    entry = replacement_of(site.target.vendor, qualified)
    if entry is not None and entry.same_arguments:
        return
    last = qualified.rpartition(".")[2]
    for keyword in site.node.keywords:
        if keyword.arg in _ONLY_IN_APEX:
            yield site.remark(Kind.TODO, _ARGUMENT.format(new=found.new, argument=keyword.arg), keyword)
    if last in _WITH_BIAS_CORRECTION and len(site.node.args) > _BEFORE_IT:
        yield site.remark(Kind.TODO, _BY_POSITION.format(new=found.new), site.node.args[_BEFORE_IT])
        return
    name, value, position = _DEFAULTS.get(last, ("", "", 0))
    given = len(site.node.args) > position or any(item.arg in (name, None) for item in site.node.keywords)
    if name and not given and site.node.args:
        argument = f"{name}={value}"
        yield site.change(
            _DEFAULT.format(argument=argument, new=found.new),
            add_argument(site.module, site.node, argument),
            needs_prelude=False,
        )


RULE = register(
    Rule(
        id="TF302",
        name="apex",
        summary=Text(
            "apex: fused layers and optimizers replaced, the rest reported",
            "apex：替换融合层和优化器，其余报告",
        ),
        triggers=("apex",),
        roots=("apex",),
        nodes=(ast.Call,),
        check=_check,
        names=("apex.",),
        rename=_rename,
    )
)
