"""Classifies trigger words in strings."""

from __future__ import annotations

import ast
import re

from .devices import judge_backend, judge_device
from .model import HUMAN, KEEP, MUST, UNSURE, Call
from .names import Names, called, lazy_import
from .paths import LIBRARIES, judge_path
from .roles import Role, role_of
from .tree import Tree, Word

DEVICE = re.compile(r"cuda(:(\d*|[\d,]+|%[dsi]|\{[^{}]*\}|<[^<>]*>)?)?")
BACKENDS = re.compile(r"((cpu|cuda):(gloo|nccl|mpi),?)+")
VARIABLE = re.compile(r"(\w+_)?(CUDA|NCCL|CUDNN)(_\w*)?")
TYPE = re.compile(r"torch\.cuda\.\w*Tensor")
DOTTED = re.compile(r"torch\.cuda(\.\w+)*")
CODE = re.compile(r"torch\.cuda\b|torch\.device\(|\.cuda\(|['\"]cuda(:\d+)?['\"]|--\w+[ =](cuda|nccl)\b")
PROSE = re.compile(r"[A-Za-z]{2,} [A-Za-z]{2,} [a-z]{2,}")
MESSAGE_CALLS = re.compile(
    r"^(print|pprint|warn\w*|info|debug|error|exception|critical|log\w*|fatal|skip\w*|xfail|fail|exit|write|echo"
    r"|rank_zero_\w+|print_\w+|deprecated\w*|\w*(Error|Exception|Warning)|assertTrue|assertFalse|add_docstring\w*"
    r"|set_description\w*|update_docstring|add_start_docstrings\w*)$"
)
MESSAGE_KEYWORDS = {
    "help",
    "description",
    "reason",
    "msg",
    "message",
    "desc",
    "text",
    "title",
    "epilog",
    "usage",
    "metavar",
}
ENVIRONMENT = re.compile(
    r"environ|getenv|setenv|delenv|^_?envs?$|_envs?$|^env_vars?$|add_export", re.IGNORECASE
)
OWN_VARIABLES = re.compile(r"(TORCH_)?NCCL_[A-Z0-9_]+|PYTORCH_CUDA_ALLOC_CONF")
PROFILE_KEY = re.compile(r"(self_)?cuda_(time|memory)\w*")


def judge_string(tree: Tree, names: Names, word: Word) -> Call:
    """The class of the trigger words in one text part of a string."""
    node = word.string
    if node is None:
        return Call(UNSURE, "string not found in the tree")
    role = role_of(tree, node)
    if role.kind == "bare":
        return Call(KEEP, "docstring")
    value = pattern(node)
    message = is_message(tree, node, role)
    if message and not (DEVICE.fullmatch(value) and role.kind == "keyword"):
        return Call(KEEP, "message")
    return _by_value(tree, names, node, value, role)


def _by_value(tree: Tree, names: Names, node: ast.expr, value: str, role: Role) -> Call:
    if DEVICE.fullmatch(value):
        return judge_device(tree, names, node, value, role)
    if value == "NCCL":
        return Call(UNSURE, "a label or the start of a variable's name")
    if value == "nccl":
        return judge_backend(tree, names, node, role)
    if BACKENDS.fullmatch(value) and "cuda" in value:
        return Call(MUST, "backend list by device type")
    if VARIABLE.fullmatch(value):
        return _variable(value, role)
    if TYPE.fullmatch(value):
        return Call(MUST, "torch.cuda tensor type as text")
    if DOTTED.fullmatch(value):
        return _dotted(role)
    if PROFILE_KEY.fullmatch(value):
        return Call(UNSURE, "column of a profile")
    if role.kind == "contains" and re.search(r"CUDA|NCCL|cuDNN", value):
        return Call(UNSURE, "looked for in a text, perhaps an error's")
    if value.lower().startswith("nvidia-smi"):
        return Call(HUMAN, "nvidia-smi command", "nvidia-smi")
    if value.split(".")[0] in LIBRARIES and isinstance(node, ast.Constant) and re.fullmatch(r"[\w.]+", value):
        if (
            role.call is not None
            and (lazy_import(role.call) or called(role.call.func) == "find_spec")
            and role.index == 0
        ):
            family = LIBRARIES[value.split(".")[0]]
            return Call(HUMAN, f"library {family} looked up by name", family, value)
        if re.fullmatch(r"(apex|bitsandbytes|flash_attn|xformers)(\.\w+)*\.[A-Z]\w+", value):
            family = LIBRARIES[value.split(".")[0]]
            return Call(HUMAN, f"a class of {family} named in a text", family, value)
        return Call(KEEP, "a library's name as text")
    if role.call is not None and role.index == 0 and lazy_import(role.call) and value.startswith("torch."):
        return judge_path(value, value) or Call(KEEP, "other text")
    if re.search(r"\b(CUDA_VISIBLE_DEVICES|NCCL_\w+)=", value):
        return Call(HUMAN, "shell command that sets a variable", "command")
    if re.search(r"\bnvidia-smi\b", value) and not PROSE.search(value):
        return Call(HUMAN, "nvidia-smi command", "nvidia-smi")
    if CODE.search(value) and not PROSE.search(value) and "\n" not in value and role.kind != "key":
        return Call(UNSURE, "code in a string")
    return Call(KEEP, "other text")


def _variable(value: str, role: Role) -> Call:
    names = role.names if role.call is None else (*role.names, *_callee(role.call))
    about_environment = any(ENVIRONMENT.search(name) for name in names)
    if value == "CUDA_VISIBLE_DEVICES":
        if about_environment:
            return Call(MUST, "visible devices variable")
        return Call(HUMAN, "visible devices variable, use unknown", "variable")
    if OWN_VARIABLES.fullmatch(value) or (about_environment and re.fullmatch(r"(CUDA|CUDNN)_[A-Z_]+", value)):
        return Call(HUMAN, "environment variable of CUDA or NCCL", "variable")
    return Call(KEEP, "other text")


def _callee(call: ast.Call) -> list[str]:
    return [
        item.attr if isinstance(item, ast.Attribute) else item.id
        for item in ast.walk(call.func)
        if isinstance(item, (ast.Attribute, ast.Name))
    ]


def _dotted(role: Role) -> Call:
    if role.kind in ("key", "contains"):
        return Call(KEEP, "key of a checkpoint or a table")
    if role.call is not None and re.search(
        r"patch|setattr|import_module|locate|get_class", " ".join(_callee(role.call))
    ):
        return Call(MUST, "torch.cuda name as text")
    return Call(UNSURE, "torch.cuda name as text, use unknown")


def pattern(node: ast.expr) -> str:
    """The text of a literal, with {} for an f-string's fields."""
    if isinstance(node, ast.JoinedStr):
        return "".join(
            item.value if isinstance(item, ast.Constant) and isinstance(item.value, str) else "{}"
            for item in node.values
        )
    if isinstance(node, ast.Constant):
        return node.value.decode("latin-1") if isinstance(node.value, bytes) else str(node.value)
    return ""


def is_message(tree: Tree, node: ast.AST, role: Role) -> bool:
    """Whether a string is only shown to people: the text of a log, print, exception, help or skip."""
    if role.kind == "message":
        return True
    if role.kind == "keyword" and role.names[0] in MESSAGE_KEYWORDS:
        return True
    if role.call is not None and role.kind == "argument":
        name = called(role.call.func)
        if MESSAGE_CALLS.match(name):
            return True
        return bool(re.match(r"assert\w+$", name)) and role.index >= 2
    return False
