"""What a glance at a text shows: lines that speak of CUDA, and files of CUDA code."""

from __future__ import annotations

import re
from collections.abc import Iterator

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
            "lines of scripts and configurations that speak of CUDA, and that no other rule understands",
            "脚本和配置中提到 CUDA、但其他规则无法判断的行",
        ),
        triggers=(),
    )
)

_KERNEL = Text("CUDA kernels must be written anew for {company}{how}", "CUDA 内核需要为 {company} 重写{how}")
_SPEAKS = Text("speaks of {what}; the target's word is {new}", "提到 {what}；目标设备对应 {new}")
_SPEAKS_ONLY = Text("speaks of {what}; decide what it should be", "提到 {what}；请决定如何修改")
SPEAKS_OF_CUDA = re.compile(
    r"CUDA_VISIBLE_DEVICES|NCCL_[A-Z0-9_]+|(?<![\w.-])cuda(?=[:\s\"',\]}]|$)(?![ ]?\w*[.]so)|(?<![\w.-])nccl(?![\w.-])"
    r"|torch\.cuda|nvidia-smi|\.cuda\(|(?<!\w)(?:flash[-_]attn|xformers|bitsandbytes|pynvml)(?!\w)|\+cu\d{2,3}|nvidia/cuda|(?<![\w-])apex(?![\w-])"
)
MOST_LINES = 40


def look_at_cuda_source(path: str, target: Target) -> Finding:
    """The one thing to say about a .cu file."""
    how = f" ({target.vendor.extension})" if target.vendor.extension else ""
    message = _KERNEL.format(company=target.vendor.company_name, how=how)
    return Finding(CUDA_SOURCE.id, Kind.TODO, path, 1, 1, "", "", message, target.name)


def look_at_lines(path: str, text: str, target: Target, rule: Rule) -> Iterator[Finding]:
    """One finding per line that speaks of CUDA, up to a limit."""
    found = 0
    for number, line in enumerate(re.split("\r\n|\r|\n", text), start=1):
        match = SPEAKS_OF_CUDA.search(line)
        if match is None:
            continue
        found += 1
        if found > MOST_LINES:
            return
        before = line.strip()[:200]
        message = what_it_says(match.group(), target)
        yield Finding(rule.id, Kind.TODO, path, number, match.start() + 1, before, "", message, target.name)


def what_it_says(word: str, target: Target) -> Text:
    """What to say of a line that holds this word of CUDA's."""
    new = _word_of(target, word)
    return _SPEAKS.format(what=word, new=new) if new else _SPEAKS_ONLY.format(what=word)


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
