"""TF604: software for NVIDIA's GPUs that a program names in strings: onnxruntime-gpu, CUDAExecutionProvider."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchferry.conversion.inference.roles import is_message
from torchferry.conversion.program.callees import passed_to
from torchferry.conversion.program.reads import reads_of
from torchferry.conversion.program.slots import AnySite, Variable, around, text_of
from torchferry.conversion.rule import Proposal, Rule
from torchferry.conversion.site import Site
from torchferry.finding import Kind, Message
from torchferry.text import Text

_NAMED = Message(
    Text("`{name}` is made for NVIDIA GPUs", "`{name}` 面向 NVIDIA GPU"),
    why=Text("It does not run on {company}.", "它不能在 {company} 上运行。"),
    do=Text("Choose the version for the CPU, or the vendor's own.", "请选用 CPU 版本或厂商自己的版本。"),
)
_KEY = Message(
    Text("CUDA dispatch key `{name}`", "CUDA 分派键 `{name}`"),
    why=Text(
        "Other devices have their own key (plugins: `PrivateUse1`).",
        "其他设备有自己的键（插件为 `PrivateUse1`）。",
    ),
    do=Text("Register the operator for the key of the target as well.", "请同时为目标的键注册该算子。"),
)
_CHOOSES = Message(
    Text("Condition on CUDA that chooses {name}", "用于选择 {name} 的 CUDA 判断"),
    why=Text("{name} needs CUDA itself, so the condition stays.", "{name} 本身需要 CUDA，因此保留该判断。"),
)
_PROVIDERS = ("CUDAExecutionProvider", "TensorrtExecutionProvider", "NvTensorRTRTXExecutionProvider")
_PACKAGES = ("onnxruntime-gpu", "onnxruntime_gpu", "tensorflow-gpu", "faiss-gpu", "jax[cuda")
_KEYS = ("AutocastCUDA", "AutogradCUDA", "SparseCUDA", "QuantizedCUDA")
_SOFTWARE = re.compile("|".join(re.escape(word) for word in (*_PROVIDERS, *_PACKAGES)))
_DISPATCH_KEY = re.compile(rf"(?:{'|'.join(_KEYS)})\Z")
# What a condition on CUDA may decide about: also names that go on with -gpu or -cpu, and modules that need the driver.
_DECIDED = re.compile(rf"{_SOFTWARE.pattern}|\b(?:tensorflow|tensorrt|pynvml|nvidia-smi|onnxruntime|cupy)\b")
_OTHER_CUDA = re.compile(rb"\.cuda\b|['\"]cuda|\btorch\.(?!cuda\.is_available)")
_PASSED_ON = (ast.BoolOp, ast.UnaryOp)


def _check(site: Site[ast.Constant]) -> Iterator[Proposal]:
    value = site.node.value
    if not isinstance(value, str) or isinstance(site.parent, ast.Expr) or is_message(site):
        return
    found = _SOFTWARE.search(value)
    if found:
        company = site.target.vendor.company_name
        yield site.remark(Kind.TODO, _NAMED.format(name=found.group(), company=company))
    elif _DISPATCH_KEY.match(value):
        yield site.remark(Kind.TODO, _KEY.format(name=value))


def chooses_nvidia_software(site: Site[ast.Attribute]) -> Message | None:
    """Why torch.cuda.is_available() stays at a site: all that it decides is about software of NVIDIA's."""
    call = around(site)
    if call is None or not isinstance(call.node, ast.Call) or call.node.func is not site.node:
        return None
    name = _decided(call)
    return _CHOOSES.format(name=name) if name else None


def _decided(site: AnySite, may_follow: bool = True) -> str:
    """The software that a condition decides about, "" if it decides about anything else."""
    parent: AnySite | None = around(site)
    child = site.node
    while parent is not None and isinstance(parent.node, _PASSED_ON):
        child, parent = parent.node, around(parent)
    statement = site.place.statement
    if parent is None:
        if isinstance(statement, ast.If) and statement.test is child:
            # if torch.cuda.is_available(): providers = ["CUDAExecutionProvider"]
            module = site.module
            code = b"\n".join(module.segment(item).encode() for item in (*statement.body, *statement.orelse))
            found = _DECIDED.search(code.decode("utf-8"))
            return found.group() if found and not _OTHER_CUDA.search(code) else ""
        return ""
    if isinstance(parent.node, ast.IfExp) and parent.node.test is child:
        # 'onnxruntime-gpu' if ... else 'onnxruntime', f"tensorflow{'' if ... else '-cpu'}"
        text: AnySite | None = parent
        while text is not None:
            words = map(text_of, ast.walk(text.node))
            named = next(filter(None, map(_DECIDED.search, words)), None)
            if named:
                return named.group()
            text = around(text)
            if text is not None and not isinstance(text.node, (ast.JoinedStr, ast.FormattedValue)):
                break
        return ""
    if may_follow and isinstance(parent.node, ast.Assign) and child is site.node:
        # cuda = torch.cuda.is_available(), where each use of the variable decides about such software
        slots = [slot for slot in passed_to(site) if isinstance(slot, Variable)]
        view = site.context.beside(slots[0].path) if len(slots) == 1 else None
        if view is None or isinstance(slots[0].owner, ast.Module):
            return ""
        names = [_decided(read, may_follow=False) for read in reads_of(view, slots[0])]
        return names[0] if names and all(names) else ""
    return ""


RULE = Rule(
    id="TF604",
    name="nvidia-software",
    summary=Text(
        "Reports software for NVIDIA GPUs that is named in strings", "报告字符串中出现的 NVIDIA GPU 专用软件"
    ),
    triggers=(*_PROVIDERS, *_PACKAGES, *_KEYS),
    nodes=(ast.Constant,),
    check=_check,
)
