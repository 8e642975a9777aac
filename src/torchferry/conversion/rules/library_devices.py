"""TF610: calls into libraries that choose the device themselves: taught, given the device, or reported."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from typing import Any

from torchferry.conversion import added
from torchferry.conversion.common_edits import add_argument
from torchferry.conversion.program.blocks import add_imports, lines_below
from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import Site
from torchferry.finding import Kind, Message
from torchferry.source.scopes import imported_modules
from torchferry.text import Text
from torchferry.vendors.calls import LibraryCalls, load_libraries

_FINDS = Message(
    Text("{library} finds {device} itself", "{library} 会自行寻找 {device}"),
    why=Text("The call can stay.", "该调用可以保留。"),
)
_TAUGHT = Message(
    Text(
        "{library} uses {device} through the added module `ferry_lightning`",
        "{library} 通过新增的模块 `ferry_lightning` 使用 {device}",
    ),
    why=Text(
        "It {what}; the module makes these names mean {device}.",
        "它{what}；该模块使这些名称指向 {device}。",
    ),
)
_GIVEN = Message(
    Text("{device} passed to {library}", "已向 {library} 指定 {device}"),
    why=Text("It {what}.", "它{what}。"),
)
_OPTIONS = Message(
    Text("{library} call whose device is in `**options`", "{library} 的设备由 `**options` 传入"),
    why=Text("It {what}.", "它{what}。"),
    do=Text(
        "Check that the options contain `{argument}={device}`.", "请确认选项中含有 `{argument}={device}`。"
    ),
)
_NUMBER = Message(
    Text("Number as a device of {library}", "{library} 以数字表示设备"),
    why=Text("It {what}; a number is a CUDA card here.", "它{what}；此处的数字指 CUDA 卡。"),
    do=Text("Write `{argument}={device}`.", "请写成 `{argument}={device}`。"),
)
_REPORTED = Message(
    Text("{library} chooses the device itself", "{library} 自行选择设备"),
    why=Text("It {what}.", "它{what}。"),
    do=Text(
        "For {company}, name the device ({device}) wherever the library takes one{migration}, or start the "
        "unchanged program with `ferry run`.",
        "对于 {company}，请在该库接受设备参数的地方写明设备（{device}）{migration}，或用 `ferry run` 直接运行未修改的程序。",
    ),
)
_MIGRATION = Text(
    ", or import `{module}` first, {company}'s module that redirects CUDA's names",
    "，或先导入 `{module}`（{company} 的模块，会重定向 CUDA 的名称）",
)
_ELSEWHERE = Message(
    Text("{library} may silently use the CPU", "{library} 可能会在没有提示的情况下使用 CPU"),
    why=Text("It {what}.", "它{what}。"),
    do=Text(
        "Check on each device that the program does not run on the CPU.",
        "请在各种设备上确认程序没有在 CPU 上运行。",
    ),
)
_COMMON = frozenset({"load"})


@cache
def _by_call() -> dict[str, LibraryCalls]:
    return {call: library for library in load_libraries() for call in library.calls}


def library_of(qualified: str) -> LibraryCalls | None:
    """The library that a call belongs to; Trainer.from_argparse_args is a call of Trainer, too."""
    return _by_call().get(qualified) or _by_call().get(qualified.rpartition(".")[0])


def _check(site: Site[ast.expr]) -> Iterator[Proposal]:
    library = library_of(site.name)
    if isinstance(site.node, ast.Call):
        library = library or _by_star(site, site.node) or _handed_on(site)
        if library is not None:
            yield from _look(Site(site.context, site.node, site.place), library)
    elif library is not None and library.helper and site.parent is None:
        if isinstance(site.place.statement, ast.ClassDef):
            yield _taught(site, library)  # a class of the user's that is made of it


def _handed_on(site: Site[ast.expr]) -> LibraryCalls | None:
    """from utils import smart_autocast, which utils itself imports from a library under another name"""
    name = site.name
    if not any(last in name for last in _last_names()):
        return None
    origin = site.context.neighbours.origin(site.context.path, name)
    return library_of(origin) if origin else None


@cache
def _last_names() -> frozenset[str]:
    return frozenset(call.rpartition(".")[2] for call in _by_call())


def _by_star(site: Site[ast.expr], call: ast.Call) -> LibraryCalls | None:
    """from fastai.vision.all import *: a name that nothing else here defines may come from there."""
    function = call.func
    if not isinstance(function, ast.Name) or site.scope.owner_of(function.id) is not None:
        return None
    found = (_by_call().get(f"{star}.{function.id}") for star in site.module.scopes.stars)
    return next((library for library in found if library is not None), None)


def _look(site: Site[ast.Call], library: LibraryCalls) -> Iterator[Proposal]:
    target = site.target
    if library.helper:
        yield _taught(site, library)
    elif target.device.word in library.knows:
        yield site.remark(Kind.INFO, _FINDS.format(library=library.name, device=target.device.word))
    elif library.argument:
        yield from _give(site, library)
    elif target.is_portable:
        others = set(library.knows) - {"cuda", "mps", "xla"}
        kind = Kind.INFO if others else Kind.RISK
        yield site.remark(kind, _ELSEWHERE.format(library=library.name, what=library.what))
    else:
        vendor = site.target.vendor
        words = {"company": vendor.company_name, "device": f'"{vendor.device_type}"'}
        migration = Text("", "")
        if vendor.migrations:
            migration = _MIGRATION.format(module=vendor.migrations[0], **words)
        yield site.remark(
            Kind.TODO, _REPORTED.format(library=library.name, what=library.what, migration=migration, **words)
        )


def _taught(site: Site[Any], library: LibraryCalls) -> Proposal:
    line = added.import_line(site.target, site.context.path)
    device = site.target.device.word or "DEVICE_TYPE"
    message = _TAUGHT.format(library=library.name, what=library.what, device=device)
    if added.NAME.encode() in site.module.data:
        return site.remark(Kind.INFO, message)
    # Below the last import of the library at the top of the module, else below all imports there.
    packages = {call.partition(".")[0] for call in library.calls}
    imports = [
        node
        for node in site.module.tree.body
        if any(name.partition(".")[0] in packages for name in imported_modules(node))
    ]
    module = site.module
    edits = lines_below(module, imports[-1], [line]) if imports else add_imports(module, [line])
    return site.change(message, *edits, needs_prelude=False)


def _give(site: Site[ast.Call], library: LibraryCalls) -> Iterator[Proposal]:
    """The argument that decides the device, where the call leaves it to the library."""
    call = site.node
    written = library.write.format(device=site.target.device.code)
    words = {"library": library.name, "what": library.what, "argument": library.argument, "device": written}
    given = next((item.value for item in call.keywords if item.arg == library.argument), None)
    if given is None and 0 <= library.position < len(call.args):
        given = call.args[library.position]
    if given is not None:
        if isinstance(given, ast.Constant) and type(given.value) is int:
            yield site.remark(Kind.TODO, _NUMBER.format(**words), given)
        elif isinstance(given, ast.Constant) and given.value in ("auto", None):
            yield site.change(_GIVEN.format(**words), site.module.replacement(given, written))
        return
    has_stars = any(isinstance(item, ast.Starred) for item in call.args)
    if has_stars or any(item.arg is None for item in call.keywords):
        yield site.remark(Kind.TODO, _OPTIONS.format(**words))
        return
    edits = [add_argument(site.module, call, f"{library.argument}={written}")]
    if written.startswith("torch.") and site.scope.owner_of("torch") is None:
        edits += add_imports(site.module, ["import torch"])
    yield site.change(_GIVEN.format(**words), *edits)


def _parts(call: str) -> Iterator[str]:
    """A dotted name, and the modules that it is reached through."""
    while call:
        yield call
        call = call.rpartition(".")[0]


def _words() -> tuple[str, ...]:
    """What a line of interest holds: a call by its last name, or by two where that alone is too common."""
    calls = [call.split(".") for call in _by_call()]
    words = {f"{'.'.join(parts[-2:]) if parts[-1] in _COMMON else parts[-1]}(" for parts in calls}
    taught = {call.rpartition(".")[2] for call, library in _by_call().items() if library.helper}
    return tuple(sorted(words | {f"{name}{end}" for name in taught for end in (")", ".from_argparse_args(")}))


RULE = Rule(
    id="TF610",
    name="library-devices",
    summary=Text(
        "Gives the device to libraries that choose it themselves (Lightning, timm, ultralytics, fastai ...)",
        "为自行选择设备的库（Lightning、timm、ultralytics、fastai 等）指定设备",
    ),
    triggers=_words(),
    imports=tuple(sorted({call.partition(".")[0] for call in _by_call()})),
    tracks=frozenset(part for call in _by_call() for part in _parts(call)),
    nodes=(ast.Call, ast.Attribute, ast.Name),
    check=_check,
)
