"""TF810: shell scripts: variables, options of programs, launchers and tools."""

from __future__ import annotations

import os.path
import re
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from torchferry.conversion.rule import Rule
from torchferry.conversion.rules.environment import VARIABLE
from torchferry.conversion.texts import requirements
from torchferry.conversion.texts.draft import Draft, Span, convert_with
from torchferry.conversion.texts.shell_lexer import (
    Script,
    ShellCommand,
    Word,
    argument_assignment,
    assignment,
    read_script,
    words_behind,
)
from torchferry.conversion.texts.text_rules import SHELL
from torchferry.conversion.texts.words import Decision, company, decide, decide_variable
from torchferry.finding import Kind, Message
from torchferry.source.edits import Edit
from torchferry.text import Text

_IN_STRING = Message(
    Text("Command inside a string sets `{old}`", "字符串中的命令设置了 `{old}`"),
    why=Text("Strings are not converted.", "字符串不会被转换。"),
    do=Text("Change the variable by hand to that of the target.", "请手动改为目标的变量。"),
)
_PYTHON_INSIDE = Message(
    Text("Python code inside a shell script", "Shell 脚本中的 Python 代码"),
    why=Text("It is not converted.", "它不会被转换。"),
    do=Text("Move it into its own file and convert again.", "请放入单独的文件，然后重新转换。"),
)
_SCHEDULER = Message(
    Text("GPUs requested from the scheduler", "向调度系统申请 GPU"),
    why=Text(
        "The name of {company}'s devices depends on your cluster.", "{company} 设备的名称取决于您的集群。"
    ),
    do=Text("Write the resource name that your cluster uses.", "请写入集群使用的资源名称。"),
)
_TOOLKIT_PATH = Message(
    Text("Path of the CUDA toolkit", "CUDA 工具包的路径"),
    why=Text("The target has its own toolkit.", "目标设备有自己的工具包。"),
    do=Text(
        "Replace it by the path of the target's toolkit, or remove the line.",
        "请改为目标工具包的路径，或删除该行。",
    ),
)
_VETOED = Message(
    Text("`{old}` is set in a way that has no equivalent", "`{old}` 的设置没有对应写法"),
    why=Text("Another line of this file sets it, so it stays.", "本文件另有一行设置它，因此保留。"),
    do=Text("Change all lines that set it by hand.", "请手动修改所有设置它的行。"),
)

_PROSE_COMMANDS = frozenset({"echo", "printf", "log", "logger", "die", "info", "warn", "error", "usage"})
# Their words are files, packages, patterns and targets: never a device.
_OTHER_TOOLS = re.compile(
    r"apt|apt-get|apk|awk|brew|cd|chmod|cmake|cp|curl|dnf|find|git|[ef]?grep|gcc|g\+\+|ln|ls|make|mkdir|module|mv|ninja"
    r"|nvcc|rm|rsync|sed|source|tar|tee|touch|unzip|wget|which|yum|zip|\."
)
_DECLARING = frozenset({"export", "declare", "typeset", "local", "readonly", "env", "set", "setenv"})
_NAMING = frozenset({"export", "unset", "-e", "--env", "-x", "-genv"})  # what comes next is a variable's name
OPTION = re.compile(r"(--?[A-Za-z][\w.-]*)(?:=(.*))?\Z", re.ASCII | re.DOTALL)
_OVERRIDE = re.compile(r"([+~]{0,2}[A-Za-z_][\w./@-]*)=(.*)\Z", re.ASCII | re.DOTALL)
_DEFAULT = re.compile(r"\$\{(\w+):?[-=](?P<quote>[\"']?)(?P<value>cuda(?::\d+)?|nccl)(?P=quote)\}", re.ASCII)
_SET_INSIDE = re.compile(r"\b(CUDA_VISIBLE_DEVICES|CUDA_LAUNCH_BLOCKING|NCCL_[A-Z0-9_]+)=")
_SET_BEFORE_COMMAND = re.compile(
    rf"(?:^|[;&|(]\s*|\b(?:export|env)\s+)(?:[A-Za-z_]\w*=\S*\s+)*{_SET_INSIDE.pattern}", re.ASCII
)
_MODULE = re.compile(r"(?:cuda|cudnn|nccl|nvhpc)(?:/|\Z)")
_TOOLKIT = re.compile(r"/cuda(?:-[\d.]+)?(?=[/:]|\Z)")
_DIRECTIVE = re.compile(r"#\s?(?:SBATCH|PBS|BSUB|COBALT|\$)\s.*\b\w*gpu", re.IGNORECASE)
_GPUS_ASKED = re.compile(r"--(?:gres=gpu|gpus(?:-per-\w+)?(?:=|\Z)|gpu-bind)|gpu:\d")
_SCHEDULERS = frozenset({"srun", "sbatch", "salloc", "qsub", "bsub"})
_SHELLS = frozenset({"sh", "bash", "zsh", "dash"})
_COMPARING = frozenset({"[", "[[", "test"})


