"""TF813: configurations in YAML, JSON, TOML and INI: keys that hold a device, a backend or a variable."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

from torchferry.conversion.file import Conversion, FileJob
from torchferry.conversion.rules.environment import ENVIRONMENT, VARIABLE
from torchferry.conversion.texts import requirements
from torchferry.conversion.texts.config_reader import (
    ConfigContents,
    ConfigEntry,
    UnreadableConfigError,
    read_ini,
    read_json,
    read_toml,
    read_yaml,
)
from torchferry.conversion.texts.draft import Draft, Span, convert_with
from torchferry.conversion.texts.shell import OPTION, container_advice, look_at_commands
from torchferry.conversion.texts.shell_lexer import read_script
from torchferry.conversion.texts.text_rules import CONFIG
from torchferry.conversion.texts.words import Decision, company, decide, decide_variable
from torchferry.finding import Kind, Message
from torchferry.source.decode import DecodedText
from torchferry.text import Text

_TOO_LARGE = Message(
    Text("File too large for a configuration ({size} MB)", "文件过大，不像配置文件（{size} MB）"),
    why=Text("It mentions CUDA and was left unchanged.", "其中提到了 CUDA，保持不变。"),
)
_OWN_KEY = Message(
    Text("Your program's own key", "您自己程序的键名"),
    why=Text("The program reads the key by this name, so it stays.", "程序按该名称读取，因此保留。"),
)
_GPUS = Message(
    Text("Number or list of GPUs", "GPU 数量或列表"),
    why=Text(
        "Its meaning depends on the program that reads this file. PyTorch Lightning and launchers look for "
        "CUDA devices under this name.",
        "含义取决于读取此文件的程序。PyTorch Lightning 和启动器会按此名称寻找 CUDA 设备。",
    ),
    do=Text("Check how the program uses it.", "请检查程序如何使用它。"),
)
_ACCELERATOR = Message(
    Text("`gpu` for PyTorch Lightning", "PyTorch Lightning 的 `gpu`"),
    why=Text(
        "It means CUDA or MPS. Once the program imports `ferry_lightning`, which a conversion adds where "
        "Python code makes the Trainer (TF610), it means the device of the target.",
        "它指 CUDA 或 MPS。程序导入 `ferry_lightning` 后即指目标设备；转换会在 Python 代码创建 Trainer 处添加该模块（TF610）。",
    ),
)
_OWN_GPU = Message(
    Text("Word `gpu` of another program", "其他程序使用的 `gpu`"),
    why=Text(
        "PyTorch has no device of this name, and PaddlePaddle takes it for CUDA, so it stays.",
        "PyTorch 没有这样的设备名，PaddlePaddle 会视为 CUDA，因此保留。",
    ),
)
_LAUNCHER = Message(
    Text("`{old}` for accelerate", "accelerate 的 `{old}`"),
    why=Text("It means CUDA.", "它指 CUDA。"),
    do=Text(
        "Write `{new}`, if your version of accelerate knows it.", "请改为 `{new}`（取决于 accelerate 版本）。"
    ),
)
_RESOURCE = Message(
    Text("Kubernetes resource of NVIDIA", "NVIDIA 的 Kubernetes 资源"),
    why=Text("The device plugin of {company} has another name.", "{company} 的设备插件名称不同。"),
    do=Text(
        "Ask the administrator of the cluster for the resource name of {company}.",
        "请向集群管理员确认 {company} 的资源名称。",
    ),
)
_IMAGE = Message(
    Text("CUDA base image", "CUDA 基础镜像"),
    why=Text("{company} needs its own image.", "{company} 需要自己的镜像。"),
    do=Text("Use an image that contains the software of {company}.", "请使用包含 {company} 软件的镜像。"),
)
_UPPER = Message(
    Text("Value in capitals that may name a device", "可能是设备名的大写值"),
    do=Text("If it is a device, write {new}.", "若是设备名，请改为 {new}。"),
)

_LARGEST = 1_000_000
_JSON_WORTH = re.compile(
    r'"(?:[^"\\\s]*=)?(?:cuda|nccl|nvidia|gpu|CUDA|NCCL|NVIDIA|MULTI_GPU|(?:PY)?TORCH_)|gpus?"'
)
_GPU_KEY = re.compile(r"(?i)^(?:n_?|num_?)?gpus?(?:_?(?:ids?|per_node|count|num))?$")
_CUDA_IMAGE = re.compile(r"nvidia/|nvcr\.io/|cuda\d|-cuda")
_COMMAND_KEY = re.compile(
    r"(?i)^(?:run|script|command|cmd|commands|entrypoint|before_script|after_script|setup)$"
)
_PACKAGE_KEY = re.compile(
    r"(?i)^(?:dependencies|pip|requires|install_requires|extras_require|optional-dependencies|dependency-groups)$"
)
_PACKAGE_TABLE = re.compile(r"(?i)^(?:dependencies|dev-dependencies)$")  # its keys are packages

Reader = Callable[[str], ConfigContents]


def _convert(reader: Reader, decoded: DecodedText, path: str, job: FileJob) -> Conversion:
    # Most JSON is data; reading it all takes longer than looking for the words that matter.
    is_worth_reading = reader is not read_json or bool(_JSON_WORTH.search(decoded.text))

    def look(draft: Draft) -> Sequence[Span]:
        if len(draft.source.data) > _LARGEST:
            size = round(len(draft.source.data) / 1e6)
            draft.say(CONFIG, Kind.INFO, 0, 0, _TOO_LARGE.format(size=size))
            draft.is_whole = True
            return ()
        if not is_worth_reading:
            return ()
        try:
            contents = reader(draft.chars)
        except UnreadableConfigError:
            return ()  # the lines that speak of CUDA are reported
        _ConfigLook(draft, contents).look()
        return [(entry.start, entry.end) for entry in contents.entries]

    return convert_with(look, decoded, path, job)


convert_yaml = partial(_convert, read_yaml)
convert_json = partial(_convert, read_json)
convert_toml = partial(_convert, read_toml)
convert_ini = partial(_convert, read_ini)


class _ConfigLook:
    def __init__(self, draft: Draft, contents: ConfigContents) -> None:
        self.draft = draft
        self.contents = contents

    def look(self) -> None:
        before: ConfigEntry | None = None
        for entry in self.contents.entries:
            if entry.is_key:
                if VARIABLE.match(entry.value):
                    self._variable(entry, _is_environment(entry.names))
                elif entry.value == "nvidia.com/gpu":
                    message = _RESOURCE.format(company=company(self.draft.target))
                    self.draft.say(CONFIG, Kind.TODO, entry.start, entry.end, message)
                elif entry.value in ("cuda", "nccl"):
                    self.draft.say(CONFIG, Kind.INFO, entry.start, entry.end, _OWN_KEY)
                elif entry.names and _PACKAGE_TABLE.match(entry.names[-1]):
                    requirements.look_at_requirement(self.draft, entry.start, entry.end)
            else:
                self._value(entry, before)
            before = entry
        for start, end in self.contents.comments:
            self.draft.prose(start, end)

    def _value(self, entry: ConfigEntry, before: ConfigEntry | None) -> None:
        names, value = entry.names, entry.value
        nearest = names[-1] if names else ""
        if any(map(_PACKAGE_KEY.match, names[-2:])):
            requirements.look_at_requirement(self.draft, entry.start, entry.end)
        elif entry.is_part:
            return
        elif VARIABLE.match(value.partition("=")[0]) and _is_environment(names):
            self._variable(entry, is_variable=True)  # - NAME=value, name: NAME
        elif entry.is_plain and _COMMAND_KEY.match(nearest) and (" " in value or value == "nvidia-smi"):
            look_at_commands(self.draft, read_script(self.draft.chars, entry.start, entry.end))
        else:
            self._setting(entry, before)

    def _setting(self, entry: ConfigEntry, before: ConfigEntry | None) -> None:
        start, value, names = entry.start, entry.value, entry.names
        option = OPTION.match(value)
        if option and option.group(2):  # "--device=cuda" in a list of arguments
            start, value, names = start + option.start(2), option.group(2), (option.group(1).lstrip("-"),)
        elif before is not None and before.names == names and not before.is_key:
            previous = OPTION.match(before.value)
            if previous and previous.group(2) is None:  # "--device", "cuda"
                names = (previous.group(1).lstrip("-"),)
        decision = decide(self.draft.target, names, value) or self._remark(names, value)
        if decision is not None:
            self.draft.settle(CONFIG, decision, entry.start, entry.end, (start, start + len(value)))

    def _remark(self, names: tuple[str, ...], value: str) -> Decision | None:
        target = self.draft.target
        nearest = names[-1] if names else ""
        if value == "gpu" and re.search(r"(?i)accelerator", nearest):
            return Decision(Kind.TODO, _ACCELERATOR)
        if re.fullmatch(r"gpu(?::\d+)?", value) and re.search(r"(?i)device|place", nearest):
            return Decision(Kind.INFO, _OWN_GPU)
        if re.fullmatch(r"(?i)use_gpu", nearest) and value.lower() == "true":
            return Decision(Kind.INFO, _OWN_GPU)
        if value == "MULTI_GPU" and not target.is_portable:
            new = f"MULTI_{target.device.word.upper()}"
            return Decision(Kind.TODO, _LAUNCHER.format(old=value, new=new))
        if _GPU_KEY.match(nearest) and re.fullmatch(r"-?\d[\d, ]*|auto|null", value):
            return Decision(Kind.INFO, _GPUS)
        if value == "nvidia" and nearest in ("driver", "runtime"):
            return Decision(Kind.TODO, container_advice(self.draft, f"{nearest}: {value}"))
        if nearest in ("image", "base_image", "container") and _CUDA_IMAGE.search(value):
            return Decision(Kind.TODO, _IMAGE.format(company=company(target)))
        if value.startswith("CUDA") and (lower := decide(target, names, value.lower())):
            if lower.kind is Kind.CHANGE:
                return Decision(Kind.TODO, _UPPER.format(new=lower.new))
        return None

    def _variable(self, entry: ConfigEntry, is_variable: bool) -> None:
        name, _, value = entry.value.partition("=")
        decision = decide_variable(self.draft.target, name, value if "=" in entry.value else None)
        if is_variable or name.startswith(("NCCL_", "CUDA_VISIBLE")):
            place = (entry.start, entry.start + len(name)) if is_variable else None
            self.draft.settle(CONFIG, decision, entry.start, entry.end, place)


def _is_environment(names: tuple[str, ...]) -> bool:
    """Whether what stands under these keys is a variable, by the nearest of them that is not `name`."""
    near = [name for name in names if name not in ("name", "key")][-1:]
    return any(ENVIRONMENT.search(name) or name == "variables" for name in near)
