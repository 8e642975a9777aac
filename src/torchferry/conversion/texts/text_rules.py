"""The rules under which texts are reported, and what a glance at a line of one says.

Every run imports this, and with it all these rules are known; what reads the texts is imported when there is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchferry.conversion.rule import Rule, report_rule
from torchferry.conversion.target import Target
from torchferry.finding import Finding, Kind, Message, Severity, Wording, finding_of
from torchferry.text import Text

CUDA_SOURCE = report_rule(
    "TF801",
    "cuda-source",
    Text("CUDA source files: kernels to be written anew", "CUDA 源文件：需要重写的内核"),
)
TEXT_FILE = report_rule(
    "TF802",
    "text-file",
    Text(
        "lines of scripts and configurations that mention CUDA and that no other rule handles",
        "脚本和配置中提到 CUDA、但其他规则无法判断的行",
    ),
)

SHELL = report_rule(
    "TF810",
    "shell",
    Text(
        "shell scripts: variables, options of programs, launchers and tools become the target's",
        "Shell 脚本：变量、程序选项、启动器和工具换成目标设备的",
    ),
)
DOCKERFILE = report_rule(
    "TF811",
    "dockerfile",
    Text(
        "Dockerfiles: images with CUDA are reported, variables and commands become the target's",
        "Dockerfile：报告含 CUDA 的镜像，变量和命令换成目标设备的",
    ),
)
REQUIREMENTS = report_rule(
    "TF812",
    "requirements",
    Text(
        "required packages that are built for CUDA, with what the vendor has",
        "为 CUDA 构建的依赖包，及厂商的对应方案",
    ),
)
CONFIG = report_rule(
    "TF813",
    "config",
    Text(
        "YAML, JSON, TOML and INI: devices and backends become the target's, where a key says what they are",
        "YAML、JSON、TOML、INI：键名表明是设备或通信后端的值换成目标设备的",
    ),
)
NOTEBOOK = report_rule(
    "TF814",
    "notebook",
    Text(
        "notebooks: the code cells are converted as one module; what is not Python in them is said",
        "notebook：代码单元作为一个模块整体转换；其中不是 Python 的部分会说明",
    ),
)

_KERNEL = Message(
    Text("Custom CUDA kernels", "自定义 CUDA 内核"),
    why=Text("CUDA kernels do not run on {company}.", "CUDA 内核不能在 {company} 上运行。"),
    do=Text(
        "Replace the operator by PyTorch operators or by one of the vendor's, or rewrite the kernel{how}.",
        "请用 PyTorch 算子或厂商算子替换，或重写内核{how}。",
    ),
    severity=Severity.BLOCKER,
)
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
    how = f" ({target.vendor.extension})" if target.vendor.extension else ""
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
