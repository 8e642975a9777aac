"""TF810: shell scripts: variables, options of programs, launchers and tools."""

from __future__ import annotations

import os.path
import re
from collections.abc import Sequence
from itertools import pairwise

from torchferry.conversion.file import Conversion, FileJob
from torchferry.conversion.rule import Rule
from torchferry.conversion.rules.environment import VARIABLE
from torchferry.conversion.texts import launchers, requirements
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
from torchferry.finding import Kind
from torchferry.source.decode import DecodedText
from torchferry.source.edits import Edit
from torchferry.text import Text

_IN_STRING = Text(
    "a command inside a string that sets {old}; read it, and write what the target wants",
    "字符串中的命令设置了 {old}；请检查并按目标设备修改",
)
_PYTHON_INSIDE = Text(
    "Python code inside a shell script is not converted; put it into a file of its own",
    "Shell 脚本中的 Python 代码不会转换；请放入单独的文件",
)
_SCHEDULER = Text(
    "asks the scheduler for GPUs; what devices of {company} are called there, your cluster decides",
    "向调度系统申请 GPU；{company} 设备在调度系统中的名称由您的集群决定",
)
_TOOLKIT_PATH = Text(
    "leads to the CUDA toolkit; the target has a toolkit of its own",
    "指向 CUDA 工具包；目标设备有自己的工具包",
)
_VETOED = Text(
    "{old} is set elsewhere in this file in a way that has no counterpart; left as it is",
    "{old} 在本文件别处的设置没有对应写法；保持不变",
)

_PROSE_COMMANDS = frozenset({"echo", "printf", "log", "logger", "die", "info", "warn", "error", "usage"})
# Their words are files, packages, patterns and targets: never a device.
_OTHER_TOOLS = re.compile(
    r"apt|apt-get|apk|awk|brew|cd|chmod|cmake|cp|curl|dnf|find|git|[ef]?grep|gcc|g\+\+|ln|ls|make|mkdir|module|mv|ninja"
    r"|nvcc|rm|rsync|sed|source|tar|tee|touch|unzip|wget|which|yum|zip|\."
)
_DECLARING = frozenset({"export", "declare", "typeset", "local", "readonly", "env", "set", "setenv"})
_NAMING = frozenset({"export", "unset", "-e", "--env", "-x", "-genv"})  # what comes next is a variable's name
_OPTION = re.compile(r"(--?[A-Za-z][\w.-]*)(?:=(.*))?\Z", re.ASCII | re.DOTALL)
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


def convert_shell(decoded: DecodedText, path: str, job: FileJob) -> Conversion:
    """A shell script."""
    return convert_with(look_at_script, decoded, path, job)


def look_at_script(draft: Draft) -> Sequence[Span]:
    """A whole text that is a shell script."""
    look_at_commands(draft, read_script(draft.chars))
    return ()


def look_at_commands(draft: Draft, script: Script, rule: Rule = SHELL) -> None:
    """The commands of a script, or of a part of another text; `rule` is whose words they are reported as."""
    _ScriptReader(draft, script, rule).read()


