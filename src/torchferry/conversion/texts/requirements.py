"""TF812: packages that are asked for: in requirements, environments, project files and pip commands. Reported only.

Nothing is edited here: which build of torch a vendor's plugin wants, and in which version, only the vendor's own
table of versions says; a wrong pin installs and then fails.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

from torchferry.conversion.target import with_advice
from torchferry.conversion.texts.draft import Draft, Span, convert_with
from torchferry.conversion.texts.shell_lexer import Word
from torchferry.conversion.texts.text_rules import REQUIREMENTS
from torchferry.conversion.texts.words import company
from torchferry.finding import Kind, Message, Severity
from torchferry.text import Text
from torchferry.vendors.phrases import phrase

_TORCH = Message(
    Text("`{package}` needs the plugin `{plugin}`", "`{package}` 还需要插件 `{plugin}`"),
    why=Text("The version of the plugin must match that of torch.", "插件版本须与 torch 匹配。"),
    do=Text(
        "Add `{plugin}` in the version that {company}'s table of versions gives; `ferry doctor` prints the "
        "pip command for this machine.",
        "请按 {company} 的版本配套表添加 `{plugin}`；`ferry doctor` 会打印适合本机的 pip 命令。",
    ),
)
_TORCH_IN_TREE = Message(
    Text("`{package}` must support {device}", "`{package}` 须支持 {device}"),
    do=Text("Install a build of PyTorch with {device} support.", "请安装支持 {device} 的 PyTorch 构建。"),
)
_CUDA_BUILD = Message(
    Text("CUDA build of `{package}`", "`{package}` 的 CUDA 构建"),
    why=Text("It can't be used with `{plugin}`.", "它不能与 `{plugin}` 一起使用。"),
    do=Text(
        "Take the build that `{plugin}` was made for, see {company}'s table of versions; `ferry doctor` "
        "prints the pip command for this machine.",
        "请改用与 `{plugin}` 配套的构建，参见 {company} 的版本配套表；`ferry doctor` 会打印适合本机的 pip 命令。",
    ),
)
_CUDA_BUILD_IN_TREE = Message(
    Text("CUDA build of `{package}`", "`{package}` 的 CUDA 构建"),
    do=Text("Install a build with {device} support.", "请安装支持 {device} 的构建。"),
)
_CUDA_BUILD_PORTABLE = Message(
    Text("CUDA build of `{package}`", "`{package}` 的 CUDA 构建"),
    why=Text("Each vendor needs its own build.", "各厂商需要自己的构建。"),
    do=Text(
        "Leave the choice of the build to the machine where the program is installed.",
        "请在安装程序的机器上选择构建。",
    ),
)
_INDEX = Message(
    Text("Package index of CUDA builds", "PyTorch CUDA 构建的下载源"),
    why=Text("It has no packages for {company}.", "其中没有 {company} 的包。"),
    do=Text(
        "Remove the index, and install PyTorch from the vendor's source.",
        "请去掉该下载源，并从厂商提供的来源安装 PyTorch。",
    ),
)
_PART_OF_CUDA = Message(
    Text("`{package}` is a part of CUDA", "`{package}` 是 CUDA 的组成部分"),
    why=Text("Only CUDA builds need it.", "只有 CUDA 构建需要。"),
    do=Text("Remove it.", "请去掉。"),
)
_LIBRARY = Message(
    Text("`{package}` runs on CUDA only", "`{package}` 只能在 CUDA 上运行"),
    why=Text("Installing it fails or is useless on the target.", "在目标上安装会失败或没有用处。"),
)
_OWN = Message(
    Text("`{package}` runs on CUDA only", "`{package}` 只能在 CUDA 上运行"),
    why=Text("{company} has its own build.", "{company} 有自己的版本。"),
    do=Text("Install {company}'s build: {own}", "请安装 {company} 的版本：{own}"),
)
_BUILT_FOR_CUDA = Message(
    Text("`{package}` is built for CUDA", "`{package}` 为 CUDA 构建"),
    do=Text("Install `{plain}`, the package without CUDA.", "请安装不含 CUDA 的 `{plain}`。"),
)
_HAS_KERNELS = Message(
    Text("`{package}` has CUDA kernels", "`{package}` 含有 CUDA kernel"),
    why=Text(
        "Whether it runs on {company} depends on its version and build.",
        "能否在 {company} 上运行取决于版本和构建。",
    ),
    do=Text(
        "Look for a version that names {company}, and install it without the CUDA kernels otherwise.",
        "请查找支持 {company} 的版本；否则请安装不含 CUDA kernel 的版本。",
    ),
)

_CUDA_VERSION = re.compile(r"\+cu[\d$]|pytorch-cuda|_cuda\d|cuda\d+\.\d")
_CUDA_INDEX = re.compile(
    r"(?:download\.pytorch\.org|developer\.download\.nvidia|pypi\.ngc\.nvidia|pypi\.nvidia)\S*"
)
_CUDA_WHEELS = re.compile(r"/cu\d{2,3}\b|nvidia")
_NAME = re.compile(r"[\"']?([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?", re.ASCII)
_TORCH_PACKAGES = frozenset({"torch", "torchvision", "torchaudio", "pytorch"})
# Packages (as pip normalises their names) of libraries whose replacement the vendor's table names.
_LIBRARIES = frozenset(
    {
        "apex",
        "flash-attn",
        "xformers",
        "bitsandbytes",
        "triton",
        "pynvml",
        "cupy",
        "tensorrt",
        "torch-tensorrt",
    }
    | {"pycuda", "transformer-engine", "torch-scatter", "torch-sparse", "torch-cluster", "causal-conv1d"}
    | {"mamba-ssm", "deep-gemm"}
)
_OTHER_NAMES = (
    (re.compile(r"nvidia-apex"), "apex"),
    (re.compile(r"nvidia-ml-py3?|py3nvml|gputil|gpustat|nvitop"), "pynvml"),
    (re.compile(r"torch2trt"), "torch_tensorrt"),
    (re.compile(r"cupy-cuda\w+"), "cupy"),
    (re.compile(r"nvidia-dali[\w-]*"), "nvidia.dali"),
    (re.compile(r"tensorrt[\w-]*"), "tensorrt"),
    (re.compile(r"dgl-cu\w+"), "dgl"),
    (re.compile(r"spconv-cu\w+"), "spconv"),
    (re.compile(r"(?:cudf|cuml|cugraph|raft|rmm)-cu\w+"), "cudf"),
)
_WITHOUT_CUDA = {
    "onnxruntime-gpu": "onnxruntime",
    "faiss-gpu": "faiss-cpu",
    "faiss-gpu-cu12": "faiss-cpu",
    "tensorflow-gpu": "tensorflow",
    "jax-cuda12-plugin": "jax",
}
_WITH_KERNELS = frozenset(
    {"deepspeed", "mmcv-full", "mmcv", "fairseq", "detectron2", "vllm", "torch-geometric", "dgl", "pytorch3d"}
)
_PARTS = re.compile(r"(?:lib)?(?:cuda|cudnn|cudatoolkit|nccl|cublas|nvidia)[\w.+-]*|pytorch-cuda")
_INSTALLERS = re.compile(r"pip[\d.]*|conda|mamba|micromamba|uv|poetry|apt|apt-get|yum|dnf|apk")
_VALUED_OPTIONS = frozenset(
    {"-c", "--channel", "-r", "--requirement", "-n", "--name", "-p", "--prefix", "-t"}
)
_PATH_OPTION = re.compile(r"--?(?:extra-index-url|index-url|find-links|i|f)(?:=|\Z)")


def _look(draft: Draft) -> Sequence[Span]:
    for match in re.finditer(r"[^\r\n]+", draft.chars):
        line = match.group()
        comment = re.search(r"(?:^|\s)#", line)
        end = comment.start() if comment else len(line)
        if comment:
            draft.prose(match.start() + end, match.end())
        stripped = line[:end].strip()
        if stripped:
            start = match.start() + line.index(stripped)
            look_at_requirement(draft, start, start + len(stripped))
    return ()


convert_requirements = partial(convert_with, _look)


def look_at_installation(draft: Draft, words: list[Word]) -> None:
    """pip install ..., conda install ..., apt-get install ..."""
    values = [os.path.basename(word.value) for word in words[:6]]
    if "install" not in values and "add" not in values:
        return
    if not any(_INSTALLERS.fullmatch(value) for value in values):
        return
    verb = values.index("install") if "install" in values else values.index("add")
    for before, word in pairwise(words[verb:]):
        is_value = before.value in _VALUED_OPTIONS  # a channel, a file, an environment
        if not is_value and not (word.value.startswith("-") and "index" not in word.value):
            look_at_requirement(draft, word.start, word.end)


def look_at_requirement(draft: Draft, start: int, end: int) -> None:
    """One requirement, or an option about where to look for packages."""
    said = _message(draft, draft.chars[start:end])
    if said is not None:
        draft.say(REQUIREMENTS, said[0], start, end, said[1])


def _message(draft: Draft, text: str) -> tuple[Kind, Message] | None:
    index = _CUDA_INDEX.search(text)
    if index or _PATH_OPTION.match(text):
        is_cuda = index is not None and _CUDA_WHEELS.search(index.group())
        return (Kind.TODO, _INDEX.format(company=company(draft.target))) if is_cuda else None
    match = _NAME.match(text)
    if match is None:
        return None
    name = re.sub(r"[-_.]+", "-", match.group(1)).lower()
    if re.search(r"git\+|https?:", text):
        name = _of_address(text) or name
    if name in _TORCH_PACKAGES:
        return _torch(draft, name, bool(_CUDA_VERSION.search(text)))
    return _package(draft, name)


def _of_address(text: str) -> str:
    """The package that a repository's or a wheel's address names."""
    match = re.search(r"/([\w.-]+?)(?:\.git|-\d[\w.+-]*\.whl)?(?:@[\w./-]+)?(?:#.*)?[\"']?\Z", text)
    name = re.sub(r"[-_.]+", "-", match.group(1)).lower() if match else ""
    return {"flash-attention": "flash-attn", "nvidia-apex": "apex"}.get(name, name)


def _torch(draft: Draft, name: str, is_cuda_build: bool) -> tuple[Kind, Message] | None:
    vendor = draft.target.vendor
    values = {
        "package": name,
        "plugin": vendor.plugin,
        "company": vendor.company_name,
        "device": vendor.device_type,
    }
    if draft.target.is_portable:
        return (Kind.TODO, _CUDA_BUILD_PORTABLE.format(**values)) if is_cuda_build else None
    if is_cuda_build:
        return Kind.TODO, (_CUDA_BUILD if vendor.plugin else _CUDA_BUILD_IN_TREE).format(**values)
    if name not in ("torch", "pytorch"):
        return None
    return Kind.INFO, (_TORCH if vendor.plugin else _TORCH_IN_TREE).format(**values)


def _package(draft: Draft, name: str) -> tuple[Kind, Message] | None:
    vendor = draft.target.vendor
    library = next((known for names, known in _OTHER_NAMES if names.fullmatch(name)), "")
    if name in _LIBRARIES:
        library = name.replace("-", "_")
    own = {"apex": vendor.apex, "triton": vendor.triton}.get(library)
    if own:
        return Kind.TODO, _OWN.format(package=name, company=vendor.company_name, own=phrase(own))
    if library:
        said = with_advice(_LIBRARY.format(package=name), vendor, library)
        return Kind.TODO, replace(said, severity=Severity.DECISION)  # the import of it is the blocker
    if name in _WITHOUT_CUDA:
        return Kind.TODO, _BUILT_FOR_CUDA.format(package=name, plain=_WITHOUT_CUDA[name])
    if name in _WITH_KERNELS:
        return Kind.TODO, _HAS_KERNELS.format(package=name, company=company(draft.target))
    if _PARTS.fullmatch(name):
        return Kind.TODO, _PART_OF_CUDA.format(package=name.rstrip("-"))
    return None
