"""Calls for which the vendor's table has an equivalent, as the converter looks for them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from torchferry.conversion.rule import Proposal, Rename, Rule
from torchferry.conversion.similar.signature import SimilarChoice, UnboundError, choose, readable, respelled
from torchferry.conversion.similar.writing import (
    ImportedSpelling,
    has_only_known_uses,
    import_changes,
    is_importable_beside,
    write,
)
from torchferry.conversion.site import FileContext, Site
from torchferry.conversion.target import Target
from torchferry.finding import Kind, Message
from torchferry.source.names import called_name
from torchferry.source.scopes import BindingKind
from torchferry.text import Text
from torchferry.vendors.similar import Similar, load_similar

# Whether a program sets gradients to None, which optimizers that join all gradients into one tensor don't survive.

_DROPS = re.compile(
    rb"set_to_none\s*=\s*True"
    rb"|\.grad\s*=\s*None\b"
    # model.zero_grad(), which sets them to None since torch 2.0; that of an optimizer is its own
    rb"|(?i:\b(?!\w*(?:opt|solver))[a-z]\w+)\.zero_grad\(\s*\)"
)


_REPLACED = Message(
    Text("`{name}` replaced by an equivalent", "`{name}` 已替换为等价写法"), why=Text("{why}.", "{why}。")
)
_RENAMED = Message(
    Text("`{name}` replaced by `{use}`", "`{name}` 已替换为 `{use}`"), why=Text("{why}.", "{why}。")
)
_SEE_CALLS = Message(
    Text("Calls of `{name}` replaced where possible", "已尽可能替换 `{name}` 的调用"),
    why=Text("{why}.", "{why}。"),
)
_NOT_BOUND = Message(
    Text("`{name}` not replaced", "`{name}` 未替换"),
    why=Text("{why}. It was not replaced because {reason}.", "{why}。未替换，因为{reason}。"),
    do=Text("Use instead: {use}.", "可改用：{use}。"),
)
_DIFFERS = Message(
    Text("`{use}` differs from the original", "`{use}` 与原接口有差异"),
    why=Text("{remark}.", "{remark}。"),
    do=Text("Compare the loss with that of the original program.", "请与原程序比较 loss。"),
)
_REMARK = Message(Text("Call of `{name}`", "调用 `{name}`"), why=Text("{why}.", "{why}。"))
_NO_MODULE = Text(
    "`{module}` is not imported here under a name that can be used", "此处没有可用的 `{module}` 导入名"
)
_FOR_CUDA = Text("built for CUDA only", "只面向 CUDA 构建")
_DROPS_GRADIENTS = Text(
    "the program sets gradients to None (zero_grad of a model or with set_to_none=True, .grad = None), which this "
    "optimizer does not support",
    "程序把梯度置为 None（对模型调用 zero_grad、set_to_none=True 或 .grad = None），该优化器不支持",
)
_NO_DEVICE = Text(
    "nothing here moves the model to the device, and this optimizer works there only",
    "此处没有把模型移到设备上，而该优化器只能在设备上工作",
)
_MOVED_LATER = Text(
    "prepare() moves the model to the device after this optimizer is made, and it works there only",
    "prepare() 在创建优化器之后才把模型移到设备上，而该优化器只能在设备上工作",
)
_MOVES = re.compile(rb"\.cuda\(|\.to\(|device ?=")
_FROM_ELSEWHERE = (BindingKind.PARAMETER, BindingKind.IMPORT)
_PREPARES = re.compile(rb"(?i)accelerator\.prepare\(")
_IN_STRING = Text("it stands inside a string", "它在字符串内")
_TORCH = ("torch", "torchvision")  # packages that work on the device; others are there for CUDA alone
_DISTINCT = 8  # letters of a name that is hardly a part of another word

Table = Mapping[str, tuple[Similar, ...]]


def _table(target: Target) -> Table:
    table: dict[str, tuple[Similar, ...]] = {}
    # Code that keeps CUDA beside the vendor's device can only use what every device has.
    for entry in load_similar("" if target.helper else target.vendor.folder):
        for name in (entry.cuda, *entry.also):
            table[name] = (*table.get(name, ()), entry)
    return table


def with_table(rule: Rule, target: Target) -> Rule:
    """The rule with the names of this target's table."""
    table = _table(target)
    of_libraries = frozenset(name for name in table if name.partition(".")[0] not in _TORCH)
    packages = {name[: dot.start()] for name in of_libraries for dot in re.finditer(r"\.", name)}
    # What stands as an argument of calls that are replaced: xformers.ops.LowerTriangularMask.
    conditions = (condition for entries in table.values() for entry in entries for condition in entry.when)
    values = (condition.partition("=")[2] for condition in conditions)
    arguments = frozenset(value.removesuffix("()") for value in values if value.endswith("()"))
    with_calls = frozenset(
        name for name in of_libraries if table[name][0].use and not table[name][0].is_name_only
    )

    def check(site: Site[ast.Call]) -> Iterator[Proposal]:
        entries = table.get(site.name, ())
        if entries and not entries[0].is_name_only:
            yield from _check(site, entries)

    def rename(qualified: str, context: FileContext) -> Rename | None:
        entries = table.get(qualified) or table.get(f"{qualified}.apply")  # of autograd, by its class
        if entries:
            return _rename(qualified, entries[0], target)
        known = of_libraries | arguments
        is_library = qualified in packages and has_only_known_uses(context, qualified, known)
        if is_library or qualified in arguments:
            message = _SEE_CALLS.format(name=qualified, why=_FOR_CUDA)
            return Rename(qualified, "", Kind.INFO, message, once=True)
        return None

    def finish(context: FileContext, said: list[Proposal]) -> Iterator[Proposal]:
        yield from import_changes(context, said, with_calls | arguments)

    return replace(
        rule,
        triggers=tuple({_word(name) for name in table if name not in of_libraries}),
        imports=tuple({name.partition(".")[0] for name in of_libraries}),
        tracks=frozenset(table),
        nodes=(ast.Call,),
        check=check,
        names=tuple({name.partition(".")[0] + "." for name in table}),
        rename=rename,
        is_local=True,  # asked before the rules that only report a library
        finish=finish,
        prepare=None,
    )


