"""TF811 and Makefiles: images, variables, and the commands that build and start."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial

from torchferry.conversion.rules.environment import VARIABLE
from torchferry.conversion.texts.draft import Draft, Span, convert_with
from torchferry.conversion.texts.shell import look_at_commands
from torchferry.conversion.texts.shell_lexer import Script, ShellCommand, Word, read_script
from torchferry.conversion.texts.text_rules import DOCKERFILE, SHELL
from torchferry.conversion.texts.words import decide_variable
from torchferry.finding import Kind, Message
from torchferry.text import Text

_IMAGE = Message(
    Text("CUDA base image", "CUDA 基础镜像"),
    why=Text(
        "The target needs an image with its own software; no equivalent tag is known.",
        "目标需要包含自身软件的镜像；没有已知的对应标签。",
    ),
    do=Text("Use an image of {company} with {what}.", "请使用 {company} 提供的、含 {what} 的镜像。"),
)
_IMAGE_PORTABLE = Message(
    Text("CUDA base image", "CUDA 基础镜像"),
    why=Text("Each vendor has its own images.", "各厂商有自己的镜像。"),
    do=Text("Choose the image where the program is built for a vendor.", "请在为某个厂商构建时选择镜像。"),
)
_ARGUMENT = Message(
    Text("Build argument about CUDA", "与 CUDA 有关的构建参数"),
    why=Text("What it changes depends on the lines that use it.", "其作用取决于使用它的行。"),
    do=Text("Check what uses `{name}`.", "请检查 `{name}` 的用途。"),
)

_INSTRUCTION = re.compile(r"[ \t]*([A-Za-z]+)[ \t]+", re.ASCII)
_CUDA_IMAGE = re.compile(r"(?i)(?:^|/)nvidia/|nvcr\.io/|nvidia/cuda|cuda|pytorch/pytorch|-gpu\b|(?:^|:)gpu")
_PAIR = re.compile(r"([A-Za-z_]\w*)(=)?", re.ASCII)
_COMMANDS = frozenset({"RUN", "CMD", "ENTRYPOINT", "HEALTHCHECK"})
_EXEC_WORD = re.compile(r"\"((?:[^\"\\]|\\.)*)\"")


def _look_at_dockerfile(draft: Draft) -> Sequence[Span]:
    for start, end in _instructions(draft):
        match = _INSTRUCTION.match(draft.chars, start, end)
        if match is None:
            continue
        name = match.group(1).upper()
        if name == "ONBUILD":
            match = _INSTRUCTION.match(draft.chars, match.end(), end) or match
            name = match.group(1).upper()
        if name == "FROM":
            _image(draft, match.end(), end)
        elif name in ("ENV", "ARG"):
            _variables(draft, name, match.end(), end)
        elif name in _COMMANDS:
            _commands(draft, match.end(), end)
        elif name in ("LABEL", "MAINTAINER"):
            draft.prose(start, end)
    return ()


convert_dockerfile = partial(convert_with, _look_at_dockerfile)


def _instructions(draft: Draft) -> Iterator[Span]:
    """The spans of instructions, with their continuation lines; comments are prose."""
    begin = -1
    for match in re.finditer(r"[^\n]*\n?", draft.chars):
        line = match.group()
        if line.lstrip().startswith("#"):
            draft.prose(match.start(), match.end())
            continue
        begin = match.start() if begin < 0 else begin
        if line and not re.search(r"\\[ \t]*\r?\n\Z", line):
            yield begin, match.end()
            begin = -1
    if begin >= 0:
        yield begin, len(draft.chars)


def _image(draft: Draft, start: int, end: int) -> None:
    match = re.compile(r"(?:--platform=\S+[ \t]+)?(\S+)").match(draft.chars, start, end)
    if match is None or not _CUDA_IMAGE.search(match.group(1)):
        return
    vendor = draft.target.vendor
    message = _IMAGE_PORTABLE
    if not draft.target.is_portable:
        message = _IMAGE.format(company=vendor.company_name, what=vendor.plugin or vendor.torch_module)
    draft.say(DOCKERFILE, Kind.TODO, match.start(1), match.end(1), message)


def _variables(draft: Draft, instruction: str, start: int, end: int) -> None:
    """ENV NAME=value NAME=value, ENV NAME value"""
    script = read_script(draft.chars, start, end)
    words = [word for command in script.commands for word in command.words]
    is_old_form = bool(words) and "=" not in words[0].text
    for index, word in enumerate(words[:1] if is_old_form else words):
        match = _PAIR.match(word.text)
        name = match.group(1) if match else ""
        if not VARIABLE.match(name):
            continue
        values = [item.value for item in words[index + 1 :]] if is_old_form else [word.value[len(name) + 1 :]]
        if instruction == "ARG":
            # What an argument of the build is for, the commands that use it say.
            draft.say(DOCKERFILE, Kind.TODO, word.start, word.end, _ARGUMENT.format(name=name))
            continue
        assigned = decide_variable(draft.target, name, None if word.is_dynamic else " ".join(values))
        draft.settle(DOCKERFILE, assigned, word.start, word.end, (word.start, word.start + len(name)))
    for name, first, last in script.references:
        decision = decide_variable(draft.target, name) if VARIABLE.match(name) else None
        if decision is not None and decision.kind is Kind.CHANGE:
            draft.settle(DOCKERFILE, decision, first, last, (first, last))


def _commands(draft: Draft, start: int, end: int) -> None:
    """A command in the form of a shell line, or of a list of words."""
    options = re.compile(r"(?:--\w[\w-]*(?:=\S+)?(?:[ \t]|\\\r?\n)+|CMD[ \t]+|NONE\b)*").match(
        draft.chars, start, end
    )
    start = options.end() if options else start
    if draft.chars[start : start + 1] == "[":
        words = [
            Word(*match.span(1), match[1], match[1], ((match[1], match.start(1)),), is_dynamic=False)
            for match in _EXEC_WORD.finditer(draft.chars, start, end)
        ]
        look_at_commands(draft, Script([ShellCommand(words, is_list=True)] if words else []))
    else:
        # A comment line between continuation lines counts as nothing: it is blanked, in place.
        part = re.sub(r"(?m)^[ \t]*#[^\n]*\n", lambda line: " " * len(line.group()), draft.chars[start:end])
        chars = draft.chars[:start] + part + draft.chars[end:]
        look_at_commands(draft, read_script(chars, start, end))


# Makefiles: the commands of their recipes, and the variables that they export.

_RECIPE = re.compile(r"(?m)^\t[@+-]*((?:[^\n]*\\\r?\n)*[^\n]*)")
_EXPORTED = re.compile(r"(?m)^(?:export[ \t]+)([A-Z_0-9]+)[ \t]*(?:[:?+]?=[ \t]*([^\r\n#]*))?")
_COMMENT = re.compile(r"(?m)^[ ]*#[^\n]*")
# $(NAME) and ${NAME} are make's own; $$ is the shell's dollar.
_MAKE_VARIABLE = re.compile(r"(?<!\$)\$(?:\([^()]*\)|\{[^{}]*\}|[@<^?*])")


def _look_at_makefile(draft: Draft) -> Sequence[Span]:
    masked = _MAKE_VARIABLE.sub(lambda match: "\x01" * len(match.group()), draft.chars).replace("$$", "\x01$")
    for match in _RECIPE.finditer(masked):
        look_at_commands(draft, read_script(masked, match.start(1), match.end(1)))
    for match in _EXPORTED.finditer(draft.chars):
        name, value = match.group(1), match.group(2)
        if not VARIABLE.match(name):
            continue
        decision = decide_variable(draft.target, name, None if value and "$" in value else value)
        is_read = f"$({name})" in draft.chars
        draft.settle(SHELL, decision, *match.span(1), None if is_read else match.span(1))
    for match in _COMMENT.finditer(draft.chars):
        draft.prose(*match.span())
    return ()


convert_makefile = partial(convert_with, _look_at_makefile)