def _look_at_script(draft: Draft) -> Sequence[Span]:
    look_at_commands(draft, read_script(draft.chars))
    return ()


convert_shell = partial(convert_with, _look_at_script)


def look_at_commands(draft: Draft, script: Script, rule: Rule = SHELL) -> None:
    """The commands of a script, or of a part of another text; `rule` is whose words they are reported as."""
    _ScriptReader(draft, script, rule).read()


class _ScriptReader:
    def __init__(self, draft: Draft, script: Script, rule: Rule) -> None:
        self.draft = draft
        self.script = script
        self.rule = rule
        self.vetoed: set[str] = set()  # variables that an assignment keeps from being renamed
        self.assigned: set[str] = set()
        self.subject: tuple[str, ...] = ()  # the variable that the last `case` asks for

    def read(self) -> None:
        for command in self.script.commands:
            words = list(words_behind(command))
            for index, word in enumerate(words):
                found = argument_assignment(word)
                if not found or not VARIABLE.match(found[0]):
                    continue
                self.assigned.add(found[0])
                is_prefix = index + 1 < len(words) and all(map(assignment, words[: index + 1]))
                if not is_prefix and self._assigned(word, *found).kind is not Kind.CHANGE:
                    self.vetoed.add(found[0])
        for command in self.script.commands:
            self._command(command, list(words_behind(command)))
        for name, start, end in self.script.references:
            if VARIABLE.match(name):
                self._rename_reference(name, start, end)
        for start, end in self.script.comments:
            if _DIRECTIVE.match(self.draft.chars, start, end):
                self._asked(start, end)
            else:
                self.draft.prose(start, end)
        for start, end, command in self.script.heredocs:
            names = [os.path.basename(word.value) for word in command.words[:2]]
            if any(name.startswith("python") for name in names) and "cuda" in self.draft.chars[start:end]:
                first, last = command.words[0], command.words[-1]
                self.draft.say(self.rule, Kind.TODO, first.start, last.end, _PYTHON_INSIDE)

    # -- variables

    def _assigned(self, word: Word, name: str, begin: int) -> Decision:
        value = None if word.is_dynamic else word.value[begin:]
        return decide_variable(self.draft.target, name, value)

    def _assignment(self, word: Word, is_exported: bool) -> None:
        """NAME=value, as a statement of its own, before a command, or as an argument."""
        found = argument_assignment(word)
        if not found:
            return
        name, begin = found
        if not VARIABLE.match(name):
            if self._string(word):
                return
            self._value(word, (name,), word.value[begin:], begin)
            if is_exported and _TOOLKIT.search(word.value):
                self.draft.say(self.rule, Kind.TODO, word.start, word.end, _TOOLKIT_PATH)
            return
        decision = self._assigned(word, name, begin)
        if decision.kind is not Kind.CHANGE:
            if is_exported or name.startswith(("NCCL_", "CUDA_VISIBLE")):
                self.draft.say(self.rule, decision.kind, word.start, word.end, decision.message)
        elif name in self.vetoed:
            self.draft.say(self.rule, Kind.TODO, word.start, word.end, _VETOED.format(old=name))
        else:
            start = word.place(0, len(name))
            self.draft.settle(self.rule, decision, word.start, word.end, (start, start + len(name)))

    def _rename_reference(self, name: str, start: int, end: int) -> None:
        decision = decide_variable(self.draft.target, name)
        if decision.kind is Kind.CHANGE and name not in self.vetoed:
            self.draft.settle(self.rule, decision, start, end, (start, end))
        elif decision.kind is Kind.CHANGE:
            self.draft.say(self.rule, Kind.INFO, start, end, _VETOED.format(old=name))
        elif name not in self.assigned:
            self.assigned.add(name)  # said once
            self.draft.say(self.rule, decision.kind, start, end, decision.message)
        else:
            self.draft.say(self.rule, Kind.INFO, start, end, decision.message)

    # -- commands

    def _command(self, command: ShellCommand, words: list[Word]) -> None:
        front = 0
        while front < len(words) and assignment(words[front]):
            self._assignment(words[front], is_exported=front + 1 < len(words) or len(words) > 1)
            front += 1
        words = words[front:]
        if not words:
            return
        name = os.path.basename(words[0].value)
        if name in _PROSE_COMMANDS:
            self.draft.prose(words[0].start, words[-1].end)
            return
        _look_at_launch(self.draft, self.rule, command, words)
        _look_at_count(self.draft, self.rule, words)
        _look_at_tools(self.draft, self.rule, command, words)
        requirements.look_at_installation(self.draft, words)
        if name in _SHELLS and self._inner_script(words):
            return
        for word in words if name in _SCHEDULERS else ():
            if _GPUS_ASKED.search(word.value):
                self._asked(word.start, word.end)
        if name == "case":
            self.subject = tuple(re.findall(r"\$\{?(\w+)", words[1].text)[:1]) if len(words) > 1 else ()
        if command.operator == ")" and (len(words) == 1 or name == "case"):
            self._value(words[-1], self.subject, words[-1].value, 0)  # cuda) ... ;;
        elif name == "for":  # for device in cuda cpu
            for word in words[3:] if words[2:] and words[2].text == "in" else ():
                self._value(word, (words[1].value,), word.value, 0)
        elif name in _COMPARING:  # [ "$DEVICE" = cuda ]
            names = [match.group(1) for word in words for match in re.finditer(r"\$\{?(\w+)", word.text)]
            for word in words[1:]:
                self._value(word, tuple(names[:1]), word.value, 0)
        else:
            self._arguments(name, words)

    def _inner_script(self, words: list[Word]) -> bool:
        """bash -c "..." """
        for option, word in pairwise(words):
            if len(word.pieces) == 1 and re.fullmatch(r"-\w*c", option.value):
                return self._read_inside(*word.pieces[0])
        return False

    def _read_inside(self, text: str, begin: int) -> bool:
        """Read a text in quotes as commands; False if what its backslashes hide can't be told."""
        if "\\" in text:
            return False
        inner = read_script(self.draft.chars, begin, begin + len(text))
        if self.draft.chars[begin - 1] != "'":
            inner.references = []  # the outer script has them
        look_at_commands(self.draft, inner, self.rule)
        return True

    def _string(self, word: Word) -> bool:
        """A command in a string, known by the variable that it sets; whether nothing else is to be said of it."""
        inside = _SET_INSIDE.search(word.value)
        if inside is None or " " not in word.value:
            return False
        for text, begin in word.pieces:
            if _SET_BEFORE_COMMAND.search(text) and self._read_inside(text, begin):
                return True
        message = _IN_STRING.format(old=inside.group(1))
        self.draft.say(self.rule, Kind.TODO, word.start, word.end, message)
        return True

    def _arguments(self, name: str, words: list[Word]) -> None:
        option = name
        for before, word in pairwise(words):
            found = argument_assignment(word)
            if found and VARIABLE.match(found[0]):
                self._assignment(word, is_exported=True)
            elif before.value in _NAMING and VARIABLE.match(word.text):
                self._rename_reference(word.text, word.start, word.end)
            elif name in _DECLARING:
                self._assignment(word, is_exported=True)
            elif name == "module" and _MODULE.match(word.value):
                self.draft.say(self.rule, Kind.TODO, word.start, word.end, _TOOLKIT_PATH)
            elif not _OTHER_TOOLS.fullmatch(name) and not self._string(word):
                option = self._argument(word, option)

    def _argument(self, word: Word, before: str) -> str:
        """One argument; answers with the name of the option that the next one belongs to, "" if none."""
        match = OPTION.match(word.value)
        if match is None and before == "--build-arg":
            return ""  # what an argument of a build chooses, the build decides
        if match is None:
            match = _OVERRIDE.match(word.value)
        if match is None:
            owner = before.lstrip("-") if len(before) > 2 else before
            self._value(word, (owner,) if before.startswith("-") else (), word.value, 0)
            return before if before.startswith("--") else ""  # --devices cuda:0 cuda:1
        name, value = match.group(1), match.group(2)
        if value is None:
            return name
        names = tuple(re.split(r"[./]", name.lstrip("-+~").partition("@")[0]))
        self._value(word, names, value, match.start(2))
        return ""

    def _value(self, word: Word, names: tuple[str, ...], value: str, begin: int) -> None:
        default = _DEFAULT.fullmatch(value)
        if default:
            own = decide(self.draft.target, (default.group(1),), default.group("value"))
            names = (default.group(1),) if own and own.kind is Kind.CHANGE else names
            begin += default.start("value")
            value = default.group("value")
        decision = decide(self.draft.target, names, value)
        if decision is not None:
            start = word.place(begin, len(value))
            place = (start, start + len(value)) if start >= 0 else None
            self.draft.settle(self.rule, decision, word.start, word.end, place)

    def _asked(self, start: int, end: int) -> None:
        message = _SCHEDULER.format(company=company(self.draft.target))
        self.draft.say(self.rule, Kind.TODO, start, end, message)


