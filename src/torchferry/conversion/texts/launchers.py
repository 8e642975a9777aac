"""Commands that start training or that belong to NVIDIA: launchers, nvidia-smi, containers."""

from __future__ import annotations

import os.path
import re
from itertools import pairwise

from torchferry.conversion.rule import Rule
from torchferry.conversion.texts.draft import Draft
from torchferry.conversion.texts.shell_lexer import ShellCommand, Word
from torchferry.finding import Kind
from torchferry.source.edits import Edit
from torchferry.text import Text

_TORCHRUN = Text(
    "torch.distributed.launch is deprecated; torchrun does the same and hands LOCAL_RANK over",
    "torch.distributed.launch 已弃用；torchrun 作用相同，并传递 LOCAL_RANK",
)
_LOCAL_RANK = Text(
    "stays valid, though deprecated: without --use_env the script gets its rank as --local-rank, "
    "which torchrun does not pass",
    "仍然有效，但已弃用：没有 --use_env 时脚本通过 --local-rank 得到编号，torchrun 不会传递",
)
_UNCLEAR_LAUNCH = Text(
    "stays valid, though deprecated: not all of its options can be read here",
    "仍然有效，但已弃用：此处无法读出它的全部选项",
)
_COUNTED = Text(
    "`gpu` counts CUDA devices; write their number, or `auto`, which counts the devices that are there "
    "if the plugin loads by itself (PyTorch 2.5 or newer)",
    "`gpu` 统计的是 CUDA 设备；请写明数量，或用 `auto` 按实际设备统计（要求插件能自动加载，PyTorch 2.5 及以上）",
)
_SMI = Text("{company}'s tool is `{smi}`", "{company} 的工具是 `{smi}`")
_SMI_OPTIONS = Text(
    "calls nvidia-smi, which is not there; {company} has `{smi}`, whose options and output look different",
    "调用了 nvidia-smi，目标环境没有；{company} 提供 `{smi}`，选项和输出不同",
)
_NVIDIAS = Text("{tool} is NVIDIA's, and knows no other devices", "{tool} 是 NVIDIA 的工具，不认识其他设备")
_CONTAINER = Text(
    "{option} is NVIDIA's container runtime; that of {company} reads {variable}",
    "{option} 是 NVIDIA 的容器运行时；{company} 的容器运行时读取 {variable}",
)
_CONTAINER_UNKNOWN = Text(
    "{option} is NVIDIA's container runtime; how a container gets the devices of {company}, its tables don't say",
    "{option} 是 NVIDIA 的容器运行时；数据表中没有 {company} 的容器如何获得设备的说明",
)
_CONTAINER_PORTABLE = Text(
    "{option} is NVIDIA's container runtime; every vendor has its own",
    "{option} 是 NVIDIA 的容器运行时；各厂商有自己的运行时",
)
_PYTHON_STRING = Text(
    "Python code inside a command is not converted; put it into a file of its own",
    "命令中的 Python 代码不会转换；请放入单独的文件",
)

_RUN_AS_MODULE = "torch.distributed.launch"
_VALUED = re.compile(
    r"nproc_per_node|nnodes|node_rank|master_addr|master_port|rdzv_\w+|max_restarts|monitor_interval|start_method"
    r"|log_dir|local_addr"
)
_LEFT_OF_LINE = re.compile(r"[ \t]*\\\r?\n")
_FLAGS = frozenset({"use_env", "module", "m", "no_python", "standalone"})
_TOOLS = frozenset({"nvcc", "nvprof", "nsys", "ncu", "nvidia-docker", "nvidia-settings", "dcgmi"})
_WRAPPERS = frozenset(
    {"sudo", "nohup", "exec", "time", "command", "watch", "which", "type", "hash", "stdbuf"}
)
_CONTAINERS = frozenset({"docker", "podman", "nerdctl", "docker-compose", "singularity", "apptainer"})
_NVIDIA_OPTION = re.compile(r"--gpus(?:=|\Z)|--runtime=nvidia|--nv\Z|--nvccli\Z")
_TORCH_INSIDE = re.compile(r"torch\.cuda|['\"]cuda|\.cuda\(|torch\.version\.cuda")


def look_at_launch(draft: Draft, rule: Rule, command: ShellCommand, words: list[Word]) -> None:
    """python -m torch.distributed.launch [options] script"""
    at = next((index for index, word in enumerate(words) if word.value == _RUN_AS_MODULE), 0)
    if at < 2 or words[at - 1].value != "-m":
        return
    own = _launch_options(words[at + 1 :])
    first, last = words[at - 1], words[at]
    if own is None or command.is_list:
        draft.say(rule, Kind.INFO, first.start, last.end, _UNCLEAR_LAUNCH)
        return
    use_env = [word for word in own if re.fullmatch(r"--use[-_]env", word.text)]
    if not use_env:
        draft.say(rule, Kind.INFO, first.start, last.end, _LOCAL_RANK)
        return
    is_plain = words[at - 2].text in ("python", "python3") and words[at - 2].end + 1 == first.start
    start = words[at - 2].start if is_plain else last.start
    edits = [Edit(start, last.end, "torchrun" if is_plain else "torch.distributed.run")]
    for word in use_env:
        edits.append(_removal(draft, word))
    draft.change(rule, start, max(word.end for word in (last, *use_env)), _TORCHRUN, *edits)


