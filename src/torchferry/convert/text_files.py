"""What a glance at files other than Python modules shows: CUDA sources, scripts, configurations."""

from __future__ import annotations

import re

from torchferry.convert.rule import Rule, register
from torchferry.convert.target import Target
from torchferry.finding import Finding, Kind
from torchferry.text import Text

CUDA_SOURCE = register(
    Rule(
        id="TF801",
        name="cuda-source",
        summary=Text("CUDA source files: kernels to be written anew", "CUDA 源文件：需要重写的内核"),
        triggers=(),
    )
)
TEXT_FILE = register(
    Rule(
        id="TF802",
        name="text-file",
        summary=Text(
            "scripts, configurations and notebooks that speak of CUDA: copied as they are, lines listed",
            "提到 CUDA 的脚本、配置和 notebook：原样复制，列出相关行",
        ),
        triggers=(),
    )
)
UNPARSED = register(
    Rule(
        id="TF901",
        name="unparsed",
        summary=Text("a module that Python can't parse: copied as it is", "Python 无法解析的模块：原样复制"),
        triggers=(),
    )
)
UNREADABLE = register(
    Rule(
        id="TF902",
        name="unreadable",
        summary=Text("a file that can't be read or decoded", "无法读取或解码的文件"),
        triggers=(),
    )
)
UNSAFE = register(
    Rule(
        id="TF903",
        name="unsafe",
        summary=Text(
            "a rewrite that failed its own check: the file was left as it was", "改写未通过自检：文件保持原样"
        ),
        triggers=(),
    )
)
ENCODING = register(
    Rule(
        id="TF904",
        name="encoding",
        summary=Text("a module in an encoding that it does not declare", "未声明编码的模块"),
        triggers=(),
    )
)

CUDA_SUFFIXES = (".cu", ".cuh", ".ptx")
TEXT_SUFFIXES = (
    ".sh",
    ".bash",
    ".yaml",
    ".yml",
    ".json",
    ".toml",
    ".cfg",
    ".ini",
    ".ipynb",
    ".slurm",
    ".sbatch",
)
_TEXT_NAMES = re.compile(
    r"(?i)^(dockerfile.*|.*\.dockerfile|requirements.*\.txt|makefile|.*\.mk|environment.*\.ya?ml)$"
)

_KERNEL = Text("CUDA kernels must be written anew for {company}{how}", "CUDA 内核需要为 {company} 重写{how}")
_SPEAKS = Text("speaks of {what}; the target's word is {new}", "提到 {what}；目标设备对应 {new}")
_SPEAKS_ONLY = Text("speaks of {what}; decide what it should be", "提到 {what}；请决定如何修改")
_WORDS = re.compile(
    r"CUDA_VISIBLE_DEVICES|NCCL_[A-Z0-9_]+|(?<![\w.-])cuda(?=[:\s\"',\]}]|$)(?![ ]?\w*[.]so)|(?<![\w.-])nccl(?![\w.-])"
    r"|torch\.cuda|nvidia-smi|\.cuda\(|flash[-_]attn|xformers|bitsandbytes|pynvml|\+cu\d{2,3}|nvidia/cuda|(?<![\w-])apex(?![\w-])"
)
_MOST_LINES = 40


def is_text_file(name: str) -> bool:
    """Whether a file is a script or configuration worth a glance."""
    return name.endswith(TEXT_SUFFIXES) or bool(_TEXT_NAMES.match(name))


def look_at_cuda_source(path: str, target: Target) -> Finding:
    """The one thing to say about a .cu file."""
    how = f" ({target.vendor.extension})" if target.vendor.extension else ""
    message = _KERNEL.format(company=target.vendor.company, how=how)
    return Finding(CUDA_SOURCE.id, Kind.TODO, path, 1, 1, "", "", message, target.name)


def look_at_text(path: str, text: str, target: Target, rule: Rule = TEXT_FILE) -> list[Finding]:
    """One finding per line that speaks of CUDA, up to a limit."""
    findings: list[Finding] = []
    for number, line in enumerate(re.split("\r\n|\r|\n", text), start=1):
        match = _WORDS.search(line)
        if match is None or len(findings) >= _MOST_LINES:
            continue
        new = _word_of(target, match.group())
        what = match.group()
        message = _SPEAKS.format(what=what, new=new) if new else _SPEAKS_ONLY.format(what=what)
        before = line.strip()[:200]
        findings.append(
            Finding(rule.id, Kind.TODO, path, number, match.start() + 1, before, "", message, target.name)
        )
    return findings


def _word_of(target: Target, word: str) -> str:
    vendor = target.vendor
    known = {
        "CUDA_VISIBLE_DEVICES": vendor.visible_devices_env,
        "cuda": target.device.word,
        "nccl": target.backend.word,
        "torch.cuda": vendor.torch_module,
        ".cuda(": f".{vendor.tensor_method}(" if target.device.word else "",
        "nvidia-smi": vendor.smi,
    }
    return known.get(word) or vendor.env_map.get(word, "")


def unparsed_findings(path: str, reason: str, line: int, text: str, target: Target) -> list[Finding]:
    """A module that is no Python for us: the reason, and what a lexical look sees in it."""
    message = Text(f"not parsed: {reason}", f"无法解析：{reason}")
    first = Finding(UNPARSED.id, Kind.TODO, path, line, 1, "", "", message, target.name)
    return [first, *look_at_text(path, text, target, UNPARSED)]