def _word(name: str) -> str:
    """What a file holds that uses a function of torch: its name, with what stands beside it where that is short."""
    module, _, last = name.rpartition(".")
    if module == "torch":
        return name
    return last if len(last) >= _DISTINCT else f"{last}("


def _rename(qualified: str, entry: Similar, target: Target) -> Rename | None:
    if entry.is_name_only:
        message = _RENAMED.format(name=qualified, why=entry.why, use=entry.use)
        needs = entry.use.partition(".")[0] == target.prelude_module
        remark = (Kind.RISK, _differs(entry)) if entry.remark.en else None
        return Rename(qualified, entry.use, Kind.CHANGE, message, remark, needs_prelude=needs)
    if qualified.partition(".")[0] in _TORCH or not entry.use:
        return None
    return Rename(qualified, "", Kind.INFO, _SEE_CALLS.format(name=qualified, why=entry.why), once=True)


def _differs(entry: Similar) -> Message:
    """What to look at once, where an equivalent is not the same in every way."""
    return _DIFFERS.format(use=readable(entry.use), remark=entry.remark)


def _check(site: Site[ast.Call], entries: tuple[Similar, ...]) -> Iterator[Proposal]:
    try:
        choice = choose(entries, site.node, site.qualified)
        if choice is None:
            return
        if choice.entry.use:
            yield from _replace(site, choice)
        else:
            said = _REMARK.format(name=site.name, why=choice.entry.why)
            yield site.remark(Kind(choice.entry.kind), said.and_do(choice.entry.remark))
    except UnboundError as refusal:
        first = next(entry for entry in entries if entry.use)
        use = readable(first.use)
        message = _NOT_BOUND.format(name=site.name, why=first.why, reason=refusal.reason, use=use)
        # A function of torch still works where it is: an optimizer as it did, an operator without its kernel slower.
        kind = Kind.INFO if first.keeps_arguments else Kind.RISK
        yield site.remark(kind if first.cuda.partition(".")[0] in _TORCH else Kind.TODO, message)


def _replace(site: Site[ast.Call], choice: SimilarChoice) -> Iterator[Proposal]:
    entry = choice.entry
    if any(isinstance(node, ast.JoinedStr) for node in site.place.upwards()):
        raise UnboundError(_IN_STRING)
    if entry.keeps_gradients and (
        _DROPS.search(site.module.data) or site.context.neighbours.any_match(_DROPS)
    ):
        raise UnboundError(_DROPS_GRADIENTS)
    if entry.cuda.startswith("torch.optim."):
        _refuse_off_the_device(site)
    spelling = ImportedSpelling(site)
    use = respelled(entry.use, {*_TORCH, site.target.prelude_module}, spelling.spell)
    if spelling.missing and not is_importable_beside(site):
        raise UnboundError(_NO_MODULE.format(module=", ".join(sorted(spelling.missing))))
    edits = write(site, choice, use)
    site.context.needed_imports[site.module.start(site.node)] = frozenset(spelling.missing)
    needs = bool(site.target.prelude_module) and site.target.prelude_module in entry.use
    message = _REPLACED.format(name=site.name, why=entry.why)
    if entry.keeps_arguments:
        message = _RENAMED.format(name=site.name, why=entry.why, use=entry.use.partition("(")[0])
    yield site.change(message, *edits, needs_prelude=needs)
    if entry.remark.en:
        yield site.remark(Kind.RISK, _differs(entry))


def _refuse_off_the_device(site: Site[ast.Call]) -> None:
    """A fused optimizer wants its parameters on the device; here is what shows that a model is not there."""
    given = [*site.node.args, *(keyword.value for keyword in site.node.keywords)]
    calls = [node for item in given for node in ast.walk(item) if isinstance(node, ast.Call)]
    models = [call.func.value for call in calls if isinstance(call.func, ast.Attribute)]
    if not any(called_name(call) == "parameters" for call in calls):
        return
    if _PREPARES.search(site.module.data):
        raise UnboundError(_MOVED_LATER)
    code = _where_it_would_move(site, models)
    if code is not None and not _MOVES.search(code):
        raise UnboundError(_NO_DEVICE)


def _where_it_would_move(site: Site[ast.Call], models: list[ast.expr]) -> bytes | None:
    """The function that makes the model and its optimizer, or the module; None if the model comes from elsewhere."""
    names = [model.id for model in models if isinstance(model, ast.Name)]
    function, root = site.scope.node, site.module.scopes.root
    here = [item for name in names for item in site.scope.bindings.get(name, ())]
    if any(item.value is not None for item in here) and isinstance(function, ast.FunctionDef):
        return site.module.segment(function).encode()
    made = [*here, *(item for name in names for item in root.bindings.get(name, ()))]
    return site.module.data if any(item.kind not in _FROM_ELSEWHERE for item in made) else None