# Commands that start training or that belong to NVIDIA: launchers, nvidia-smi, containers.

_TORCHRUN = Text(
    "`torch.distributed.launch` replaced by `torchrun`", "`torch.distributed.launch` 改为 `torchrun`"
)
_LOCAL_RANK = Message(
    Text("`torch.distributed.launch` without `--use_env`", "没有 `--use_env` 的 `torch.distributed.launch`"),
    why=Text(
        "It is deprecated but works. The script gets its rank as `--local-rank`, which torchrun does not "
        "pass.",
        "已弃用但仍可用。脚本通过 `--local-rank` 得到编号，而 torchrun 不会传递。",
    ),
)
_UNCLEAR_LAUNCH = Message(
    Text(
        "`torch.distributed.launch` with options that can't be read",
        "含无法读出选项的 `torch.distributed.launch`",
    ),
    why=Text("It is deprecated but works.", "已弃用但仍可用。"),
)
_COUNTED = Message(
    Text("`--nproc_per_node=gpu` counts CUDA devices", "`--nproc_per_node=gpu` 统计的是 CUDA 设备"),
    do=Text(
        "Write the number of devices, or `auto`, which counts the devices of the target if the plugin loads "
        "itself (PyTorch 2.5 or newer).",
        "请写明设备数量，或用 `auto` 按实际设备统计（要求插件能自动加载，PyTorch 2.5 及以上）。",
    ),
)
_SMI = Text("`nvidia-smi` replaced by {company}'s `{smi}`", "`nvidia-smi` 改为 {company} 的 `{smi}`")
_SMI_OPTIONS = Message(
    Text("Call of `nvidia-smi`", "调用 `nvidia-smi`"),
    why=Text(
        "It does not exist on the target, and {company}'s `{smi}` has other options and output.",
        "目标环境没有它，{company} 的 `{smi}` 选项和输出不同。",
    ),
    do=Text("Call `{smi}` and adapt what reads the output.", "请改为调用 `{smi}`，并调整读取输出的代码。"),
)
_NVIDIAS = Message(
    Text("NVIDIA's tool `{tool}`", "NVIDIA 的工具 `{tool}`"),
    why=Text("It does not know other devices.", "它不认识其他设备。"),
    do=Text("Remove the call or use the vendor's tool.", "请删除该调用，或改用厂商的工具。"),
)
_CONTAINER = Message(
    Text("`{option}` of NVIDIA's container runtime", "NVIDIA 容器运行时的 `{option}`"),
    why=Text(
        "The container runtime of {company} reads `{variable}`.", "{company} 的容器运行时读取 `{variable}`。"
    ),
    do=Text("Set `{variable}` instead.", "请改为设置 `{variable}`。"),
)
_CONTAINER_UNKNOWN = Message(
    Text("`{option}` of NVIDIA's container runtime", "NVIDIA 容器运行时的 `{option}`"),
    why=Text(
        "No public source says how a container gets the devices of {company}.",
        "没有公开资料说明容器如何获得 {company} 的设备。",
    ),
    do=Text("Follow {company}'s installation guide for containers.", "请参考 {company} 的容器安装指南。"),
)
_CONTAINER_PORTABLE = Message(
    Text("`{option}` of NVIDIA's container runtime", "NVIDIA 容器运行时的 `{option}`"),
    why=Text("Each vendor has its own container runtime.", "各厂商有自己的容器运行时。"),
    do=Text("Use the option of the vendor where the container runs.", "请在运行环境中使用该厂商的选项。"),
)
_PYTHON_STRING = Message(
    Text("Python code inside a command", "命令中的 Python 代码"),
    why=Text("It is not converted.", "它不会被转换。"),
    do=Text("Move it into its own file and convert again.", "请放入单独的文件，然后重新转换。"),
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


def _look_at_launch(draft: Draft, rule: Rule, command: ShellCommand, words: list[Word]) -> None:
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


def _look_at_count(draft: Draft, rule: Rule, words: list[Word]) -> None:
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


def _look_at_tools(draft: Draft, rule: Rule, command: ShellCommand, words: list[Word]) -> None:
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
        for word in words[front:]:
            if _NVIDIA_OPTION.match(word.value):
                draft.say(rule, Kind.TODO, word.start, word.end, container_advice(draft, word.value))
    elif name.startswith("python"):  # python -c "import torch; print(torch.cuda.is_available())"
        for option, word in pairwise(words[front:]):
            if option.value == "-c" and _TORCH_INSIDE.search(word.value):
                draft.say(rule, Kind.TODO, word.start, word.end, _PYTHON_STRING)


def _smi(draft: Draft, rule: Rule, command: ShellCommand, words: list[Word], at: int) -> None:
    vendor = draft.target.vendor
    word = words[at]
    if not vendor.smi:
        draft.say(rule, Kind.TODO, word.start, word.end, _NVIDIAS.format(tool="nvidia-smi"))
        return
    is_asked_for = os.path.basename(words[0].value) in ("command", "which", "type", "hash")
    is_bare = at == len(words) - 1 and word.text == "nvidia-smi" and not (is_asked_for or command.is_list)
    if is_bare and command.operator not in ("|", "|&") and not command.is_nested:
        changed = _SMI.format(company=vendor.company_name, smi=vendor.smi)
        draft.change(rule, word.start, word.end, changed, Edit(word.start, word.end, vendor.smi))
    else:
        message = _SMI_OPTIONS.format(company=vendor.company_name, smi=vendor.smi)
        draft.say(rule, Kind.TODO, word.start, words[-1].end, message)


def container_advice(draft: Draft, option: str) -> Message:
    """What to say of an option that hands GPUs to a container."""
    vendor = draft.target.vendor
    if draft.target.is_portable:
        return _CONTAINER_PORTABLE.format(option=option)
    variable = vendor.env_map.get("NVIDIA_VISIBLE_DEVICES", "")
    if not variable:
        return _CONTAINER_UNKNOWN.format(option=option, company=vendor.company_name)
    return _CONTAINER.format(option=option, company=vendor.company_name, variable=variable)
