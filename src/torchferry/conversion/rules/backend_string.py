"""TF201: strings that name the nccl backend of torch.distributed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from torchferry.conversion.common_edits import respell, rewrite_inside
from torchferry.conversion.inference.evidence import RoleVerdict, Vocabulary
from torchferry.conversion.inference.roles import left_because
from torchferry.conversion.inference.uses import role_of
from torchferry.conversion.program.slots import text_of
from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import Site
from torchferry.conversion.target import Spelling
from torchferry.finding import Kind, Message
from torchferry.source.names import called_name
from torchferry.text import Text

BACKEND_CHANGED = Text("Communication backend changed to {new}", "通信后端改为 {new}")
_UNCLEAR = Message(
    Text("String that may name the communication backend", "可能是通信后端名称的字符串"),
    why=Text("{reason}", "{reason}"),
    do=Text("If it is the backend, write {new}.", "若是通信后端，请改为 {new}。"),
)
_PER_DEVICE_PORTABLE = Message(
    Text("Backend for each device type", "为各设备类型指定了后端"),
    do=Text(
        "Leave the backend out: torch chooses one for each device that is there.",
        "请省略后端：torch 会按实际设备选择。",
    ),
)
UNKNOWN_BACKEND = Message(
    Text("Communication backend of {company} is unknown", "{company} 的通信后端未知"),
    why=Text("The vendor's data names no backend.", "厂商数据没有给出后端。"),
    do=Text(
        "Ask {company} for the name of its backend and write it here.",
        "请向 {company} 确认后端名称并写在此处。",
    ),
)

# "cpu:gloo,cuda:nccl": one backend per device type
_PER_DEVICE = re.compile(r"(?:\w+:\w+,)*cuda:nccl(?:,\w+:\w+)*\Z")
_LIBRARY_FUNCTION = re.compile(r"(?i)lib|version|path|include|dll|package|module|import")

BACKENDS = Vocabulary(
    noun=Text("backend", "后端"),
    name=re.compile(r"(?i)backend|process_group|(?:^|_)pg(?:_|$)|^dist|comm"),
    own=re.compile(r"(?i)nccl$"),
    siblings=frozenset({"gloo", "mpi", "ucc", "hccl", "cncl", "tccl", "mccl", "xccl", "ccl"}),
    functions={
        "torch.distributed.init_process_group": (0,),
        "torch.distributed.is_backend_available": (0,),
        "torch.distributed.Backend": (0,),
    },
    methods={"init_process_group": (0,), "is_backend_available": (0,)},
    default=RoleVerdict.YES,
    target_word=lambda target: target.backend.word,
)

LABELS = replace(BACKENDS, default=RoleVerdict.UNCLEAR)


def _check(site: Site[ast.Constant]) -> Iterator[Proposal]:
    text = text_of(site.node)
    if isinstance(site.parent, ast.JoinedStr):
        return
    backend = site.target.backend
    if _PER_DEVICE.match(text) and site.target.is_portable:
        yield site.remark(Kind.TODO, _PER_DEVICE_PORTABLE)
    elif _PER_DEVICE.match(text):
        words = [("cuda:nccl", f"{site.target.device.word}:{backend.word}")]
        message = BACKEND_CHANGED.format(new=backend.shown)
        yield site.change(message, *rewrite_inside(site.module, site.node, words))
    elif text in ("nccl", "NCCL"):
        yield from _check_word(site, text)


def _check_word(site: Site[ast.Constant], word: str) -> Iterator[Proposal]:
    """'nccl', or 'NCCL', which torch takes as well, but which may also be a label."""
    backend = site.target.backend
    if not backend.shown:
        yield site.remark(Kind.TODO, UNKNOWN_BACKEND.format(company=site.target.vendor.company_name))
        return
    spelling = Spelling(backend.word.upper() if word.isupper() else backend.word, backend.expression)
    written = spelling.shown
    role = role_of(site, LABELS if word.isupper() else BACKENDS)
    is_library = bool(_LIBRARY_FUNCTION.search(called_name(site.parent)))  # find_library('nccl')
    if role.verdict is RoleVerdict.YES and not is_library:
        edits = respell(site.module, site.node, word, spelling)
        if edits:
            yield site.change(BACKEND_CHANGED.format(new=written), *edits)
    elif role.verdict is not RoleVerdict.NO:
        yield site.remark(Kind.TODO, _UNCLEAR.format(reason=role.reason, new=written))
    elif not role.is_prose:
        yield site.remark(Kind.INFO, left_because(role))


RULE = Rule(
    id="TF201",
    name="backend-string",
    summary=Text("Changes `'nccl'` to the target's communication backend", "将 `'nccl'` 改为目标的通信后端"),
    triggers=("nccl", "NCCL"),
    nodes=(ast.Constant,),
    check=_check,
)
