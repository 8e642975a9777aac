"""TF701 (opt-in): models and images in channels_last, the layout that some vendors' convolutions want."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchferry.convert.rule import Proposal, Rule, register
from torchferry.convert.site import Site
from torchferry.source.edits import Edit
from torchferry.text import Text

_ADDED = Text(
    "puts it in channels_last, so that convolutions need no copy", "转为 channels_last，避免卷积时拷贝"
)
_HOLDERS = re.compile(r"(?i)^(model|net|network|backbone|images?|imgs?)$")


def _check(site: Site[ast.Call]) -> Iterator[Proposal]:
    function = site.node.func
    if not isinstance(function, ast.Attribute) or function.attr not in ("cuda", "to"):
        return
    statement = site.place.statement
    if not isinstance(statement, ast.Assign) or statement.value is not site.node:
        return
    target = statement.targets[0]
    if not isinstance(target, ast.Name) or not _HOLDERS.match(target.id):
        return
    if any(keyword.arg == "memory_format" for keyword in site.node.keywords):
        return
    binding = site.module.binding_of("torch", site.scope, site.node.lineno)
    if binding is not None and binding.qualified == "torch" and "channels_last" not in _following(site):
        end = site.module.end(site.node)
        yield site.change(
            _ADDED, Edit(end, end, ".to(memory_format=torch.channels_last)"), needs_prelude=False
        )


def _following(site: Site[ast.Call]) -> str:
    """The next lines, where a script that does this already would do it."""
    last = site.node.end_lineno or site.node.lineno
    count = len(site.module.line_starts)
    return "".join(site.module.line_text(line) for line in range(last, min(last + 3, count + 1)))


RULE = register(
    Rule(
        id="TF701",
        name="channels-last",
        summary=Text("models and images in channels_last (NHWC)", "模型与图像使用 channels_last（NHWC）"),
        triggers=("cuda",),
        option="channels_last",
        nodes=(ast.Call,),
        check=_check,
    )
)
