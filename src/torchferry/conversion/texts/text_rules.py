"""The rules under which texts are reported, and what a glance at a line of one says.

Every run imports this, and with it all these rules are known; what reads the texts is imported when there is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchferry.conversion.rule import Rule, report_rule
from torchferry.conversion.target import Target
from torchferry.finding import NO_TEXT, Finding, Kind, Message, Severity, Wording, finding_of
from torchferry.text import Text
from torchferry.vendors.phrases import phrase

CUDA_SOURCE = report_rule(
    "TF801",
    "cuda-source",
    Text(
        "Reports CUDA source files, whose kernels must be rewritten", "报告 CUDA 源文件，其 kernel 需要重写"
    ),
)
TEXT_FILE = report_rule(
    "TF802",
    "text-file",
    Text(
        "Reports lines of scripts and configurations that mention CUDA and that no other rule handles",
        "报告脚本和配置中提到 CUDA、但其他规则无法判断的行",
    ),
)

SHELL = report_rule(
    "TF810",
    "shell",
    Text(
        "Converts shell scripts: variables, options, launchers and tools",
        "转换 Shell 脚本：变量、选项、启动器和工具",
    ),
)
DOCKERFILE = report_rule(
    "TF811",
    "dockerfile",
    Text("Converts Dockerfiles, and reports images with CUDA", "转换 Dockerfile，并报告含 CUDA 的镜像"),
)
REQUIREMENTS = report_rule(
    "TF812",
    "requirements",
    Text(
        "Reports required packages that are built for CUDA, with what the vendor has",
        "报告为 CUDA 构建的依赖包及厂商的对应方案",
    ),
)
CONFIG = report_rule(
    "TF813",
    "config",
    Text(
        "Converts devices and backends in YAML, JSON, TOML and INI files",
        "转换 YAML、JSON、TOML、INI 文件中的设备和通信后端",
    ),
)
NOTEBOOK = report_rule(
    "TF814",
    "notebook",
    Text(
        "Converts notebooks, and reports what is not Python in them",
        "转换 notebook，并报告其中不是 Python 的部分",
    ),
)

_KERNEL = Message(
    Text("Custom CUDA kernels", "自定义 CUDA kernel"),
    why=Text("CUDA kernels do not run on {company}.", "CUDA kernel 不能在 {company} 上运行。"),
    do=Text(
        "Replace the operator by PyTorch operators or by one of the vendor's, or rewrite the kernel{how}.",
        "请用 PyTorch 算子或厂商算子替换，或重写 kernel{how}。",
    ),
    severity=Severity.BLOCKER,
)
_WITH = Text(" ({tools})", "（{tools}）")
_SPEAKS = Message(
    Text("Line mentions `{what}`", "该行提到 `{what}`"),
    why=Text("On the target this is `{new}`.", "在目标上对应 `{new}`。"),
    do=Text("Change the line if it is read by a program.", "若该行由程序读取，请修改。"),
)
_SPEAKS_ONLY = Message(
    Text("Line mentions `{what}`", "该行提到 `{what}`"),
    why=Text(
        "The target has no equivalent name, and no rule understands the line.",
        "目标没有对应名称，且没有规则能判断该行。",
    ),
    do=Text("Change the line if it is read by a program.", "若该行由程序读取，请修改。"),
)
SPEAKS_OF_CUDA = re.compile(
    r"CUDA_VISIBLE_DEVICES|NCCL_[A-Z0-9_]+|(?<![\w.-])cuda(?=[:\s\"',\]}]|$)(?![ ]?\w*[.]so)|(?<![\w.-])nccl(?![\w.-])"
    r"|torch\.cuda|nvidia-smi|\.cuda\(|(?<!\w)(?:flash[-_]attn|xformers|bitsandbytes|pynvml)(?!\w)|\+cu\d{2,3}|nvidia/cuda|(?<![\w-])apex(?![\w-])"
)
MOST_LINES = 40


def look_at_cuda_source(path: str, target: Target) -> Finding:
    """The one thing to say about a .cu file."""
    how = _WITH.format(tools=phrase(target.vendor.extension)) if target.vendor.extension else NO_TEXT
    message = _KERNEL.format(company=target.vendor.company_name, how=how)
    return finding_of(CUDA_SOURCE.id, Kind.TODO, (path, 1, 1), message, target.name)


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
        place = (path, number, match.start() + 1)
        yield finding_of(rule.id, Kind.TODO, place, message, target.name, before=before, source=before)


def what_it_says(word: str, target: Target) -> Wording:
    """What to say of a line that holds this word of CUDA's."""
    vendor = target.vendor
    known = {
        "CUDA_VISIBLE_DEVICES": vendor.visible_devices_env,
        "cuda": target.device.word,
        "nccl": target.backend.word,
        "torch.cuda": vendor.torch_module,
        ".cuda(": f".{vendor.tensor_method}(" if target.device.word else "",
        "nvidia-smi": vendor.smi,
    }
    new = known.get(word) or vendor.env_map.get(word, "")
    return _SPEAKS.format(what=word, new=new) if new else _SPEAKS_ONLY.format(what=word)