class _ScriptReader:
    """Looks at everything in one script."""

    def __init__(self, draft: Draft, script: Script, rule: Rule) -> None:
        self.draft = draft
        self.script = script
        self.rule = rule
        self.vetoed: set[str] = set()  # variables that an assignment keeps from being renamed
        self.assigned: set[str] = set()
        self.subject: tuple[str, ...] = ()  # the variable that the last `case` asks for

    def read(self) -> None:
        for command in self.script.commands:
            self._veto(command)
        for command in self.script.commands:
            self._command(command, list(words_behind(command)))
        for reference in self.script.references:
            if VARIABLE.match(reference.name):
                self._rename_reference(reference.name, reference.start, reference.end)
        for start, end in self.script.comments:
            self._comment(start, end)
        for start, end, command in self.script.heredocs:
            self._heredoc(start, end, command)

    # -- variables

    def _veto(self, command: ShellCommand) -> None:
        words = list(words_behind(command))
        for index, word in enumerate(words):
            found = argument_assignment(word)
            if not found or not VARIABLE.match(found[0]):
                continue
            self.assigned.add(found[0])
            is_prefix = index + 1 < len(words) and all(map(assignment, words[: index + 1]))
            if not is_prefix and self._assigned(word, *found).kind is not Kind.CHANGE:
                self.vetoed.add(found[0])

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
            edit = Edit(start, start + len(name), decision.new)
            self.draft.change(self.rule, word.start, word.end, decision.message, edit)

    def _rename_reference(self, name: str, start: int, end: int) -> None:
        decision = decide_variable(self.draft.target, name)
        if decision.kind is Kind.CHANGE and name not in self.vetoed:
            self.draft.change(self.rule, start, end, decision.message, Edit(start, end, decision.new))
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
        launchers.look_at_launch(self.draft, self.rule, command, words)
        launchers.look_at_count(self.draft, self.rule, words)
        launchers.look_at_tools(self.draft, self.rule, command, words)
        requirements.look_at_installation(self.draft, words)
        if name in _SHELLS and self._inner_script(words):
            return
        if name in _SCHEDULERS:
            self._scheduler(words)
        if name == "case":
            self.subject = tuple(re.findall(r"\$\{?(\w+)", words[1].text)[:1]) if len(words) > 1 else ()
        if command.operator == ")" and (len(words) == 1 or name == "case"):
            self._value(words[-1], self.subject, words[-1].value, 0)  # cuda) ... ;;
        elif name == "for":
            self._loop(words)
        elif name in _COMPARING:
            self._comparison(words)
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
        for index, word in enumerate(words):
            if index == 0:
                continue
            found = argument_assignment(word)
            if found and VARIABLE.match(found[0]):
                self._assignment(word, is_exported=True)
            elif words[index - 1].value in _NAMING and VARIABLE.match(word.text):
                self._rename_reference(word.text, word.start, word.end)
            elif name in _DECLARING:
                self._assignment(word, is_exported=True)
            elif name == "module" and _MODULE.match(word.value):
                self.draft.say(self.rule, Kind.TODO, word.start, word.end, _TOOLKIT_PATH)
            elif not _OTHER_TOOLS.fullmatch(name) and not self._string(word):
                option = self._argument(word, option)

    def _argument(self, word: Word, before: str) -> str:
        """One argument; answers with the name of the option that the next one belongs to, "" if none."""
        match = _OPTION.match(word.value)
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
        if decision is None:
            return
        place = word.place(begin, len(value))
        if decision.kind is Kind.CHANGE and place >= 0:
            edit = Edit(place, place + len(value), decision.new)
            self.draft.change(self.rule, word.start, word.end, decision.message, edit)
        else:
            kind = Kind.TODO if decision.kind is Kind.CHANGE else decision.kind
            self.draft.say(self.rule, kind, word.start, word.end, decision.message)

    def _loop(self, words: list[Word]) -> None:
        """for device in cuda cpu"""
        if len(words) > 3 and words[2].text == "in":
            for word in words[3:]:
                self._value(word, (words[1].value,), word.value, 0)

    def _comparison(self, words: list[Word]) -> None:
        """[ "$DEVICE" = cuda ]"""
        names = [match.group(1) for word in words for match in re.finditer(r"\$\{?(\w+)", word.text)]
        for word in words[1:]:
            self._value(word, tuple(names[:1]), word.value, 0)

    def _scheduler(self, words: list[Word]) -> None:
        for word in words:
            if _GPUS_ASKED.search(word.value):
                self._asked(word.start, word.end)

    def _asked(self, start: int, end: int) -> None:
        message = _SCHEDULER.format(company=company(self.draft.target))
        self.draft.say(self.rule, Kind.TODO, start, end, message)

    # -- what is not commands

    def _comment(self, start: int, end: int) -> None:
        if _DIRECTIVE.match(self.draft.chars, start, end):
            self._asked(start, end)
        else:
            self.draft.prose(start, end)

    def _heredoc(self, start: int, end: int, command: ShellCommand) -> None:
        names = [os.path.basename(word.value) for word in command.words[:2]]
        if any(name.startswith("python") for name in names) and "cuda" in self.draft.chars[start:end]:
            first, last = command.words[0], command.words[-1]
            self.draft.say(self.rule, Kind.TODO, first.start, last.end, _PYTHON_INSIDE)
