"""TF113: Python code in strings: what eval and exec are told, and `python -c`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

from torchferry.conversion.program.slots import text_of
from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import Site
from torchferry.finding import Kind, Message
from torchferry.source.names import called_name
from torchferry.text import Text

_TODO = Message(
    Text("Code inside a string", "字符串中的代码"),
    why=Text("Strings that run as code are not converted.", "作为代码执行的字符串不会被转换。"),
    do=Text("Convert the code in the string by hand.", "请手动转换字符串中的代码。"),
)
_RUN_BY = frozenset({"eval", "exec", "compile", "timeit", "repeat", "Timer", "run_code"})
# A word of its own ('cuda') and a dotted name of torch's are other rules' business.
_CODE = re.compile(
    r"torch\.cuda\b.*[^\w.]|\.cuda\(|\.is_cuda\b|[\"']cuda(?::\d+)?[\"']|[\"']nccl[\"']", re.DOTALL
)


def _check(site: Site[ast.expr]) -> Iterator[Proposal]:
    if not isinstance(site.parent, (ast.Call, ast.keyword, ast.List, ast.Tuple)):
        return
    parts = site.node.values if isinstance(site.node, ast.JoinedStr) else [site.node]
    if _CODE.search("".join(map(text_of, parts))) and (_is_run(site) or _follows_c(site)):
        yield site.remark(Kind.TODO, _TODO)


def _is_run(site: Site[ast.expr]) -> bool:
    parent = site.parent
    if isinstance(parent, ast.keyword) and parent.arg in ("stmt", "setup"):
        return True
    return isinstance(parent, ast.Call) and called_name(parent) in _RUN_BY and site.node in parent.args[:2]


def _follows_c(site: Site[ast.expr]) -> bool:
    """[sys.executable, "-c", "import torch; ..."]"""
    parent = site.parent
    elements = parent.elts if isinstance(parent, (ast.List, ast.Tuple)) else []
    return any(text_of(before) == "-c" and after is site.node for before, after in pairwise(elements))


RULE = Rule(
    id="TF113",
    name="code-in-string",
    summary=Text(
        "Reports code in strings that `eval`, `exec` or `python -c` run",
        "报告由 `eval`、`exec` 或 `python -c` 执行的字符串代码",
    ),
    triggers=("cuda", "nccl"),
    nodes=(ast.Constant, ast.JoinedStr),
    check=_check,
)
