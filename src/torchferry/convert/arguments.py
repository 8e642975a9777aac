"""Arguments of calls: giving one a value, adding one."""

from __future__ import annotations

import ast
import re

from torchferry.convert.site import Site
from torchferry.source.edits import Edit
from torchferry.source.module import PythonModule

_COMMENT = re.compile(rb"#[^\r\n]*")


def set_argument(site: Site[ast.Call], name: str, value: str) -> list[Edit]:
    """Edits that give an argument a value, whether the call names it already or not; none if it has that value."""
    call, module = site.node, site.module
    for keyword in call.keywords:
        if keyword.arg == name:
            start, end = module.start(keyword.value), module.end(keyword.value)
            return [] if module.data[start:end] == value.encode() else [Edit(start, end, value)]
    if any(keyword.arg is None for keyword in call.keywords):
        return []  # **options may name it
    return [add_argument(module, call, f"{name}={value}")]


def add_argument(module: PythonModule, call: ast.Call, text: str) -> Edit:
    """The insertion of a last argument, before the closing parenthesis; minds a comma that is there already."""
    closing = module.end(call) - 1
    arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
    if not arguments:
        return Edit(closing, closing, text)
    last = max(module.end(node) for node in arguments)
    # Comments blanked out, so that a comma in one is not taken for the call's.
    rest = _COMMENT.sub(lambda match: b" " * len(match.group()), module.data[last:closing])
    comma = rest.find(b",")
    if comma < 0:
        return Edit(closing, closing, f", {text}")
    return Edit(last + comma + 1, last + comma + 1, f" {text},")
