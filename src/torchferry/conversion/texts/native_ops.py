"""Operators that C++ and CUDA sources register with Python: what a port has to write anew, by name."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchferry.conversion.file import Conversion, FileJob
from torchferry.conversion.rule import report_rule
from torchferry.conversion.target import Target
from torchferry.conversion.texts.text_rules import look_at_cuda_source
from torchferry.finding import NO_TEXT, Finding, Kind, Message, finding_of
from torchferry.source.decode import DecodedText
from torchferry.text import Text
from torchferry.vendors.phrases import phrase

NATIVE_OP = report_rule(
    "TF803",
    "native-operator",
    Text("Lists operators that C++ or CUDA sources register", "列出 C++ 或 CUDA 源文件注册的算子"),
)
CUDA_SUFFIXES = (".cu", ".cuh", ".ptx")
_CPP_SUFFIXES = (".cpp", ".cc", ".cxx", ".c++", ".h", ".hpp")
NATIVE_SUFFIXES = (*CUDA_SUFFIXES, *_CPP_SUFFIXES)
_MARKS = (b"PYBIND11_MODULE", b"TORCH_LIBRARY")

_WITH = Text(" ({tools})", "（{tools}）")
_PORT = Message(
    Text("Custom operators with CUDA code", "含 CUDA 代码的自定义算子"),
    why=Text(
        "The extension registers it, and its CUDA code does not run on {company}.",
        "扩展注册了它，而其 CUDA 代码不能在 {company} 上运行。",
    ),
    do=Text(
        "Provide it for {company}{how}, or call another operator.",
        "请为 {company} 提供实现{how}，或改用其他算子。",
    ),
)
_CPU = Message(
    Text("Custom operators in C++", "C++ 自定义算子"),
    why=Text(
        "Nothing in this file names CUDA, so it may work as it is.", "该文件未提到 CUDA，可能无需修改。"
    ),
)
_NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|(?P<text>"(?:\\.|[^"\\\n])*")', re.DOTALL)
_BLOCK = re.compile(
    r"\b(?P<kind>PYBIND11_MODULE|TORCH_LIBRARY(?:_FRAGMENT|_IMPL)?)\s*\("
    r"\s*(?P<space>\w+)\s*,(?:\s*\w+\s*,)?\s*(?P<variable>\w+)\s*\)\s*\{"
)
_REGISTRATION = r'\b{variable}\s*\.\s*(?:def|impl|class_\s*<[^;{{]*?>)\s*\(\s*"(?P<name>[^"(]+)'


def is_native_of_interest(name: str, data: bytes) -> bool:
    """Whether a file is CUDA code, or C++ that registers something."""
    if name.endswith(CUDA_SUFFIXES):
        return True
    return name.endswith(_CPP_SUFFIXES) and any(mark in data for mark in _MARKS)


def find_native_ops(text: str) -> Iterator[tuple[str, int]]:
    """The operators that a source file registers, each once with its line; by namespace where it has one: my_ops::nms."""
    code = _NOT_CODE.sub(_blanked, text)
    seen: set[str] = set()
    for block in _BLOCK.finditer(code):
        space = "" if block["kind"] == "PYBIND11_MODULE" else f"{block['space']}::"
        pattern = re.compile(_REGISTRATION.format(variable=re.escape(block["variable"])))
        for match in pattern.finditer(code, block.end(), _end_of_block(code, block.end())):
            name = match["name"].strip()
            full = name if "::" in name else space + name
            if full not in seen:
                seen.add(full)
                yield full, code.count("\n", 0, match.start("name")) + 1


def _blanked(match: re.Match[str]) -> str:
    """Comments become spaces, so that positions and lines stay; strings stay."""
    return match.group() if match["text"] else re.sub(r"[^\n]", " ", match.group())


def _end_of_block(code: str, start: int) -> int:
    depth = 1
    for match in re.compile(r'"(?:\\.|[^"\\\n])*"|[{}]').finditer(code, start):
        depth += {"{": 1, "}": -1}.get(match.group(), 0)
        if not depth:
            return match.start()
    return len(code)


def convert_native(decoded: DecodedText, path: str, job: FileJob) -> Conversion:
    """What a port needs to know of a native source; nothing in it is changed."""
    findings = [] if not path.endswith(CUDA_SUFFIXES) else [look_at_cuda_source(path, job.target)]
    findings += look_at_native_ops(path, decoded.text, job.target)
    wanted = {rule.id for rule in job.rules.rules}
    return Conversion(tuple(finding for finding in findings if finding.rule in wanted))


def look_at_native_ops(path: str, text: str, target: Target) -> list[Finding]:
    """One finding per operator."""
    vendor = target.vendor
    is_cuda = path.endswith(CUDA_SUFFIXES) or re.search(r"(?i)cuda", text) is not None
    how = _WITH.format(tools=phrase(vendor.extension)) if vendor.extension else NO_TEXT
    findings: list[Finding] = []
    for name, line in find_native_ops(text):
        message = (_PORT if is_cuda else _CPU).format(name=name, company=vendor.company_name, how=how)
        kind = Kind.TODO if is_cuda else Kind.INFO
        findings.append(finding_of(NATIVE_OP.id, kind, (path, line, 1), message, target.name, before=name))
    return findings
