"""TF403: code that recognises CUDA errors by their text, which other devices word differently."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchferry.conversion.program.functions import ASSIGNMENTS
from torchferry.conversion.program.slots import text_of
from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import Site
from torchferry.finding import Kind, Message
from torchferry.source.names import called_name
from torchferry.text import Text

_WORDED = Message(
    Text("CUDA error recognised by its text", "按文字识别的 CUDA 错误"),
    why=Text(
        "{company} words its errors differently, so the test never matches.",
        "{company} 的错误措辞不同，因此不会匹配。",
    ),
    do=Text("Catch {exception} for memory errors.", "内存不足请捕获 {exception}。"),
)
_ERROR = re.compile(r"(?i)cuda (?:out of memory|error|driver)|cublas_|cudnn_status|nccl error")
_LISTS = (ast.List, ast.Tuple, ast.Set)
_TESTS = frozenset({"search", "match", "find", "startswith", "index", "count", "findall"})


def _check(site: Site[ast.Constant]) -> Iterator[Proposal]:
    if not _ERROR.search(text_of(site.node)) or not _is_test(site):
        return
    vendor = site.target.vendor
    exception = vendor.oom_exception or "torch.OutOfMemoryError"
    yield site.remark(Kind.TODO, _WORDED.format(company=vendor.company_name, exception=exception))


def _is_test(site: Site[ast.Constant]) -> bool:
    """Whether the text is compared or searched for, rather than shown."""
    for node in site.place.upwards():
        if isinstance(node, ast.Compare):
            return True
        if isinstance(node, ast.Call):
            return called_name(node) in _TESTS
        if not isinstance(node, _LISTS):
            break
    # A list of texts that a name holds, to be searched for later.
    return isinstance(site.place.statement, ASSIGNMENTS) and isinstance(site.parent, _LISTS)


RULE = Rule(
    id="TF403",
    name="error-text",
    summary=Text("Reports CUDA errors that are recognised by their text", "报告按文字识别的 CUDA 错误"),
    triggers=("CUDA", "cuda"),
    nodes=(ast.Constant,),
    check=_check,
)