def look_at_count(draft: Draft, rule: Rule, words: list[Word]) -> None:
    """--nproc_per_node=gpu"""
    for before, word in pairwise(words):
        name, _, value = word.value.rpartition("=")
        name = name or before.value
        if value == "gpu" and re.fullmatch(r"--nproc[-_]per[-_]node", name):
            draft.say(rule, Kind.TODO, word.start, word.end, _COUNTED)


def _removal(draft: Draft, word: Word) -> Edit:
    """Take a word out, with the blanks on one side of it, or with its line if nothing else stands there."""
    line = draft.chars.rfind("\n", 0, word.start) + 1
    alone = _LEFT_OF_LINE.match(draft.chars, word.end)
    if alone and not draft.chars[line : word.start].strip():
        return Edit(line, alone.end(), "")
    end = word.end
    while draft.chars[end : end + 1] in (" ", "\t"):
        end += 1
    if draft.chars[end : end + 1] in ("", "\n", "\r"):  # the last of its line: take the blanks before it
        start = word.start
        while draft.chars[start - 1] in " \t":
            start -= 1
        return Edit(start, word.end, "")
    return Edit(word.start, end, "")


def _launch_options(words: list[Word]) -> list[Word] | None:
    """The launcher's own options, those before the script; None if they can't all be read."""
    own: list[Word] = []
    index = 0
    while index < len(words):
        word = words[index]
        match = re.fullmatch(r"--?([\w-]+)(=.*)?", word.value, re.DOTALL)
        if match is None:
            # A script by its name; `$ARGS` may hold options.
            return own if not word.is_dynamic or "." in word.value else None
        name = match.group(1).replace("-", "_")
        is_valued = bool(_VALUED.fullmatch(name))
        if not is_valued and name not in _FLAGS:
            return None
        own.append(word)
        index += 2 if is_valued and match.group(2) is None else 1
    return None


def look_at_tools(draft: Draft, rule: Rule, command: ShellCommand, words: list[Word]) -> None:
    """nvidia-smi and the like, containers, Python code in a string."""
    front = 0
    while front < len(words) - 1 and (
        os.path.basename(words[front].value) in _WRAPPERS or (front and words[front].value.startswith("-"))
    ):
        front += 1
        if words[front].value.replace(".", "").isdigit() and front < len(words) - 1:  # watch -n 1 nvidia-smi
            front += 1
    name = os.path.basename(words[front].value)
    if name == "nvidia-smi":
        _smi(draft, rule, command, words, front)
    elif name in _TOOLS:
        draft.say(rule, Kind.TODO, words[front].start, words[front].end, _NVIDIAS.format(tool=name))
    elif name in _CONTAINERS:
        _container(draft, rule, words[front:])
    elif name.startswith("python"):
        _python_string(draft, rule, words[front:])


def _smi(draft: Draft, rule: Rule, command: ShellCommand, words: list[Word], at: int) -> None:
    vendor = draft.target.vendor
    word = words[at]
    if not vendor.smi:
        draft.say(rule, Kind.TODO, word.start, word.end, _NVIDIAS.format(tool="nvidia-smi"))
        return
    is_asked_for = os.path.basename(words[0].value) in ("command", "which", "type", "hash")
    is_bare = at == len(words) - 1 and word.text == "nvidia-smi" and not (is_asked_for or command.is_list)
    if is_bare and command.operator not in ("|", "|&") and not command.is_nested:
        message = _SMI.format(company=vendor.company_name, smi=vendor.smi)
        draft.change(rule, word.start, word.end, message, Edit(word.start, word.end, vendor.smi))
    else:
        message = _SMI_OPTIONS.format(company=vendor.company_name, smi=vendor.smi)
        draft.say(rule, Kind.TODO, word.start, words[-1].end, message)


def _container(draft: Draft, rule: Rule, words: list[Word]) -> None:
    for word in words:
        if _NVIDIA_OPTION.match(word.value):
            draft.say(rule, Kind.TODO, word.start, word.end, container_advice(draft, word.value))


def container_advice(draft: Draft, option: str) -> Text:
    """What to say of an option that hands GPUs to a container."""
    vendor = draft.target.vendor
    if draft.target.is_portable:
        return _CONTAINER_PORTABLE.format(option=option)
    variable = vendor.env_map.get("NVIDIA_VISIBLE_DEVICES", "")
    if not variable:
        return _CONTAINER_UNKNOWN.format(option=option, company=vendor.company_name)
    return _CONTAINER.format(option=option, company=vendor.company_name, variable=variable)


def _python_string(draft: Draft, rule: Rule, words: list[Word]) -> None:
    """python -c "import torch; print(torch.cuda.is_available())" """
    for option, word in pairwise(words):
        if option.value == "-c" and _TORCH_INSIDE.search(word.value):
            draft.say(rule, Kind.TODO, word.start, word.end, _PYTHON_STRING)
